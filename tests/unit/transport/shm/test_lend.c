/* SPDX-License-Identifier: Apache-2.0
 * Lends memory to another process. It is visible there, not before the other has mapped it, and
 * not after it was freed. */
#include "transport/shm/lend.h"

#include "base/result.h"
#include "transport/shm/memory.h"
#include "transport/shm/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 3 << 20, AT = 70000 };

static const uint32_t ranks[2] = {0, 1};

/* The commands of the owner to the other process, and its answer. */
struct request {
    char what; /* 'l'earn up to `last`; 'r'ead, or 'w'rite `value` */
    uint32_t last, number;
    uint64_t address;
    int value;
};

struct pair {
    struct tutti_shm_segment *segment;
    struct tutti_lend *lend;
    int to, from; /* the other process */
    pid_t pid;
};

static int serve(struct tutti_lend *lend, const struct request *request)
{
    uint8_t *here;

    if (request->what == 'l') {
        tutti_lend_learn(lend, 0, request->last);
        return 0;
    }
    here = tutti_lend_at(lend, 0, request->number, request->address, 1);
    if (here == NULL)
        return -1;
    if (request->what == 'w')
        *here = (uint8_t)request->value;
    return *here;
}

static void be_the_other(int fd, int in, int out, pid_t owner, enum tutti_domain_access access)
{
    struct tutti_shm_segment *segment;
    struct tutti_lend *lend;
    struct request request;

    if (tutti_shm_segment_map(fd, 1, 2, ranks, &segment) != TUTTI_OK)
        _exit(1);
    segment->pids[0] = owner;
    segment->access[0] = access;
    segment->access[1] = TUTTI_DOMAIN_ACCESS_STORE;
    if (tutti_lend_create(&segment->domain, &lend) != TUTTI_OK)
        _exit(2);
    while (read(in, &request, sizeof request) == (ssize_t)sizeof request) {
        int answer = serve(lend, &request);

        if (write(out, &answer, sizeof answer) != (ssize_t)sizeof answer)
            _exit(3);
    }
    tutti_lend_destroy(lend);
    tutti_shm_segment_destroy(segment);
    _exit(0);
}

static struct pair begin(enum tutti_domain_access access)
{
    int there[2], back[2], fd;
    pid_t owner = getpid();
    struct pair pair;

    /* Where a process may not look into its parent, it is allowed to by this. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    assert_int_equal(tutti_shm_segment_create(2, &fd), TUTTI_OK);
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    pair.pid = fork();
    assert_true(pair.pid >= 0);
    if (pair.pid == 0) {
        close(there[1]);
        close(back[0]);
        be_the_other(fd, there[0], back[1], owner, access);
    }
    close(there[0]);
    close(back[1]);
    pair.to = there[1];
    pair.from = back[0];
    assert_int_equal(tutti_shm_segment_map(fd, 0, 2, ranks, &pair.segment), TUTTI_OK);
    pair.segment->pids[1] = pair.pid;
    pair.segment->access[0] = TUTTI_DOMAIN_ACCESS_STORE;
    pair.segment->access[1] = access;
    assert_int_equal(tutti_lend_create(&pair.segment->domain, &pair.lend), TUTTI_OK);
    return pair;
}

static int ask(const struct pair *pair, struct request request)
{
    int answer;

    assert_int_equal(write(pair->to, &request, sizeof request), sizeof request);
    assert_int_equal(read(pair->from, &answer, sizeof answer), sizeof answer);
    return answer;
}

static void let_learn(const struct pair *pair)
{
    ask(pair, (struct request){.what = 'l', .last = tutti_lend_last(pair->lend)});
}

static void end(struct pair *pair)
{
    int status;

    close(pair->to);
    close(pair->from);
    assert_int_equal(waitpid(pair->pid, &status, 0), pair->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tutti_lend_destroy(pair->lend);
    tutti_shm_segment_destroy(pair->segment);
}

static uint8_t *allocate(void)
{
    void *memory;

    assert_int_equal(tutti_memory_alloc(SIZE, &memory), TUTTI_OK);
    return memory;
}

static struct request about(char what, uint32_t number, const uint8_t *at, int value)
{
    return (struct request){.what = what, .number = number, .address = (uint64_t)(uintptr_t)at,
                            .value = value};
}

static void memory_is_offered_once_the_other_maps_it(void **state)
{
    struct pair pair = begin(TUTTI_DOMAIN_ACCESS_READ);
    uint8_t *memory = allocate();
    uint32_t number;

    (void)state;
    assert_int_equal(tutti_lend_offer(pair.lend, memory, SIZE), 0);
    assert_int_equal(tutti_lend_last(pair.lend), 1);
    let_learn(&pair);
    number = tutti_lend_offer(pair.lend, memory, SIZE);
    assert_int_equal(number, 1);
    assert_int_equal(tutti_lend_offer(pair.lend, memory + AT, SIZE - AT), 1);
    assert_int_equal(tutti_lend_offer(pair.lend, memory + AT, SIZE - AT + 1), 0);
    assert_int_equal(tutti_lend_offer(pair.lend, &pair, 1), 0);

    memory[AT] = 17;
    assert_int_equal(ask(&pair, about('r', number, memory + AT, 0)), 17);
    ask(&pair, about('w', number, memory + SIZE - 1, 99));
    assert_int_equal(memory[SIZE - 1], 99);
    assert_int_equal(ask(&pair, about('r', number + 1, memory, 0)), -1);
    assert_int_equal(ask(&pair, about('r', number, memory - 1, 0)), -1);
    assert_int_equal(ask(&pair, about('r', number, memory + SIZE, 0)), -1);
    assert_int_equal(tutti_memory_free(memory), TUTTI_OK);
    end(&pair);
}

static void who_cannot_map_is_never_offered_anything(void **state)
{
    struct pair pair = begin(TUTTI_DOMAIN_ACCESS_NONE);
    uint8_t *memory = allocate();

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tutti_lend_offer(pair.lend, memory, SIZE), 0);
        let_learn(&pair);
    }
    assert_int_equal(tutti_memory_free(memory), TUTTI_OK);
    end(&pair);
}

/* The same address again and again, as an allocator of the kernel's gives it. */
static void what_is_freed_is_neither_offered_nor_taken_for_what_follows(void **state)
{
    struct pair pair = begin(TUTTI_DOMAIN_ACCESS_READ);

    (void)state;
    for (int i = 1; i <= 3 * TUTTI_LEND_SLOTS; i++) {
        uint8_t *memory = allocate();
        uint32_t number;

        assert_int_equal(tutti_lend_offer(pair.lend, memory, SIZE), 0);
        let_learn(&pair);
        number = tutti_lend_offer(pair.lend, memory, SIZE);
        assert_int_equal(number, i);
        memory[AT] = (uint8_t)i;
        assert_int_equal(ask(&pair, about('r', number, memory + AT, 0)), (uint8_t)i);
        assert_int_equal(tutti_memory_free(memory), TUTTI_OK);
        /* Still mapped there: no crash, and what was there is gone. */
        assert_int_equal(ask(&pair, about('r', number, memory + AT, 0)), 0);
        assert_int_equal(tutti_lend_offer(pair.lend, memory, SIZE), 0);
    }
    end(&pair);
}

static void freed_before_it_was_mapped_it_does_no_harm(void **state)
{
    struct pair pair = begin(TUTTI_DOMAIN_ACCESS_READ);
    uint8_t *kept = allocate(), *freed = allocate();

    (void)state;
    assert_int_equal(tutti_lend_offer(pair.lend, kept, SIZE), 0);
    assert_int_equal(tutti_memory_free(freed), TUTTI_OK);
    let_learn(&pair);
    assert_int_not_equal(tutti_lend_offer(pair.lend, kept, SIZE), 0);
    kept[0] = 5;
    assert_int_equal(
        ask(&pair, about('r', tutti_lend_offer(pair.lend, kept, SIZE), kept, 0)), 5);
    assert_int_equal(tutti_memory_free(kept), TUTTI_OK);
    end(&pair);
}

static void small_memory_has_no_file(void **state)
{
    struct tutti_memory_part parts[4];
    uint64_t before = tutti_memory_generation();
    void *small;

    (void)state;
    assert_int_equal(tutti_memory_alloc(4096, &small), TUTTI_OK);
    assert_int_equal(tutti_memory_list(parts, 4), 0);
    assert_int_equal(tutti_memory_generation(), before);
    assert_int_equal(tutti_memory_free(small), TUTTI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_offered_once_the_other_maps_it),
        cmocka_unit_test(who_cannot_map_is_never_offered_anything),
        cmocka_unit_test(what_is_freed_is_neither_offered_nor_taken_for_what_follows),
        cmocka_unit_test(freed_before_it_was_mapped_it_does_no_harm),
        cmocka_unit_test(small_memory_has_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
