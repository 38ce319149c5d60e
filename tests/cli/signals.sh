# SPDX-License-Identifier: MIT
# Ctrl-C and SIGTERM: a line, exit code 130 or 143, soon, wherever a command is; what a training has finished is saved, and its resume
# gives the bytes of an unbroken run.
. "$2/tests/cli/lib.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
limit=2000 # a second, and what saving and a busy machine take
[ "${WEFT_SANITIZE:-none}" = none ] || limit=6000
small="--set d_model=32 --set d_ff=64 --set heads=2 --set layers=2 --set context=64 --set batch=8 --set save_every=0"

now()
{
    date +%s%3N
}

# stopped SIGNAL CODE LOG PATTERN COMMAND...: sends the signal once the pattern is in the log; the command then ends with the code
stopped()
{
    signal=$1 code=$2 log=$3 pattern=$4
    shift 4
    : >"$log" # not that of the command before
    "$@" >out 2>"$log" <&3 &
    child=$!
    tries=0
    until [ -z "$pattern" ] || grep -q "$pattern" "$log" || [ $tries -gt 500 ] || ! kill -0 $child 2>/dev/null; do sleep 0.02; tries=$((tries + 1)); done
    sleep 0.1
    before=$(now)
    kill "-$signal" $child 2>/dev/null || failed "ended before the signal: $* ($(tail -1 "$log"))"
    status=0
    wait $child || status=$?
    spent=$(($(now) - before))
    [ $status = "$code" ] || failed "exit code $status, not $code, on $signal: $* ($(tail -2 "$log"))"
    [ $spent -le $limit ] || failed "$spent ms to end on $signal: $*"
    grep -qi 'interrupted\|stopp' "$log" || failed "nothing was said on $signal: $* ($(tail -2 "$log"))"
}
mkfifo wait
exec 4<>wait 3<wait # standard input from which nothing comes

# --- training: in a step, dropped in the middle or not, and in a validation that takes long
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "line %d of a text that is long, %s\n", i * 37 % 1009, i % 3 ? "over again" : "and once" }' >long.txt
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --valid "$story" --out straight --steps 60 $small --set valid_every=6 2>log || failed "straight: $(tail -1 log)"
tries=0
for signal in INT TERM INT TERM; do
    # shellcheck disable=SC2086
    "$weft" train char-rms --train "$story" --valid "$story" --out broken --steps 60 --resume $small --set valid_every=6 2>log &
    child=$!
    sleep "0.$((tries * 7 % 5 + 1))"
    tries=$((tries + 1))
    kill -$signal $child 2>/dev/null
    status=0
    wait $child || status=$?
    case $status in
    0 | 130 | 143) ;;
    *) failed "exit code $status: $(tail -2 log)" ;;
    esac
done
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --valid "$story" --out broken --steps 60 --resume $small --set valid_every=6 2>log || failed "resume: $(tail -1 log)"
for f in model best state; do
    cmp straight/$f.safetensors broken/$f.safetensors || failed "$f differs after interruptions"
done
# shellcheck disable=SC2086
stopped TERM 143 log parameters "$weft" train char-rms --train "$story" --valid "$story" --out first --steps 1000000 $small
grep -q 'continues from here' log || failed "nothing of --resume: $(tail -1 log)"
[ -f first/state.safetensors ] || failed 'nothing was saved'
# shellcheck disable=SC2086
stopped USR1 138 log parameters "$weft" train char-rms --train "$story" --out queue --steps 1000000 $small
[ -f queue/state.safetensors ] || failed 'nothing was saved on SIGUSR1'
# shellcheck disable=SC2086
stopped INT 130 log 'parameters' "$weft" train char-rms --train "$story" --valid long.txt --out valid --steps 1000 $small --set valid_every=1 \
    --set context=256 --set valid_tokens=0
[ "$(grep -c '"event":"valid"' valid/metrics.jsonl)" = 0 ] || failed 'the validation was not interrupted: the test needs a longer text'
"$weft" inspect valid/state.safetensors >/dev/null 2>err || failed "no state after a validation that was interrupted: $(cat err)"

# --- getting ready: a tokenizer, a survey of pairs
awk 'BEGIN { srand(1); for (i = 0; i < 100000; i++) { s = ""; for (k = 0; k < 12; k++) s = s sprintf("%c%d%c ", 97 + int(26 * rand()), int(1e6 * rand()), 97 + int(26 * rand())); print s } }' >words.txt
stopped INT 130 log thread "$weft" train encoder-attention --train words.txt --out ready --set vocab_size=60000
[ ! -f ready/state.safetensors ] || failed 'a training that had not begun was saved'
for i in 1 2 3 4 5 6 7 8; do cat words.txt; done >many.txt
XDG_CACHE_HOME=$work/other stopped TERM 143 log thread "$weft" train char-rms --train many.txt --out ready # characters, or encoding
stopped TERM 143 log thread "$weft" tokenizer train --type bpe --vocab-size 100000 --out bpe.json words.txt words.txt
[ ! -f bpe.json ] || failed 'half a tokenizer'
stopped INT 130 log thread "$weft" train seq2seq-tiny --train words.txt,words.txt --out pairs --set vocab_size=30000

# --- the reader of the log goes away: `2>&1 | tee log` and Ctrl-C, or `2>&1 | head`
# shellcheck disable=SC2086
{ status=0; "$weft" train char-rms --train "$story" --out piped --steps 20 $small 2>&1 || status=$?; echo $status >status; } | head -c 1 >/dev/null
until [ -s status ]; do sleep 0.02; done
[ "$(cat status)" = 0 ] && [ -f piped/state.safetensors ] || failed "without a reader of the log: exit code $(cat status)"

# --- the other commands
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out run --steps 2 $small 2>log || failed "run: $(tail -1 log)"
stopped INT 130 log thread "$weft" generate run --max-tokens 1000000
stopped TERM 143 log thread "$weft" generate run --max-tokens 1000000
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat long.txt; done | tr 0-9 aeioutnshr | head -c 40000000 >longer.txt
stopped INT 130 log thread "$weft" evaluate run --data longer.txt
stopped TERM 143 log thread "$weft" bench nanogpt-char --seconds 60
printf 'a b\nb a\n' >source
printf 'c d\nd c\n' >target
"$weft" train seq2seq-tiny --train source,target --out translating --steps 3 2>log || failed "translating: $(tail -1 log)"
stopped INT 130 log thread "$weft" translate translating
stopped INT 130 log '' "$weft" bleu target
stopped TERM 143 log '' "$weft" tokenizer encode run/tokenizer.json

# --- a second Ctrl-C ends at once
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out twice --steps 1000000 $small 2>log &
child=$!
until grep -q parameters log; do sleep 0.02; done
kill -STOP $child
kill -INT $child
kill -CONT $child
kill -INT $child
status=0
wait $child || status=$?
[ $status = 130 ] || failed "two Ctrl-C: exit code $status"
finish
