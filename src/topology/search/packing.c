/* SPDX-License-Identifier: Apache-2.0
 * Converts shares of any size to channels of one width (rate in B/s). For a given width, each
 * column (ring or tree) becomes as many channels as fit in its share. The remaining capacity of the
 * links is filled with the cheapest rings or trees that still fit. */
#include "topology/search/packing.h"

#include "base/result.h"
#include "topology/search/taste.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A larger number of channels must carry more by this factor. */
#define GAIN 1.001
/* The search for a width ends when the channels carry this part of the optimum. */
#define ENOUGH 0.9995
/* Single shares are divided into at most this many equal parts to get a width. */
enum { SHARE_PARTS = 4 };
/* Relative tolerance for sums of shares. */
#define SHARE_TOLERANCE 1e-5

int tutti_packing_init(struct tutti_packing *packing, struct tutti_search_state *search)
{
    *packing = (struct tutti_packing){.search = search, .most = search->pricing.nchannels};
    packing->left = calloc(search->pricing.nlinks + 1, sizeof *packing->left);
    return packing->left != NULL ? TUTTI_OK : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
}

static void remove_channels(struct tutti_packing *packing)
{
    for (uint32_t i = 0; i < packing->count; i++)
        if (packing->is_own[i])
            tutti_column_destroy(&packing->column[i]);
    packing->count = 0;
}

void tutti_packing_fini(struct tutti_packing *packing)
{
    remove_channels(packing);
    free(packing->left);
}

void tutti_packing_add(struct tutti_packing *packing, const struct tutti_search_column *column,
                       bool is_own)
{
    for (uint32_t i = 0; i < packing->search->pricing.nlinks; i++)
        packing->left[i] -= packing->width * column->use[i];
    packing->is_own[packing->count] = is_own;
    packing->column[packing->count++] = *column;
}

void tutti_packing_take(struct tutti_packing *packing, struct tutti_search_column *ret_column,
                        bool *ret_is_own)
{
    *ret_column = packing->column[0];
    *ret_is_own = packing->is_own[0];
    packing->count--;
    memmove(packing->column, packing->column + 1, packing->count * sizeof *packing->column);
    memmove(packing->is_own, packing->is_own + 1, packing->count * sizeof *packing->is_own);
    for (uint32_t i = 0; i < packing->search->pricing.nlinks; i++)
        packing->left[i] += packing->width * ret_column->use[i];
}

bool tutti_packing_fits(const struct tutti_packing *packing,
                        const struct tutti_search_column *column)
{
    for (uint32_t i = 0; i < packing->search->pricing.nlinks; i++)
        if (packing->width * column->use[i] >
            packing->left[i] + TUTTI_PACKING_TOLERANCE * packing->search->pricing.capacity[i])
            return false;
    return true;
}

/* Adds the cheapest channels while they fit. A link's price grows as the link fills. A link that
 * cannot take one more channel has an infinite price. */
static int fill_up(struct tutti_packing *packing)
{
    struct tutti_search_state *search = packing->search;
    const struct tutti_pricing *pricing = &search->pricing;
    int rc = TUTTI_OK;

    while (packing->count < packing->most && rc == TUTTI_OK) {
        struct tutti_search_column column;
        double cost, least;
        bool is_good;

        for (uint32_t i = 0; i < pricing->nlinks; i++)
            search->price[i] = packing->left[i] < packing->width * (1 - TUTTI_PACKING_TOLERANCE)
                                   ? INFINITY
                                   : 1 / packing->left[i];
        TUTTI_TRY(tutti_column_create(pricing, &column));
        rc = tutti_search_cheapest(search, false, &column, &cost, &least);
        is_good = rc == TUTTI_OK && isfinite(cost) && column.penalty < TUTTI_TASTE_EXCLUDED &&
                  tutti_packing_fits(packing, &column);
        if (!is_good) {
            tutti_column_destroy(&column);
            break;
        }
        tutti_packing_add(packing, &column, true);
    }
    return rc;
}

/* Makes the channels for one width: as many of each column as fit in its share, and then others. */
static int pack(struct tutti_packing *packing, double width)
{
    const struct tutti_search_state *search = packing->search;

    remove_channels(packing);
    packing->width = width;
    memcpy(packing->left, search->pricing.capacity, search->pricing.nlinks * sizeof *packing->left);
    for (uint32_t i = 0; i < search->nshares; i++)
        for (double share = search->share[i];
             share >= width * (1 - SHARE_TOLERANCE) && packing->count < packing->most &&
             tutti_packing_fits(packing, &search->columns[i]);
             share -= width)
            tutti_packing_add(packing, &search->columns[i], false);
    return fill_up(packing);
}

void tutti_packing_widen(struct tutti_packing *packing)
{
    const struct tutti_pricing *pricing = &packing->search->pricing;

    packing->width = INFINITY;
    for (uint32_t i = 0; i < pricing->nlinks; i++) {
        double use = 0;

        for (uint32_t c = 0; c < packing->count; c++)
            use += packing->column[c].use[i];
        if (use > 0)
            packing->width = fmin(packing->width, pricing->capacity[i] / use);
        packing->left[i] = use; /* until the width is known */
    }
    for (uint32_t i = 0; i < pricing->nlinks; i++)
        packing->left[i] =
            pricing->capacity[i] - (packing->left[i] > 0 ? packing->left[i] * packing->width : 0);
}

double tutti_packing_rate(const struct tutti_packing *packing)
{
    return packing->count == 0 ? 0 : packing->width * packing->count;
}

/* Returns the sum of all shares, which is the optimum. */
static double sum_of_shares(const struct tutti_search_state *search)
{
    double sum = 0;

    for (uint32_t i = 0; i < search->nshares; i++)
        sum += search->share[i];
    return sum;
}

/* Makes the channels for one width, unless they cannot carry more than *best. Updates *best and
 * *best_width if they carry more. */
static int try_width(struct tutti_packing *packing, double width, double *best, double *best_width)
{
    double sum = sum_of_shares(packing->search), most_channels;

    if (*best >= ENOUGH * sum || !(width > 0))
        return TUTTI_OK;
    most_channels = fmin(floor(sum / width + SHARE_TOLERANCE), packing->most);
    if (width * most_channels <= *best * GAIN)
        return TUTTI_OK;
    TUTTI_TRY(pack(packing, width));
    tutti_packing_widen(packing);
    if (tutti_packing_rate(packing) > *best * GAIN) {
        *best = tutti_packing_rate(packing);
        *best_width = width;
    }
    return TUTTI_OK;
}

/* Finds the width with which the channels carry the most; infinite: nothing limits the channels.
 * Useful widths are equal parts of the sum of shares, and parts of single shares. */
static int choose_width(struct tutti_packing *packing, double *ret_width)
{
    const struct tutti_search_state *search = packing->search;
    double sum = sum_of_shares(search), best = 0;

    *ret_width = INFINITY;
    if (isinf(sum))
        return TUTTI_OK;
    for (uint32_t parts = 1; parts <= packing->most; parts++) {
        TUTTI_TRY(try_width(packing, sum / parts, &best, ret_width));
        for (uint32_t i = 0; i < search->nshares && parts <= SHARE_PARTS; i++)
            if (search->share[i] > 0)
                TUTTI_TRY(try_width(packing, search->share[i] / parts, &best, ret_width));
    }
    return TUTTI_OK;
}

int tutti_packing_most(struct tutti_packing *packing)
{
    double width;

    TUTTI_TRY(choose_width(packing, &width));
    if (isinf(width)) { /* no link is used, so there is one column, whose rate nothing limits */
        remove_channels(packing);
        packing->width = INFINITY;
        packing->column[0] = packing->search->columns[0];
        packing->is_own[0] = false;
        packing->count = 1;
        return TUTTI_OK;
    }
    TUTTI_TRY(pack(packing, width));
    tutti_packing_widen(packing);
    return TUTTI_OK;
}

/* Packs `count` channels of at least this width, if possible. Returns true if their rate is
 * `least`. */
static int pack_count(struct tutti_packing *packing, uint32_t count, double width, double least,
                      bool *ret_is_enough)
{
    uint32_t most = packing->most;
    int rc;

    packing->most = count;
    rc = pack(packing, width);
    packing->most = most;
    TUTTI_TRY(rc);
    tutti_packing_widen(packing);
    *ret_is_enough = packing->count == count &&
                     tutti_packing_rate(packing) >= least * (1 - TUTTI_PACKING_TOLERANCE);
    return TUTTI_OK;
}

int tutti_packing_fewest(struct tutti_packing *packing, double least, uint32_t most,
                         bool *ret_is_found)
{
    double sum = sum_of_shares(packing->search);
    bool is_enough = false;

    *ret_is_found = false;
    for (uint32_t count = 1; count <= most && !*ret_is_found && sum >= least; count++) {
        TUTTI_TRY(pack_count(packing, count, least / count, least, ret_is_found));
        if (!*ret_is_found)
            continue;
        /* The whole optimum is often reached with as many channels. */
        TUTTI_TRY(pack_count(packing, count, sum / count, tutti_packing_rate(packing), &is_enough));
        if (!is_enough)
            TUTTI_TRY(pack_count(packing, count, least / count, least, ret_is_found));
    }
    return TUTTI_OK;
}
