/* SPDX-License-Identifier: Apache-2.0
 * Runs on memory that processes lend each other (transport/shm/lend.h).
 *
 * Only the rank itself knows whether its buffers can be lent, but all ranks must run the same
 * algorithm. So a call that runs faster on lent memory begins with an extra round, in which every
 * rank posts its offers. Then all ranks have seen the same offers and decide alike.
 */
#include "executor/host/host.h"

/* Returns the number under which this rank can offer a buffer of `blocks` blocks. 0: the rank
 * cannot offer the buffer. TUTTI_NOT_THERE: the rank has no such buffer, so no rank uses one. */
static uint32_t offer(struct tutti_engine *engine, const void *buffer, size_t blocks)
{
    const struct tutti_call *call = engine->run.call;

    if (blocks == 0)
        return TUTTI_NOT_THERE;
    return tutti_lend_offer(engine->lend, buffer,
                            blocks * call->count * tutti_type_size(call->type));
}

void tutti_run_offer(struct tutti_engine *engine, struct tutti_post *post)
{
    const struct tutti_run *run = &engine->run;
    const struct tutti_program *program = run->program;

    /* Keep the numbers that all ranks agreed on, even if memory was allocated or freed since. */
    if (run->lends) {
        post->input_lent = run->input_lent;
        post->output_lent = run->output_lent;
        return;
    }
    /* A staged buffer is memory of the communicator, which is not lent. The blocks of a v-form may
     * lie anywhere. */
    if (tutti_call_is_vector(run->call) || program->widens) {
        post->input_lent = post->output_lent = 0;
    } else if (program->lent != NULL ||
               program->plan->schedule->needs & (TUTTI_NEEDS_PEER_READ | TUTTI_NEEDS_PEER_STORE)) {
        post->input_lent =
            program->stages_input ? 0 : offer(engine, run->call->input, program->input_blocks);
        post->output_lent = offer(engine, run->call->output, program->output_blocks);
    }
    post->last_lent = tutti_lend_last(engine->lend);
}

int tutti_run_agree_on_loan(struct tutti_engine *engine)
{
    struct tutti_domain *domain = engine->domain;
    struct tutti_run *run = &engine->run;
    bool all_lend = true;

    tutti_assert(run->is_active && run->program->lent != NULL && engine->lend != NULL);
    tutti_assert(domain != NULL && run->piece == 0 && !run->lends);
    if (run->signals_given == 0) {
        TUTTI_TRY(tutti_run_take_post(engine, TUTTI_POSTS - 1));
        tutti_run_offer(engine, run->post);
        tutti_run_give_signals(engine, 1);
        run->moved = true;
    }
    for (; run->wait_index < domain->nmembers; run->wait_index++) {
        if (run->wait_index != domain->me)
            TUTTI_TRY(tutti_run_poll_signal(engine, run->wait_index, 1));
    }
    for (uint32_t index = 0; index < domain->nmembers; index++) {
        const struct tutti_post *post = tutti_domain_post(domain, index, engine->round);

        all_lend = all_lend && post->input_lent != 0 && post->output_lent != 0;
        if (index != domain->me)
            tutti_lend_learn(engine->lend, index, post->last_lent);
    }
    engine->all_entered = engine->round;
    run->wait_index = 0;
    if (all_lend) {
        run->lends = true;
        run->input_lent = run->post->input_lent;
        run->output_lent = run->post->output_lent;
        run->program = run->program->lent;
    }
    run->moved = true;
    return TUTTI_OK;
}

uint8_t *tutti_run_lent_buffer(const struct tutti_engine *engine, uint32_t index, uint32_t buffer)
{
    const struct tutti_post *post = tutti_domain_post(engine->domain, index, engine->round);
    bool is_input = buffer == TUTTI_BUF_INPUT;

    if (engine->lend == NULL)
        return NULL;
    /* No size needs to be checked: the owner offered as many bytes as the call needs, and all ranks
     * make the same call. */
    return tutti_lend_at(engine->lend, index, is_input ? post->input_lent : post->output_lent,
                         is_input ? post->input : post->output, 0);
}
