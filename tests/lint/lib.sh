# Shared by the checks of this folder; sourced, never run.
#
# A check is a script that prints one line per violation, `file:line: what, and the remedy`, and exits 1 if there was
# one.  With --self-test it plants violations in a scratch tree and makes sure that it finds each of them and leaves
# the innocent lines alone: a check that cannot fail checks nothing.
set -euo pipefail
LINT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TREE=${TREE:-$(cd "$LINT/../.." && pwd)}
cd "$TREE"

# files PATTERN...: the tree's own files by git's account (also those not yet added), or all of them in a scratch tree.
files() {
  if [ -e .git ]; then
    git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ ! -f "$f" ] || echo "$f"; done
  else
    local pattern
    for pattern in "$@"; do find . -type f -path "./$pattern" | sed 's,^\./,,'; done | sort -u
  fi
}

# code FILE...: `file:line:text` with comments and the contents of literals blanked, so that words in them count for nothing.
code() { [ $# -eq 0 ] || awk -f "$LINT/code.awk" "$@"; }

# verdict NAME: reads violations from stdin.
verdict() {
  local found
  found=$(cat)
  if [ -n "$found" ]; then
    printf '%s\n' "$found"
    printf '%s: %d found\n' "$1" "$(wc -l <<<"$found")"
    return 1
  fi
  printf '%s: clean\n' "$1"
}

# plant() fills the scratch tree of a self-test, self_test() runs the check over it.
if [ "${1:-}" = --self-test ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
fi
plant() { # FILE; content from stdin
  mkdir -p "$scratch/$(dirname "$1")"
  cat >"$scratch/$1"
}
self_test() { # SCRIPT EXPECTED...: each EXPECTED is a fixed string of one line of the output; no other line may be there
  local script=$1 out rc=0 n=0
  shift
  out=$(TREE=$scratch bash "$script") || rc=$?
  [ $rc -ne 0 ] || { echo "self-test: nothing was found in a tree full of violations" && return 1; }
  for expected in "$@"; do
    grep -qF -- "$expected" <<<"$out" || { printf 'self-test: not found: %s\nin:\n%s\n' "$expected" "$out" && return 1; }
    n=$((n + 1))
  done
  local lines
  lines=$(grep -c ':' <<<"$(sed '$d' <<<"$out")" || true)
  [ "$lines" -eq $n ] || { printf 'self-test: %d violations expected, %d found:\n%s\n' $n "$lines" "$out" && return 1; }
  echo "self-test: all $n planted violations were found, nothing else"
}
