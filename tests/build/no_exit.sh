#!/bin/sh
# SPDX-License-Identifier: MIT
# No room of the library can end its host or print: none of their objects refers to a function that does.
# (A failed assert of debug builds is the exception: it goes through __assert_fail.)
. "$(dirname "$0")/common.sh"
forbidden='exit|_exit|_Exit|quick_exit|abort|raise|kill|err|errx|error|puts|printf|vprintf|putchar|perror|psignal|stdout|stderr|__printf_chk|__vprintf_chk'
for library in libweft libweft-f64; do
    nm -A -u "$build/$library.a" 2>/dev/null | awk '{ split($1, at, ":"); print $NF, at[2] }' >"$tmp/used"
    grep -q . "$tmp/used" || wrong "$library.a refers to nothing: is it thin?"
    grep -E "^($forbidden)(@.*)? " "$tmp/used" >"$tmp/bad" || true
    [ ! -s "$tmp/bad" ] || { wrong "$library.a can end its host or print (function, object):"; cat "$tmp/bad" >&2; }
done
finish
