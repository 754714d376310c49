#!/usr/bin/env bash
# `cmake --install` puts everything in its place, and what it put there works.
# usage: install.sh BUILD-FOLDER
set -euo pipefail
build=${1:?usage: install.sh BUILD-FOLDER}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/usr" >/dev/null
for file in bin/subzero share/man/man1/subzero.1 share/doc/subzero/docs share/doc/subzero/examples/subzero.yaml \
  lib/systemd/system/subzero.service; do
  [ -s "$scratch/usr/$file" ] || { echo "install: $file is missing" && exit 1; }
done
"$scratch/usr/bin/subzero" version >/dev/null
grep -q "^ExecStart=$scratch/usr/bin/subzero " "$scratch/usr/lib/systemd/system/subzero.service" || {
  echo "install: the unit starts another binary" && exit 1
}
! command -v man >/dev/null || man -l "$scratch/usr/share/man/man1/subzero.1" >/dev/null
echo "install: binary, man page, example and unit are in place"
