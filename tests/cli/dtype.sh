# SPDX-License-Identifier: MIT
# --dtype: weights that are kept as bf16 in memory.
. "$2/tests/cli/lib.sh"
small="--set layers=2 --set d_model=32 --set heads=2 --set d_ff=64 --set context=16 --set batch=4 --set valid_tokens=0 --steps 8"
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" $small --out run 2>log || failed "train: $(tail -1 log)"
cp run/model.safetensors before

evaluate() { "$weft" evaluate run --data "$story" --json "$@" 2>err || failed "evaluate $*: $(cat err)"; }
loss() { sed -n 's/.*"loss": *\([0-9.]*\).*/\1/p' "$1" | head -1; }
for precision in f32 bf16; do
    evaluate --precision $precision >own
    evaluate --precision $precision --dtype f32 >floats
    evaluate --precision $precision --dtype bf16 >numbers
    evaluate --precision $precision --map always >mapped
    cmp own mapped || failed "$precision: --map always changes the loss"
    evaluate --precision $precision --map always --dtype bf16 >mapped
    cmp numbers mapped || failed "$precision: --map always changes the loss with --dtype bf16"
    cmp own floats || failed "$precision: f32 is not the default of a file in F32"
    cmp -s own numbers && failed "$precision: --dtype bf16 changes nothing"
    awk -v a="$(loss own)" -v b="$(loss numbers)" 'BEGIN { exit !(a > 0 && a - b < 0.01 && b - a < 0.01) }' ||
        failed "$precision: losses $(loss own) and $(loss numbers)"
    for threads in 1 3; do
        evaluate --precision $precision --dtype bf16 --threads $threads >other
        cmp numbers other || failed "$precision: $threads threads: another loss"
    done
    "$weft" generate run --greedy --max-tokens 40 --precision $precision --dtype bf16 >cached 2>err || failed "generate: $(cat err)"
    "$weft" generate run --greedy --max-tokens 40 --precision $precision --dtype bf16 --no-cache >uncached 2>err || failed "generate: $(cat err)"
    cmp cached uncached || failed "$precision: the cache changes the text"
done
cmp before run/model.safetensors || failed 'a command has changed the weights'
for map in auto always never; do
    "$weft" generate run --greedy --max-tokens 40 --map $map >text-$map 2>err || failed "generate --map $map: $(cat err)"
    cmp text-auto text-$map || failed "--map $map changes the text"
done
expect 2 "--map: 'yes' is not auto, always or never" "$weft" generate run --map yes
expect 2 "--dtype: 'f16' is not f32 or bf16" "$weft" generate run --dtype f16

# --- translation models and encoders
awk 'BEGIN { for (i = 0; i < 40; i++) print "a b c", i % 7 }' >source.txt
awk 'BEGIN { for (i = 0; i < 40; i++) print i % 7, "c b a" }' >target.txt
"$weft" train multi30k --train source.txt,target.txt --out pairs --steps 3 --set d_model=16 --set heads=2 --set d_ff=32 2>log || failed "pairs: $(tail -1 log)"
"$weft" translate pairs --dtype bf16 <source.txt >lines 2>err || failed "translate: $(cat err)"
[ "$(wc -l <lines)" = 40 ] || failed "translate: $(wc -l <lines) lines"
"$weft" train encoder-attention --train "$story" --out encoder --steps 3 --set d_model=16 --set heads=2 --set d_ff=32 --set context=16 2>log || failed "encoder: $(tail -1 log)"
for dtype in f32 bf16; do
    echo 'once upon a time' | "$weft" embed encoder --dtype $dtype >vector-$dtype 2>err || failed "embed --dtype $dtype: $(cat err)"
    "$weft" attention encoder --dtype $dtype --text 'once upon' --out attention-$dtype.json >out 2>err || failed "attention --dtype $dtype: $(cat err)"
done
[ "$(wc -w <vector-f32)" = "$(wc -w <vector-bf16)" ] || failed 'embed: another number of elements'
cmp -s vector-f32 vector-bf16 && failed 'embed: --dtype bf16 changes nothing'

finish
