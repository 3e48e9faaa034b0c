/* SPDX-License-Identifier: Apache-2.0
 * expat, with one name per function: its version 2.9 gave those that tell a position new names, and
 * made a use of the old ones a warning. */
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
