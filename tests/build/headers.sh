#!/bin/sh
# SPDX-License-Identifier: MIT
# Each installed header compiles alone as strict C11 and as C++17, in both precisions; weft.h includes them all; the
# macros that fill option structs (compound literals) are not seen by C++.
. "$(dirname "$0")/common.sh"
install_weft
cd "$prefix/include"

for header in weft/*.h; do
    printf '#include <%s>\n' "$header" >"$tmp/$(basename "$header" .h).c"
    printf '#include <%s>\n' "$header" >"$tmp/$(basename "$header" .h).cc"
done
for precision in -DWF_FLOAT -DWF_DOUBLE; do
    for source in "$tmp"/*.c; do
        $cc -std=c11 -pedantic -Wall -Wextra -Werror -fsyntax-only $precision -I. "$source" || wrong "$(cat "$source") as C11, $precision"
    done
    if command -v "$cxx" >/dev/null; then
        for source in "$tmp"/*.cc; do
            $cxx -std=c++17 -pedantic -Wall -Wextra -Werror -fsyntax-only $precision -I. "$source" ||
                wrong "$(cat "$source") as C++17, $precision"
        done
    else
        echo "headers.sh: no C++ compiler ($cxx): C++ was not tried" >&2
    fi
done

$cc -M -I. "$tmp/weft.c" | tr ' ' '\n' | sed -n 's,.*\(weft/[a-z0-9_]*\.h\)$,\1,p' | sort >"$tmp/included"
for header in weft/*.h; do
    grep -qx "$header" "$tmp/included" || wrong "include/weft/weft.h does not include <$header>"
done

if command -v "$cxx" >/dev/null; then
    seen=$($cxx -std=c++17 -dM -E -I. "$tmp/weft.cc" | grep '^#define wf_[a-z0-9_]*(.*\.\.\.' || true)
    [ -z "$seen" ] || wrong "C++ sees macros for options: $seen"
    # What is left for C++: the plain functions that take the struct.
    printf '%s\n' '#include <weft/weft.h>' 'int main() { wf_init_options o{}; o.threads = 1; wf_error e{}; return wf_init_with(&o, &e); }' >"$tmp/main.cc"
    # shellcheck disable=SC2046
    $cxx $sanitize -std=c++17 -pedantic -Wall -Wextra -Werror "$tmp/main.cc" $(flags --cflags --libs weft) -o "$tmp/main" &&
        "$tmp/main" || wrong 'a C++ program does not compile and run'
fi
finish
