/* SPDX-License-Identifier: Apache-2.0
 * One call of all ranks of a domain. Kernels and the oracle run it, and the results are compared
 * byte for byte. */
#ifndef TUTTI_TESTS_SIMCUDA_SCENE_H
#define TUTTI_TESTS_SIMCUDA_SCENE_H

#include "algorithms/algorithm.h"
#include "executor/cuda/program.h"
#include "simcuda/domain.h"

struct scene {
    const struct tutti_algorithm *algorithm;
    struct tutti_shape shape; /* its rank is ignored */
    enum tutti_type type;
    enum tutti_op op;
    bool is_average, is_premultiplied;
    bool reads_scalar;        /* when the kernel runs, not before */
    bool is_in_place;         /* where the collective can be */
    bool is_vector;           /* blocks of different sizes, with gaps between them */
    size_t count;             /* elements of each block, or about so many */
    uint64_t seed;            /* of all bytes */
};

/* Where scenes are played: programs are cut for `grid`, whose layout is the domain's. */
struct stage {
    struct domain domain;
    struct tutti_cuda_grid grid;
    uint32_t threads;
    uint64_t number; /* of the last call */
};

void stage_open(struct stage *stage, uint32_t nranks, const struct tutti_cuda_grid *grid,
                const struct domain_sizes *sizes, uint32_t threads);
void stage_close(struct stage *stage);

/* False: the call cannot be run by kernels, on any rank. Fails the test when the results differ. */
bool scene_play(struct stage *stage, const struct scene *scene);

/* Several calls, one after the other in one launch; all can be run. */
void scenes_play(struct stage *stage, const struct scene *scenes, uint32_t count);

/* All ranks but `absent` (TUTTI_NO_RANK: none) play `scene`, rank `odd` plays `other`: nothing is
 * compared, and all that were launched must have ended. */
void scene_play_apart(struct stage *stage, const struct scene *scene, const struct scene *other,
                      int odd, int absent, uint64_t deadline_ns);

/* "allreduce ring, 5 ranks, ..." for messages; static. */
const char *scene_name(const struct scene *scene);

#endif
