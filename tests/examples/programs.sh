#!/bin/sh
# SPDX-License-Identifier: MIT
# The other programs of examples/, compiled against the installed library. `programs.sh quick` runs a few steps of each, `programs.sh
# results` trains each to the result that its head comment states: the programs that print it exit with 0 only then.
. "$(dirname "$0")/common.sh"
what=$1
programs='perceptron vae vit resnet lora gan wgan_gp pinn_poisson pinn_burgers maml'
families='lstm moe ssm'
# shellcheck disable=SC2086
example $programs $families

# bits RUN MOST: the bits per character of the story
bits()
{
    run "./${1%.run}" evaluate "$1" --data "$story" --json
    sed -n 's/.*"bits_per_character": *\([0-9.]*\).*/\1/p' out >value
    awk -v most="$2" '{ found = 1; if ($1 > most) exit 1 } END { if (!found) exit 1 }' value ||
        wrong "$1: $(cat value) bits per character, more than $2"
}

# as_pytorch PROGRAM: the losses of the first steps, as `out` has them, against PyTorch's
as_pytorch()
{
    awk -v name="$1" 'NR == FNR { if ($1 == name) for (i = 3; i <= NF; i++) want[$2, i - 2] = $i; next }
        /^step / { n = 0; step = $2 + 0
            for (i = 3; i <= NF; i++) if ($i ~ /^-?[0-9]+\.[0-9]+,?$/) {
                d = $i - want[step, ++n]; if (!((step, n) in want) || d * d > 1e-10 * (1 + $i * $i)) exit 1; seen++ } }
        END { if (seen < 3) exit 1 }' "$root/tests/golden/example_losses.txt" out || wrong "$1: $(cat out)"
}

if [ "$what" = quick ]; then
    for name in $programs; do
        run ./"$name" --steps 3
        [ -s out ] || wrong "$name printed nothing"
        case $name in wgan_gp | pinn_* | maml) as_pytorch "$name" ;; esac
    done
    for name in $families; do
        run ./"$name" train "$name-small" --train "$story" --out "$name.run" --steps 3
        run ./"$name" generate "$name.run" --prompt 'The ' --max-tokens 5
        bits "$name.run" 9
    done
    # A training with wf_fit that ended in between and goes on ends with the bytes of one that did not.
    for name in vit resnet; do
        rm -rf straight
        mv $name-run straight
        run ./$name --steps 2
        run ./$name --steps 3 --resume
        cmp $name-run/model.safetensors straight/model.safetensors || wrong "$name: the weights of a resumed training differ"
    done
    ./lstm inspect vit-run 2>err && wrong 'a run of vit was inspected'
    grep -q 'written by a program with wf_fit' err || wrong "inspect: $(cat err)"
    ./vit --steps 3 2>err && wrong 'vit took a folder that holds a run'
    grep -q -- 'vit-run' err || wrong "vit: $(cat err)"
else
    for name in $programs; do
        run ./"$name"
        tail -1 out
    done
    for name in $families; do
        run ./"$name" train "$name-small" --train "$story" --out "$name.run"
    done
    bits lstm.run 1.3
    bits moe.run 1.3
    bits ssm.run 1
fi
finish
