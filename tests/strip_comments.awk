# Prints FILE:LINE:TEXT for every line of C or C++, with comments removed and string and character
# literals emptied. Raw strings are not understood; none are needed where this is used.
FNR == 1 { in_comment = 0 }
{
  text = $0; out = ""; quote = ""
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1); two = substr(text, i, 2)
    if (in_comment) {
      if (two == "*/") { in_comment = 0; i++ }
    } else if (quote != "") {
      if (c == "\\") i++
      else if (c == quote) { quote = ""; out = out c }
    } else if (two == "//") {
      break
    } else if (two == "/*") {
      in_comment = 1; i++
    } else {
      # A quote between digits separates thousands.
      if (c == "\"" || (c == "'" && substr(text, i - 1, 1) !~ /[0-9A-Fa-f]/)) quote = c
      out = out c
    }
  }
  print FILENAME ":" FNR ":" out
}
