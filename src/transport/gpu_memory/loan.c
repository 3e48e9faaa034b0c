/* SPDX-License-Identifier: Apache-2.0
 * Keeps the list of GPU memory that ranks of this process use together, and frees it after its last
 * user. */
#include "transport/gpu_memory/loan.h"

#include "base/result.h"

#include <pthread.h>
#include <stdlib.h>

struct loan {
    struct tutti_gpumem_loan_terms terms;
    struct tutti_gpumem memory;
    int users; /* ranks that have not finished with the memory */
    struct loan *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loan *loans;

/* Returns the link to the loan at `address`. The link is NULL if there is none. */
static struct loan **find_link(tutti_cu_address address)
{
    struct loan **at = &loans;

    while (*at != NULL && (*at)->memory.address != address)
        at = &(*at)->next;
    return at;
}

int tutti_gpumem_loan_begin(const struct tutti_gpumem_loan_terms *terms,
                            const struct tutti_gpumem *memory)
{
    struct loan *loan = malloc(sizeof *loan);
    struct tutti_cu_context *context;

    if (loan == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no host memory to share memory of GPU %d",
                          terms->device);
    *loan = (struct loan){.terms = *terms, .memory = *memory, .users = 1};
    if (terms->holds_primary)
        loan->terms.holds_primary =
            terms->cuda->primary_retain(&context, terms->device) == TUTTI_CU_SUCCESS;
    pthread_mutex_lock(&lock);
    loan->next = loans;
    loans = loan;
    pthread_mutex_unlock(&lock);
    return TUTTI_OK;
}

int tutti_gpumem_loan_join(tutti_cu_address address)
{
    struct loan *loan;

    pthread_mutex_lock(&lock);
    loan = *find_link(address);
    if (loan != NULL)
        loan->users++;
    pthread_mutex_unlock(&lock);
    return loan != NULL ? TUTTI_OK : tutti_note(TUTTI_ERR_DEVICE, "its memory was freed already");
}

/* Frees the memory of a loan. The caller must not hold the lock, because freeing may wait for
 * kernels of other ranks. */
static void free_loan(struct loan *loan)
{
    const struct tutti_cu_driver *cuda = loan->terms.cuda;
    struct tutti_cu_context *ours;

    if (cuda->context_push(loan->terms.context) == TUTTI_CU_SUCCESS) {
        tutti_gpumem_free(cuda, &loan->memory);
        cuda->context_pop(&ours);
    }
    if (loan->terms.holds_primary)
        cuda->primary_release(loan->terms.device);
    free(loan);
}

bool tutti_gpumem_loan_end(tutti_cu_address address)
{
    struct loan **at, *loan;
    bool is_last;

    pthread_mutex_lock(&lock);
    at = find_link(address);
    loan = *at;
    is_last = loan != NULL && --loan->users == 0;
    if (is_last)
        *at = loan->next;
    pthread_mutex_unlock(&lock);
    if (is_last)
        free_loan(loan);
    return loan != NULL;
}
