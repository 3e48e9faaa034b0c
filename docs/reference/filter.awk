# SPDX-License-Identifier: Apache-2.0
# What Doxygen reads of tutti.h: the header's plain comments as documentation comments, so that the
# header itself needs no markup. In the HTML lines keep their numbers.
#
# The HTML has one page, on which the header's sections ("---- groups ----") are sections. With
# -v pages=1 each function is a group of its own instead, which Doxygen gives a manual page.

function close_section()
{
    if (has_section)
        printf "/** @} */ "
    has_section = 0
}

# A function's comment waits for the function's name.
function flush(before, line)
{
    if (nheld > 0)
        held[1] = before held[1]
    for (line = 1; line <= nheld; line++)
        print held[line]
    nheld = 0
}

# The first sentence of the comment that waits: what a manual page gives beside the function's name.
function first_sentence(text, line)
{
    text = ""
    for (line = 1; line <= nheld; line++)
        text = text " " held[line]
    gsub(/\/\*\* | \*\/|`/, "", text)
    gsub(/ +\* +/, " ", text)
    sub(/[.;] .*/, "", text)
    sub(/\.$/, "", text)
    return text
}

# The file's own comment: below the license line.
NR == 1 { print "/** @file tutti.h"; next }

/^\/\* ---- .* -+ \*\/$/ {
    flush()
    close_section()
    title = $0
    gsub(/^\/\* -+ | -+ \*\/$/, "", title)
    if (!pages) {
        printf "/** @name %s%s */ /** @{ */", toupper(substr(title, 1, 1)), substr(title, 2)
        has_section = 1
    }
    print ""
    next
}

# The last lines, which close what extern "C" has opened.
/^#ifdef __cplusplus/ { close_section() }

# Before a declaration; behind a member, or an enumerator.
/^ *\/\* / { sub(/\/\* /, "/** ") }
/([,;]|= [0-9]+) +\/\* / { sub(/\/\* /, "/**< ") }

pages && /^\/\*\* / { flush(); is_comment = 1 }
is_comment {
    held[++nheld] = $0
    is_comment = $0 !~ /\*\/$/
    next
}
pages && /^TUTTI_API / {
    match($0, /tutti[A-Za-z]+\(/)
    name = substr($0, RSTART, RLENGTH - 1)
    flush("/** @defgroup " name first_sentence() \
          "\n * @details tutti.h(3) says what holds for every function. */ /** @{ */ ")
    is_function = 1
}
{ flush() }
is_function && /;$/ { $0 = $0 " /** @} */"; is_function = 0 }
{ print }
