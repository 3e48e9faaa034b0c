/* SPDX-License-Identifier: Apache-2.0
 * Memory of the simulated driver.
 *
 * Device memory is pages of anonymous files, which other processes can map too. All its addresses
 * come from one reserved part of the address space, in order, and none is used twice. So an access
 * after free is a crash in a kernel and an error in a call. Allocations end where a page ends, and
 * the page behind is inaccessible. */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_MEMORY_H
#define TUTTI_TESTS_SIMCUDA_CUDA_MEMORY_H

#include "simcuda/cuda/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_GRANULARITY = 64 << 10 }; /* of memory that is mapped piece by piece */

/* Pages that a device, or a device as another process has it, keeps. */
struct sim_pages {
    uint32_t nrefs;
    int file;
    size_t size_bytes;
    struct sim_device *device;
    bool is_imported;   /* another process pays for it */
    bool is_exportable; /* as a file descriptor */
    struct sim_pages *next; /* of all that have handles */
    uint32_t nhandles;
};

enum sim_range_kind {
    SIM_RANGE_DEVICE,     /* cuMemAlloc */
    SIM_RANGE_MAPPED,     /* cuMemMap */
    SIM_RANGE_IPC,        /* cuIpcOpenMemHandle */
    SIM_RANGE_HOST,       /* cuMemHostAlloc */
    SIM_RANGE_REGISTERED, /* cuMemHostRegister */
};

/* Addresses that the driver knows. */
struct sim_range {
    enum sim_range_kind kind;
    uintptr_t base;
    size_t size_bytes;
    uintptr_t pages_at; /* where they are mapped */
    size_t pages_bytes;
    struct tutti_cu_context *context; /* that it was made in; NULL: MAPPED */
    struct sim_pages *pages;          /* of a device */
    uint64_t devices;                 /* MAPPED and IPC: who may use it, by bits */
    uint32_t nopened;                 /* IPC: how many times */
    struct sim_range *next;
};

extern struct sim_range *sim_ranges;
/* Of the list, for kernels that look; who changes it holds sim_lock as well. */
extern pthread_rwlock_t sim_ranges_lock;

/* NULL: the driver does not know the address. With the lock. */
struct sim_range *sim_range_of(uintptr_t at);
/* Whether a copy may touch these bytes; *ret_range is the first one's, NULL where it is memory of
 * which the driver knows nothing: pageable memory of the host. An error code otherwise. */
int sim_range_check(uintptr_t at, size_t size_bytes, struct sim_range **ret_range);
/* The device whose memory it is; NULL: the host's. */
struct sim_device *sim_range_device(const struct sim_range *range);

/* A part of the reserved addresses, in whole pages, with one page behind it that is never mapped. 0
 * means that there are no more. */
uintptr_t sim_addresses(size_t size_bytes, size_t alignment);
bool sim_is_reserved(uintptr_t at);
/* Nobody may touch these pages any more. */
void sim_forbid(uintptr_t at, size_t size_bytes);

/* New pages of a device, filled with what is no value, within what it has; NULL: no more. */
struct sim_pages *sim_pages_create(struct sim_device *device, size_t size_bytes);
/* Those behind a file descriptor of this or another process, which is duplicated. */
struct sim_pages *sim_pages_import(int file, struct sim_device *device, size_t size_bytes);
void sim_pages_drop(struct sim_pages *pages);

/* A range of its own, known from now on; forgotten again, its pages dropped and forbidden. */
struct sim_range *sim_range_add(const struct sim_range *range);
void sim_range_remove(struct sim_range *range);

/* A context ends: all that was allocated in it is freed. */
void sim_memory_end(struct tutti_cu_context *context);

/* Some device may touch less than before. After the change. */
void sim_rights_shrink(void);
/* A kernel of this device accesses that range. If it may not, the process ends with a message.
 * Without the lock. */
void sim_memory_check(struct sim_device *device, const char *kernel, const void *at,
                      size_t size_bytes, bool is_store);

/* True if other devices see lines in parts that a kernel of this device stores there. Without the
 * lock. */
bool sim_memory_tears(const struct sim_device *device, const void *at);

/* Reservations and handles that were not given back. */
uint32_t sim_reservations_left(void);
uint32_t sim_handles_left(void);

#endif
