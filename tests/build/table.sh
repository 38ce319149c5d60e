#!/bin/sh
# SPDX-License-Identifier: MIT
# README.md's table of training steps is the one that bench/table makes of bench/results/.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null 2>&1 || exit 77
python3 "$root/bench/table" --check || wrong 'README.md has another table'
finish
