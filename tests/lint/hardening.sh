#!/usr/bin/env bash
# What the toolchain can do against memory faults is in the binary: PIE, full RELRO, NX, stack protector, fortify.
# usage: hardening.sh BINARY
set -euo pipefail

examine() {
  local bad=0 header program dynamic symbols
  header=$(readelf -hW "$1")
  program=$(readelf -lW "$1")
  dynamic=$(readelf -dW "$1")
  symbols=$(readelf -sW "$1")
  lacks() { printf '%s: %s\n' "$2" "$1" && bad=1; }
  grep -q 'Type:.*DYN' <<<"$header" && grep -q 'FLAGS_1.*PIE' <<<"$dynamic" || lacks "not position independent (-pie)" "$1"
  grep -q GNU_RELRO <<<"$program" || lacks "no RELRO (-z relro)" "$1"
  grep -qE 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || lacks "lazy binding leaves the GOT writable (-z now)" "$1"
  grep -qE 'GNU_STACK.* RW ' <<<"$program" || lacks "executable stack (-z noexecstack)" "$1"
  ! grep -q TEXTREL <<<"$dynamic" || lacks "text relocations" "$1"
  ! grep -qE 'RPATH|RUNPATH' <<<"$dynamic" || lacks "a library search path is built in" "$1"
  grep -q __stack_chk_fail <<<"$symbols" || lacks "no stack protector (-fstack-protector-strong)" "$1"
  grep -qE '__[a-z]+_chk(@|$)' <<<"$symbols" || lacks "no fortified calls (-D_FORTIFY_SOURCE=2 with -O2)" "$1"
  return $bad
}

if [ "${1:-}" = --self-test ]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  cat >"$scratch/x.c" <<'C'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[32];
    snprintf(text, sizeof(text), "%s", argv[argc - 1]);
    memcpy(text, argv[0], (size_t)argc);
    return puts(text);
}
C
  strong=(-O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE -pie '-Wl,-z,relro' '-Wl,-z,now' '-Wl,-z,noexecstack')
  gcc -o "$scratch/strong" "$scratch/x.c" "${strong[@]}"
  examine "$scratch/strong" || { echo "self-test: a hardened binary was refused" && exit 1; }
  for weak in -no-pie -Wl,-z,lazy -Wl,-z,norelro -Wl,-z,execstack -fno-stack-protector -U_FORTIFY_SOURCE -Wl,-rpath,/opt/lib; do
    gcc -o "$scratch/weak" "$scratch/x.c" "${strong[@]}" "$weak" 2>/dev/null
    ! examine "$scratch/weak" >/dev/null || { echo "self-test: $weak was not noticed" && exit 1; }
  done
  echo "self-test: seven weakened binaries were found out"
  exit
fi

examine "${1:?usage: hardening.sh BINARY}"
echo "hardening: $1 has all of it"
