# SPDX-License-Identifier: MIT
# What the processes share of an optimiser's memory, and messages that are under way while something is computed, on a network that is slow
# on purpose: the bytes are those of one process. Called as: sh shards.sh WEFT SOURCE-ROOT SHARDS SLOW.
. "$2/tests/cli/lib.sh"
shards=$(cd "$OLDPWD" && realpath "$3")
slow=$(cd "$OLDPWD" && realpath "$4")
sample=mpich
. "$2/tests/dist/lib.sh"

# over the slow network: 40 Mbit/s each way, 0.2 ms a message
slowly()
{
    mkdir -p slow
    for name in openmpi mpich; do cp "$slow" "slow/weft-mpi-$name.so"; done
    WEFT_PLUGINS=$(pwd)/slow WEFT_SLOW_OVER=$WEFT_BUILD_ROOT WEFT_SLOW_MBIT=40 WEFT_SLOW_LATENCY=200 "$@"
}

# whole RUN RUN N: each of the N processes has all of what the optimisers hold
whole()
{
    rank=0
    while [ $rank -lt "$3" ]; do
        cmp "$1/optimizers-0.safetensors" "$2/optimizers-$rank.safetensors" || failed "the optimisers of $2, rank $rank"
        rank=$((rank + 1))
    done
}

"$shards" alone 7 2>log || failed "alone: $(cat log)"
mpi=${mpis##* }
for n in $(some 4 "2 3 4 8"); do
    several "$mpi" $n "$shards" several-$n 7 >log 2>&1 || failed "$n processes: $(tail -2 log)"
    alike alone several-$n
    whole alone several-$n $n
done
several "$mpi" 3 "$shards" late 7 late >log 2>&1 || failed "late: $(tail -2 log)"
alike alone late
if [ "$(some '' all)" ]; then
    slowly several "$mpi" 3 "$shards" slowly 7 late >log 2>&1 || failed "slowly: $(tail -2 log)"
    alike alone slowly
    whole alone slowly 3
fi
# An optimiser of the program's own, with three values of state; it is resumed by another number of processes.
"$shards" rule-alone 7 rule 2>log || failed "a rule, alone: $(cat log)"
"$shards" adam-alone 7 2>log || failed "adam, alone: $(cat log)"
cmp -s rule-alone/model.safetensors adam-alone/model.safetensors && failed 'the rule trains the weights of AdamW'
several "$mpi" 3 "$shards" rule 7 late rule >log 2>&1 || failed "a rule: $(tail -2 log)"
alike rule-alone rule
whole rule-alone rule 3
several "$mpi" 2 "$shards" rule-2 2 rule >log 2>&1 || failed "a rule, two updates: $(tail -2 log)"
several "$mpi" 4 "$shards" rule-2 7 rule >log 2>&1 || failed "a rule, resumed: $(tail -2 log)"
cmp rule-alone/state.safetensors rule-2/state.safetensors || failed 'a rule, resumed by other processes'
# Optimisers of elements, of whole parameters, and of both kinds, with a state of other shapes; resumed by another number of processes.
for rule in $(some muon "lion adafactor muon whole"); do
    "$shards" $rule-alone 7 $rule 2>log || failed "$rule, alone: $(cat log)"
    cmp -s $rule-alone/model.safetensors adam-alone/model.safetensors && failed "$rule trains the weights of AdamW"
    several "$mpi" 3 "$shards" $rule 7 late $rule >log 2>&1 || failed "$rule: $(tail -2 log)"
    alike $rule-alone $rule
    whole $rule-alone $rule 3
    several "$mpi" 2 "$shards" $rule-2 2 $rule >log 2>&1 || failed "$rule, two updates: $(tail -2 log)"
    several "$mpi" 4 "$shards" $rule-2 7 $rule >log 2>&1 || failed "$rule, resumed: $(tail -2 log)"
    cmp $rule-alone/state.safetensors $rule-2/state.safetensors || failed "$rule, resumed by other processes"
done
# The optimisers go on where the first call has left them.
"$shards" twice-alone 8 again 2>log || failed "twice, alone: $(cat log)"
several "$mpi" 4 "$shards" twice 8 again >log 2>&1 || failed "twice: $(tail -2 log)"
alike twice-alone twice
whole twice-alone twice 4

# The command, with messages beside the computing and without.
settings="char-rms --train $story --set batch=8 --set accumulate=8 --set dropout=0.1 --set layers=2 --set clip=0.5 --steps 6 --set save_every=3"
# shellcheck disable=SC2086
"$weft" train $settings --out model >log 2>&1 || failed "the command: $(tail -1 log)"
for n in $(some 2 "2 3"); do
    # shellcheck disable=SC2086
    slowly several "$mpi" $n "$weft" train $settings --out overlap-$n >log 2>&1 || failed "the command on $n: $(tail -2 log)"
    alike model overlap-$n
done
# Its other optimisers; a resume by one process of what three have begun.
for rule in $(some adafactor "lion adafactor muon"); do
    # shellcheck disable=SC2086
    "$weft" train $settings --set optimizer=$rule --set clip_value=0.01 --out $rule-model --steps 3 >log 2>&1 || failed "$rule: $(tail -1 log)"
    # shellcheck disable=SC2086
    slowly several "$mpi" 3 "$weft" train $settings --set optimizer=$rule --set clip_value=0.01 --out $rule-overlap --steps 3 >log 2>&1 || failed "$rule on 3: $(tail -2 log)"
    for run in model overlap; do
        "$weft" train char-rms --train "$story" --resume --out $rule-$run --steps 6 >log 2>&1 || failed "$rule, resumed: $(tail -2 log)"
    done
    cmp $rule-model/state.safetensors $rule-overlap/state.safetensors || failed "$rule: the state of 3 processes, resumed by one"
done
for how in $mpis; do
    # shellcheck disable=SC2086
    several "$how" 4 "$weft" train $settings --out apart-$how --no-overlap >log 2>&1 || failed "--no-overlap, $how: $(tail -2 log)"
    alike model apart-$how
done
finish
