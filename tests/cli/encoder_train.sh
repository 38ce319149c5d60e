# SPDX-License-Identifier: MIT
# Training of an encoder on masked tokens: messages and refusals, and a training that is killed at random moments, whose resumes
# have other numbers of threads: it ends with the bytes of one that was not.
. "$2/tests/cli/lib.sh"

small="--set layers=2 --set d_model=32 --set heads=4 --set d_ff=64 --set context=32 --set batch=6 --set accumulate=4 --set save_every=1
       --set valid_every=7 --set keep=2"
# shellcheck disable=SC2086
"$weft" train encoder-attention --train "$story" --out straight --steps 40 $small 2>log || failed "straight: $(tail -1 log)"
grep -q 'entries, not 1,000: the training text yields no more' log || failed "entries: $(cat log)"
grep -q 'tokens to train on, [0-9]* masked tokens to validate' log || failed "tokens: $(cat log)"
grep -q '"<mask>"' straight/tokenizer.json || failed 'no mask token in the tokenizer'
first=$(sed -n 's/.*"step":1,"loss\/train":\([0-9.]*\).*/\1/p' straight/metrics.jsonl)
last=$(sed -n 's/.*"step":40,"loss\/train":\([0-9.]*\).*/\1/p' straight/metrics.jsonl)
awk "BEGIN { exit !($last < $first - 0.3) }" || failed "the loss does not fall: $first, $last"

# --- killed
kills=0
tries=0
delay=4
while [ $kills -lt 4 ] && [ $tries -lt 30 ]; do
    tries=$((tries + 1))
    # shellcheck disable=SC2086
    "$weft" train encoder-attention --train "$story" --out killed --steps 30 $small --resume --threads $((1 + tries % 2)) 2>log &
    process=$!
    sleep "0.$(printf '%02d' $delay)"
    if kill -9 $process 2>/dev/null; then
        kills=$((kills + 1))
    else # too fast: once more from the start
        wait $process || failed "first part: $(tail -1 log)"
        rm -rf killed
    fi
    wait $process 2>/dev/null
    delay=$(((delay * 7 + 11) % 31 + 3))
done
echo "killed $kills times"
[ $kills -ge 2 ] || failed "only $kills kills hit"
# shellcheck disable=SC2086
"$weft" train encoder-attention --train "$story" --out killed --steps 40 $small --resume --threads 1 2>log || failed "the end: $(tail -1 log)"
for f in model best state; do cmp straight/$f.safetensors killed/$f.safetensors || failed "$f differs"; done

# --- evaluation: the same figure as the training's own, each time
"$weft" evaluate straight --data "$story" --json 2>/dev/null >json || failed 'evaluate'
grep -q '^{"loss": [0-9.]*, "perplexity": [0-9.]*, "tokens": [0-9]*, "unknown": 0}$' json || failed "json: $(cat json)"
"$weft" evaluate straight --data "$story" --json --threads 1 2>/dev/null | cmp - json || failed 'another evaluation differs'
"$weft" evaluate straight --data "$story" 2>/dev/null >plain || failed 'evaluate, plain'
[ "$(cut -d' ' -f1 plain | tr '\n' ' ')" = 'loss perplexity tokens ' ] || failed "plain: $(cat plain)"
# shellcheck disable=SC2086
"$weft" train encoder-attention --train "$story" --valid "$story" --out whole --steps 3 --set valid_tokens=0 $small 2>log || failed "whole: $(tail -1 log)"
valid=$(sed -n 's/.*"loss\/valid":\([0-9.]*\).*/\1/p' whole/metrics.jsonl | tail -1)
[ -n "$valid" ] || failed 'no validation loss in metrics.jsonl'
"$weft" evaluate whole --data "$story" --json 2>/dev/null | grep -qF "{\"loss\": $(printf '%.10s' "$valid")" || failed "evaluate says other than $valid"

# --- what an encoder refuses and needs
expect 2 'is an encoder and cannot generate: use weft embed' "$weft" generate straight --prompt The
expect 2 'is not a translation model: --beam and --no-bleu' "$weft" evaluate straight --data "$story" --beam 3
echo hello | "$weft" translate straight >out 2>err && failed 'an encoder translates'
grep -q 'is an encoder and does not translate' err || failed "translate: $(cat err)"
"$weft" tokenizer train --type word --specials '<pad>,<unk>' --out maskless.json "$story" 2>/dev/null
expect 1 'maskless.json: the tokenizer has no mask token: it must have one named <mask> or [MASK]' \
    "$weft" train encoder-attention --train "$story" --out refused --tokenizer maskless.json
"$weft" tokenizer train --type word --specials '<pad>,<unk>,<mask>' --out frameless.json "$story" 2>/dev/null
expect 2 'frameless.json: the tokenizer has no start token ([CLS] or <s>), which frame=true requires: set frame=false' \
    "$weft" train encoder-attention --train "$story" --out refused --tokenizer frameless.json --set frame=true
# shellcheck disable=SC2086
"$weft" train encoder-attention --train "$story" --out framed --steps 2 $small --set frame=true 2>log || failed "framed: $(tail -1 log)"
grep -q '"</s>"' framed/tokenizer.json || failed 'no end token in the tokenizer'
"$weft" evaluate framed --data "$story" --json >json 2>err || failed "framed: $(cat err)"
echo 'a few words' >short.txt
expect 2 'use a longer text or a smaller context' "$weft" train encoder-attention --train short.txt --out refused --steps 1 --set vocab_size=0
# shellcheck disable=SC2086
"$weft" train encoder-attention --train "$story" --out chars --steps 2 $small --set tokenizer=char 2>log || failed "characters: $(tail -1 log)"
grep -q '"<mask>"' chars/tokenizer.json || failed 'no mask token among the characters'
expect 2 'mask_rate' "$weft" train encoder-attention --train "$story" --out refused --set mask_rate=1
"$weft" inspect straight >out 2>err || failed 'inspect'
grep -q '^mask_rate: 0.15$' out || failed "inspect: $(head -30 out)"
finish
