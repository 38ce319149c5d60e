#!/bin/sh
# SPDX-License-Identifier: MIT
# Names in README.md and docs/*.md, outside their blocks of C, exist: each wf_NAME in the public headers, each `weft/NAME.h`, each
# examples/NAME.c, each `.option` of docs/pytorch.md. docs/index.md names each public header.
. "$(dirname "$0")/common.sh"
cd "$root"

find . -path '*/include/weft/*.h' ! -path '*/internal/*' ! -path './build*' ! -path './subprojects/*' >"$tmp/headers"
# shellcheck disable=SC2046
cat $(cat "$tmp/headers") | grep -o '\<[A-Za-z_][A-Za-z0-9_]*\>' | sort -u >"$tmp/words"
sed 's,.*/include/,,' "$tmp/headers" | sort -u >"$tmp/names"
[ "$(wc -l <"$tmp/names")" -gt 40 ] || wrong 'the public headers were not found'

for page in README.md docs/*.md; do
    awk '/^```/ { inside = !inside; next } !inside' "$page" >"$tmp/text"
    # wf_NAME_ is the beginning of several names
    for name in $(grep -o '\<wf_[a-z0-9_]*\>' "$tmp/text" | sort -u); do
        grep -qx "$name" "$tmp/words" || case $name in
        wf_) ;;
        *_) grep -q "^$name" "$tmp/words" || wrong "$page names $name..., which no public header has" ;;
        *) wrong "$page names $name, which no public header has" ;;
        esac
    done
    for name in $(grep -o '\<weft/[a-z0-9_]*\.h\>' "$tmp/text" | sort -u); do
        grep -qx "$name" "$tmp/names" || wrong "$page names $name, which is no public header"
    done
    for name in $(grep -o '\<examples/[a-z0-9_]*\.c\>' "$tmp/text" | sort -u); do
        [ -f "$name" ] || wrong "$page names $name, which is not there"
    done
done

# shellcheck disable=SC2016
for option in $(grep -o '`\.[a-z_]*`' docs/pytorch.md | tr -d '`.' | sort -u); do
    grep -qx "$option" "$tmp/words" || [ "$option" = grad ] || wrong "docs/pytorch.md names .$option, which no public header has"
done

while read -r name; do
    grep -q "[<\`]$name[>\`]" docs/index.md || wrong "docs/index.md does not say what $name is for"
done <"$tmp/names"
grep -q 'docs/index.md' README.md || wrong 'README.md does not name docs/index.md'
finish
