#!/usr/bin/env bash
# The scripts themselves, by shellcheck.
. "$(dirname "$0")/lib.sh"

if [ "${1:-}" = --self-test ]; then
  plant script/bad <<<$'#!/bin/bash\nkill $(cat pid)'
  plant script/good <<<$'#!/bin/bash\nkill "$(cat pid)"'
  self_test "$0" script/bad:2:
  exit
fi

mapfile -t scripts < <(files '*' | while read -r f; do
  case $f in *.sh) echo "$f" ;; script/* | .ci/*) ! head -c 20 "$f" | grep -qE '^#!.*(bash|/sh)' || echo "$f" ;; esac
done)
# 1090, 1091: sourced files are checked by themselves.
{ shellcheck --shell=bash --format=gcc --severity=warning --exclude=SC1090,SC1091 "${scripts[@]}" || true; } | verdict shell
