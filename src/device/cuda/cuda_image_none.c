/* SPDX-License-Identifier: Apache-2.0
 * Defines an empty image, for builds without nvcc or without kernels. */
#include "device/cuda/cuda_image.h"

const unsigned char tutti_kernel_image[1] = {0};
const size_t tutti_kernel_image_bytes = 0;
const char tutti_kernel_image_architectures[] = "";
