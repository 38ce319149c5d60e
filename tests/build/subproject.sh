#!/bin/sh
# SPDX-License-Identifier: MIT
# For users of the library alone. A project with Weft as a Meson subproject builds and runs its program, without Weft's tests and programs.
# Without Check, tests are left out; -Dtests=enabled is an error. One precision, one instruction set, unoptimised: it is only linked here.
. "$(dirname "$0")/common.sh"
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
CC=$cc
export CC

# set_up FOLDER-OF-SOURCES FOLDER-OF-BUILD OPTION...: its output goes to $tmp/log
set_up()
{
    # shellcheck disable=SC2068
    meson setup $@ --buildtype=plain >"$tmp/log" 2>&1
}

# --- a subproject ---
mkdir -p "$tmp/small/subprojects"
ln -s "$root" "$tmp/small/subprojects/weft"
cat >"$tmp/small/meson.build" <<'END'
project('small', 'c')
weft = dependency('weft', fallback: 'weft')
assert(weft.type_name() == 'internal', 'an installed Weft was found first')
executable('program', 'program.c', dependencies: weft)
END
cat >"$tmp/small/program.c" <<'END'
#include <stdio.h>
#include <weft/weft.h>

int main(void)
{
    wf_error error = {0};
    double sum = 0;
    wf_tape *tape = wf_tape_new(&error);
    if (!tape) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    wf_tape_reset(tape, WF_INFER);
    if (wf_item(wf_sum(wf_input(tape, (wf_real[]){1, 2}, WF_SHAPE(2), false)), &sum) != WF_OK)
        return 1;
    printf("%s %g\n", wf_version(), sum);
    wf_tape_free(tape);
    return 0;
}
END
version=$(sed -n 's/.*WF_VERSION "\(.*\)".*/\1/p' "$root/core/include/weft/base.h")
if ! set_up "$tmp/small" "$tmp/small/build" --force-fallback-for=weft -Dweft:double=false -Dweft:isas=base; then
    wrong 'a project with Weft as a subproject is not configured:'; cat "$tmp/log" >&2
elif ! ninja -C "$tmp/small/build" program >"$tmp/log" 2>&1; then
    wrong 'a project with Weft as a subproject is not built:'; tail -20 "$tmp/log" >&2
elif ! output=$("$tmp/small/build/program" 2>&1); then
    wrong "the program fails: $output"
elif [ "$output" != "$version 3" ]; then
    wrong "the program prints '$output', not '$version 3'"
fi
# The programs that a build makes.
programs()
{
    meson introspect --targets "$1" | tr '{' '\n' | grep '"type": "executable"' | sed 's/.*"name": "\([^"]*\)".*/\1/' | sort | tr '\n' ' '
}
[ "$(programs "$tmp/small/build")" = 'program ' ] || wrong "the project builds other programs than its own: $(programs "$tmp/small/build")"

# --- without Check ---
mkdir "$tmp/pkgconfig"
for name in jansson libutf8proc libpcre2-8 libprotobuf-c; do
    pc=$(pkg-config --variable=pcfiledir "$name" 2>/dev/null)/$name.pc
    [ ! -f "$pc" ] || cp "$pc" "$tmp/pkgconfig/"
done
PKG_CONFIG_LIBDIR=$tmp/pkgconfig
export PKG_CONFIG_LIBDIR
options='-Ddouble=false -Disas=base -Dtensorboard=auto -Dbench=disabled'
for tests in auto disabled; do
    # shellcheck disable=SC2086
    set_up "$root" "$tmp/$tests" $options -Dtests=$tests || { wrong "-Dtests=$tests without Check:"; tail -5 "$tmp/log" >&2; }
    [ "$(meson introspect --tests "$tmp/$tests" 2>/dev/null)" = '[]' ] || wrong "-Dtests=$tests without Check has tests"
    [ "$(programs "$tmp/$tests")" = 'weft ' ] || wrong "-Dtests=$tests without Check builds $(programs "$tmp/$tests")"
done
# shellcheck disable=SC2086
! set_up "$root" "$tmp/enabled" $options -Dtests=enabled || wrong '-Dtests=enabled without Check is configured'
grep -q 'ERROR: Dependency "check" not found' "$tmp/log" || { wrong '-Dtests=enabled without Check does not name Check:'; tail -3 "$tmp/log" >&2; }
finish
