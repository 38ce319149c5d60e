#!/bin/sh
# SPDX-License-Identifier: MIT
# Each installed header compiles alone as strict C11 and as C++17, in both precisions; weft.h includes them all; the
# macros that fill option structs (compound literals) are not seen by C++ and bring no warnings into C.
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

# Options that take the place of defaults bring no warnings into programs, wherever the call stands; mistakes are still seen.
cat >"$tmp/options.c" <<'END'
#include <weft/optim.h>
#define TWICE(x) ((x) != WF_OK || (x) != WF_OK)
int options(struct wf_optimizer *opt, wf_registry *registry, wf_error *error);
int options(struct wf_optimizer *opt, wf_registry *registry, wf_error *error)
{
    if (wf_adamw_init(opt, registry, error, .lr = 1e-3, .beta1 = 0) != WF_OK || TWICE(wf_adam_init(opt, registry, error, .eps = 0)))
        return 1;
    wf_status status = wf_adamw_init(opt, registry, error, .beta2 = 0.99, .weight_decay = 0.1);
    if (status == WF_OK)
        status = wf_sgd_init(opt, registry, error, .momentum = 0.9, .lr = 0);
    if (status == WF_OK)
        status = wf_optimizer_group(opt, "*.bias", error, .weight_decay = 0);
    if (status == WF_OK)
        status = wf_lion_init(opt, registry, error, 0);
    if (status == WF_OK)
        status = wf_adafactor_init(opt, registry, error, 0);
    if (status == WF_OK)
        status = wf_muon_init(opt, registry, error, 0);
    return status == WF_OK ? wf_adam_init(opt, registry, error, 0) != WF_OK || wf_sgd_init(opt, registry, error, 0) != WF_OK : 1;
}
END
sed 's/\.eps = 0/.eps = 0, .unknown = 1/' "$tmp/options.c" >"$tmp/unknown.c"
sed 's/wf_status status = wf/wf_status status = WF_OK; wf/' "$tmp/options.c" >"$tmp/unchecked.c"
# shellcheck disable=SC2086
for compiler in "$cc" gcc clang; do
    command -v "${compiler%% *}" >/dev/null || continue
    options="-std=c11 -pedantic -Wall -Wextra -Wshadow -Werror -fsyntax-only -DWF_FLOAT -I."
    $compiler $options "$tmp/options.c" || wrong "$compiler warns of a call with options"
    ! $compiler $options "$tmp/unknown.c" 2>/dev/null || wrong "$compiler accepts an option that is none"
    ! $compiler ${options%-fsyntax*} -O1 -DWF_FLOAT -I. -c "$tmp/unchecked.c" -o "$tmp/unchecked.o" 2>/dev/null ||
        wrong "$compiler accepts a call whose status is not read"
done

$cc -M -I. "$tmp/weft.c" | tr ' ' '\n' | sed -n 's,.*\(weft/[a-z0-9_]*\.h\)$,\1,p' | sort >"$tmp/included"
for header in weft/*.h; do
    grep -qx "$header" "$tmp/included" || wrong "include/weft/weft.h does not include <$header>"
done

if command -v "$cxx" >/dev/null; then
    seen=$($cxx -std=c++17 -dM -E -I. "$tmp/weft.cc" | grep '^#define wf_[a-z0-9_]*(.*\.\.\.' || true)
    [ -z "$seen" ] || wrong "C++ sees macros for options: $seen"
    # C++ has the plain functions that take the struct.
    printf '%s\n' '#include <weft/weft.h>' 'int main() { wf_init_options o{}; o.threads = 1; wf_adam_options a = wf_adam_defaults(); a.beta1 = 0; wf_error e{}; return a.lr == 1e-3 ? wf_init_with(&o, &e) : 1; }' >"$tmp/main.cc"
    # shellcheck disable=SC2046
    $cxx $sanitize -std=c++17 -pedantic -Wall -Wextra -Werror "$tmp/main.cc" $(flags --cflags --libs weft) -o "$tmp/main" &&
        "$tmp/main" || wrong 'a C++ program does not compile and run'
fi
finish
