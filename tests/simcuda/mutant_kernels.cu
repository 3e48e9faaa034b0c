/* SPDX-License-Identifier: Apache-2.0
 * The kernels with a mistake: in the header SIM_MUTANT, loads that should acquire are relaxed. The
 * header SIM_MUTANT_NEEDS, which that one includes, is as it should be. */
#include "device/cuda/platform.cuh"

#include SIM_MUTANT_NEEDS
#define gpu_load_acquire gpu_load_relaxed
#include SIM_MUTANT
#undef gpu_load_acquire

#include "device/cuda/kernels.cu"
