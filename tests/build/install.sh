#!/bin/sh
# SPDX-License-Identifier: MIT
# A program outside the tree compiles against the installed library, in both precisions, shared and static, and runs; one
# that was compiled for the other precision is refused when it runs.
. "$(dirname "$0")/common.sh"
install_weft

cat >"$tmp/program.c" <<'END'
#include <stdio.h>
#include <weft/weft.h>

int main(void)
{
    wf_error error = {0};
    if (wf_init(&error, .threads = 1) != WF_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    wf_tape *tape = wf_tape_new(&error);
    if (!tape) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    const wf_real numbers[3] = {1, 2, 4};
    double sum = 0;
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_tensor *x = wf_input(tape, numbers, WF_SHAPE(3), true);
    wf_tensor *y = wf_sum(wf_mul(x, x));
    if (wf_item(y, &sum) != WF_OK || wf_backward(y) != WF_OK) {
        fprintf(stderr, "%s\n", wf_tape_error(tape)->message);
        return 1;
    }
    wf_array gradient;
    if (wf_grad(x, &gradient) != WF_OK)
        return 1;
    printf("%s %d %g %g\n", wf_version(), (int)sizeof(wf_real), sum, (double)((wf_real *)gradient.data)[2]);
    wf_tape_free(tape);
    return 0;
}
END

# NAME of the package, the FLAGS that link it, the OUTPUT that is expected.
try()
{
    # shellcheck disable=SC2086
    if ! $cc $sanitize -std=c11 -Wall -Wextra "$tmp/program.c" $(flags --cflags "$1") $2 -o "$tmp/program" 2>"$tmp/log"; then
        wrong "a program does not compile and link with: $(flags --cflags "$1") $2"; cat "$tmp/log" >&2
    elif ! output=$("$tmp/program" 2>&1); then
        wrong "the program for $1 fails: $output"
    elif [ "$output" != "$3" ]; then
        wrong "the program for $1 prints '$output', not '$3'"
    fi
}

for package in weft weft-f64; do
    bytes=4
    [ $package = weft ] || bytes=8
    version=$(flags --modversion $package)
    try $package "$(flags --libs $package)" "$version $bytes 21 8"
    try $package "$(flags --libs --static $package | sed "s/-l$package /-l:lib$package.a /")" "$version $bytes 21 8"
    # Nothing of the libraries behind it (utf8proc's .pc file defines a macro).
    define=
    [ $package = weft ] || define=' -DWF_DOUBLE'
    have=$(flags --cflags $package | sed 's/ *$//')
    [ "$have" = "-I$prefix/include$define" ] || [ "$have" = "${define# } -I$prefix/include" ] || wrong "the flags of $package are '$have'"
    for variable in openmp blis jansson utf8proc pcre2 tensorboard libedit isas precision; do
        [ -n "$(flags --variable=$variable $package)" ] || wrong "$package.pc has no variable $variable"
    done
    soname=$(readelf -d "$libdir/lib$package.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
    [ "$soname" = "lib$package.so.${version%.*}" ] || wrong "SONAME of lib$package.so is '$soname'"
done

# Headers of one precision, library of the other.
# shellcheck disable=SC2046
$cc $sanitize "$tmp/program.c" $(flags --cflags weft-f64) $(flags --libs weft) -o "$tmp/program"
status=0
output=$("$tmp/program" 2>&1) || status=$?
[ "$status" = 2 ] || wrong "a program compiled for double ran with libweft (status $status): $output"
[ "$(printf '%s\n' "$output" | wc -l)" = 1 ] || wrong "the message about it is not one line: $output"

[ -z "$(find "$prefix/include" -path '*internal*')" ] || wrong 'internal headers were installed'
if [ -x "$build/cli/weft" ]; then
    "$prefix/bin/weft" --version >/dev/null || wrong 'the installed command does not run'
fi
finish
