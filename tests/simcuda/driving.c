/* SPDX-License-Identifier: Apache-2.0
 * Runs the tests of the simulated driver. */
#include "simcuda/driving.h"

#include "base/param.h"
#include "support/stderr_text.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { HANG_S = 120 }; /* a child that takes longer never ends */

static void run_child(void (*function)(void), const struct settings *settings)
{
    struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
    alarm(HANG_S);
    setenv("TUTTI_CUDA_LIBRARY", SIM_CUDA, 1);
    for (int i = 0; i < 8 && settings->values[i] != NULL; i++)
        putenv((char *)(uintptr_t)settings->values[i]);
    tutti_param_reset();
    function();
    exit(0);
}

static const char *run(void (*function)(void), const struct settings *settings, int *ret_status)
{
    pid_t child;

    stderr_text_begin();
    child = fork();
    if (child == 0)
        run_child(function, settings);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, ret_status, 0), child);
    return stderr_text_end();
}

const char *passes_apart(void (*function)(void), struct settings settings)
{
    int status;
    const char *said = run(function, &settings, &status);

    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with status %x:\n%s", (unsigned)status, said);
    return said;
}

void dies_apart(void (*function)(void), const char *text, struct settings settings)
{
    int status;
    const char *said = run(function, &settings, &status);

    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 9))
        fail_msg("the child should have been ended, but has status %x:\n%s", (unsigned)status,
                 said);
    if (text != NULL && strstr(said, text) == NULL)
        fail_msg("not \"%s\", but:\n%s", text, said);
}

void gives(int wanted, int got, const char *call, const char *file, int line)
{
    if (got == wanted)
        return;
    fprintf(stderr, "%s:%d: %s gives %d, not %d\n", file, line, call, got, wanted);
    _exit(9);
}

/* ---- the driver ------------------------------------------------------------------------------ */

const struct tutti_cu_driver *driver(void)
{
    const struct tutti_cu_driver *cuda = tutti_cu_get(true);

    MUST(cuda != NULL);
    return cuda;
}

struct tutti_cu_context *use_device(int ordinal)
{
    struct tutti_cu_context *context;

    WORKS(driver()->primary_retain(&context, ordinal));
    WORKS(driver()->context_set(context));
    return context;
}

struct tutti_cu_function *kernel(const char *name)
{
    struct tutti_cu_function *function;
    struct tutti_cu_module *module;

    WORKS(driver()->module_load(&module, "SIMCUDA"));
    WORKS(driver()->module_function(&function, module, name));
    return function;
}

int launch(const char *name, unsigned blocks, unsigned threads, struct tutti_cu_stream *stream,
           void *argument)
{
    void *parameters[1] = {argument};

    return driver()->launch(kernel(name), blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

uint64_t *zeros(size_t size_bytes)
{
    tutti_cu_address address;

    WORKS(driver()->memory_alloc(&address, size_bytes));
    WORKS(driver()->set8(address, 0, size_bytes));
    return (uint64_t *)(uintptr_t)address;
}

uint64_t peek(const uint64_t *at)
{
    uint64_t value;

    WORKS(driver()->copy((uintptr_t)&value, (uintptr_t)at, sizeof value));
    return value;
}

const struct graph_calls *graphs(void)
{
    static struct graph_calls calls;
    static const struct {
        const char *name;
        size_t at;
    } names[] = {
        {"cuStreamBeginCapture_v2", offsetof(struct graph_calls, begin)},
        {"cuStreamEndCapture", offsetof(struct graph_calls, end)},
        {"cuGraphInstantiateWithFlags", offsetof(struct graph_calls, instantiate)},
        {"cuGraphLaunch", offsetof(struct graph_calls, launch)},
        {"cuGraphExecDestroy", offsetof(struct graph_calls, destroy_exec)},
        {"cuGraphDestroy", offsetof(struct graph_calls, destroy)},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *function = dlsym(driver()->library, names[i].name);

        MUST(function != NULL);
        memcpy((char *)&calls + names[i].at, &function, sizeof function);
    }
    return &calls;
}
