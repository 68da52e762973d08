# roff.awk - what header.awk and markdown.awk share: text that roff prints as it is.

# A hyphen of an option is no hyphen to roff, and quotes shall come out straight.
function escaped(s)
{
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/'/, "\\(aq", s)
    gsub(/`/, "\\(ga", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    return s
}

# A new paragraph, which the first one below a heading is anyway.
function paragraph()
{
    if (!headed) print ".PP"
    headed = 0
}

# A line must not begin as a request does.
function put(s)
{
    headed = 0
    print (s ~ /^[.]/ ? "\\&" : "") s
}
