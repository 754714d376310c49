# C source to `file:line:code`: comments removed, the contents of string and character literals blanked.
FNR == 1 { in_comment = 0 }
{
    line = $0
    out = ""
    n = length(line)
    for (i = 1; i <= n; i++) {
        two = substr(line, i, 2)
        c = substr(line, i, 1)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; i++ }
            continue
        }
        if (two == "/*") { in_comment = 1; i++; out = out " "; continue }
        if (two == "//") break
        if (c == "\"" || c == "'") {
            # An include's path is no literal: keep it.
            if (c == "\"" && out ~ /^[ \t]*#[ \t]*include[ \t]*$/) { out = out substr(line, i); break }
            quote = c
            out = out c
            for (i++; i <= n; i++) {
                c = substr(line, i, 1)
                if (c == "\\") { i++; continue }
                if (c == quote) break
            }
            out = out quote
            continue
        }
        out = out c
    }
    if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
}
