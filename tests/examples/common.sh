# SPDX-License-Identifier: MIT
# What the scripts of this folder share; sourced.
. "$(dirname "$0")/../build/common.sh"
install_weft
story=$root/tests/golden/story.txt
cd "$tmp"

# run COMMAND...: must succeed; its output is in out, what it says in err
run()
{
    "$@" >out 2>err || wrong "exit code $?: $*: $(tail -1 err) $(tail -1 out)"
}

# compile FILE.c NAME: a program, against the installed library
compile()
{
    # shellcheck disable=SC2046,SC2086
    $cc $sanitize -std=gnu11 -O1 -Wall -Wextra -Werror "$1" $(flags --cflags --libs weft) -o "$2" || { wrong "$1 does not compile"; finish; }
}

# example NAME...: programs of examples/, which are short
example()
{
    for name in "$@"; do
        compile "$root/examples/$name.c" "$name"
        [ "$(wc -l <"$root/examples/$name.c")" -lt 150 ] || wrong "examples/$name.c has 150 lines or more"
    done
}
