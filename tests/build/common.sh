# SPDX-License-Identifier: MIT
# Shared by the scripts of this folder; sourced. Run them with `meson test -C build build/NAME`, or by hand:
# WEFT_BUILD_ROOT=build tests/build/NAME.sh
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${WEFT_BUILD_ROOT:-$root/build}" && pwd)
cc=${WEFT_CC:-cc}
cxx=${CXX:-c++}
rooms='core dist autograd io text data score nn optim models infer train report cli'
sanitize=
[ "${WEFT_SANITIZE:-none}" = none ] || sanitize="-fsanitize=$WEFT_SANITIZE"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/weft-test.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
failures=0

wrong()
{
    echo "$(basename "$0"): $*" >&2
    failures=$((failures + 1))
}

finish()
{
    [ "$failures" = 0 ] || { echo "$(basename "$0"): $failures failed" >&2; exit 1; }
    exit 0
}

# Installs the build under $tmp/dest and sets $prefix to where it lies there.
install_weft()
{
    DESTDIR=$tmp/dest meson install -C "$build" --no-rebuild --quiet >"$tmp/install.log" 2>&1 ||
        { cat "$tmp/install.log" >&2; exit 1; }
    pc=$(find "$tmp/dest" -name weft.pc)
    [ -n "$pc" ] || { echo 'weft.pc was not installed' >&2; exit 1; }
    PKG_CONFIG_PATH=$(dirname "$pc")
    export PKG_CONFIG_PATH
    prefix=$tmp/dest$(pkg-config --variable=prefix weft)
    libdir=$(flags --variable=libdir weft)
    LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
}

# pkg-config, for the installation under $tmp.
flags()
{
    pkg-config --define-variable=prefix="${prefix:-}" "$@"
}
