# Shared by the scripts of this folder; sourced, never run.  Sets ROOT and goes there.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

say() { printf '==> %s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Where the Go programs that the interop tests run against are kept; script/peers builds them.
export SUBZERO_PEERS=${SUBZERO_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/subzero/peers}

# build PRESET [TARGET...]: configures once, builds with progress; without a terminal, shows the log only on failure.
build() {
  local preset=$1 targets=()
  shift
  [ $# -eq 0 ] || targets=(--target "$@")
  if [ ! -f "build/$preset/build.ninja" ]; then
    say "configure $preset"
    cmake --preset "$preset" >/dev/null || return 1
  fi
  export NINJA_STATUS="[%f/%t %es] "
  if [ -t 1 ]; then
    cmake --build --preset "$preset" "${targets[@]}"
    return
  fi
  local log="build/$preset/build.log"
  if ! cmake --build --preset "$preset" "${targets[@]}" >"$log" 2>&1; then
    tail -n 60 "$log"
    say "the $preset build failed; the whole log is $log"
    return 1
  fi
  tail -n 1 "$log"
}
