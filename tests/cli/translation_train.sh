# SPDX-License-Identifier: MIT
# Training on two files: messages, refusals, and a training that is killed again and again at random moments, in the middle
# of an epoch, with micro-batches and dropout: it ends with the bytes of one that was not.
. "$2/tests/cli/lib.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

# Sentences of numbers; the target says them in the other order.
pairs()
{
    awk -v seed="$1" -v count="$2" 'BEGIN {
        srand(seed)
        split("one two three four five six seven", en)
        split("eins zwei drei vier fünf sechs sieben", de)
        for (i = 1; i <= count; i++) {
            n = 2 + int(rand() * 8); s = t = ""
            for (k = 0; k < n; k++) { w = 1 + int(rand() * 7); s = s (k ? " " : "") en[w]; t = de[w] (k ? " " : "") t }
            print s > "'"$3"'.en"; print t > "'"$3"'.de"
        }
    }'
}
pairs 1 300 train
pairs 2 40 valid

files="--train train.en,train.de --valid valid.en,valid.de"
small="--set d_model=16 --set d_ff=32 --set heads=2 --set encoder_layers=1 --set decoder_layers=1 --set batch_tokens=200 --set accumulate=3
       --set dropout=0.2 --set label_smoothing=0.1 --set save_every=1 --set valid_every=7 --set keep=3"

# --- messages
printf '\nsix\n' >>train.en
printf 'eins\n\n' >>train.de
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny $files --out straight --steps 60 $small 2>log || failed "straight: $(tail -1 log)"
grep -q '^training: 300 pairs.*2 skipped: 1 empty source, 1 empty target' log || failed "what was left out is not told: $(cat log)"
grep -q '^validation: 40 pairs' log || failed 'the validation pairs are not told'
grep -q 'target tokens to train on' log || failed "tokens: $(cat log)"
grep -q '"event":"data".*"used":300.*"empty_source":1' straight/metrics.jsonl || failed "metrics: $(head -3 straight/metrics.jsonl)"
grep -q '"loss/train":.*"loss/train_smoothed":' straight/metrics.jsonl || failed 'no smoothed loss in metrics.jsonl'
ls cache/weft | grep -q . || failed 'the survey was not kept'
first=$(sed -n 's/.*"step":1,"loss\/train":\([0-9.]*\).*/\1/p' straight/metrics.jsonl)
last=$(sed -n 's/.*"step":60,"loss\/train":\([0-9.]*\).*/\1/p' straight/metrics.jsonl)
awk "BEGIN { exit !($last < $first - 0.3) }" || failed "the loss does not fall: $first, $last"

# --- the time left is that of the steps, not of looking through many pairs
pairs 2 60000 many
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny --train many.en,many.de --out many --steps 20 $small 2>log || failed "many pairs: $(tail -1 log)"
grep -q '^step 1/20 .* [0-2] s left' log || failed "time left: $(grep '^step 1/' log)"

# --- killed
kills=0
tries=0
delay=3
while [ $kills -lt 8 ] && [ $tries -lt 60 ]; do
    tries=$((tries + 1))
    # shellcheck disable=SC2086
    "$weft" train seq2seq-tiny $files --out killed --steps 40 $small --resume --threads $((1 + tries % 2)) 2>log &
    process=$!
    sleep "0.$(printf '%02d' $delay)"
    if kill -9 $process 2>/dev/null; then
        kills=$((kills + 1))
    else # too fast: once more from the start
        wait $process || failed "first part: $(tail -1 log)"
        rm -rf killed
    fi
    wait $process 2>/dev/null
    for f in state model best; do
        [ ! -f killed/$f.safetensors ] || "$weft" inspect killed/$f.safetensors >/dev/null 2>err || failed "$f after a kill: $(cat err)"
    done
    delay=$(((delay * 7 + 11) % 31 + 2))
done
echo "killed $kills times"
[ $kills -ge 3 ] || failed "only $kills kills hit"
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny $files --out killed --steps 40 $small --resume 2>log || failed "first part: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny $files --out killed --steps 60 $small --resume 2>log || failed "second part: $(tail -1 log)"
for f in model best checkpoints/step-00000060 checkpoints/step-00000059 checkpoints/step-00000058; do
    cmp straight/$f.safetensors killed/$f.safetensors || failed "$f differs"
done
steps=$(sed -n 's/.*"event":"step","step":\([0-9]*\).*/\1/p' killed/metrics.jsonl | sort -n | uniq -d | head -3)
[ -z "$steps" ] || failed "steps logged twice: $steps"
find killed -name '*.tmp*' | grep . && failed 'temporary files were left'
rm -rf killed/tokenizer.*.json
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny $files --out killed --steps 60 $small --resume 2>log || failed "a state is enough: $(tail -1 log)"
cmp straight/tokenizer.source.json killed/tokenizer.source.json || failed 'the tokenizer does not come back'

# --- Ctrl-C saves
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny $files --out stopped --steps 100000 $small 2>log &
process=$!
tries=0
until [ -f stopped/state.safetensors ] || [ $tries -gt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -INT $process
status=0
wait $process || status=$?
[ $status = 130 ] || failed "Ctrl-C: exit code $status: $(tail -1 log)"
grep -q 'interrupted' log || failed "Ctrl-C: $(tail -2 log)"

# --- unknown words are counted and named
printf 'one two\nthree eight\n' >new.en
printf 'eins\nzwei\n' >new.de
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny --train train.en,train.de --valid new.en,new.de --out new $small --steps 1 2>log || failed "unknown words: $(tail -1 log)"
grep -q 'warning: validation source: unknown tokens: 1 of 4 (25.0 %)' log || failed "unknown words: $(cat log)"

# --- what is refused: one line each
t="$weft train seq2seq-tiny --out no"
expect 2 'two files, source and target, not 1' $t --train train.en
expect 2 'two files, source and target, not 3' $t --train train.en,train.de,valid.de
expect 2 '--valid takes two files' $t --train train.en,train.de --valid valid.en
expect 2 'give --valid' $t --train train.en,train.de --set patience=3
head -50 train.de >short.de
expect 1 '50' $t --train train.en,short.de
expect 1 'nowhere.de' $t --train train.en,nowhere.de
printf 'one\ntwo \377\n' >bad.en
expect 1 'bad.en:2:5' $t --train bad.en,new.de
expect 2 'vocab' $t --train train.en,train.de --set tokenizer=bpe --set vocab_size=6
expect 2 'shares one tokenizer' $t --train train.en,train.de --set shared=true --tokenizer straight/tokenizer.source.json,straight/tokenizer.target.json
expect 2 'says how a tokenizer is made' $t --train train.en,train.de --set shared=true --tokenizer straight/tokenizer.source.json --set min_frequency=5
expect 2 'not 3' $t --train train.en,train.de --tokenizer a,b,c
expect 2 'one tokenizer, not two' "$weft" train char-rms --train "$story" --out no --tokenizer a,b
"$weft" train char-rms --train "$story" --out language --steps 1 2>log || failed "language: $(tail -1 log)"
expect 1 'language/tokenizer.json: the target' $t --train train.en,train.de --tokenizer language/tokenizer.json
# shellcheck disable=SC2086
expect 2 'another text' "$weft" train seq2seq-tiny --train valid.en,valid.de --valid valid.en,valid.de --out straight --steps 61 $small --resume
# shellcheck disable=SC2086
expect 2 'another tokenizer' "$weft" train seq2seq-tiny $files --out straight --steps 61 $small --resume --tokenizer straight/tokenizer.source.json
finish
