#!/usr/bin/env bash
# Every C file is as clang-format would have it.  Tables (include/subzero/tbl) are laid out by hand.
. "$(dirname "$0")/lib.sh"

if [ "${1:-}" = --self-test ]; then
  plant .clang-format <"$LINT/../../.clang-format"
  plant good.c <<<$'int main(void)\n{\n    return 0;\n}'
  plant bad.c <<<$'int main(void) {\n  return 0; }'
  plant include/subzero/tbl/rows.h <<<'ROW(a,      1)'
  self_test "$0" bad.c:1:
  exit
fi

mapfile -t sources < <(files '*.c' '*.h' | grep -v '^include/subzero/tbl/')
[ ${#sources[@]} -gt 0 ] || exit 0
{ clang-format --dry-run --Werror "${sources[@]}" 2>&1 || true; } |
  sed -n 's/^\([^:]*:[0-9]*\):[0-9]*: error: code should be clang-formatted.*/\1: not formatted: run clang-format -i/p' |
  sort -t: -u -k1,1 | verdict format
