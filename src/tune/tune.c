/* SPDX-License-Identifier: Apache-2.0
 * tuttiCommTune. Rank 0 tells all ranks the calls to measure, all ranks measure them, and rank 0
 * makes a table of the results. Then all ranks get a policy that contains this table. */
#include "tune/tune.h"
#include "queue/group.h"

#include "base/clock.h"
#include "gpu/comm_gpu.h"
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const function = "tuttiCommTune";

enum {
    SIZES = 24, /* the most sizes of a collective: 1 byte to 1 GiB in steps are 16 */
    STEP = 4,   /* each size is this many times the one before */
};

#define DEFAULT_MAX_BYTES ((size_t)4 << 20)
#define MOST_BYTES        ((size_t)1 << 30)
#define DEFAULT_BUDGET_MS 10000

/* The byte that fills the buffers. It makes ordinary numbers of every type. It is not 0, because
 * some processors store zeros past their caches twice as fast. */
enum { FILL = 0x3c };

/* Rank 0's order to all ranks. If rank 0 has failed, `result` and `message` give the reason. */
struct order {
    int32_t result;
    uint32_t collectives; /* bits 1 << collective */
    uint64_t min_bytes, max_bytes, budget_ns;
    uint32_t is_on_gpu, unused;
    char message[TUTTI_MESSAGE_BYTES];
};

/* The files and texts of the table, which only rank 0 has. */
struct results {
    const char *file;  /* name of the table's file; NULL: none */
    char *old_file;    /* text of the file before; NULL: there was none */
    bool is_empty;     /* the file was made, to see that it can be, and has no table yet */
    FILE *lines;       /* memory stream of the new section, into `text` */
    char *text;
    size_t text_size;
};

/* ---- the order ----------------------------------------------------------------------------- */

static int parse_collectives(const char *names, uint32_t *ret_collectives)
{
    uint32_t collectives = 0;

    if (names == NULL)
        collectives = (1u << TUTTI_COLLECTIVE_COUNT) - 1;
    while (names != NULL && *names != '\0') {
        char list[TUTTI_COLLECTIVE_LIST_BYTES];
        size_t length = strcspn(names, ",");
        enum tutti_collective found = tutti_collective_find(names, length);

        if (found == TUTTI_COLLECTIVE_COUNT)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: \"%.*s\" is no collective; they are %s",
                              function, (int)(length < 60 ? length : 60), names,
                              tutti_collective_list(0, list));
        collectives |= 1u << found;
        names += length + (names[length] == ',');
    }
    if (collectives == 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: config.collectives is empty; NULL means all",
                          function);
    *ret_collectives = collectives;
    return TUTTI_OK;
}

/* Calls on device memory can be tuned only if all ranks' kernels reach each other. */
static int check_gpus(const struct tutti_comm *comm, const struct order *order)
{
    if (!order->is_on_gpu || (comm->gpu != NULL && comm->gpu->has_domain))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "%s: config.onDevice is 1, but not all ranks are on GPUs "
                      "whose kernels reach each other; tune calls on host memory, which serve this "
                      "communicator's device memory, too", function);
}

static int read_config(const tuttiTuneConfig_t *given, struct order *ret_order)
{
    tuttiTuneConfig_t config = TUTTI_TUNE_CONFIG_INITIALIZER;
    struct order order = {.result = TUTTI_OK};

    if (given != NULL && !tutti_public_is_size(given->size))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: config is not initialized (size %zu); start "
                          "from TUTTI_TUNE_CONFIG_INITIALIZER", function, given->size);
    if (given != NULL)
        memcpy(&config, given, given->size < sizeof config ? given->size : sizeof config);
    TUTTI_TRY(parse_collectives(config.collectives, &order.collectives));
    if (config.onDevice != 0 && config.onDevice != 1)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: config.onDevice is %d; it must be 0 or 1",
                          function, config.onDevice);
    order.is_on_gpu = config.onDevice == 1;
    order.min_bytes = config.minBytes ? config.minBytes : sizeof(float);
    order.max_bytes = config.maxBytes ? config.maxBytes : DEFAULT_MAX_BYTES;
    order.budget_ns =
        (uint64_t)(config.budgetMs > 0 ? config.budgetMs : DEFAULT_BUDGET_MS) * TUTTI_NS_PER_MS;
    if (order.min_bytes > order.max_bytes || order.max_bytes > MOST_BYTES)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: sizes from %llu to %llu bytes; minBytes must "
                          "not be above maxBytes, and maxBytes not above 1 GiB",
                          function, (unsigned long long)order.min_bytes,
                          (unsigned long long)order.max_bytes);
    if (config.budgetMs < 0)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: config.budgetMs is %d; it must be at least 1, "
                          "or 0 for the default", function, config.budgetMs);
    *ret_order = order;
    return TUTTI_OK;
}

/* Reads the file, if it exists. Also writes it back unchanged, or creates it empty. So an error of
 * writing is found now, and not after minutes of measuring. */
static int open_file(const char *file, struct results *results)
{
    struct tutti_rules rules;

    if (file == NULL)
        return TUTTI_OK;
    if (*file == '\0' || strpbrk(file, " \t\n;") != NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: \"%.60s\" is no name of a table; it must not "
                          "have blanks or ';' in it", function, file);
    if (access(file, F_OK) == 0) {
        TUTTI_TRY(tutti_policy_load(function, file, &results->old_file));
        TUTTI_TRY(tutti_rules_parse(file, results->old_file, &rules));
        tutti_rules_fini(&rules);
    }
    results->file = file;
    TUTTI_TRY(tutti_table_write(file, results->old_file ? results->old_file : ""));
    results->is_empty = results->old_file == NULL;
    return TUTTI_OK;
}

static int open_results(const struct tutti_comm *comm, const char *file,
                        const tuttiTuneConfig_t *config, struct results *results,
                        struct order *order)
{
    TUTTI_TRY(read_config(config, order));
    TUTTI_TRY(check_gpus(comm, order));
    TUTTI_TRY(open_file(file, results));
    results->lines = open_memstream(&results->text, &results->text_size);
    return results->lines ? TUTTI_OK : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a tuning table");
}

static void close_results(struct results *results)
{
    if (results->lines != NULL)
        fclose(results->lines);
    if (results->is_empty)
        unlink(results->file);
    free(results->text);
    free(results->old_file);
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool same_choice(const struct tutti_trial *a, const struct tutti_trial *b)
{
    const struct tutti_choice *one = &a->choices[a->winner], *other = &b->choices[b->winner];

    return one->algorithm == other->algorithm && one->protocol == other->protocol &&
           memcmp(&one->options, &other->options, sizeof one->options) == 0;
}

/* Returns the largest size for the winner of `below`: the geometric mean of the two measured
 * sizes. */
static size_t border(const struct tutti_trial *below, const struct tutti_trial *above)
{
    return (size_t)sqrt((double)below->bytes * (double)above->bytes);
}

/* Writes one line for each run of consecutive sizes with the same winner. A comment gives the
 * times. */
static void write_lines(FILE *file, const struct tutti_trial *trials, size_t count)
{
    for (size_t first = 0, next; first < count; first = next) {
        const struct tutti_choice *choice = &trials[first].choices[trials[first].winner];
        size_t low = first > 0 ? border(&trials[first - 1], &trials[first]) + 1
                               : trials[0].bytes, high;

        for (next = first + 1; next < count && same_choice(&trials[first], &trials[next]);)
            next++;
        high = next < count ? border(&trials[next - 1], &trials[next]) : trials[next - 1].bytes;
        fprintf(file, "%s %zu-%zu %s", tutti_collective_name(trials[first].collective), low, high,
                choice->algorithm->name);
        if (choice->protocol != TUTTI_PROTOCOL_STEPS)
            fprintf(file, "/%s", tutti_protocol_name(choice->protocol));
        for (int i = 0; i < TUTTI_OPTION_COUNT; i++)
            if (choice->options.value[i] != choice->algorithm->options[i].usual)
                fprintf(file, " %s=%u", tutti_option_name((enum tutti_option)i),
                        choice->options.value[i]);
        fprintf(file, "  # us:");
        for (size_t i = first; i < next; i++)
            fprintf(file, " %.1f at %zu", 1e6 * trials[i].seconds[trials[i].winner],
                    trials[i].bytes);
        fprintf(file, "\n");
    }
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* The measurement on one rank. */
struct bench {
    struct tutti_comm *comm;
    const struct order *order;
    struct results *results; /* on rank 0; NULL on the others */
    struct tutti_trial trials[SIZES];
    void *input, *output;
    uint64_t end_ns;          /* end of the time for all trials */
    size_t left;              /* trials still to run */
};

/* Returns the size to measure after `bytes`, or 0 if there is none. The last size is max_bytes
 * itself, because the table has no rules for sizes beyond the last one measured. */
static uint64_t size_after(const struct order *order, uint64_t bytes)
{
    if (bytes >= order->max_bytes)
        return 0;
    return bytes * STEP < order->max_bytes ? bytes * STEP : order->max_bytes;
}

/* Prepares one trial per size. Small sizes may have the same number of elements, and are measured
 * once. */
static int prepare(struct bench *bench, enum tutti_collective collective, size_t *ret_count)
{
    size_t count = 0;

    for (uint64_t bytes = bench->order->min_bytes; bytes != 0 && count < SIZES;
         bytes = size_after(bench->order, bytes)) {
        struct tutti_trial *trial = &bench->trials[count];

        TUTTI_TRY(tutti_trial_prepare(bench->comm, bench->order->is_on_gpu != 0, collective, bytes,
                                      trial));
        count += count == 0 || trial->bytes > trial[-1].bytes;
    }
    *ret_count = count;
    return TUTTI_OK;
}

static int measure(struct bench *bench, enum tutti_collective collective)
{
    size_t count, measured = 0;

    TUTTI_TRY(prepare(bench, collective, &count));
    while (measured < count) {
        uint64_t now_ns = tutti_now_ns();
        uint64_t left_ns = bench->end_ns > now_ns ? bench->end_ns - now_ns : 0;
        struct tutti_trial *trial = &bench->trials[measured];

        /* Each trial gets an equal share of the time that is left. */
        TUTTI_TRY(tutti_trial_run(bench->comm, trial, bench->input, bench->output,
                                  now_ns + left_ns / bench->left));
        /* Cached programs refer to this trial's choices by address. */
        tutti_cache_forget(bench->comm->cache);
        if (trial->is_on_gpu)
            tutti_gpu_programs_end_trial(bench->comm);
        bench->left -= bench->left > 1;
        if (trial->is_skipped)
            break;
        measured++;
    }
    if (bench->results != NULL)
        write_lines(bench->results->lines, bench->trials, measured);
    return TUTTI_OK;
}

/* Allocates a buffer and fills it. Host memory that was never written is one shared page of zeros,
 * which is faster than other memory. */
static int make_buffer(const struct bench *bench, size_t size_bytes, void **ret_buffer)
{
    if (bench->order->is_on_gpu)
        return tutti_cuda_make_buffer(bench->comm->gpu->gpu, size_bytes, FILL, ret_buffer);
    *ret_buffer = malloc(size_bytes);
    if (*ret_buffer == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "rank %d: no memory for two buffers of %zu bytes to "
                          "measure with; lower config.maxBytes", bench->comm->rank, size_bytes);
    memset(*ret_buffer, FILL, size_bytes);
    return TUTTI_OK;
}

static void drop_buffer(const struct bench *bench, void *buffer)
{
    if (bench->order->is_on_gpu)
        tutti_cuda_drop_buffer(bench->comm->gpu->gpu, buffer);
    else
        free(buffer);
}

static int measure_all(struct bench *bench)
{
    size_t most = bench->order->max_bytes, least = sizeof(float) * (size_t)bench->comm->nranks;
    size_t sizes = 0;
    struct tutti_call barrier;

    for (uint64_t bytes = bench->order->min_bytes; bytes != 0;
         bytes = size_after(bench->order, bytes))
        sizes++;
    for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++)
        if (bench->order->collectives >> i & 1)
            bench->left += tutti_collective_has_data((uint32_t)i) ? sizes : 1;
    most = most > least ? most : least;
    TUTTI_TRY(make_buffer(bench, most, &bench->input));
    TUTTI_TRY(make_buffer(bench, most, &bench->output));

    /* Operations that were issued on streams before run first. After this barrier nothing else runs
     * on the communicator. */
    tutti_call_of_bytes(TUTTI_BARRIER, TUTTI_FOR_TUNE, NULL, NULL, 0, &barrier);
    TUTTI_TRY(tutti_batch_run_now(bench->comm, &barrier, NULL));
    bench->end_ns = tutti_now_ns() + bench->order->budget_ns;
    for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++)
        if (bench->order->collectives >> i & 1)
            TUTTI_TRY(measure(bench, (enum tutti_collective)i));
    return TUTTI_OK;
}

/* ---- the outcome --------------------------------------------------------------------------- */

/* Makes the policy with the new table, and writes the file. Only rank 0 calls this function. */
static int conclude(struct tutti_comm *comm, const struct order *order, struct results *results,
                    struct tutti_policy **ret_policy)
{
    const char *text[TUTTI_POLICY_TEXTS] = {NULL};
    char host[TUTTI_HOST_BYTES], fingerprint[TUTTI_FINGERPRINT_BYTES];
    char gpus[TUTTI_GPU_PLAN_NAME_BYTES];
    char *table = NULL, *file = NULL;
    int rc;

    for (int i = 0; comm->policy != NULL && i < TUTTI_POLICY_TEXTS; i++)
        text[i] = comm->policy->text[i];
    if (text[TUTTI_POLICY_HOST] == NULL || *text[TUTTI_POLICY_HOST] == '\0') {
        tutti_host_describe(host);
        text[TUTTI_POLICY_HOST] = host;
    }
    if (order->is_on_gpu)
        tutti_gpu_plan_name(&comm->gpu->plan, gpus);
    tutti_fingerprint(text[TUTTI_POLICY_HOST], order->is_on_gpu ? &comm->gpu->view : &comm->view,
                      order->is_on_gpu ? gpus : tutti_choices_transports(comm), fingerprint);
    if (fflush(results->lines) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a tuning table");
    TUTTI_TRY(tutti_table_replace(text[TUTTI_POLICY_TABLE] ? text[TUTTI_POLICY_TABLE] : "",
                                  fingerprint, order->collectives, results->text, &table));
    text[TUTTI_POLICY_TABLE] = table;
    TUTTI_TRY_OR(done, rc, tutti_policy_create(text, ret_policy));
    if (results->file != NULL) {
        TUTTI_TRY_OR(done, rc,
                     tutti_table_replace(results->old_file ? results->old_file : "", fingerprint,
                                         order->collectives, results->text, &file));
        TUTTI_TRY_OR(done, rc, tutti_table_write(results->file, file));
        results->is_empty = false;
        tutti_log(TUTTI_LOG_INFO, "tuning table for %s written to %s", fingerprint, results->file);
    }
done:
    if (rc != TUTTI_OK && *ret_policy != NULL) {
        tutti_policy_release(*ret_policy);
        *ret_policy = NULL;
    }
    free(table);
    free(file);
    return rc;
}

/* Copies rank 0's bytes to all ranks. */
static int broadcast(struct tutti_comm *comm, void *bytes, size_t size)
{
    struct tutti_call call;

    tutti_call_of_bytes(TUTTI_BROADCAST, TUTTI_FOR_TUNE, bytes, bytes, size, &call);
    return tutti_batch_run_now(comm, &call, NULL);
}

/* Tells all ranks the result of rank 0. If rank 0 has failed, all ranks return its error, and the
 * communicator stays usable. */
static int share_result(struct tutti_comm *comm, struct order *order, int rc)
{
    order->result = rc;
    snprintf(order->message, sizeof order->message, "%s", rc ? tutti_message_last() : "");
    TUTTI_TRY(broadcast(comm, order, sizeof *order));
    order->message[sizeof order->message - 1] = '\0';
    return TUTTI_OK;
}

/* Makes all ranks use the policy of rank 0. `mine` is NULL on the other ranks. */
static int share_policy(struct tutti_comm *comm, struct tutti_policy *mine)
{
    uint64_t size = mine ? mine->size : 0;
    struct tutti_policy *policy = NULL;
    char *bytes;
    int rc;

    TUTTI_TRY(broadcast(comm, &size, sizeof size));
    bytes = size <= TUTTI_POLICY_MOST_BYTES ? malloc(size) : NULL;
    if (bytes == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %llu bytes of tuning rules",
                          (unsigned long long)size);
    if (mine != NULL)
        memcpy(bytes, mine->bytes, size);
    rc = broadcast(comm, bytes, size);
    if (rc == TUTTI_OK)
        rc = tutti_policy_unpack(bytes, size, &policy);
    if (rc == TUTTI_OK)
        rc = tutti_choices_set_policy(comm, policy);
    free(bytes);
    return rc;
}

/* An error that this function returns is known only to this rank, so the caller must fail the
 * communicator. A failure of rank 0 that all ranks know is in order->result instead. */
static int tune(struct tutti_comm *comm, struct order *order, struct results *results)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct tutti_policy *policy = NULL;
    int rc;

    if (bench == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to measure with");
    bench->comm = comm;
    bench->order = order;
    bench->results = comm->rank == 0 ? results : NULL;
    rc = measure_all(bench);
    drop_buffer(bench, bench->input);
    drop_buffer(bench, bench->output);
    free(bench);
    TUTTI_TRY(rc);
    if (comm->rank == 0)
        rc = conclude(comm, order, results, &policy);
    rc = share_result(comm, order, rc);
    if (rc == TUTTI_OK && order->result == TUTTI_OK)
        rc = share_policy(comm, policy);
    tutti_policy_release(policy);
    return rc;
}

static int tune_comm(struct tutti_comm *comm, const char *file, const tuttiTuneConfig_t *config)
{
    struct results results = {.file = NULL};
    struct order order = {.result = TUTTI_OK};
    int rc = TUTTI_OK;

    if (tutti_group_is_open())
        return tutti_fail(TUTTI_ERR_USAGE, "%s: not inside a group; call it after tuttiGroupEnd",
                          function);
    if (comm->rank == 0)
        rc = open_results(comm, file, config, &results, &order);
    rc = share_result(comm, &order, rc);
    if (rc == TUTTI_OK && order.result == TUTTI_OK)
        rc = tune(comm, &order, &results);
    close_results(&results);
    if (rc != TUTTI_OK)
        return tutti_comm_fail(comm, rc, tutti_message_last());
    if (order.result == TUTTI_OK)
        return TUTTI_OK;
    return tutti_fail(order.result == TUTTI_ERR_ARGUMENT ? TUTTI_ERR_ARGUMENT : TUTTI_ERR_USAGE,
                      "rank 0: %s", order.message);
}

tuttiResult_t tuttiCommTune(tuttiComm_t handle, const char *file, const tuttiTuneConfig_t *config)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter_ready(handle, function, &comm);

    if (rc == TUTTI_OK) {
        rc = tune_comm(comm, file, config);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(tutti_group_note(rc));
}
