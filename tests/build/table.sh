#!/bin/sh
# SPDX-License-Identifier: MIT
# The tables in docs/speed.md and README.md are those that bench/table makes of bench/results/.
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null 2>&1 || exit 77
python3 "$root/bench/table" --check || wrong 'a page has another table'
finish
