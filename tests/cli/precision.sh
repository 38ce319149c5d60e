# SPDX-License-Identifier: MIT
# precision=bf16: trainings and what uses their models; the same bytes on any threads, with and without AMX, and after a resume.
. "$2/tests/cli/lib.sh"
small="--set layers=2 --set d_model=32 --set heads=2 --set d_ff=64 --set context=16 --set batch=4 --set dropout=0.1 --set valid_tokens=0 --steps 8"
# shellcheck disable=SC2086
train() { "$weft" train char-rms --train "$story" $small "$@" 2>log || failed "$*: $(tail -1 log)"; }
setting() { "$weft" inspect "$1" | sed -n "s/^$2: //p"; }
loss() { sed -n 's/.*"event":"valid".*"loss\/valid":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | tail -1; }

# --- a training: other weights than in float, nearly the same loss
train --out float
train --out plain --set precision=f32
train --out bf16 --set precision=bf16
cmp float/state.safetensors plain/state.safetensors || failed 'precision=f32 is not the default'
cmp -s float/model.safetensors bf16/model.safetensors && failed 'bf16 trains the weights of float'
[ "$(setting float precision) $(setting bf16 precision)" = 'f32 bf16' ] || failed "the runs' settings: $(setting bf16 precision)"
awk -v a="$(loss float)" -v b="$(loss bf16)" 'BEGIN { exit !(a > 0 && b > 0 && a - b < 0.01 && b - a < 0.01) }' || failed "losses $(loss float) and $(loss bf16)"

# --- the same bytes: threads, AMX, a checkpointed backward, a resume
for n in 1 3; do
    train --out threads-$n --set precision=bf16 --threads $n
    cmp bf16/state.safetensors threads-$n/state.safetensors || failed "$n threads: another state"
done
WEFT_AMX=0 train --out without --set precision=bf16
cmp bf16/state.safetensors without/state.safetensors || failed 'WEFT_AMX=0: another state'
train --out recomputed --set precision=bf16 --set checkpoint=true
cmp bf16/model.safetensors recomputed/model.safetensors || failed 'checkpoint=true: other weights'
train --out resumed --set precision=bf16 --steps 3
"$weft" train char-rms --train "$story" --out resumed --resume --steps 8 2>log || failed "resume: $(tail -1 log)"
cmp bf16/state.safetensors resumed/state.safetensors || failed 'the state of a resumed training differs'
expect 2 'was trained with precision = bf16: a resume cannot change it to f32' "$weft" train char-rms --train "$story" --out bf16 --resume --set precision=f32
expect 2 'was trained with precision = f32: a resume cannot change it to bf16' "$weft" train char-rms --train "$story" --out float --resume --set precision=bf16
# a run that is older than the key
LC_ALL=C sed 's/"config.precision"/"config.xxxxxxxxx"/' float/state.safetensors >state && mv state float/state.safetensors
grep -v '"precision"' float/config.json >less.json && mv less.json float/config.json
"$weft" train char-rms --train "$story" --out float --resume --steps 9 2>log || failed "an older run: $(tail -1 log)"
expect 2 'was trained with precision = f32' "$weft" train char-rms --train "$story" --out float --resume --set precision=bf16

# --- --from takes the precision over, unless --set gives another
"$weft" train char-rms --from bf16 --train "$story" --out after --steps 1 2>log || failed "--from: $(tail -1 log)"
[ "$(setting after precision)" = bf16 ] || failed "--from: $(setting after precision)"
"$weft" train char-rms --from bf16 --train "$story" --out after-f32 --steps 1 --set precision=f32 2>log || failed "--from --set: $(tail -1 log)"
[ "$(setting after-f32 precision)" = f32 ] || failed "--from --set: $(setting after-f32 precision)"
WEFT_AMX=0 "$weft" generate bf16 --max-tokens 1 2>err >out || failed "generate: $(cat err)"
grep -q 'note: without AMX' err || failed "no note without AMX: $(cat err)"

# --- use: the precision of the training, unless --precision gives another
evaluate() { "$weft" evaluate "$@" --json 2>err || failed "evaluate $*: $(cat err)"; }
evaluate bf16 --data "$story" >own
evaluate bf16 --data "$story" --precision bf16 >same
evaluate bf16 --data "$story" --precision f32 >other
cmp own same || failed 'evaluate: bf16 is not the default of the run'
cmp -s own other && failed 'evaluate: f32 and bf16 give the same loss'
"$weft" generate bf16 --greedy --max-tokens 24 >cached 2>err || failed "generate: $(cat err)"
"$weft" generate bf16 --greedy --max-tokens 24 --no-cache >uncached 2>err || failed "generate --no-cache: $(cat err)"
cmp cached uncached || failed 'generate: the cache changes the text'
expect 2 "--precision: 'f16' is not f32 or bf16" "$weft" generate bf16 --precision f16
expect 2 'precision: "half" is not one of f32 or bf16' "$weft" train char-rms --train "$story" --out r --set precision=half

# --- translation models and encoders
awk 'BEGIN { for (i = 0; i < 40; i++) print "a b c", i % 7 }' >source.txt
awk 'BEGIN { for (i = 0; i < 40; i++) print i % 7, "c b a" }' >target.txt
"$weft" train multi30k --train source.txt,target.txt --out pairs --steps 3 --set d_model=16 --set heads=2 --set d_ff=32 --set precision=bf16 2>log || failed "pairs: $(tail -1 log)"
for p in bf16 f32; do
    "$weft" translate pairs --precision $p <source.txt >lines-$p 2>err || failed "translate --precision $p: $(cat err)"
    [ "$(wc -l <lines-$p)" = 40 ] || failed "translate --precision $p: $(wc -l <lines-$p) lines"
done
# By default a command computes as the run was trained, in bf16; in f32 it gives another result.
differ() {
    for p in "" --precision=bf16 --precision=f32; do
        rm -f map.json
        # shellcheck disable=SC2086
        "$weft" "$@" $p <source.txt >"by$p" 2>err || failed "$* $p: $(cat err)"
        [ ! -f map.json ] || mv map.json "by$p"
        [ -s "by$p" ] || failed "$* $p: no result"
    done
    cmp by by--precision=bf16 || failed "$*: the default is not bf16"
    cmp -s by by--precision=f32 && failed "$*: f32 and bf16 give the same"
}
differ translate pairs --n-best 1
differ evaluate pairs --data source.txt,target.txt --no-bleu --json
for kind in encoder decoder cross; do
    differ attention pairs --source 'a b c 1' --target '1 c b a' --kind $kind --out map.json
done
"$weft" train encoder-attention --train "$story" --out encoder --steps 3 --set d_model=16 --set heads=2 --set d_ff=32 --set context=16 --set precision=bf16 2>log || failed "encoder: $(tail -1 log)"
differ embed encoder
differ evaluate encoder --data "$story" --json
differ attention encoder --text 'once upon a time' --out map.json
differ attention bf16 --text 'once' --out map.json

# --- bench
"$weft" bench encoder-attention --steps 3 --precision bf16 --json 2>err | grep -q '"precision":"bf16"' || failed "bench: $(cat err)"

finish
