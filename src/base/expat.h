/* SPDX-License-Identifier: Apache-2.0
 * Includes expat and gives its functions the same names in all versions. Version 2.9 renamed the
 * functions that return a position, and made each use of the old names a warning. */
#ifndef TUTTI_BASE_EXPAT_H
#define TUTTI_BASE_EXPAT_H

#include <expat.h>

#if XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION < 9
#define XML_GetCurrentLineNumber64 XML_GetCurrentLineNumber
#define XML_GetCurrentColumnNumber64 XML_GetCurrentColumnNumber
#define XML_GetCurrentByteIndex64 XML_GetCurrentByteIndex
#define XML_GetCurrentByteCount64 XML_GetCurrentByteCount
#endif

#endif
