# markdown.awk - a document of docs/ as the sections of a manual page, so that
# there is no second text to keep true. Knows the markdown that the documents are
# written in, and no more:
#
#     # title            left out: the page has its own
#     ## and ###         sections and subsections
#     paragraphs, lists  filled anew
#     | tables |         a list: the first cell of a row, then the others
#     indented blocks    as they are; so are those in ``` fences
#     `code`, **bold**   bold; [text](link): the text alone
#
# -v page="SEEN-REDIS 7" -v about="what it is" -v version=...: begins a page.
# -v from=2: leaves out what comes before the second-level headings.

# Text with code, bold and links.
function rendered(s,    out, code, i, n, parts)
{
    gsub(/\\\|/, "|", s)
    gsub(/\*\*`/, "`", s) # code is bold anyway
    gsub(/`\*\*/, "`", s)
    while (match(s, /\[[^\]]*\]\([^)]*\)/)) {
        code = substr(s, RSTART + 1, RLENGTH - 1)
        sub(/\]\(.*/, "", code)
        s = substr(s, 1, RSTART - 1) code substr(s, RSTART + RLENGTH)
    }
    n = split(s, parts, "`")
    out = ""
    for (i = 1; i <= n; i++) {
        if (i % 2 == 0) {
            out = out "\\fB" escaped(parts[i]) "\\fR"
            continue
        }
        code = escaped(parts[i])
        while (match(code, /\*\*[^*]*\*\*/))
            code = substr(code, 1, RSTART - 1) "\\fB" substr(code, RSTART + 2, RLENGTH - 4) "\\fR" substr(code, RSTART + RLENGTH)
        while (match(code, /\*[^* ][^*]*\*/))
            code = substr(code, 1, RSTART - 1) "\\fI" substr(code, RSTART + 1, RLENGTH - 2) "\\fR" substr(code, RSTART + RLENGTH)
        out = out code
    }
    return out
}

# What has been gathered of a paragraph or an item.
function flush()
{
    if (text != "") put(rendered(text))
    text = ""
}

function leave_block()
{
    if (block) print ".EE\n.RE"
    block = 0
}

# Cells of a row, without the escaped bars inside them.
function cells(line,    n, i)
{
    gsub(/\\\|/, "\001", line)
    sub(/^\| */, "", line)
    sub(/ *\|$/, "", line)
    n = split(line, cell, / *\| */)
    for (i = 1; i <= n; i++) gsub(/\001/, "|", cell[i])
    return n
}

BEGIN {
    if (page != "") {
        name = tolower(page)
        sub(/ .*/, "", name)
        print ".TH " page " \"\" \"seen " version "\" Seen"
        print ".SH NAME\n" escaped(name) " \\- " escaped(about) "\n.SH DESCRIPTION"
        headed = 1
    }
}
from == 2 && !begun && !/^## / { next }
{ begun = 1 }

/^```/ {
    flush()
    if (fenced) leave_block()
    else { paragraph(); print ".RS 4\n.EX"; block = 1 }
    fenced = !fenced
    next
}
fenced { put(escaped($0)); next }

/^    / && (block || before == "") {
    flush()
    if (!block) { paragraph(); print ".RS 4\n.EX"; block = 1 }
    put(escaped(substr($0, 5)))
    before = ""
    next
}
/^$/ { flush(); if (!block) before = ""; table = 0; next }
{ leave_block() }

/^# / { next }
/^## / { flush(); print ".SH " rendered(toupper(substr($0, 4))); before = ""; headed = 1; next }
/^### / { flush(); print ".SS " rendered(substr($0, 5)); before = ""; headed = 1; next }

/^\|/ {
    flush()
    n = cells($0)
    if (!table) {
        table = 1
        for (i = 1; i <= n; i++) head[i] = cell[i]
    } else if (table == 1) {
        table = 2 # the ruler
    } else {
        print ".TP"
        put(cell[1] == "" ? "\\&..." : rendered(cell[1]))
        line = ""
        for (i = 2; i <= n; i++) {
            if (cell[i] == "") continue
            line = line (line == "" ? "" : "; ") (n > 2 && head[i] != "" ? head[i] ": " : "") cell[i]
        }
        put(line == "" ? "\\&" : rendered(line))
    }
    before = $0
    next
}

/^- / {
    flush()
    print ".IP \\(bu 2"
    text = substr($0, 3)
    before = $0
    next
}
{
    if (before == "") paragraph()
    sub(/^ +/, "")
    text = text (text == "" ? "" : " ") $0
    before = $0
}
END { flush(); leave_block() }
