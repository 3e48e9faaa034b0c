/* SPDX-License-Identifier: Apache-2.0
 * The matrices of hwloc's XML: forms 2 and 3 have them in <distances2>, where all objects are of
 * one type, and <distances2hetero>, where each index has its object's type before it. Form 1 knows
 * latencies only, which we leave out.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_MATRIX_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_MATRIX_H

#include "topology/formats/hwloc_objects.h"
#include "topology/formats/xml.h"

/* Objects of a matrix, and matrices, at most. */
#define TUTTI_HWLOC_MATRIX_OBJECTS 1024
#define TUTTI_HWLOC_MATRICES 16

/* The one being read. Zeroed, there is none. */
struct tutti_hwloc_matrix_reader {
    struct tutti_hwloc_matrix matrix; /* name NULL: none, or one that we have no use for */
    size_t nindexes, nvalues;
};

int tutti_hwloc_matrix_begin(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                             const struct tutti_xml_element *element);
/* The text of an element within one. */
int tutti_hwloc_matrix_text(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                            const char *name, const char *text);
/* Hands it over to hwloc. */
int tutti_hwloc_matrix_end(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                           struct tutti_hwloc *hwloc);
void tutti_hwloc_matrix_reader_fini(struct tutti_hwloc_matrix_reader *reader);
void tutti_hwloc_matrix_fini(struct tutti_hwloc_matrix *matrix);

#endif
