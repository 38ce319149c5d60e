#!/bin/sh
# SPDX-License-Identifier: MIT
# Each room sees the headers of the rooms on its list, and of no other: tried with the include path that the build really
# uses. And no include leaves its room by "../", no flag ties the library to the machine that builds it.
. "$(dirname "$0")/common.sh"

# What DESIGN allows, said a second time here so that a change of a room's list is a decision.
may()
{
    case $1 in
    core) ;;
    dist) echo core ;;
    autograd | io) echo core ;;
    nn) echo core autograd io ;;
    optim) echo core autograd io nn ;; # io: the registry's header names its files
    text) echo core io ;;
    data) echo core io text ;;
    score) echo core text ;;
    shard) echo core dist autograd io nn optim ;;
    models) echo core autograd io nn optim ;;
    infer) echo core dist autograd io text data score nn models ;;
    train) echo core dist autograd io text data score nn optim shard models infer ;;
    report) echo core autograd io text data score nn optim models infer train ;;
    cli) echo core dist autograd io text data score nn optim models infer train report ;;
    esac
}

cd "$build"
for room in $rooms; do
    path=$(grep '"command":' compile_commands.json | grep " -o libweft_${room}_f32\.a\.p/" | head -1 | tr ' ' '\n' | grep '^-I' | tr '\n' ' ' || true)
    [ -n "$path" ] || { wrong "the build compiles nothing of $room"; continue; }
    : >"$tmp/seen.c"
    : >"$tmp/allowed.c"
    : >"$tmp/wanted"
    for other in $rooms; do
        for header in "$root/$other"/include/weft/*.h; do
            [ -f "$header" ] || continue
            name=$(basename "$header")
            printf '#if __has_include(<weft/%s>)\n"%s/%s"\n#endif\n' "$name" "$other" "$name" >>"$tmp/seen.c"
            case " $room $(may "$room") " in
            *" $other "*)
                echo "\"$other/$name\"" >>"$tmp/wanted"
                echo "#include <weft/$name>" >>"$tmp/allowed.c" ;;
            esac
        done
    done
    # shellcheck disable=SC2086
    $cc -std=gnu11 -E -P $path "$tmp/seen.c" | grep . | sort >"$tmp/seen" || true
    sort "$tmp/wanted" | diff - "$tmp/seen" >"$tmp/log" ||
        { wrong "$room sees other headers than it may include (<: it cannot, >: it must not):"; cat "$tmp/log" >&2; }
    # shellcheck disable=SC2086
    $cc -std=gnu11 -fsyntax-only $path "$tmp/allowed.c" || wrong "$room cannot include what it may"
done

cd "$root"
for room in $rooms; do
    grep -rn --include='*.[ch]' --include='*.def' '^ *# *include *"[^"]*\.\./' "$room" >"$tmp/up" || true
    while IFS=: read -r file line text; do
        target=$(printf '%s' "$text" | sed 's/.*"\(.*\)".*/\1/')
        # Inside the room "../" is fine: the path must stay below the room's folder.
        case $(realpath -m "$(dirname "$file")/$target") in
        "$root/$room"/*) ;;
        *) wrong "$file:$line includes a file of another room by its path: $target" ;;
        esac
    done <"$tmp/up"
    grep -rnE --include='*.[ch]' '# *include *[<"][^>"]*(^|/)(core|autograd|io|text|data|score|nn|optim|models|infer|train|report)/include/' "$room" >&2 &&
        wrong "$room includes by a path from the top" || true
done
grep -rnE --include=meson.build --include='*.[ch]' -e '-march=native|-mtune=native|-Ofast|-ffast-math' . --exclude-dir='build*' --exclude-dir=bench |
    grep -v '^./tests/build/' >&2 && wrong 'flags that Weft is never built with' || true
finish
