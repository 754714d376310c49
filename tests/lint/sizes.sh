#!/usr/bin/env bash
# Functions stay readable: more than 100 lines fails, more than 60 and files of more than 600 are named as warnings.
# A function is what lies between a `{` and a `}` in the first column: clang-format puts them nowhere else.
. "$(dirname "$0")/lib.sh"

if [ "${1:-}" = --self-test ]; then
  body() { printf 'int f(void)\n{\n' && printf '    g(%d);\n' $(seq "$1") && printf '}\n'; }
  body 101 | plant src/long.c
  body 100 | plant src/short.c
  self_test "$0" 'src/long.c:1: f is 101 lines'
  exit
fi

mapfile -t sources < <(files '*.c' '*.h')
[ ${#sources[@]} -gt 0 ] || exit 0
measured=$(awk '
  FNR == 1 { open = 0 }
  /^[A-Za-z_].*\(/ && !open { head = FNR; text = $0 }
  /^\{/ { open = FNR }
  /^\}/ && open {
    n = FNR - open - 1
    name = text; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
    if (n > 100) print "fail " FILENAME ":" head ": " name " is " n " lines long, more than 100: cut it by idea"
    else if (n > 60) print "warn " FILENAME ":" head ": " name " is " n " lines long"
    open = 0
  }
  ' "${sources[@]}"
  wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 600 { print "warn " $2 ": " $1 " lines; does it still hold one idea?" }')
sed -n 's/^warn /warning: /p' <<<"$measured" >&2
sed -n 's/^fail //p' <<<"$measured" | verdict sizes
