/* SPDX-License-Identifier: Apache-2.0
 * Reads schedules of other libraries. The samples are right and have the expected costs. Wrong
 * schedules, and steps that cannot be expressed, are refused with a message that names them. */
#include "base/result.h"
#include "import/load.h"
#include "import/samples.h"
#include "schedule/access.h"
#include "schedule/check/check.h"
#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void samples_are_right(void **state)
{
    static const struct {
        const char *file, *name;
        enum tutti_collective collective;
        uint32_t nranks;
        uint64_t least_bytes, most_bytes;
        uint32_t sent; /* chunks, by the rank that sends most; of `chunks` per block */
        uint32_t chunks;
    } samples[] = {
        {"ring_allreduce.xml", "ring", TUTTI_ALLREDUCE, 4, 0, 128 << 20, 6, 4},
        {"all_pairs_allreduce.xml", "all pairs", TUTTI_ALLREDUCE, 4, 0, 1 << 20, 6, 4},
        {"ring_reduce_scatter.xml", "ring", TUTTI_REDUCE_SCATTER, 3, 0, 64 << 20, 2, 1},
        {"hierarchical_allgather.xml", "hierarchical", TUTTI_ALLGATHER, 4, 1024, 64 << 20, 3, 1},
        {"hierarchical_allgather_in_place.xml", "hierarchical", TUTTI_ALLGATHER, 4, 0, 128 << 20, 3,
         1},
        {"all_pairs_packets.json", "all pairs of packets", TUTTI_ALLREDUCE, 4, 0, 0, 12, 8},
        {"all_pairs_signals.json", "all pairs with signals", TUTTI_ALLREDUCE, 3, 0, 0, 4, 3},
        {"one_shot_reads.json", "one shot of reads", TUTTI_ALLREDUCE, 4, 0, 0, 3, 1},
        {"one_to_all_packets.json", "one to all", TUTTI_BROADCAST, 3, 0, 0, 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        size_t size;
        char *text = sample_read(samples[i].file, &size);
        struct tutti_check_report report;
        struct tutti_ensemble ensemble;

        if (tutti_import_prove(samples[i].file, text, size, &ensemble) != TUTTI_OK)
            fail_msg("%s", tutti_message_last());
        assert_string_equal(ensemble.name, samples[i].name);
        assert_int_equal(ensemble.nranks, samples[i].nranks);
        assert_int_equal(ensemble.schedules[0]->collective, samples[i].collective);
        assert_int_equal(ensemble.schedules[0]->chunks_per_block, samples[i].chunks);
        assert_int_equal(ensemble.least_bytes, samples[i].least_bytes);
        assert_int_equal(ensemble.most_bytes, samples[i].most_bytes);
        assert_int_equal(tutti_check_schedule(
                             (const struct tutti_schedule *const *)ensemble.schedules,
                             ensemble.nranks, &report), TUTTI_OK);
        assert_int_equal(report.sent, samples[i].sent);
        tutti_ensemble_fini(&ensemble);
        free(text);
    }
}

/* Nothing is copied that the program did not copy: of a ring in place, every receive is joined with
 * its send. */
static void a_ring_is_read_as_a_ring(void **state)
{
    size_t size;
    char *text = sample_read("ring_allreduce.xml", &size);
    struct tutti_ensemble ensemble;

    (void)state;
    assert_int_equal(tutti_import_prove("ring", text, size, &ensemble), TUTTI_OK);
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_int_equal(ensemble.schedules[rank]->nsteps, 7);
        for (uint32_t i = 0; i < 7; i++)
            assert_true(tutti_step_is_two_sided(&ensemble.schedules[rank]->steps[i]));
    }
    tutti_ensemble_fini(&ensemble);
    free(text);
}

/* ---- programs that no sample has ------------------------------------------------------------- */

#define STEP(s, type, src, srcoff, dst, dstoff, depid, deps)                            \
    "<step s='" #s "' type='" #type "' srcbuf='" #src "' srcoff='" #srcoff "' dstbuf='" #dst \
    "' dstoff='" #dstoff "' cnt='1' depid='" #depid "' deps='" #deps "' hasdep='0'/>"
#define ALGO(coll, gpus, chunks, in_place)                                                   \
    "<algo name='test' nchannels='1' nchunksperloop='" #chunks "' ngpus='" #gpus "' coll='"  \
    #coll "' inplace='" #in_place "' outofplace='0' minBytes='0' maxBytes='9'>"
#define GPU(id, chunks, scratch)                                                             \
    "<gpu id='" #id "' i_chunks='" #chunks "' o_chunks='" #chunks "' s_chunks='" #scratch "'>"
#define TB(id, peer) "<tb id='" #id "' send='" #peer "' recv='" #peer "' chan='0'>"

/* Both send what they then add to: that takes the buffer that a channel has. */
static const char exchange[] = ALGO(allreduce, 2, 1, 1)
    GPU(0, 1, 0) TB(0, 1) STEP(0, s, i, 0, i, 0, -1, -1) STEP(1, rrc, i, 0, i, 0, -1, -1)
    "</tb></gpu>"
    GPU(1, 1, 0) TB(0, 0) STEP(0, s, i, 0, i, 0, -1, -1) STEP(1, rrc, i, 0, i, 0, -1, -1)
    "</tb></gpu></algo>";

/* Writes output that lies, in place, on input that is still to be sent. */
static const char late_send[] = ALGO(allreduce, 2, 2, 0)
    GPU(0, 2, 0) TB(0, 1) STEP(0, s, i, 1, o, 0, -1, -1) STEP(1, rrc, i, 0, o, 0, -1, -1)
    STEP(2, s, o, 0, o, 0, -1, -1) STEP(3, r, i, 0, o, 1, -1, -1) "</tb></gpu>"
    GPU(1, 2, 0) TB(0, 0) STEP(0, rrc, i, 1, o, 1, -1, -1) STEP(1, s, i, 0, o, 0, -1, -1)
    STEP(2, r, i, 0, o, 0, -1, -1) STEP(3, s, o, 1, o, 1, -1, -1) "</tb></gpu></algo>";

/* Swaps two blocks by way of scratch memory; in place the second copy would read what the first
 * wrote. */
static const char swap[] = ALGO(alltoall, 2, 2, 0)
    GPU(0, 2, 1) TB(0, 1) STEP(0, s, i, 1, o, 0, -1, -1) STEP(1, r, i, 0, s, 0, -1, -1)
    STEP(2, cpy, s, 0, o, 1, -1, -1) STEP(3, cpy, i, 0, o, 0, -1, -1) "</tb></gpu>"
    GPU(1, 2, 1) TB(0, 0) STEP(0, s, i, 0, o, 0, -1, -1) STEP(1, r, i, 0, s, 0, -1, -1)
    STEP(2, cpy, s, 0, o, 0, -1, -1) STEP(3, cpy, i, 1, o, 1, -1, -1) "</tb></gpu></algo>";

/* No root is named: found. */
static const char from_1[] = ALGO(broadcast, 2, 1, 1)
    GPU(0, 1, 0) TB(0, 1) STEP(0, r, i, 0, o, 0, -1, -1) "</tb></gpu>"
    GPU(1, 1, 0) TB(0, 0) STEP(0, s, i, 0, o, 0, -1, -1) "</tb></gpu></algo>";

/* Written input of a reduce-scatter in place, which our own schedules may not. */
static const char in_input[] = ALGO(reducescatter, 2, 2, 1)
    "<gpu id='0' i_chunks='2' o_chunks='1' s_chunks='0'>" TB(0, 1) STEP(0, s, i, 1, o, 0, -1, -1)
    STEP(1, rrc, i, 0, i, 0, -1, -1) "</tb></gpu>"
    "<gpu id='1' i_chunks='2' o_chunks='1' s_chunks='0'>" TB(0, 0) STEP(0, s, i, 0, o, 0, -1, -1)
    STEP(1, rrc, i, 1, i, 1, -1, -1) "</tb></gpu></algo>";

static void programs_for_buffers_and_places_are_right(void **state)
{
    static const struct {
        const char *text;
        uint32_t root;
    } cases[] = {{exchange, 0}, {late_send, 0}, {swap, 0}, {from_1, 1}, {in_input, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_ensemble ensemble;

        if (tutti_import_prove("case", cases[i].text, strlen(cases[i].text), &ensemble) != TUTTI_OK)
            fail_msg("case %zu: %s", i, tutti_message_last());
        assert_int_equal(ensemble.schedules[0]->root, cases[i].root);
        tutti_ensemble_fini(&ensemble);
    }
}

/* The root is found by trying each rank. The log does not mention the ranks that are not it. */
static void failed_trials_are_not_logged(void **state)
{
    struct tutti_ensemble ensemble;

    (void)state;
    stderr_text_begin();
    assert_int_equal(tutti_import_prove("f", from_1, strlen(from_1), &ensemble), TUTTI_OK);
    assert_string_equal(stderr_text_end(), "");
    tutti_ensemble_fini(&ensemble);
}

/* maxBytes="0" is no upper limit: all sizes, or all from minBytes on. */
static void a_file_without_upper_limit_serves_large_calls(void **state)
{
    static const struct {
        const char *limits;
        uint64_t least_bytes, most_bytes; /* the file serves all sizes if both are 0 */
    } cases[] = {
        {"minBytes=\"0\" maxBytes=\"0\"", 0, 0},
        {"minBytes=\"4096\" maxBytes=\"0\"", 4096, UINT64_MAX},
        {"minBytes=\"4096\" maxBytes=\"8192\"", 4096, 8192},
    };
    const char *const given = "minBytes=\"0\" maxBytes=\"1048576\"";
    size_t size;
    char *text = sample_read("all_pairs_allreduce.xml", &size), *at = strstr(text, given);

    (void)state;
    assert_non_null(at);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_ensemble ensemble;
        char *edited = malloc(size + 64);

        assert_non_null(edited);
        sprintf(edited, "%.*s%s%s", (int)(at - text), text, cases[i].limits, at + strlen(given));
        assert_int_equal(tutti_import_prove("f", edited, strlen(edited), &ensemble), TUTTI_OK);
        assert_int_equal(ensemble.least_bytes, cases[i].least_bytes);
        assert_true(ensemble.most_bytes == cases[i].most_bytes);
        tutti_ensemble_fini(&ensemble);
        free(edited);
    }
    free(text);
}

/* ---- refusals -------------------------------------------------------------------------------- */

struct edit {
    const char *file, *from, *to, *message;
};

static void expect_refused(const struct edit *edit)
{
    size_t size;
    char *text = sample_read(edit->file, &size), *at = strstr(text, edit->from), *edited;
    struct tutti_ensemble ensemble;

    if (at == NULL)
        fail_msg("%s has no %s", edit->file, edit->from);
    edited = malloc(size + strlen(edit->to) + 1);
    assert_non_null(edited);
    sprintf(edited, "%.*s%s%s", (int)(at - text), text, edit->to, at + strlen(edit->from));
    if (tutti_import_prove("f", edited, strlen(edited), &ensemble) != TUTTI_ERR_ARGUMENT)
        fail_msg("%s with %s in place of %s is accepted", edit->file, edit->to, edit->from);
    if (strstr(tutti_message_last(), edit->message) == NULL ||
        strchr(tutti_message_last(), '\n') != NULL)
        fail_msg("%s with %s: \"%s\" is not about \"%s\"", edit->file, edit->to,
                 tutti_message_last(), edit->message);
    free(edited);
    free(text);
}

static void expect_all_refused(const struct edit *edits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_refused(&edits[i]);
}

#define RING "ring_allreduce.xml"
#define PAIRS "all_pairs_allreduce.xml"
#define PACKETS "all_pairs_packets.json"
#define SIGNALS "all_pairs_signals.json"
#define TO_ALL "one_to_all_packets.json"

static void edits_of_xml_are_refused(void **state)
{
    static const struct edit edits[] = {
        {RING, "<algo name", "<!DOCTYPE x><algo name", "a document type"},
        {PAIRS, "maxBytes=\"1048576\"", "maxBytes=\"-1\"", "maxBytes is negative"},
        {PAIRS, "minBytes=\"0\"", "minBytes=\"2000000\"", "minBytes is more than maxBytes"},
        {RING, "</algo>", "", "f:49:1: no element found"},
        {RING, "<algo ", "<msccl_algos ", "import each of them"},
        {RING, "<gpu id=\"1\"", "<gpu id=\"0\"", "gpu 0 for the second time"},
        {RING, "<gpu id=\"1\"", "<gpu id=\"7\"", "id=\"7\" is no number from 0 to 3"},
        {RING, "coll=\"allreduce\"", "coll=\"custom\"", "coll=\"custom\" cannot be proved"},
        {RING, "proto=\"Simple\"", "proto=\"LL256\"", "proto=\"LL256\""},
        {RING, "ngpus=\"4\"", "ngpus=\"5\"", "gpu 4 is missing"},
        {RING, "ngpus=\"4\"", "ngpus=\"4000000000\"", "is no number from 0 to 4096"},
        {RING, "ngpus=\"4\"", "ngpus=\"-1\"", "ngpus=\"-1\" is no number from 0 to 4096"},
        {RING, "inplace=\"1\"", "inplace=\"2\"", "inplace=\"2\" is no number from -1 to 1"},
        {RING, "ngpus=\"4\"", "", "no ngpus; give it"},
        {RING, "nchunksperloop=\"4\"", "nchunksperloop=\"8\"", "by nchunksperloop allreduce has 8"},
        {RING, "nchunksperloop=\"4\"", "nchunksperloop=\"0\"", "not a multiple"},
        {RING, "type=\"rrs\"", "type=\"ra\"", "type ra adds a residual"},
        {RING, "type=\"rrs\"", "type=\"rsr\"", "type=\"rsr\" is not"},
        {RING, "send=\"1\" recv=\"3\"", "send=\"-1\" recv=\"3\"", "in a tb with send=\"-1\""},
        {RING, "send=\"1\" recv=\"3\"", "send=\"0\" recv=\"3\"", "to or receives from itself"},
        {RING, "send=\"1\" recv=\"3\"", "send=\"2\" recv=\"3\"",
         "gpu 0, threadblock 0, step 4 (rcs): waits forever for a message from gpu 3"},
        {RING, "<step s=\"1\"", "<step s=\"2\"", "step 2 where step 1 is due"},
        {RING, "srcoff=\"3\"", "srcoff=\"4\"",
         "gpu 0, threadblock 0, step 1 (rrs): chunks 4 + 1 of the input of gpu 0, which has 4"},
        {RING, "srcbuf=\"i\" srcoff=\"3\"", "srcbuf=\"x\" srcoff=\"3\"",
         "srcbuf=\"x\" is not i, o"},
        {RING, "srcoff=\"3\"", "srcoff=\"2\"", "not a right allreduce: rank"},
        {RING, "type=\"rrs\"", "type=\"rcs\"", "not a right allreduce: rank"},
        {RING, "cnt=\"1\"", "cnt=\"0\"", "chunks 0 + 0"},
        {RING, "cnt=\"1\"", "cnt=\"2\"", "receives 1 chunks where step 0 of the sender sends 2"},
        {PAIRS, "type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" cnt=\"1\" "
                "depid=\"-1\" deps=\"-1\" hasdep=\"1\"", "type=\"nop\" cnt=\"0\"",
         "gpu 1, threadblock 0, step 2 (s): sends a message that nobody"},
        /* Nobody waits for what the sum is made of, or for the sum. */
        {PAIRS, "depid=\"1\" deps=\"1\"", "depid=\"-1\" deps=\"-1\"",
         "threadblock 3, step 4 (re): race: it touches chunk 1 of the scratch of gpu 0"},
        {PAIRS, "depid=\"3\" deps=\"5\"", "depid=\"-1\" deps=\"-1\"",
         "gpu 0, threadblock 0, step 2 (s): race"},
        {PAIRS, "depid=\"3\" deps=\"5\"", "depid=\"3\" deps=\"6\"",
         "deps=\"6\", and threadblock 3 has no such step"},
        {PAIRS, "depid=\"3\" deps=\"5\"", "depid=\"9\" deps=\"5\"", "no such threadblock"},
        {PAIRS, "depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"3\"", "waits forever"},
        {PAIRS, "depid=\"0\" deps=\"1\"", "depid=\"3\" deps=\"0\"", "is its own threadblock"},
    };

    (void)state;
    expect_all_refused(edits, sizeof edits / sizeof *edits);
}

/* An op of one threadblock of a group, on one chunk. */
#define PART(members) \
    "{\"name\": \"re\", \"src_buff\": [{\"type\": \"i\", \"index\": 0, \"size\": 1}], " \
    "\"dst_buff\": [], \"tbg_info\": {\"tbg_size\": " #members ", \"tb_id\": 0}}"

static void edits_of_plans_are_refused(void **state)
{
    static const struct edit edits[] = {
        {PACKETS, "{", "{,", "f:1:2: "},
        {PACKETS, "\"allreduce\"", "\"sendrecv\"", "collective \"sendrecv\" cannot be"},
        {PACKETS, "\"LL\"", "\"LL256\"", "protocol \"LL256\""},
        {PACKETS, "\"ppkt\"", "\"gstorepkt\"",
         "f: gpu 0, threadblock 0, op 0 (gstorepkt): it reduces or stores in a switch"},
        {PACKETS, "\"ppkt\"", "\"glre\"", "(glre): it reduces or stores in a switch"},
        {PACKETS, "\"ppkt\"", "\"teleport\"", "(teleport): no such op is known"},
        {PACKETS, "\"sum\"", "\"max\"", "(respkt): reduce_op \"max\": a schedule reduces by"},
        {PACKETS, "\"reduce_op\": \"sum\"", "\"reduce_op\": 7", "reduce_op \"?\""},
        {PACKETS, "\"tbg_size\": 2", "\"tbg_size\": 1025", "tbg_size is not a whole number"},
        /* The least common multiple of these does not fit 32 bits. Its lower 32 bits are 720. */
        {PACKETS, "\"name\": \"ppkt\",",
         "\"name\": \"ppkt\", \"ops\": [" PART(862) ", " PART(857) ", " PART(688) ", " PART(900)
         ", " PART(695) ", " PART(966) "],", "cut chunks in more than 1024 parts"},
        {PACKETS, "\"input_chunks\"", "\"inputChunks\"", "the schema of MSCCL++ 0.7 and older"},
        {PACKETS, "\"scratch_chunks\"", "\"scratchChunks\"", "rewrite the program in the language"},
        {PACKETS, "\"collective\"", "\"colletive\"", "the schema of MSCCL++ 0.7 and older"},
        {PACKETS, "\"tb_id\": 1", "\"tb_id\": 2", "tb_id 2 in a group of 2"},
        {PACKETS, "\"tb_id\": 1", "\"tb_id\": 0", "race"},
        {PACKETS, "\"buffer_id\": 0", "\"switch_channel_id\": 0", "memory behind a switch"},
        {PACKETS, "\"buffer_id\": 0", "\"buffer_id\": 3",
         "buffer_id 3, and the threadblock refers"},
        {PACKETS, "\"buffer_id\": 0", "\"buffer_id\": 0.5", "buffer_id is not a whole number"},
        {PACKETS, "\"type\": \"i\", \"index\": 1", "\"type\": \"i\", \"index\": 4",
         "chunks 8 + 2 of the input of gpu 0, which has 8"},
        {PACKETS, "\"input_chunks\": 4", "\"input_chunks\": 5", "5 input and 4 output chunks"},
        {PACKETS, "\"id\": 1,\n     \"ops\"", "\"id\": 0,\n     \"ops\"",
         "threadblock 0 for the second time"},
        {PACKETS, "\"ppkt\"", "\"put\"", "waits forever for packets"},
        /* The runtime reads the first source only. */
        {TO_ALL, "\"name\": \"rppkt\",\n       \"src_buff\": [",
         "\"name\": \"rppkt\",\n       \"src_buff\": [{\"type\": \"s\", \"index\": 0, "
         "\"size\": 1},",
         "(rppkt): 2 sources; give one, which goes to all destinations"},
        {TO_ALL, "{\"buffer_id\": 1, \"index\": 0, \"size\": 1}",
         "{\"buffer_id\": 0, \"index\": 0, \"size\": 1}", "race"},
        {SIGNALS, "\"sem_release\"", "\"nop\"", "(sem_acquire): waits forever for a signal"},
        {SIGNALS, "\"init_value\": 0", "\"init_value\": 1", "race: it touches chunk"},
        {SIGNALS, "\"wait\"", "\"rlxwait\"", "(res): race"},
        {SIGNALS, "\"num_threadblocks\": 2", "\"num_threadblocks\": 3",
         "(barrier): is for 2 threadblocks, and elsewhere for 3"},
        {SIGNALS, "\"barrier\"", "\"nop\"", "(barrier): waits forever for other threadblocks"},
        {SIGNALS, "\"signal\"", "\"nop\"", "waits forever for a signal"},
        {SIGNALS, "\"name\": \"signal\",\n       \"channel_ids\": [0, 1]",
         "\"name\": \"signal\", \"channel_ids\": [0, 2]",
         "(signal): channel 2, and the threadblock has 2"},
        {SIGNALS, "\"connected_to\": [1, 2]", "\"connected_to\": [1, 0]", "a channel to itself"},
        {SIGNALS, "\"max_message_size\": 18446744073709551615", "\"max_message_size\": 0",
         "min_message_size is more"},
    };

    (void)state;
    expect_all_refused(edits, sizeof edits / sizeof *edits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_right),
        cmocka_unit_test(a_ring_is_read_as_a_ring),
        cmocka_unit_test(programs_for_buffers_and_places_are_right),
        cmocka_unit_test(failed_trials_are_not_logged),
        cmocka_unit_test(a_file_without_upper_limit_serves_large_calls),
        cmocka_unit_test(edits_of_xml_are_refused),
        cmocka_unit_test(edits_of_plans_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
