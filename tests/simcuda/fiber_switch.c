/* SPDX-License-Identifier: Apache-2.0
 * Switches from one stack to another: it pushes the registers that a called function must
 * preserve, exchanges the stack pointer, and pops them again. */
#include "simcuda/fiber_switch.h"

#include <stdint.h>

#if defined(__x86_64__)

enum { PUSHED = 6 };

__asm__(".text\n"
        ".globl sim_switch\n"
        ".hidden sim_switch\n"
        ".type sim_switch, @function\n"
        "sim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size sim_switch, . - sim_switch\n");

void *sim_switch_prepare(void *stack, size_t size_bytes, void (*enter)(void))
{
    uint64_t *top = (uint64_t *)(((uintptr_t)stack + size_bytes) & ~(uintptr_t)15);

    *--top = 0; /* where `enter` would return to */
    *--top = (uintptr_t)enter;
    for (int i = 0; i < PUSHED; i++)
        *--top = 0;
    return top;
}

#elif defined(__aarch64__)

enum { PUSHED = 20, LINK = 11 };

__asm__(".text\n"
        ".globl sim_switch\n"
        ".hidden sim_switch\n"
        ".type sim_switch, %function\n"
        "sim_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n"
        "    str x2, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size sim_switch, . - sim_switch\n");

void *sim_switch_prepare(void *stack, size_t size_bytes, void (*enter)(void))
{
    uint64_t *top = (uint64_t *)(((uintptr_t)stack + size_bytes) & ~(uintptr_t)15);

    for (int i = 0; i < PUSHED; i++)
        *--top = 0;
    top[LINK] = (uintptr_t)enter;
    return top;
}

#else

#include <ucontext.h>

/* On other processors the C library does it, by way of the kernel. A context lies at the lower end
 * of its fiber's stack; who has none yet keeps it in the frame that it leaves. */
void sim_switch(void **ret_from, void *to)
{
    ucontext_t here;

    *ret_from = &here;
    swapcontext(&here, to);
}

void *sim_switch_prepare(void *stack, size_t size_bytes, void (*enter)(void))
{
    ucontext_t *context = stack;
    size_t used = (sizeof *context + 63) & ~(size_t)63;

    getcontext(context);
    context->uc_stack.ss_sp = (char *)stack + used;
    context->uc_stack.ss_size = size_bytes - used;
    context->uc_link = NULL;
    makecontext(context, enter, 0);
    return context;
}

#endif
