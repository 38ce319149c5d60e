# SPDX-License-Identifier: MIT
# weft train --max-time on several processes: they end together before the limit, by rank 0's clock, and go on in any number with the bytes of
# an unbroken training. Called as: sh limit.sh WEFT SOURCE-ROOT.
. "$2/tests/cli/lib.sh"
. "$source/tests/dist/lib.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
slack=4000 # ms: mpirun and the start of the program, which the limit does not count, and a busy machine
settings="--set schedule=constant --set context=16 --set batch=8 --set accumulate=4 --set dropout=0.1 --set valid_every=0 --set valid_tokens=0"

# limited MPI N COMMAND...: as several, with exit code 124, before the limit of 2 s
limited()
{
    begin=$(date +%s%3N)
    status=0
    several "$@" --max-time 2 >out 2>log || status=$?
    spent=$(($(date +%s%3N) - begin))
    [ $status = 124 ] || failed "exit code $status, not 124: $* ($(cat log))"
    [ $spent -le $((2000 + slack)) ] || failed "$spent ms: $*"
    [ "$(grep -c 'the time limit of 0:02 is near; --resume continues from here' log)" = 1 ] || failed "the end is not told once: $(cat log)"
}
step_of() { sed -n 's/.*"event":"end","step":\([0-9]*\).*/\1/p' "$1/metrics.jsonl" | tail -1; }
again() { "$weft" train char-rms --train "$story" --out broken --resume "$@"; }

# --- started again and again, on other numbers
before=0
for how in $mpis; do
    for n in 4 2; do
        # shellcheck disable=SC2086
        limited $how $n "$weft" train char-rms --train "$story" --out broken --steps 100000000 $settings --set save_every=0 --resume
        step=$(step_of broken)
        [ "${step:-0}" -gt "$before" ] || failed "$how, $n processes: nothing was done in 2 s"
        before=$step
    done
done
again --steps $((before + 3)) >log 2>&1 || failed "to the end: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out straight --steps $((before + 3)) $settings --set save_every=0 >log 2>&1 || failed "straight: $(tail -1 log)"
cmp straight/model.safetensors broken/model.safetensors || failed 'other weights'
cmp straight/state.safetensors broken/state.safetensors || failed 'another state'

# --- a validation that is too long is dropped on all
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "line %d of a text that is long, %s\n", i * 37 % 1009, i % 3 ? "over again" : "and once" }' >long.txt
limited "$mpi" 2 "$weft" train char-rms --train "$story" --valid long.txt --out valid --steps 1000 --set valid_every=1 --set valid_tokens=0 --set layers=8
[ "$(step_of valid)" = 1 ] && [ "$(grep -c '"event":"valid"' valid/metrics.jsonl)" = 0 ] || failed "the validation was not dropped: $(tail -2 valid/metrics.jsonl)"

# --- nothing is done within the limit; limits that differ
cat >pick <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && limit=$1 || limit=$2
shift 2
exec "$@" --max-time "$limit"
END
chmod +x pick
status=0
several "$mpi" 2 ./pick 2 3 "$weft" train char-rms --train "$story" --set accumulate=2 --out differ >out 2>err || status=$?
[ $status = 2 ] && [ "$(grep -c 'the processes differ: rank 0 has max-time=2, rank 1 has max-time=3' err)" = 1 ] || failed "other limits: $status, $(cat err)"
status=0
several "$mpi" 2 "$weft" train char-rms --train "$story" --out differ --max-time 1:5 >out 2>err || status=$?
[ $status = 2 ] && [ "$(grep -c "'1:5' is not a time" err)" = 1 ] || failed "no time: $status, $(cat err)"
awk 'BEGIN { srand(1); for (i = 0; i < 100000; i++) { s = ""; for (k = 0; k < 12; k++) s = s sprintf("%c%d%c ", 97 + int(26 * rand()), int(1e6 * rand()), 97 + int(26 * rand())); print s } }' >words.txt
status=0
several "$mpi" 2 "$weft" train encoder-attention --train words.txt --out ready --set vocab_size=60000 --max-time 1 >out 2>err || status=$?
[ $status = 2 ] && [ "$(grep -c 'the time limit of 0:01 passed before an update was done: set a longer one' err)" = 1 ] || failed "too short: $status, $(cat err)"
finish
