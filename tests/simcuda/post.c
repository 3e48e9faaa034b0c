/* SPDX-License-Identifier: Apache-2.0
 * Posts and delivers messages. */
#include "simcuda/post.h"

#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/device/elements.h"

enum { GUARD = 0x5a };

void post_add(struct post *post, uint32_t from, uint32_t to, size_t size_bytes)
{
    struct parcel *parcel = &post->parcels[post->count++];
    size_t shift = next_random(&post->seed) % 5;

    assert_true(post->count <= POST_MOST);
    *parcel = (struct parcel){.from = from, .to = to, .size_bytes = size_bytes};
    parcel->sent = domain_take(&post->stage->domain, from, size_bytes + 8) + shift;
    parcel->received = domain_take(&post->stage->domain, to, size_bytes + 8) + 4 - shift;
    memset(parcel->received, GUARD, size_bytes + 2);
    for (size_t i = 0; i < size_bytes + 2; i++)
        parcel->sent[i] = (uint8_t)next_random(&post->seed);
}

struct tutti_cuda_message post_message(const struct post *post, size_t index, bool sends)
{
    const struct parcel *parcel = &post->parcels[index];
    uint64_t before = post->sequences[parcel->from][parcel->to];

    for (size_t i = 0; i <= index; i++)
        before += post->parcels[i].from == parcel->from && post->parcels[i].to == parcel->to;
    return (struct tutti_cuda_message){
        .peer = (int)(sends ? parcel->to : parcel->from), .sends = sends,
        .address = (uintptr_t)(sends ? parcel->sent : parcel->received) + 1,
        .size_bytes = parcel->size_bytes,
        .header = {.sequence = before,
                   .signature = {.magic = TUTTI_SIGNATURE_MAGIC, .call = TUTTI_CALL_MESSAGE,
                                 .type = TUTTI_UINT8, .op = TUTTI_OP_NONE, .root = UINT16_MAX,
                                 .count = parcel->size_bytes}}};
}

/* Programs of messages are in host memory. */
static size_t copies_bytes(const struct post *post, uint32_t rank)
{
    return tutti_cuda_program_copies_bytes(&post->stage->grid, post->images[rank].size_bytes);
}

static void encode_rank(struct post *post, uint32_t rank)
{
    struct tutti_cuda_message *messages = calloc(2 * post->count + 1, sizeof *messages);
    size_t count = 0;

    assert_non_null(messages);
    for (size_t i = 0; i < post->count; i++) {
        if (post->parcels[i].from == rank)
            messages[count++] = post_message(post, i, true);
        if (post->parcels[i].to == rank)
            messages[count++] = post_message(post, i, false);
    }
    assert_int_equal(tutti_cuda_messages_encode(messages, count, (int)rank, &post->stage->grid,
                                                &post->images[rank]), TUTTI_OK);
    post->scratch[rank] =
        aligned_alloc(TUTTI_KERNEL_LINE, copies_bytes(post, rank) +
                                             post->images[rank].scratch_bytes + TUTTI_KERNEL_LINE);
    assert_non_null(post->scratch[rank]);
    free(messages);
}

void post_encode(struct post *post)
{
    for (uint32_t rank = 0; rank < post->stage->domain.nranks; rank++)
        encode_rank(post, rank);
}

struct tutti_kernel_work post_work(const struct post *post, uint32_t rank)
{
    size_t bytes = copies_bytes(post, rank);

    return (struct tutti_kernel_work){.kind = TUTTI_KERNEL_WORK_MESSAGES,
                                      .program = post->images[rank].bytes,
                                      .program_bytes = post->images[rank].size_bytes,
                                      .copies = bytes > 0 ? post->scratch[rank] : NULL,
                                      .scratch = post->scratch[rank] + bytes};
}

void post_compare(struct post *post)
{
    for (size_t i = 0; i < post->count; i++) {
        struct parcel *parcel = &post->parcels[i];

        parcel->sent[0] = parcel->sent[parcel->size_bytes + 1] = GUARD;
        if (memcmp(parcel->sent, parcel->received, parcel->size_bytes + 2) != 0)
            fail_msg("%zu bytes from %u to %u are not those that were sent", parcel->size_bytes,
                     parcel->from, parcel->to);
        post->sequences[parcel->from][parcel->to]++;
    }
    for (uint32_t rank = 0; rank < post->stage->domain.nranks; rank++) {
        tutti_cuda_program_image_fini(&post->images[rank]);
        free(post->scratch[rank]);
    }
    post->count = 0;
    domain_take_back(&post->stage->domain);
}

void post_deliver(struct post *post)
{
    struct stage *stage = post->stage;
    struct tutti_kernel_work works[TUTTI_KERNEL_RANKS];
    struct domain_grid grids[TUTTI_KERNEL_RANKS];

    post_encode(post);
    for (uint32_t rank = 0; rank < stage->domain.nranks; rank++) {
        works[rank] = post_work(post, rank);
        grids[rank] = (struct domain_grid){stage->grid.nblocks, stage->threads};
    }
    domain_run(&stage->domain, "tutti_kernel_group", grids, works, 1, 0);
    assert_true(domain_is_fine(&stage->domain));
    post_compare(post);
}
