/* SPDX-License-Identifier: Apache-2.0
 * A small language of collective programs, and its compilers to MSCCL's XML and to MSCCL++'s JSON.
 * A script is a list of actions on chunks of the ranks' buffers. The actions run one after the
 * other. A compiler deals them to threadblocks and orders the threadblocks where actions conflict.
 */
#ifndef TUTTI_TESTS_IMPORT_SCRIPT_H
#define TUTTI_TESTS_IMPORT_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/collective.h"

struct at {
    uint32_t rank;
    char buffer; /* 'i', 'o' or 's' */
    uint32_t index;
};

/* dst = src, or dst = add + src if `adds`. The ranks of add and dst are the same. */
struct action {
    struct at src, add, dst;
    bool adds;
    uint32_t count, channel;
};

struct script {
    enum tutti_collective collective;
    uint32_t nranks, chunks; /* chunks per block */
    bool is_in_place;
    uint32_t scratch; /* chunks of SCRATCH per rank, raised by scratch_at */
    struct action *actions;
    uint32_t nactions, capacity;
};

/* Give a chunk of a rank's input, output or scratch. In place, a chunk of input is one of output.
 */
struct at input_at(const struct script *script, uint32_t rank, uint32_t index);
struct at output_at(const struct script *script, uint32_t rank, uint32_t index);
struct at scratch_at(struct script *script, uint32_t rank, uint32_t index);

/* Add an action. A copy of chunks onto themselves adds none. */
void copy(struct script *script, struct at src, struct at dst, uint32_t count, uint32_t channel);
void add_to(struct script *script, struct at src, struct at add, struct at dst, uint32_t count,
            uint32_t channel);
void script_free(struct script *script);

/* Splits every chunk into `instances` parts and repeats all actions for each part, on channels of
 * its own. `channels` is the number of channels of the script. */
struct script script_repeat(const struct script *script, uint32_t instances, uint32_t channels);

/* The threadblocks of an XML file. */
enum layout {
    BY_PEER,      /* one for each peer and channel */
    BY_DIRECTION, /* one for each direction, peer and channel */
    JOINED,       /* as few as possible; a receive and a send of the same chunks become one step */
    LAYOUTS
};

/* How a plan of MSCCL++ moves data. */
enum style {
    SIGNALS, /* puts and reads, and signals where actions conflict */
    PACKETS, /* packets into scratch of the receiver */
    STYLES
};

/* Compile a script. The caller frees the text. In a plan, each channel is a threadblock; actions of
 * different channels must not conflict. */
char *script_xml(const struct script *script, const char *protocol, enum layout layout);
char *script_json(const struct script *script, uint32_t channels, enum style style);

#endif
