#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs of examples/ on several processes, as they are: a family and an optimiser from outside and a task of wf_fit have the bytes of one
# process, in 1 to 8 processes, killed and resumed too.
. "$(dirname "$0")/common.sh"
failed() { wrong "$@"; }
WEFT_BUILD_ROOT=$build
. "$root/tests/dist/lib.sh"
WEFT_PLUGINS=$(dirname "$(find "$tmp/dest" -name "weft-mpi-$mpi.so")") # as installed
example llama vit gan adamax

# --- a family from outside
llama="llama-small --train $story --valid $story --set layers=1 --set d_model=64 --set d_ff=128 --set batch=40 --set context=16 --set dropout=0.1"
settings="--steps 6 --set accumulate=4 --set save_every=4 --set valid_every=3"
# shellcheck disable=SC2086
run ./llama train $llama --out llama.run $settings
n=4
for how in $mpis $mpi; do # 2, 1 and 4 processes; with one MPI 2 and 1
    n=$((n == 4 ? 2 : n == 2 ? 1 : 4))
    # shellcheck disable=SC2086
    run several $how $n ./llama train $llama --out llama-$n $settings
    alike llama.run llama-$n
done

# --- an optimiser from outside, whose state the processes share
adamax="char-rms --train $story --valid $story --set layers=1 --set batch=40 --set context=16 --set optimizer=adamax --set lr=3e-4"
# shellcheck disable=SC2086
run ./adamax train $adamax --out adamax.run $settings
for n in 2 4; do
    # shellcheck disable=SC2086
    run several "$mpi" $n ./adamax train $adamax --out adamax-$n $settings
    alike adamax.run adamax-$n
done

# 40 parts: the tree has 8 leaves
settings="--steps 2 --set accumulate=40 --set valid_every=0"
# shellcheck disable=SC2086
run ./llama train $llama --out forty $settings --threads 1
n=16
for how in $mpis; do
    n=$((n == 8 ? 2 : 8))
    # shellcheck disable=SC2086
    run several $how $n ./llama train $llama --out forty-$how-$n $settings --threads 1
    alike forty forty-$how-$n
done
for n in 1 4; do
    # shellcheck disable=SC2086
    run several "$mpi" $n ./llama train $llama --out forty-$n $settings --threads 2
    alike forty forty-$n
done

# --- a task of wf_fit
vit() { folder=$1; shift; mkdir -p "$folder"; (cd "$folder" && "$@"); }
vit alone "$tmp/vit" --steps 100 --accumulate 4 >out 2>err || wrong "vit alone: $(tail -1 err)"
n=2
for how in $mpis; do
    n=$((6 - n))
    vit vit-$n several $how $n "$tmp/vit" --steps 100 --accumulate 4 >out 2>err || wrong "vit, $how, $n processes: $(tail -1 err)"
    alike alone/vit-run vit-$n/vit-run
done

# --- killed at any moment, each time another rank; resumed on another number
# processes NAME: those that run this program
processes()
{
    for folder in /proc/[0-9]*; do
        case $(tr '\000' ' ' 2>/dev/null <"$folder/cmdline") in
        "$1 "*) echo "${folder#/proc/}" ;;
        esac
    done 2>/dev/null
}
# kill_one FILE NAME: once the file is there
kill_one()
{
    tries=0
    until [ -f "$1" ] || [ $tries -gt 300 ]; do tries=$((tries + 1)); sleep 0.05; done
    try=$((try + 1))
    sleep 0.$((try * 3 % 7))
    name=$2
    # shellcheck disable=SC2046
    set -- $(processes "$name")
    [ $# -gt 0 ] || { wrong "no $name to kill"; return; }
    shift $((try % $#))
    kill -9 "$1" || wrong "$name: not killed"
    wait $job && wrong "$name: mpirun ended as done after a kill"
    tries=0
    while [ "$(processes "$name")" ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.05; done
    [ -z "$(processes "$name")" ] || wrong "$name: processes are left behind"
}
try=0
settings="--set accumulate=4 --set save_every=3 --set valid_every=0 --set schedule=constant --set valid_tokens=0"
for n in 4 2; do
    # shellcheck disable=SC2086
    several "$mpi" $n ./llama train $llama --out killed $settings --steps 1000000 --resume >out 2>err &
    job=$!
    kill_one killed/state.safetensors ./llama
done
./llama inspect killed/state.safetensors >out 2>err || wrong "inspect: $(cat err)"
# shellcheck disable=SC2086
several "$mpi" 2 ./llama train $llama --out killed $settings --steps 1000000 --max-time 1 --resume >out 2>err || [ $? = 124 ] || wrong "killed: $(cat err)"
step=$(sed -n 's/.*"event":"end","step":\([0-9]*\).*/\1/p' killed/metrics.jsonl)
# shellcheck disable=SC2086
run ./llama train $llama --out killed $settings --steps $((step + 3)) --resume
# shellcheck disable=SC2086
run several "$mpi" 4 ./llama train $llama --out straight $settings --steps $((step + 3))
cmp straight/model.safetensors killed/model.safetensors || wrong 'llama: other weights after kills'
cmp straight/state.safetensors killed/state.safetensors || wrong 'llama: another state after kills'

# --- a program whose loss knows of no parts
several "$mpi" 2 ./gan --steps 3 >out 2>err && wrong 'gan was shared'
grep -q "gan: 2 processes were started, and the program's batch is one micro-batch: set .accumulate to 2 or more" err || wrong "gan: $(cat err)"
finish
