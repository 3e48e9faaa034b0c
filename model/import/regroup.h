/* SPDX-License-Identifier: Apache-2.0
 * Rewrites a program whose ranks add the same parts in different orders, so that they add them in
 * one order.
 *
 * In a one-pass allreduce, each rank gets the parts of all others and adds them to its own, one
 * after the other: rank 0 computes (x0 + x1) + x2, and rank 2 computes (x2 + x0) + x1. Both are
 * right up to rounding, but the ranks' results may differ in their last bits. A schedule promises
 * equal bits. The rewritten program adds all parts of such a chain at once, and emit.c sorts the
 * parts of one sum by rank.
 *
 * The rewritten program holds the same data in other chunks, of which each is written once. So a
 * part is still there when it is added later than in the file:
 *
 *   file, gpu 2               rewritten
 *
 *   RECV into scratch 0       MOVE x0 of gpu 0 to temporary 0
 *   RECV into scratch 1       MOVE x1 of gpu 1 to temporary 1
 *   MOVE input + scratch 0
 *     to input                (nothing: input stands for a sum of two parts)
 *   MOVE input + scratch 1
 *     to input                MOVE temporary 0 + temporary 1 + input to output
 */
#ifndef TUTTI_IMPORT_REGROUP_H
#define TUTTI_IMPORT_REGROUP_H

#include "import/program.h"

/* Sets *ret_has_chains to true if a rank adds to the result of a sum that it has made itself and
 * has neither sent nor copied. Only then can regrouping change anything. Returns TUTTI_ERR_SYSTEM
 * if there is no memory. */
int tutti_import_has_chains(const struct tutti_import_program *program,
                            const struct tutti_import_trace *trace, bool *ret_has_chains);

/* Rewrites a program that has been played and whose collective gives all ranks one result
 * (tutti_collective_gives_one_result). The new program is finished (tutti_import_finish) and has a
 * trace. On success the caller releases both. Returns TUTTI_ERR_ARGUMENT, without logging, if a sum
 * has more parts than there are ranks or an unwritten chunk is read, and if the new program exceeds
 * a limit. Returns TUTTI_ERR_SYSTEM if there is no memory. */
int tutti_import_regroup(const struct tutti_import_program *program,
                         const struct tutti_import_trace *trace,
                         struct tutti_import_program *ret_program,
                         struct tutti_import_trace *ret_trace);

#endif
