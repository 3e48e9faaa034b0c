/* SPDX-License-Identifier: Apache-2.0
 * The kernels' image as it is built in: a fat binary. 0 bytes where nvcc was not there. */
#ifndef TUTTI_DEVICE_CUDA_IMAGE_H
#define TUTTI_DEVICE_CUDA_IMAGE_H

#include <stddef.h>

extern const unsigned char tutti_cuda_image[];
extern const size_t tutti_cuda_image_bytes;

/* The compute capabilities that it has code for: "80 90"; "" where there is none. */
extern const char tutti_cuda_image_architectures[];

#endif
