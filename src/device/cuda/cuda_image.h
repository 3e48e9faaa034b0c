/* SPDX-License-Identifier: Apache-2.0
 * Declares the kernels' image that is built into the library. The image is a fat binary of CUDA. It
 * has 0 bytes if the build had no nvcc, or was configured without kernels. */
#ifndef TUTTI_DEVICE_CUDA_IMAGE_H
#define TUTTI_DEVICE_CUDA_IMAGE_H

#include <stddef.h>

extern const unsigned char tutti_kernel_image[];
extern const size_t tutti_kernel_image_bytes;

/* The compute capabilities that the image has code for, separated by spaces, such as "80 90"; ""
 * if there is no image. */
extern const char tutti_kernel_image_architectures[];

#endif
