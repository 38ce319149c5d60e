# SPDX-License-Identifier: MIT
# Processes of one job that do not do the same: other settings, texts or commands. One line says what differs, by its name, and all end with
# the code of a wrong usage. Called as: sh unlike.sh WEFT SOURCE-ROOT TOGETHER.
. "$2/tests/cli/lib.sh"
. "$source/tests/dist/lib.sh"
together=$(cd "$OLDPWD" && realpath "$3")
cp "$story" other.txt && echo more >>other.txt
train="$weft train char-rms --steps 2 --set accumulate=4 --out run"
several_kinds()
{
    mpi=$1
    shift
    case $mpi in
    openmpi) timeout -k 5 120 mpirun.openmpi --oversubscribe --bind-to none "$@" ;;
    mpich) timeout -k 5 120 mpirun.mpich "$@" ;;
    esac
}

# unlike 'TEXT' ARGUMENTS OF MPIRUN...
unlike()
{
    text=$1
    shift
    for how in $mpis; do
        status=0
        several_kinds $how "$@" >out 2>err || status=$?
        [ "$status" = 2 ] || failed "$how, $text: exit code $status: $(cat err)"
        [ "$(grep -c '^weft: ' err)" = 1 ] || failed "$how, $text: not one line: $(cat err)"
        grep -q "^weft: the processes differ: $text; all must do the same" err || failed "$how, '$text' is not in: $(cat err)"
    done
}
same='rank 0 and rank [12] do not have the same'
# shellcheck disable=SC2086
{
unlike 'rank 0 has lr=0.002, rank 2 has lr=0.0005' -n 2 $train --train "$story" --set lr=0.002 : -n 1 $train --train "$story" --set lr=0.0005
unlike 'rank 0 has d_model=96, rank 1 has d_model=48' -n 1 $train --train "$story" --set d_model=96 : -n 1 $train --train "$story" --set d_model=48
unlike 'rank 0 has model=char-rms, rank 1 has model=nanogpt-char-small' -n 1 $train --train "$story" : -n 1 "$weft" train nanogpt-char-small --steps 2 --set accumulate=4 --out run --train "$story"
unlike 'rank 0 has seed=1, rank 1 has seed=7' -n 1 $train --train "$story" : -n 1 $train --train "$story" --seed 7
unlike 'rank 0 has precision=f32, rank 1 has precision=bf16' -n 1 $train --train "$story" : -n 1 $train --train "$story" --set precision=bf16
unlike "$same training text" -n 1 $train --train "$story" : -n 1 $train --train other.txt
unlike "$same validation text" -n 1 $train --train "$story" --valid "$story" : -n 1 $train --train "$story" --valid other.txt
[ ! -f run/config.json ] || failed "processes that differ have written: $(ls run)"

$train --train "$story" 2>err || failed "$(cat err)"
cp -r run second && sed -i 's/"clip": *[0-9.]*/"clip": 7/' second/config.json
unlike 'rank 0 has clip=[0-9.]*, rank 1 has clip=7.0' -n 1 "$weft" evaluate run --data "$story" : -n 1 "$weft" evaluate second --data "$story"
unlike 'rank 0 has precision=f32, rank 1 has precision=bf16' -n 1 "$weft" evaluate run --data "$story" : -n 1 "$weft" evaluate run --data "$story" --precision bf16
unlike "$same text" -n 1 "$weft" evaluate run --data "$story" : -n 1 "$weft" evaluate run --data other.txt

# --- other commands: nobody is left waiting
unlike 'rank 0 has command=train, rank 1 has command=evaluate' -n 1 $train --train "$story" : -n 1 "$weft" evaluate run --data "$story"
unlike 'rank 0 has command=evaluate, rank 1 has command=translate' -n 1 "$weft" evaluate run --data "$story" : -n 2 "$weft" translate run
unlike 'rank 0 has command=train, rank 2 has command=generate' -n 2 $train --train "$story" : -n 1 "$weft" generate run --prompt a
unlike 'rank 0 has command=inspect, rank 1 has command=train' -n 1 "$weft" inspect run : -n 1 $train --train "$story"

# --- wrong usage of one process: told, and nobody waits
for how in $mpis; do
    status=0
    several_kinds $how -n 1 $train --train "$story" : -n 1 $train --train "$story" --lr 3 >out 2>err || status=$?
    [ "$status" = 2 ] || failed "$how, wrong usage: exit code $status: $(cat err)"
    grep -q "^weft: rank 1: unknown option --lr of 'weft train'; it is a setting" err || failed "$how, wrong usage: $(cat err)"
done
}

# --- a program of wf_fit: its .settings and .fixed by their keys
export PARTS=4
for how in $mpis; do
    for difference in settings:'rank 0 has rate=1, rank 1 has rate=2' fixed:'rank 0 has width=5, rank 1 has no width' flag:'rank 0 has no fast, rank 1 has fast=1'; do
        several $how 2 "$together" fit fit 4 "${difference%%:*}" >out 2>err && failed "$how: another ${difference%%:*}"
        grep -q "the processes differ: ${difference#*:}; all must" err || failed "$how: another ${difference%%:*}: $(cat err)"
    done
done

# --- a long wait is told (weft/dist.h)
"$together" watch | grep -qx '1 processes watch' || failed 'a watch alone'
for how in $mpis; do
    several $how 3 "$together" watch >out 2>&1 && grep -qx '3 processes watch' out || failed "$how, a watch: $(cat out)"
done
finish
