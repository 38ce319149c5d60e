# SPDX-License-Identifier: MIT
# Texts of trainings: encoded once and found again, with and without a cache folder, and cut short while they are in use.
. "$2/tests/cli/lib.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
small="--set d_model=32 --set d_ff=64 --set heads=2 --set layers=1 --set context=32 --set batch=4 --set save_every=0"

train()
{
    # shellcheck disable=SC2086
    "$weft" train char-rms --train "$1" --out "$2" $small --steps "$3" ${4:-} >out 2>log || failed "train --out $2: $(tail -1 log)"
}

ids()
{
    find cache -name 'ids-*.bin' 2>/dev/null | wc -l
}

# --- found again, by another run, a resume and an evaluation; the same bits without any cache
train "$story" first 10
[ "$(ids)" = 2 ] || failed "$(ids) files of ids after a training, not 2"
find cache -name 'ids-*.bin' -exec touch -d '2001-01-01' {} +
train "$story" second 10
train "$story" first 20 --resume
[ "$(ids)" = 2 ] || failed "$(ids) files of ids after a resume"
[ -z "$(find cache -name 'ids-*.bin' ! -newermt '2002-01-01')" ] || failed 'the ids were not found again'
cmp first/tokenizer.json second/tokenizer.json || failed 'the tokenizers differ'
for without in 'XDG_CACHE_HOME=/proc/none' 'WEFT_CACHE_LIMIT=0' '-u XDG_CACHE_HOME -u HOME' 'XDG_CACHE_HOME=/dev/full'; do
    rm -rf other
    # shellcheck disable=SC2086
    env $without "$weft" train char-rms --train "$story" --out other $small --steps 10 >out 2>log || failed "$without: $(tail -1 log)"
    cmp second/model.safetensors other/model.safetensors || failed "$without: other weights"
done
find cache -name 'ids-*.bin' -exec sh -c 'for f; do head -c 50 "$f" >short; mv short "$f"; done' sh {} +
train "$story" third 10
cmp second/model.safetensors third/model.safetensors || failed 'other weights from damaged ids'

# --- a tokenizer is trained once for a text, whatever the run
bpe='--set tokenizer=byte-bpe --set vocab_size=400'
small="$small $bpe"
train "$story" bpe-1 2
train "$story" bpe-2 2
found=$(find cache -name 'tokenizer-*.bin' | wc -l)
[ "$found" = 1 ] || failed "$found cached tokenizers, not 1"
find cache -name 'tokenizer-*.bin' -exec touch -d '2001-01-01' {} +
train "$story" bpe-3 2
[ -z "$(find cache -name 'tokenizer-*.bin' ! -newermt '2002-01-01')" ] || failed 'the cached tokenizer was not used'
WEFT_CACHE_LIMIT=0
export WEFT_CACHE_LIMIT
train "$story" bpe-4 2
unset WEFT_CACHE_LIMIT
for i in 2 3 4; do
    cmp bpe-1/tokenizer.json bpe-$i/tokenizer.json && cmp bpe-1/model.safetensors bpe-$i/model.safetensors || failed "bpe-$i differs"
done

# --- a text that is cut short while it trains: an error line, and no signal
awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) print "w" int(90 * rand()), "w" int(90 * rand()), "w" int(90 * rand()) }' >source
cp source target
: >log # not that of the command before
"$weft" train seq2seq-tiny --train source,target --out pairs --steps 1000000 --set batch_tokens=200 --set save_every=0 >out 2>log &
child=$!
tries=0
until grep -q parameters log || [ $tries -gt 500 ]; do sleep 0.02; tries=$((tries + 1)); done
sleep 0.1
: >target
status=0
wait $child || status=$?
[ $status = 1 ] || failed "exit code $status, not 1, when a text was cut short: $(tail -1 log)"
grep -q 'target: the file was modified while it was in use' log || failed "$(tail -1 log)"

finish
