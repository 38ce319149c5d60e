#!/bin/sh
# SPDX-License-Identifier: MIT
# No room of the library can end its host or print: none of their objects refers to a function that does. The room cli is the
# exception: wf_main is a program's main function, and says so.
# (A failed assert of debug builds is the exception: it goes through __assert_fail.)
. "$(dirname "$0")/common.sh"
forbidden='exit|_exit|_Exit|quick_exit|abort|raise|kill|err|errx|error|puts|printf|vprintf|putchar|perror|psignal|stdout|stderr|__printf_chk|__vprintf_chk'
for library in "$build"/libweft_*_f32.a "$build"/libweft_*_f64.a; do
    case $library in */libweft_cli_*) continue ;; esac
    nm -A -u "$library" 2>/dev/null | awk '{ print $NF, $1 }' >>"$tmp/used"
done
grep -q '^malloc\|^posix_memalign\|^aligned_alloc' "$tmp/used" || wrong 'no object allocates memory: are these the libraries?'
grep -E "^($forbidden)(@[^ ]*)? " "$tmp/used" >"$tmp/bad" || true
[ ! -s "$tmp/bad" ] || { wrong 'a room can end its host or print (function, object):'; cat "$tmp/bad" >&2; }
finish
