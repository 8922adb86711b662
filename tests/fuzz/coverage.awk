# awk -v prefix=P -f coverage.awk covered.txt LINES: reads LINES in lcov's format, in which file names begin with P (SF: a
# file, FN:line,name as in the linker's symbol table, DA:line,count). A line of covered.txt is "floor PERCENT", or a file
# and its functions whose lines do not count; '#' begins a comment.

# A lambda belongs to the function that contains it.
function is_lambda(name) { return name ~ /\$_[0-9]/ }

# Whether the name is one of the file's functions that do not count.
function is_left_out(name,    names, count, i) {
  count = split(left_out[file], names, " ")
  for (i = 1; i <= count; ++i) {
    if (index(name, length(names[i]) names[i]) > 0) {
      used[file " " names[i]] = 1
      return 1
    }
  }
  return 0
}

function miss(line) {
  if (line == last + 1 && left != "") {
    sub(/(-[0-9]+)?$/, "-" line, left)
  } else {
    left = left " " line
  }
  last = line
}

function finish(    line, counts) {
  if (!(file in wanted)) return
  counts = 1
  for (line = 1; line <= last_line; ++line) {
    if (line in begins) counts = !begins[line]
    if (!(line in hits) || !counts) continue
    ++lines
    if (hits[line] > 0) ++hit
    else miss(line)
  }
  if (lines == 0) return
  seen[file] = 1
  all += lines
  reached += hit
  printf "%-50s %5d %6.1f %%%s\n", file, lines, 100 * hit / lines, (left == "" ? "" : "  not:" left)
}

FNR == NR {
  sub(/#.*/, "")
  if ($1 == "floor") {
    floor = $2
  } else if (NF > 0) {
    path = $1
    wanted[path] = 1
    $1 = ""
    left_out[path] = $0
  }
  next
}
/^SF:/ {
  file = substr($0, 4)
  at = index(file, prefix)
  if (at > 0) file = substr(file, at + length(prefix))
  lines = hit = last_line = 0
  left = ""
  last = -1
  delete begins
  delete hits
}
/^FN:/ {
  comma = index($0, ",")
  line = substr($0, 4, comma - 4)
  name = substr($0, comma + 1)
  if (!is_lambda(name)) begins[line] = is_left_out(name)
}
/^DA:/ {
  split(substr($0, 4), pair, ",")
  hits[pair[1]] = pair[2]
  if (pair[1] + 0 > last_line) last_line = pair[1] + 0
}
/^end_of_record/ { finish() }
END {
  for (file in wanted) {
    if (!(file in seen)) {
      print file " is in no target"
      failed = 1
    }
    count = split(left_out[file], names, " ")
    for (i = 1; i <= count; ++i) {
      if (!((file " " names[i]) in used)) {
        print file " has no function " names[i]
        failed = 1
      }
    }
  }
  if (all == 0) exit 1
  printf "%-50s %5d %6.1f %%\n", "all", all, 100 * reached / all
  if (100 * reached < floor * all) {
    print "fewer than " floor " %"
    failed = 1
  }
  exit failed
}
