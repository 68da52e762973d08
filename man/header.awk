# header.awk - public headers as the sections of seen(3): they are the manual
# already, and this is their text in another shape.
#
#     the comment a file opens with    the section's text; "Word    text" at
#                                      its left edge is a list
#     /* ---- Title ---- */            a subsection
#     /* text */ declaration           the declaration, and below it the text
#     /* text */ and an empty line     a paragraph
#
# Guards, includes and C++ are left out.
# -v version=...: of the library.

# The lines of a comment: paragraphs, lists of "Word    text", indented examples.
function put_comment(    i, line, shown, fresh, item)
{
    fresh = 0 # a paragraph is due
    shown = 0 # inside an example
    item = 0  # inside one of a list
    for (i = 1; i <= comments; i++) {
        line = comment[i]
        if (line ~ /^    / && !item) {
            if (!shown) { paragraph(); print ".RS 4\n.EX" }
            shown = 1
            put(escaped(substr(line, 5)))
            continue
        }
        if (shown) print ".EE\n.RE"
        if (shown) fresh = 1
        shown = 0
        if (line == "") {
            fresh = 1
            item = 0
            continue
        }
        if (match(line, /^(C\+\+|[A-Z][A-Za-z]+( [a-z]+)?)  +/)) {
            name = substr(line, 1, RLENGTH)
            sub(/ +$/, "", name)
            print ".TP\n" escaped(name)
            line = substr(line, RLENGTH + 1)
            item = 1
        } else if (fresh) {
            paragraph()
        }
        fresh = 0
        sub(/^ +/, "", line)
        put(escaped(line))
    }
    if (shown) print ".EE\n.RE"
    comments = 0
}

function put_declaration(    i)
{
    if (!declared) return
    paragraph()
    print ".EX"
    for (i = 1; i <= declared; i++) put(escaped(declaration[i]))
    print ".EE"
    if (comments) {
        print ".RS 4"
        put_comment()
        print ".RE"
    }
    declared = 0
}

function settle()
{
    if (declared) put_declaration()
    else if (comments) { paragraph(); put_comment() }
}

BEGIN {
    print ".TH SEEN 3 \"\" \"seen " version "\" Seen"
    print ".SH NAME\nseen \\- has this key been seen before? The library"
}

FNR == 1 {
    settle()
    opening = 1
    skipped = 0
    name = FILENAME
    sub(/.*\//, "", name)
    print ".SH " toupper(name)
    print ".B #include <" name ">\n.PP"
    headed = 1
}

# ---- What is no text: guards, C++, how symbols are exported
/^#if/ { skipped++; next }
/^#endif/ { skipped--; next }
/^#(else|include)/ { next }
/^#define SEEN_[A-Z_]*H$/ { next }
/SEEN_API/ && /^#/ { next }
skipped > 1 { next }
/^extern "C"/ || /^}$/ && !body { next }

/^\/\* ---- / {
    settle()
    sub(/^\/\* ---- /, "")
    sub(/ -+ *\*\/$/, "")
    print ".SS " escaped($0)
    headed = 1
    next
}

# ---- Comments at the left edge
/^\/\*/ && !commenting {
    settle()
    commenting = 1
    line = $0
    sub(/^\/\* ?/, "", line)
    if (opening && line == "") next
}
commenting {
    if ($0 !~ /^\/\*/) { line = $0; sub(/^ \*\/?/, "", line); sub(/^ /, "", line) }
    last = $0 ~ /\*\/$/
    sub(/ ?\*\/$/, "", line)
    if (!(last && line == "") && !(comments == 0 && line == "")) comment[++comments] = line
    if (last) {
        commenting = 0
        if (opening) { put_comment(); opening = 0 }
    }
    next
}

/^$/ && !body { settle(); next }
{
    if (sub(/^SEEN_API /, "")) exported = 1
    else if (exported) sub(/^         /, "")
    if (/;$/) exported = 0
    declaration[++declared] = $0
    if (/{$/ || /^{/) body = 1
    if (/^}/) body = 0
}
END { settle() }
