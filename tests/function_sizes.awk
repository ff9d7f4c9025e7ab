# Prints FILE:LINE: NAME: N lines for functions that are too long: 50 lines, or 100 in locks/ when
# the name says slow path. A brace opens a function when the statement before it has parentheses
# and is none of the keywords below.
function limit(file, name) { return file ~ /^locks\// && name ~ /slow/ ? 100 : 50 }
function opens_function(head) {
  sub(/^[ \t]+/, "", head)
  if (head !~ /\)/) return 0
  if (head ~ /^(namespace|class|struct|union|enum|if|else|for|while|switch|do|try|catch|return|case|default|static_assert|using)([^A-Za-z0-9_]|$)/) return 0
  if (head ~ /^(template[^{]*>[ \t]*)?(class|struct|union|enum|concept)[ \t]/) return 0
  return head !~ /=[ \t]*$/
}
function name_of(head) {
  if (head ~ /TEST_CASE|TEMPLATE/) return "test case"
  sub(/\(.*/, "", head); sub(/.*[ \t*&:]/, "", head)
  return head
}
FNR == 1 { depth = 0; parens = 0; in_comment = 0; head = ""; head_line = 1 }
/^[ \t]*#/ && !in_comment { next }
{
  text = $0; quote = ""
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1); two = substr(text, i, 2)
    if (in_comment) { if (two == "*/") { in_comment = 0; i++ }; continue }
    if (quote != "") { if (c == "\\") i++; else if (c == quote) quote = ""; continue }
    if (two == "//") break
    if (two == "/*") { in_comment = 1; i++; continue }
    if (c == "\"" || (c == "'" && substr(text, i - 1, 1) !~ /[0-9A-Fa-f]/)) { quote = c; continue }
    if (c == "(") parens++
    if (c == ")" && parens > 0) parens--
    if (c == "{") {
      depth++; outer[depth] = parens; parens = 0
      is_function[depth] = opens_function(head); start[depth] = head_line; name[depth] = name_of(head)
      head = ""
    } else if (c == "}") {
      if (depth > 0 && is_function[depth]) {
        lines = FNR - start[depth] + 1
        if (lines > limit(FILENAME, name[depth]))
          print FILENAME ":" start[depth] ": " name[depth] ": " lines " lines"
      }
      if (depth > 0) { parens = outer[depth]; depth-- }
      head = ""
    } else if (c == ";" && parens == 0) {
      head = ""
    } else {
      if (head ~ /^[ \t]*$/ && c !~ /[ \t]/) { head = ""; head_line = FNR }
      head = head c
    }
  }
  head = head " "
}
