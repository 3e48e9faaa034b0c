/* SPDX-License-Identifier: Apache-2.0
 * The matrices of hwloc's XML. Forms 2 and 3 have them in <distances2>, where all objects are of
 * one type, and in <distances2hetero>, where each index is preceded by its object's type. Form 1
 * has only latencies, which are not used.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_MATRIX_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_MATRIX_H

#include "topology/formats/hwloc_objects.h"
#include "topology/formats/xml.h"

/* Upper bounds: objects of a matrix, and matrices. */
#define TUTTI_HWLOC_MATRIX_OBJECTS 1024
#define TUTTI_HWLOC_MATRICES 16

/* The matrix being read. A zeroed reader has none. */
struct tutti_hwloc_matrix_reader {
    struct tutti_hwloc_matrix matrix; /* name NULL: none, or a matrix that is not used */
    size_t nindexes, nvalues;
};

int tutti_hwloc_matrix_begin(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                             const struct tutti_xml_element *element);
/* Takes the text of an element within a matrix. */
int tutti_hwloc_matrix_text(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                            const char *name, const char *text);
/* Moves the complete matrix into `hwloc`. TUTTI_ERR_ARGUMENT: it is incomplete, or there are too
 * many. */
int tutti_hwloc_matrix_end(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                           struct tutti_hwloc *hwloc);
void tutti_hwloc_matrix_reader_fini(struct tutti_hwloc_matrix_reader *reader);
void tutti_hwloc_matrix_fini(struct tutti_hwloc_matrix *matrix);

#endif
