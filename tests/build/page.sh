#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of the design's section 2, as it stands there, compiles against the installed library, and the model that it shows learns.
# tests/build/page.c holds the page in a program; where ../shared exists, its lines are compared with the design's.
. "$(dirname "$0")/common.sh"
install_weft
page=$root/tests/build/page.c design=$root/../shared/DESIGN.md

# Without white space, which the layout of .clang-format changes.
squeeze() { tr -d ' \t\n'; }

if [ -f "$design" ]; then
    awk '/^## /{ section = $2 } section == "2." && /^```/ { inside = !inside; next } inside && section == "2."' "$design" | squeeze >"$tmp/wanted"
    awk '$0 ~ "^ */\\* end of page \\*/$" { inside = 0 } inside; $0 ~ "^ */\\* page \\*/$" { inside = 1 }' "$page" | squeeze >"$tmp/written"
    [ -s "$tmp/wanted" ] || wrong "$design: no block of C in section 2"
    cmp -s "$tmp/wanted" "$tmp/written" || wrong "$page is not the page of $design, section 2"
else
    echo "not compared: $design is absent"
fi

for precision in weft weft-f64; do
    # shellcheck disable=SC2046,SC2086
    if ! $cc $sanitize -std=gnu11 -Wall -Wextra -Werror "$page" $(flags --cflags --libs $precision) -o "$tmp/page"; then
        wrong "$page does not compile with $precision"
    elif ! (cd "$tmp" && ./page >"$tmp/out" 2>&1); then
        wrong "$page fails with $precision: $(tail -3 "$tmp/out")"
    fi
done
finish
