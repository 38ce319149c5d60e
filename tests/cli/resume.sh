# SPDX-License-Identifier: MIT
# A training that is killed again and again at random moments, saves included, ends with the bytes of one that was not.
. "$2/tests/cli/lib.sh"

half=25
wanted=$(some 4 8)
whole=$((2 * half))
common="--set dropout=0.1 --set save_every=1 --set valid_every=7"
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train "$story" --out straight --steps $whole $common 2>log || failed "straight: $(tail -1 log)"

kills=0
tries=0
delay=5
while [ $kills -lt $wanted ] && [ $tries -lt 60 ]; do
    tries=$((tries + 1))
    # shellcheck disable=SC2086
    "$weft" train nanogpt-char-small --train "$story" --out killed --steps $half $common --resume 2>log &
    process=$!
    sleep "0.$(printf '%02d' $delay)"
    if kill -9 $process 2>/dev/null; then
        kills=$((kills + 1))
    else # too fast: once more from the start
        wait $process || failed "first half: $(tail -1 log)"
        rm -rf killed
    fi
    wait $process 2>/dev/null
    # anything that a reader may open is whole at any time
    for f in state model best; do
        [ ! -f killed/$f.safetensors ] || "$weft" inspect killed/$f.safetensors >/dev/null 2>err || failed "$f after a kill: $(cat err)"
    done
    delay=$(((delay * 7 + 11) % 31 + 3))
done
echo "killed $kills times"
[ $kills -ge 3 ] || failed "only $kills kills hit"
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train "$story" --out killed --steps $half $common --resume 2>log || failed "first half: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train "$story" --out killed --steps $whole $common --resume 2>log || failed "second half: $(tail -1 log)"
cmp straight/model.safetensors killed/model.safetensors || failed 'the weights differ'
cmp straight/best.safetensors killed/best.safetensors || failed 'the best weights differ'
# the log has each step once, in order
steps=$(sed -n 's/.*"event":"step","step":\([0-9]*\).*/\1/p' killed/metrics.jsonl | sort -n | uniq -d | head -3)
[ -z "$steps" ] || failed "steps logged twice: $steps"
find killed -name '*.tmp*' | grep . && failed 'temporary files were left'
# resuming what is done changes nothing
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train "$story" --out killed --steps $whole $common --resume 2>log || failed "done: $(tail -1 log)"
cmp straight/model.safetensors killed/model.safetensors || failed 'resuming a finished run changed it'
# another instruction set is said
if WEFT_ISA=base "$weft" train nanogpt-char-small --train "$story" --out killed --steps $((whole + 1)) $common --resume 2>log; then
    grep -q 'warning.*isa' log || failed "no warning of another instruction set: $(cat log)"
else
    failed "resume on base: $(tail -1 log)"
fi
# the seed is the run's unless another is asked for
"$weft" train char-rms --train "$story" --out seeded --steps 3 --seed 5 2>log || failed "seeded: $(tail -1 log)"
"$weft" train char-rms --train "$story" --out seeded --steps 5 --resume 2>log || failed "the seed of the state: $(tail -1 log)"
"$weft" train char-rms --train "$story" --out whole --steps 5 --seed 5 2>log || failed "whole: $(tail -1 log)"
cmp seeded/model.safetensors whole/model.safetensors || failed 'a resume without --seed differs'
expect 2 'seed 5, the resume asks for 1' "$weft" train char-rms --train "$story" --out seeded --steps 6 --seed 1 --resume
# a mistyped --out
"$weft" train char-rms --train "$story" --out sedeed --steps 1 --resume 2>log || failed "mistyped: $(tail -1 log)"
grep -q 'nothing to resume in sedeed' log || failed 'nothing is said of a run that is not there'
# a damaged log
echo garbage >seeded/metrics.jsonl
"$weft" train char-rms --train "$story" --out seeded --steps 6 --resume 2>log || failed "a damaged log: $(tail -1 log)"
grep -q 'warning: .*metrics.previous-1.jsonl' log || failed "nothing is said of a damaged log: $(cat log)"
# a run that diverged: the last save is from before, and goes on with other settings
small="--set d_model=16 --set d_ff=32 --set heads=2 --set layers=1 --set context=16 --set batch=2 --set save_every=5"
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out bad --steps 40 $small --set clip=0 --set weight_decay=0 --set lr=0.01 --set min_lr=0.01 2>log ||
    failed "bad: $(tail -1 log)"
"$weft" train char-rms --train "$story" --out bad --resume --steps 80 --set clip=0 --set lr=1e20 --set min_lr=0 --set warmup=0 2>log && failed 'lr=1e20 passed'
grep -q -- '--resume with a lower lr' log || failed "no advice: $(tail -1 log)"
"$weft" train char-rms --train "$story" --out bad --resume --steps 80 --set lr=0.005 --set min_lr=1e-3 --set clip=1 2>log ||
    failed "a run that diverged can't be helped: $(tail -1 log)"
grep -q '^resuming with .*lr .* instead of ' log || failed "what changed is not said: $(cat log)"
grep -q '"event":"change".*"text":"resuming with' bad/metrics.jsonl || failed 'what changed is not logged'
grep -q '"clip": 1.0' bad/config.json || failed 'what changed is not in config.json'
"$weft" train char-rms --train "$story" --out bad --resume --steps 80 --set clip=1.0 --set lr=5e-3 2>log || failed "again: $(tail -1 log)"
grep -q 'resuming with\|warning' log && failed "the same settings are told as changes: $(cat log)"
expect 2 'd_model = 16: a resume cannot change it to 32' "$weft" train char-rms --train "$story" --out bad --resume --set d_model=32
expect 2 'patience=3' "$weft" train char-rms --train "$story" --out no --set patience=3 --set valid_every=0
# the run alone: its text, its seed and its settings, from another folder too
"$weft" train char-rms --train "$story" --out alone --steps 3 --seed 5 --set lr=2e-3 --set valid_tokens=0 2>log || failed "alone: $(tail -1 log)"
"$weft" train char-rms --train "$story" --out together --steps 5 --seed 5 --set lr=2e-3 --set valid_tokens=0 2>log || failed "together: $(tail -1 log)"
mkdir elsewhere
(cd elsewhere && "$weft" train ../alone --resume --steps 5 2>log) || failed "the run alone: $(tail -1 elsewhere/log)"
for f in model state; do cmp alone/$f.safetensors together/$f.safetensors || failed "a resume of the run alone: $f differs"; done
"$weft" train --out alone --resume --steps 6 2>log || failed "only --out: $(tail -1 log)"
"$weft" train char-rms --train "$story" --out alone --resume --steps 7 2>log || failed "the long form: $(tail -1 log)"
# a text that is gone is named, and another place is taken
cp "$story" mine.txt
cp "$story" valid.txt
"$weft" train char-rms --train ./mine.txt --valid valid.txt --out moved --steps 2 2>log || failed "moved: $(tail -1 log)"
mv mine.txt theirs.txt
expect 1 "$work/mine.txt, which moved was trained on, is gone: give its new place with --train" "$weft" train moved --resume --steps 3
"$weft" train moved --resume --steps 3 --train theirs.txt 2>log || failed "another place: $(tail -1 log)"
"$weft" train moved --resume --steps 4 2>log || failed "the new place was forgotten: $(tail -1 log)"
grep -qF "\"file\": \"$work/theirs.txt\"" moved/config.json || failed 'config.json does not name the text'
echo more >>valid.txt
expect 2 "$work/valid.txt has changed since moved was trained on it: " "$weft" train moved --resume --steps 5
# a run's config.json repeats the run; --seed and --set count before it
"$weft" train --config together/config.json --out repeated 2>log || failed "repeated: $(tail -1 log)"
cmp together/model.safetensors repeated/model.safetensors || failed 'a run that is repeated from its config.json has other weights'
"$weft" train --config together/config.json --out reseeded --seed 6 2>log || failed "reseeded: $(tail -1 log)"
cmp -s together/model.safetensors reseeded/model.safetensors && failed '--seed does not count before that of --config'
"$weft" train --config together/config.json --out other --set lr=1e-3 --steps 2 2>log || failed "other: $(tail -1 log)"
grep -q '"lr": 0.001,' other/config.json || failed '--set does not count before --config'
# and --config counts before the state
echo '{"lr": 0.005}' >lr.json
"$weft" train other --resume --config lr.json --steps 3 2>log || failed "--config on a resume: $(tail -1 log)"
grep -q 'resuming with steps 3 instead of 2, lr 0.005 instead of 0.001' log || failed "--config on a resume: $(cat log)"
"$weft" train other --resume --config lr.json --set lr=0.004 --steps 4 2>log || failed "--set on a resume: $(tail -1 log)"
grep -q 'lr 0.004 instead of 0.005' log || failed "--set on a resume: $(cat log)"
expect 2 'was trained with seed 5, the resume asks for 6' "$weft" train other --resume --config reseeded/config.json
expect 2 'alone is the folder of a run: weft train alone --resume continues it' "$weft" train alone
expect 2 'there is no run to resume in elsewhere: it holds no state.safetensors' "$weft" train elsewhere --resume
expect 2 "weft train needs the run's folder: weft train RUN --resume" "$weft" train char-rms --resume
expect 2 'weft train needs --train FILE[,FILE]' "$weft" train char-rms --out fresh
expect 2 'is a run of char-rms, not of gpt2' "$weft" train gpt2 --out alone --resume
[ ! -e fresh ] && [ ! -e char-rms ] || failed 'what was refused left a folder'
# epochs: steps follow from them and the text, for a resume too
ids=$(($(sed -n 's/.*"train_tokens":\([0-9]*\).*/\1/p' alone/metrics.jsonl | head -1) - 1))
per=$((4 * 32)) # of an update
"$weft" train char-rms --train "$story" --out epochs --set batch=4 --set context=32 --set epochs=0.5 --set log_every=3 2>log || failed "epochs: $(tail -1 log)"
half=$(((ids + 2 * per - 1) / (2 * per)))
grep -q "step $half of $half: trained to the end" log || failed "half an epoch of $ids tokens: $(tail -1 log)"
logged=$(grep '"event":"step"' epochs/metrics.jsonl | sed -n 's/.*"step":\([0-9]*\),.*/\1/p' | head -4 | tr '\n' ' ')
[ "$logged" = '1 3 6 9 ' ] || failed "log_every=3 logs steps $logged"
"$weft" train epochs --resume --set epochs=1 2>log || failed "a second half: $(tail -1 log)"
grep -q "step $(((ids + per - 1) / per)) of" log || failed "an epoch: $(tail -1 log)"
"$weft" train epochs --resume --steps $((ids / per + 5)) 2>log || failed "steps after epochs: $(tail -1 log)"
grep -q 'epochs 0.0 instead of 1.0' log || failed "steps after epochs: $(cat log)"
expect 2 '--set epochs=2 and --steps both say how long char-rms is trained: leave one of them out' "$weft" train char-rms --train "$story" --out no --set epochs=2 --steps 5
expect 2 '--set epochs=2 and --set steps both say' "$weft" train char-rms --train "$story" --out no --set epochs=2 --set steps=5
# what else a run was given is repeated too: weights to start from, a tokenizer
"$weft" train --from alone --train "$story" --out further --steps 2 2>log || failed "further: $(tail -1 log)"
"$weft" train --config further/config.json --out again 2>log || failed "further, again: $(tail -1 log)"
cmp further/model.safetensors again/model.safetensors || failed 'a run that began with weights is repeated without them'
"$weft" tokenizer train --type bpe --vocab-size 200 --out made.json "$story" 2>log || failed "tokenizer: $(tail -1 log)"
"$weft" train char-rms --train "$story" --tokenizer made.json --out given --steps 2 2>log || failed "given: $(tail -1 log)"
"$weft" train --config given/config.json --out given2 2>log || failed "given, again: $(tail -1 log)"
cmp given/model.safetensors given2/model.safetensors || failed 'a run with a tokenizer of its own is repeated without it'
"$weft" train given --resume --steps 3 2>log || failed "given, resumed: $(tail -1 log)"
grep -qF "\"tokenizer\": \"$work/made.json\"" given/config.json || failed 'a resume forgets the tokenizer that was given'
mv made.json gone.json
expect 1 "$work/made.json, which the run of given/config.json began with, is gone" "$weft" train --config given/config.json --out given3
# a text that was edited, with the same number of bytes
cp "$story" edited.txt
"$weft" train char-rms --train edited.txt --out edited --steps 2 2>log || failed "edited: $(tail -1 log)"
sed 's/ the / thy /g' "$story" >edited.txt
"$weft" train --config edited/config.json --out edited2 2>log || failed "edited, again: $(tail -1 log)"
grep -q 'warning: the texts, as the tokenizer reads them, are not those of the run that is repeated' log || failed "a text that was edited: $(cat log)"
expect 2 "$work/edited.txt has changed since the run was trained on it" "$weft" train edited --resume --steps 3
expect 2 'but for its last tenth, which was validated on: leave --valid out' "$weft" train alone --resume --steps 9 --valid "$story"
# settings from a pipe
mkfifo settings
echo '{"batch": 2}' >settings &
"$weft" train char-rms --config settings --train "$story" --out piped --steps 2 2>log || failed "settings from a pipe: $(tail -1 log)"
grep -q '"batch": 2,' piped/config.json || failed 'settings from a pipe are not taken'
expect 2 'with --resume the run stands in the place of MODEL: leave --out elsewhere out' "$weft" train alone --resume --out elsewhere
finish
