# SPDX-License-Identifier: MIT
# Further training: a model that was trained on the first half of a text and then on the second has a lower loss than one that starts on
# the second from scratch, after the same steps; what --from takes and refuses.
. "$2/tests/cli/lib.sh"

lines=$(wc -l <"$story")
head -n $((lines / 2)) "$story" >first.txt
tail -n +$((lines / 2 + 1)) "$story" >second.txt
cat first.txt second.txt >both.txt
small='--set d_model=64 --set heads=4 --set layers=2 --set d_ff=128 --set context=32 --set batch=8 --threads 2'
"$weft" tokenizer train --type char --out chars.json both.txt 2>log || failed "tokenizer: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train first.txt --valid both.txt --tokenizer chars.json --out RUN $small --steps 150 2>log ||
    failed "the first half: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train second.txt --valid both.txt --tokenizer chars.json --out scratch $small --steps 60 2>log ||
    failed "from scratch: $(tail -1 log)"
# the architecture and the tokenizer are the run's, the other settings the preset's
"$weft" train nanogpt-char-small --from RUN --train second.txt --valid both.txt --out RUN2 --set batch=8 --threads 2 --steps 60 2>log ||
    failed "from the run: $(tail -1 log)"
grep -q '^starting from the weights in RUN/model.safetensors$' log || failed "not told: $(cat log)"
grep -q '"d_model": 64' RUN2/config.json || failed "another width: $(grep d_model RUN2/config.json)"
cmp -s RUN/tokenizer.json RUN2/tokenizer.json || failed 'another tokenizer'
last() { sed -n 's/.*"loss\/valid":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tail -1; }
echo "validation loss after 60 steps on the second half: $(last RUN2), from scratch $(last scratch)"
awk "BEGIN { exit !($(last RUN2) < $(last scratch) - 0.1) }" || failed "not lower: $(last RUN2), $(last scratch)"

# killed before and after its first save: the same command line again, and the bytes of one that was not
further='--from RUN/best.safetensors --train second.txt --valid both.txt --set batch=8 --set save_every=10 --threads 2 --steps 60'
# shellcheck disable=SC2086
"$weft" train $further --out straight 2>log || failed "without a model's name: $(tail -1 log)"
for delay in 05 15 30; do
    # shellcheck disable=SC2086
    "$weft" train $further --out killed --resume 2>log &
    process=$!
    sleep "0.$delay"
    kill -9 $process 2>/dev/null || true
    wait $process 2>/dev/null || true
done
# shellcheck disable=SC2086
"$weft" train $further --out killed --resume 2>log || failed "the end: $(tail -1 log)"
for f in model state; do cmp -s straight/$f.safetensors killed/$f.safetensors || failed "$f differs"; done

# from within the folder of checkpoints, whose run lies above
(cd RUN/checkpoints && "$weft" train --from "$(find . -name 'step-*' | head -n 1 | cut -c 3-)" --train "$work/second.txt" --valid "$work/both.txt" \
    --set batch=8 --threads 2 --steps 2 --out "$work/above" 2>"$work/log") || failed "in checkpoints: $(tail -1 log)"
cmp -s RUN/tokenizer.json above/tokenizer.json || failed 'another tokenizer'
# seconds are of milliseconds
grep -q '"seconds":[0-9.]*' above/metrics.jsonl || failed 'no seconds'
! grep -q '"seconds":[0-9]*\.[0-9]\{4,\}' above/metrics.jsonl || failed "seconds: $(head -n 1 above/metrics.jsonl)"

# a larger vocabulary: the text has characters that the weights have not seen
printf 'na\303\257ve caf\303\251s %%\n' | cat - second.txt >foreign.txt
printf '\303\257\n\303\251\n%%\na\n' >tokens
foreign="--from RUN --train foreign.txt --valid both.txt --set batch=8 --steps 2"
# shellcheck disable=SC2086
expect 1 'is not in the vocabulary of' "$weft" train $foreign --out no
# shellcheck disable=SC2086
"$weft" train $foreign --set new_tokens=tokens --out larger 2>log || failed "new tokens: $(tail -1 log)"
grep -q "^3 tokens added to the vocabulary of [0-9]*: $(printf '"\303\257", "\303\251", "%%"; already there: "a"')$" log || failed "told: $(cat log)"
rm tokens
"$weft" train larger --resume --steps 3 2>log || failed "resumed: $(tail -1 log)"
"$weft" generate larger --prompt "$(printf 'caf\303\251')" --max-tokens 3 >out 2>err || failed "generate: $(cat err)"
expect 2 'new_tokens=second.txt adds tokens to the vocabulary of trained weights: give them with --from' \
    "$weft" train nanogpt-char-small --train second.txt --set new_tokens=second.txt --out no
[ ! -e no/state.safetensors ] || failed 'something was trained'

expect 1 'wrong is missing: --from takes a run, a Hugging Face folder or a safetensors file' \
    "$weft" train nanogpt-char-small --from wrong --train second.txt --out no
expect 2 'holds a model of the family gpt, and char-rms is of the family rms: name a model of gpt' \
    "$weft" train char-rms --from RUN --train second.txt --out no
expect 2 '--set vocab_size says how a tokenizer is made, and --from RUN gives one' \
    "$weft" train nanogpt-char-small --from RUN --set vocab_size=99 --train second.txt --out no
"$weft" train nanogpt-char-small --from RUN --set d_ff=96 --train second.txt --out no 2>err && failed 'another width was taken'
grep -q 'with another shape: .*\[128,64\] instead of \[96,64\]' err || failed "shapes: $(tail -1 err)"
[ ! -e no/state.safetensors ] || failed 'something was trained'
finish
