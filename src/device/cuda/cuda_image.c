/* SPDX-License-Identifier: Apache-2.0
 * Puts the kernels' image into the library. The build defines TUTTI_CUDA_IMAGE as the name of the
 * image's file, and the assembler includes this file unchanged. */
#include "device/cuda/cuda_image.h"

const char tutti_kernel_image_architectures[] = TUTTI_CUDA_IMAGE_FOR;

__asm__(".pushsection .rodata.tutti_kernel_image, \"a\", %progbits\n"
        ".balign 64\n"
        ".global tutti_kernel_image\n"
        ".hidden tutti_kernel_image\n"
        ".type tutti_kernel_image, %object\n"
        "tutti_kernel_image:\n"
        ".incbin \"" TUTTI_CUDA_IMAGE "\"\n"
        ".Ltutti_cuda_image_end:\n"
        ".size tutti_kernel_image, .Ltutti_cuda_image_end - tutti_kernel_image\n"
        ".balign 8\n"
        ".global tutti_kernel_image_bytes\n"
        ".hidden tutti_kernel_image_bytes\n"
        ".type tutti_kernel_image_bytes, %object\n"
        "tutti_kernel_image_bytes:\n"
        ".quad .Ltutti_cuda_image_end - tutti_kernel_image\n"
        ".size tutti_kernel_image_bytes, 8\n"
        ".popsection\n");
