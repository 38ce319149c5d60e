#!/bin/sh
# SPDX-License-Identifier: MIT
# Every block of C in README.md, CONTRIBUTING.md and docs/*.md compiles, against the installed library. The word
# after c says how:
#   ```c program    a whole program: compiled and linked without warnings, then run; it must exit with 0
#   ```c command    the same, for a program that has wf_main: run with the argument models
#   ```c test       a test program with Check: linked with the double library where it is built, and run
#   ```c part       functions and declarations: compiled after `#include <weft/weft.h>`
#   ```c body       statements, compiled inside a function
# A block that is marked otherwise, or not at all, is an error.
. "$(dirname "$0")/common.sh"
install_weft

awk -v tmp="$tmp" '
    FNR == 1 { inside = 0 }
    /^```/ && !inside && $1 == "```c" {
        inside = 1; count++
        file = sprintf("%s/example%03d", tmp, count)
        print $2 > (file ".kind")
        print FILENAME ":" FNR > (file ".place")
        source = file ".c"
        printf "" > source
        if ($2 == "part" || $2 == "body")
            print "#include <stdio.h>\n#include <weft/weft.h>" > source
        if ($2 == "body")
            print "void example(void);\nvoid example(void)\n{" > source
        kind = $2
        print "#line " (FNR + 1) " \"" FILENAME "\"" > source
        next
    }
    /^```/ && inside { inside = 0; if (kind == "body") print "}" > source; close(source); next }
    /^```/ { other = !other }
    inside { print > source }
' "$root/README.md" "$root/CONTRIBUTING.md" $(ls "$root"/docs/*.md 2>/dev/null || true)

found=0
for source in "$tmp"/example*.c; do
    [ -f "$source" ] || continue
    found=$((found + 1))
    kind=$(cat "${source%.c}.kind")
    place=$(cat "${source%.c}.place")
    warnings='-std=gnu11 -Wall -Wextra -Werror -Wno-unused -Wunused-parameter'
    # shellcheck disable=SC2046,SC2086
    case $kind in
    program | command)
        if ! $cc $sanitize $warnings "$source" $(flags --cflags --libs weft) -o "$tmp/program"; then
            wrong "$place: the program does not compile"
        elif ! (cd "$tmp" && ./program $([ "$kind" = program ] || echo models) >"$tmp/out" 2>&1); then
            wrong "$place: the program fails: $(tail -3 "$tmp/out")"
        fi ;;
    test)
        library=weft
        ! pkg-config --exists weft-f64 || library=weft-f64
        if ! $cc $sanitize $warnings "$source" $(flags --cflags --libs $library) $(pkg-config --cflags --libs check) -o "$tmp/program"; then
            wrong "$place: the test program does not compile"
        elif ! (cd "$tmp" && ./program >"$tmp/out" 2>&1); then
            wrong "$place: the test fails: $(tail -3 "$tmp/out")"
        fi ;;
    part | body) $cc $warnings -fsyntax-only $(flags --cflags weft) "$source" || wrong "$place: the example does not compile" ;;
    *) wrong "$place: a block of C is marked program, command, test, part or body, not '$kind'" ;;
    esac
done
[ "$found" -gt 0 ] || wrong 'no example was found'
finish
