/* SPDX-License-Identifier: Apache-2.0
 * Reads the matrices of hwloc's XML, which describe links between objects. Forms 2 and 3 have them
 * in <distances2>, where all objects are of one type, and in <distances2hetero>, where each index
 * is preceded by its object's type. Form 1 has only latencies, which are not used. hwloc_objects.c
 * calls the functions begin, text and end for the tags of a matrix.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_HWLOC_MATRIX_H
#define TUTTI_TOPOLOGY_FORMATS_HWLOC_MATRIX_H

#include "topology/formats/hwloc_objects.h"
#include "topology/formats/xml.h"

/* Upper bounds: objects of a matrix, and matrices. */
#define TUTTI_HWLOC_MATRIX_OBJECTS 1024
#define TUTTI_HWLOC_MATRICES 16

/* Holds the matrix being read. A zeroed reader holds none. */
struct tutti_hwloc_matrix_reader {
    struct tutti_hwloc_matrix matrix; /* name NULL: none, or a matrix that is not used */
    size_t nindexes, nvalues;         /* entries read so far into objects and values */
};

/* Begins a matrix. Only matrices of links between GPUs are used; others are skipped up to their
 * end. TUTTI_ERR_ARGUMENT: the number of objects is invalid; TUTTI_ERR_SYSTEM: no memory. */
int tutti_hwloc_matrix_begin(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                             const struct tutti_xml_element *element);
/* Takes the text of the element `name` within a matrix. TUTTI_ERR_ARGUMENT: the text is invalid. */
int tutti_hwloc_matrix_text(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                            const char *name, const char *text);
/* Moves the complete matrix into `hwloc`. TUTTI_ERR_ARGUMENT: the matrix is incomplete, or there
 * are too many matrices; TUTTI_ERR_SYSTEM: no memory. */
int tutti_hwloc_matrix_end(struct tutti_hwloc_matrix_reader *reader, struct tutti_xml *xml,
                           struct tutti_hwloc *hwloc);
/* Free the contents of a reader or a matrix and leave it zeroed. */
void tutti_hwloc_matrix_reader_fini(struct tutti_hwloc_matrix_reader *reader);
void tutti_hwloc_matrix_fini(struct tutti_hwloc_matrix *matrix);

#endif
