/* SPDX-License-Identifier: Apache-2.0
 * Loads, shares and unloads the library's kernels in contexts of the simulated driver. */
#include "simcuda/driving.h"

#include "base/result.h"
#include "device/cuda/cuda_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_kernel_module *get(void)
{
    struct tutti_kernel_module *kernels;

    if (tutti_kernel_module_get(driver(), &kernels) != TUTTI_OK) {
        fprintf(stderr, "%s\n", tutti_message_last());
        _exit(9);
    }
    return kernels;
}

/* Copy a word by a kernel, in the current context. */
static void use(const struct tutti_kernel_module *kernels)
{
    uint64_t *words = zeros(2 * sizeof *words), one = 1;

    WORKS(driver()->copy((uintptr_t)words, (uintptr_t)&one, sizeof one));
    MUST(tutti_kernel_module_copy(kernels, words + 1, words, sizeof one, NULL) == TUTTI_OK);
    MUST(peek(words + 1) == 1);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void share(void)
{
    struct tutti_kernel_module *first, *second, *other;

    use_device(0);
    first = get();
    second = get();
    MUST(first == second);
    use_device(1);
    other = get();
    MUST(other != first);
    use(other);
    tutti_kernel_module_put(other);
    use_device(0);
    tutti_kernel_module_put(first);
    use(second);
    tutti_kernel_module_put(second);
    tutti_kernel_module_put(NULL);
}

static void whoever_is_in_a_context_shares_its_kernels_and_the_last_unloads_them(void **state)
{
    (void)state;
    assert_non_null(strstr(passes_apart(share, (struct settings){{"SIMCUDA_DEVICES=2",
                                                                  "SIMCUDA_LEAKS=1"}}),
                           " 0 modules"));
}

/* The next context has the address of the last. */
static void end_and_begin_again(void)
{
    for (int i = 0; i < 3; i++) {
        struct tutti_cu_context *context = use_device(0);
        struct tutti_kernel_module *kernels = get();

        use(kernels);
        if (i > 0)
            tutti_kernel_module_put(kernels);
        WORKS(driver()->primary_release(0));
        if (i == 0) {
            tutti_kernel_module_put(kernels);
            GIVES(TUTTI_CU_CONTEXT_IS_DESTROYED, driver()->context_push(context));
        }
    }
}

static void kernels_are_loaded_anew_when_their_context_has_ended(void **state)
{
    (void)state;
    passes_apart(end_and_begin_again, (struct settings){{NULL}});
}

/* A call that fails leaves nothing to be found by the next one. */
static void forget_what_does_not_unload(void)
{
    struct tutti_kernel_module *kernels;

    use_device(0);
    kernels = get();
    tutti_kernel_module_put(kernels);
    WORKS(driver()->primary_release(0));
    use_device(0);
    kernels = get();
    use(kernels);
}

static void kernels_that_cannot_be_unloaded_are_forgotten_all_the_same(void **state)
{
    (void)state;
    passes_apart(forget_what_does_not_unload,
                 (struct settings){{"TUTTI_SIM_CUDA_FAULT=cuModuleUnload:719"}});
}

/* ---- shared memory --------------------------------------------------------------------------- */

static struct tutti_cu_function *noted[2 * TUTTI_KERNEL_NAME_COUNT];
static int nnoted, percent;

/* In place of cuFuncSetAttribute. */
static int note(struct tutti_cu_function *function, int attribute, int value)
{
    MUST(attribute == TUTTI_CU_FUNCTION_CARVEOUT);
    MUST(nnoted == 0 || value == percent);
    for (int i = 0; i < nnoted; i++)
        MUST(noted[i] != function);
    percent = value;
    noted[nnoted++] = function;
    return driver()->set_function_attribute(function, attribute, value);
}

/* Two blocks of each kernel have room. */
static void look_at_preferences(void)
{
    struct tutti_cu_driver noting = *driver();
    struct tutti_kernel_module *kernels;

    noting.set_function_attribute = note;
    use_device(0);
    MUST(tutti_kernel_module_get(&noting, &kernels) == TUTTI_OK);
    MUST(nnoted == TUTTI_KERNEL_NAME_COUNT);
    MUST(tutti_kernel_module_occupancy(kernels, 256) == 2);
    tutti_kernel_module_put(kernels);
}

/* A driver without that function. */
static void load_without_preferences(void)
{
    struct tutti_cu_driver old = *driver();
    struct tutti_kernel_module *kernels;

    old.set_function_attribute = NULL;
    use_device(0);
    MUST(tutti_kernel_module_get(&old, &kernels) == TUTTI_OK);
    use(kernels);
    tutti_kernel_module_put(kernels);
}

static void all_kernels_prefer_the_same_shared_memory(void **state)
{
    (void)state;
    passes_apart(look_at_preferences, (struct settings){{"SIMCUDA_THREADS=256"}});
    passes_apart(load_without_preferences, (struct settings){{NULL}});
}

/* ---- files ----------------------------------------------------------------------------------- */

static void refuse_file(const char *text)
{
    struct tutti_kernel_module *kernels = NULL;

    use_device(0);
    MUST(tutti_kernel_module_get(driver(), &kernels) == TUTTI_ERR_DEVICE);
    MUST(kernels == NULL);
    if (strstr(tutti_message_last(), text) == NULL) {
        fprintf(stderr, "not \"%s\", but: %s\n", text, tutti_message_last());
        _exit(9);
    }
}

static void refuse_endless(void) { refuse_file("/dev/zero has more than 64 MiB"); }
static void refuse_empty(void) { refuse_file("cannot read /dev/null"); }
static void refuse_missing(void) { refuse_file("cannot open /none: No such file"); }
static void refuse_folder(void) { refuse_file("cannot read /"); }

static void files_that_hold_no_kernels_are_refused(void **state)
{
    (void)state;
    passes_apart(refuse_endless, (struct settings){{"TUTTI_CUDA_KERNELS=/dev/zero"}});
    passes_apart(refuse_empty, (struct settings){{"TUTTI_CUDA_KERNELS=/dev/null"}});
    passes_apart(refuse_missing, (struct settings){{"TUTTI_CUDA_KERNELS=/none"}});
    passes_apart(refuse_folder, (struct settings){{"TUTTI_CUDA_KERNELS=/"}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_in_a_context_shares_its_kernels_and_the_last_unloads_them),
        cmocka_unit_test(kernels_are_loaded_anew_when_their_context_has_ended),
        cmocka_unit_test(kernels_that_cannot_be_unloaded_are_forgotten_all_the_same),
        cmocka_unit_test(all_kernels_prefer_the_same_shared_memory),
        cmocka_unit_test(files_that_hold_no_kernels_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
