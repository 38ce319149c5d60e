# SPDX-License-Identifier: MIT
# Shared by the scripts. Called as: sh SCRIPT WEFT SOURCE-ROOT. Sourced, not run.
weft=$(realpath "$1")
source=$(realpath "$2")
story=$source/tests/golden/story.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1
failures=0
# A locale with a decimal comma, where the build could make one (tests/meson.build).
comma=${WEFT_LOCALE:-C.UTF-8}
[ -z "${WEFT_LOCALE:-}" ] || [ "$(LC_ALL=$comma locale decimal_point)" = , ] || { echo "FAILED: $comma has no decimal comma"; exit 1; }

. "$source/tests/some.sh"

failed()
{
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# expect CODE 'PART OF THE MESSAGE' COMMAND...: the exit code, and one line on standard error that holds the part.
expect()
{
    code=$1
    part=$2
    shift 2
    status=0
    "$@" >out 2>err || status=$?
    grep -v '^weft [0-9.]*: [0-9]* thread' err >message || true
    lines=$(wc -l <message)
    [ "$status" = "$code" ] || failed "exit code $status, not $code: $* ($(head -c 300 message))"
    grep -qF -- "$part" message || failed "'$part' is not in: $(head -c 500 message) ($*)"
    [ "$lines" = 1 ] || failed "$lines lines of error: $* ($(head -c 500 message))"
}

# A folder demo/ with ./demo and its text, in which nothing is built: it takes the command that is there.
demo_folder()
{
    mkdir -p demo/tools demo/build/cli demo/data bin
    cp "$source/demo" demo/
    ln -s "$source/data/embedded" demo/data/embedded
    ln -s "$weft" demo/build/cli/weft
    : >demo/build/build.ninja
    printf '#!/bin/sh\n' | tee demo/tools/setup >bin/ninja
    chmod +x demo/tools/setup bin/ninja
    PATH=$work/bin:$PATH
}

finish()
{
    [ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
    echo "all passed"
}
