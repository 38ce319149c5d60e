#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared libraries export what symbols.txt lists, no more and no less, everything that the headers declare, and only
# names that begin with wf_; so do the static ones. After a change of the API: WEFT_BUILD_ROOT=build tests/build/symbols.sh --update
. "$(dirname "$0")/common.sh"
list=$root/tests/build/symbols.txt

# Names that a library defines, without what the sanitizers add.
exported() { nm "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | grep -v '^__odr_asan' | sort -u; }

exported -D --defined-only "$build/libweft.so" >"$tmp/f32"
exported -D --defined-only "$build/libweft-f64.so" >"$tmp/f64"
if [ "${1:-}" = --update ]; then
    cp "$tmp/f32" "$list"
    echo "symbols.sh: wrote $(wc -l <"$list") names to tests/build/symbols.txt"
fi

[ -s "$tmp/f32" ] || wrong 'libweft.so exports nothing'
diff -u "$list" "$tmp/f32" >&2 || wrong 'libweft.so does not export what tests/build/symbols.txt lists (see the head of symbols.sh)'
diff -u "$tmp/f32" "$tmp/f64" >&2 || wrong 'libweft.so and libweft-f64.so export different names'
for library in libweft libweft-f64; do
    exported -g --defined-only "$build/$library.a" >"$tmp/static"
    diff -u "$tmp/f32" "$tmp/static" >&2 || wrong "$library.a does not define what libweft.so exports"
done
grep -v '^wf_' "$tmp/f32" >"$tmp/foreign" || true
[ ! -s "$tmp/foreign" ] || wrong "libweft.so exports names without wf_: $(tr '\n' ' ' <"$tmp/foreign")"

# Functions marked WF_API in the public headers.
include=-I$root/include
for room in $rooms; do
    include="$include -I$root/$room/include"
done
# shellcheck disable=SC2086
$cc -E -P -x c $include "$root/include/weft/weft.h" | tr '\n' ' ' | tr ';{}' '\n' |
    grep 'visibility("default")' | sed 's/__attribute__((visibility("default")))//' |
    sed -n 's/^[^(]*[ *]\([a-z_0-9]*\) *(.*/\1/p' | sort -u >"$tmp/declared"
[ -s "$tmp/declared" ] || wrong 'no function marked WF_API was found in the headers'
comm -23 "$tmp/declared" "$tmp/f32" >"$tmp/absent"
[ ! -s "$tmp/absent" ] || wrong "declared in a public header but not in libweft.so: $(tr '\n' ' ' <"$tmp/absent")"
finish
