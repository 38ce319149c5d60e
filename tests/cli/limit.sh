# SPDX-License-Identifier: MIT
# weft train --max-time: a training that has not come to its end saves and ends before the limit, with exit code 124; the resumed run has the
# bytes of an unbroken one.
. "$2/tests/cli/lib.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
slack=2500 # ms: the start of the program, which the limit does not count, and a busy machine
[ "${WEFT_SANITIZE:-none}" = none ] || slack=10000
settings="--set schedule=constant --set context=16 --set batch=4 --set valid_every=0 --set valid_tokens=0"

# limited MS COMMAND...: ends with exit code 124, within this time and what is allowed besides; its messages are in log
limited()
{
    most=$(($1 + slack))
    shift
    before=$(date +%s%3N)
    status=0
    "$@" >out 2>log || status=$?
    spent=$(($(date +%s%3N) - before))
    [ $status = 124 ] || failed "exit code $status, not 124: $* ($(tail -2 log))"
    [ $spent -le $most ] || failed "$spent ms, more than $most: $*"
    [ "$(grep -c 'the time limit of .* is near; --resume continues from here' log)" = 1 ] || failed "the end is not told once: $(cat log)"
}
step_of() { sed -n 's/.*"event":"end","step":\([0-9]*\).*/\1/p' "$1/metrics.jsonl" | tail -1; }

# --- what is no time
for bad in 0 0:00 -1 +5 1.5 5s 1:5 1:60 1:60:00 1:2:3:4 1-24:00:00 1-03 UNLIMITED 99999999999; do
    expect 2 "--max-time: '$bad' is not a time: give seconds, MM:SS, H:MM:SS or D-HH:MM:SS" "$weft" train char-rms --threads 1 --train "$story" --out no --max-time=$bad
done
expect 2 '--max-time needs a value' "$weft" train char-rms --threads 1 --train "$story" --out no --max-time=
[ ! -e no ] || failed 'a wrong time made a folder'
"$weft" train --help | grep -q -- '--max-time=TIME' || failed 'no help'

# --- ends, is resumed with a limit that is not reached, and has the bytes of a training without any; on one thread, which leaves the other
# processor to other tests
# shellcheck disable=SC2086
limited 2000 "$weft" train char-rms --threads 1 --train "$story" --out broken --steps 100000000 $settings --set save_every=0 --max-time 2
first=$(step_of broken)
[ "${first:-0}" -gt 0 ] || failed "nothing was done: $(tail -2 broken/metrics.jsonl)"
# shellcheck disable=SC2086
limited 2000 "$weft" train char-rms --threads 1 --train "$story" --out broken --resume --max-time 0:02
second=$(step_of broken)
[ "${second:-0}" -gt "$first" ] || failed "the second start ended at step $second, the first at $first"
"$weft" train char-rms --threads 1 --train "$story" --out broken --resume --steps $((second + 3)) --max-time 1-00:00:00 2>log || failed "resume: $(tail -1 log)"
grep -q 'trained to the end' log || failed "resume: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train char-rms --threads 1 --train "$story" --out straight --steps $((second + 3)) $settings --set save_every=0 2>log || failed "straight: $(tail -1 log)"
for file in model state; do
    cmp straight/$file.safetensors broken/$file.safetensors || failed "$file differs"
done
status=0
"$weft" train char-rms --threads 1 --train "$story" --out broken --resume --steps $((second + 3)) --max-time 5 2>log || status=$?
[ $status = 0 ] || failed "a training that is done: exit code $status: $(tail -1 log)"

# --- a validation that would take longer is dropped, and made up for
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "line %d of a text that is long, %s\n", i * 37 % 1009, i % 3 ? "over again" : "and once" }' >long.txt
limited 2000 "$weft" train char-rms --threads 1 --train "$story" --valid long.txt --out valid --steps 1000 --set valid_every=1 --set valid_tokens=0 --set layers=8 --max-time 2
[ "$(step_of valid)" = 1 ] && [ "$(grep -c '"event":"valid"' valid/metrics.jsonl)" = 0 ] || failed "the validation was not dropped: $(tail -2 valid/metrics.jsonl)"

# --- a limit that passes before anything is done: the same one again would lead to nothing
awk 'BEGIN { srand(1); for (i = 0; i < 100000; i++) { s = ""; for (k = 0; k < 12; k++) s = s sprintf("%c%d%c ", 97 + int(26 * rand()), int(1e6 * rand()), 97 + int(26 * rand())); print s } }' >words.txt
# In the preparation, or, on a faster machine, in the first update, which takes longer than the limit.
status=0
"$weft" train encoder-attention --train words.txt --out ready --set vocab_size=60000 --set batch=128 --max-time 1 >/dev/null 2>message || status=$?
[ $status = 2 ] || failed "a limit before anything was done ends with $status: $(tail -1 message)"
[ "$(tail -1 message)" = 'weft: the time limit of 0:01 passed before an update was done: set a longer one' ] || failed "a limit before anything was done: $(tail -1 message)"
[ ! -f ready/state.safetensors ] || failed 'a training that had not begun was saved'
finish
