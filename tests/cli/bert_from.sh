# SPDX-License-Identifier: MIT
# A BERT folder trained further on masked tokens: killed and resumed to the same bytes; the run is used as the folder was; what is wrong
# with a folder or a setting is said in one line.
. "$2/tests/cli/lib.sh"

cp -r "$source/tests/golden/bert_train" FOLDER
rm FOLDER/losses.json
chmod -R u+w FOLDER
further="--from FOLDER --train $story --steps 30 --set crop=24 --set batch=8 --set accumulate=2 --set lr=5e-3 --set save_every=5
         --set dropout=0.1 --set attention_dropout=0.1"
# shellcheck disable=SC2086
"$weft" train bert $further --out straight 2>log || failed "straight: $(tail -1 log)"
grep -q '^starting from the weights in FOLDER/model.safetensors$' log || failed "not told: $(cat log)"
grep -q 'not in the file' log && failed "a head was missed: $(cat log)"
first=$(sed -n 's/.*"step":1,"loss\/train":\([0-9.]*\).*/\1/p' straight/metrics.jsonl)
last=$(sed -n 's/.*"step":30,"loss\/train":\([0-9.]*\).*/\1/p' straight/metrics.jsonl)
awk "BEGIN { exit !($last < $first - 0.2) }" || failed "the loss does not fall: $first, $last"

# --- killed, before its first save too: the same command line again, with other numbers of threads
for delay in 05 07 15 25; do
    # shellcheck disable=SC2086
    "$weft" train bert $further --out killed --resume --threads $((1 + delay % 2)) 2>log &
    process=$!
    sleep "0.$delay"
    kill -9 $process 2>/dev/null || true
    wait $process 2>/dev/null || true
done
# shellcheck disable=SC2086
"$weft" train bert $further --out killed --resume --threads 1 2>log || failed "the end: $(tail -1 log)"
for f in model best state; do cmp straight/$f.safetensors killed/$f.safetensors || failed "$f differs"; done

# --- without MODEL it is the folder's; a folder without the head; the run as a start
"$weft" train --from "$source/tests/golden/bert" --train "$story" --steps 2 --out new 2>log || failed "without a model: $(tail -1 log)"
grep -q '5 parameters are not in the file and initialised: transform.dense.weight, .*, head.bias$' log || failed "not named: $(cat log)"
"$weft" train bert --from straight/checkpoints/step-00000030.safetensors --train "$story" --steps 2 --out again 2>log ||
    failed "from the run: $(tail -1 log)"
grep -q 'not in the file' log && failed "the run lacks something: $(cat log)"
cmp straight/tokenizer.json again/tokenizer.json || failed 'another tokenizer'

# --- the run in use
head -5 "$story" | tr -s '\n' >lines
"$weft" embed straight --truncate <lines >vectors 2>log || failed "embed: $(tail -1 log)"
[ "$(wc -l <vectors)" = "$(wc -l <lines)" ] || failed "$(wc -l <vectors) vectors"
[ "$(head -1 vectors | wc -w)" = 16 ] || failed "vectors of $(head -1 vectors | wc -w) numbers"
"$weft" embed FOLDER --truncate <lines 2>log | cmp -s - vectors && failed 'the vectors are still those of the folder'
"$weft" evaluate straight --data "$story" --json >json 2>log || failed "evaluate: $(tail -1 log)"
grep -q '^{"loss": [0-9.]*, "perplexity": [0-9.]*, "tokens": [0-9]*, "unknown": [0-9]*}$' json || failed "json: $(cat json)"
"$weft" inspect straight >out 2>&1 && grep -q '^masked_head: true$' out || failed "inspect: $(head -30 out)"
"$weft" attention straight --text 'the king' --out map.json 2>log || failed "attention: $(tail -1 log)"
"$weft" average straight --last 2 --out mean >log 2>&1 || failed "average: $(tail -1 log)"
"$weft" embed mean --truncate <lines >out 2>log || failed "embed of a mean: $(tail -1 log)"
expect 2 'bert was not trained by masked-language modelling: it has no such loss' "$weft" evaluate FOLDER --data "$story"

# --- a folder that says how sentence vectors are made, but not how long a sentence may be: so are those of the run and of a mean
cp -r FOLDER SENTENCES
mkdir SENTENCES/1_Pooling
echo '{"pooling_mode": "cls"}' >SENTENCES/1_Pooling/config.json
cat >SENTENCES/modules.json <<'JSON'
[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
 {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
 {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]
JSON
"$weft" train bert --from SENTENCES --train "$story" --steps 2 --out sentences 2>log || failed "from SENTENCES: $(tail -1 log)"
"$weft" average sentences --last 1 --out sentences_mean >log 2>&1 || failed "average of sentences: $(tail -1 log)"
for r in sentences sentences_mean; do
    "$weft" embed $r --truncate --pooling cls --normalize <lines >vectors 2>log || failed "embed of $r: $(tail -1 log)"
    "$weft" embed $r --truncate <lines 2>log | cmp -s - vectors || failed "$r: the vectors are not normalised ones of the first token"
done

# --- what is wrong with a setting
refused() { expect "$1" "$2" "$weft" train bert --from FOLDER --train "$story" --out no --steps 1 "$3" "$4"; }
refused 2 'crop (41) must be at most context (40)' --set crop=41
refused 1 'embeddings.position_embeddings.weight [40,16] instead of [64,16]' --set context=64
refused 1 'with another shape: bert.embeddings.word_embeddings.weight [200,16] instead of [200,24]' --set d_model=24
refused 1 'unexpected: bert.encoder.layer.1.attention.output.LayerNorm.bias' --set layers=1
refused 2 'd_model (16) must be a multiple of heads (3)' --set heads=3
refused 2 'bert has no output layer, which a training requires: set masked_head=true' --set masked_head=false
refused 2 '--set vocab_size says how a tokenizer is made, and --from FOLDER gives one' --set vocab_size=99
expect 2 'FOLDER holds a model of the family bert, and encoder-attention is of the family encoder: name a model of bert' \
    "$weft" train encoder-attention --from FOLDER --train "$story" --out no
expect 2 'FOLDER holds a model of the family bert, and nanogpt-char-small is of the family gpt: name a model of bert' \
    "$weft" train nanogpt-char-small --from FOLDER --train "$story" --out no

expect 2 'FOLDER/ holds the weights to start from, which the training would replace: choose another --out' \
    "$weft" train bert --from FOLDER/model.safetensors --train "$story" --out FOLDER/
cmp -s FOLDER/model.safetensors "$source/tests/golden/bert_train/model.safetensors" || failed 'the weights were replaced'

# --- what is wrong with a folder
broken() # CODE 'MESSAGE' FILE [SED-SCRIPT]: the file is changed, or gone
{
    rm -rf broken
    cp -r FOLDER broken
    if [ $# = 4 ]; then sed -i "$4" "broken/$3"; else rm "broken/$3"; fi
    expect "$1" "$2" "$weft" train bert --from broken --train "$story" --out no --steps 1
}
broken 1 'broken has no tokenizer: tokenizer.json and vocab.txt are both missing' vocab.txt
broken 1 'vocabulary size mismatch: broken/vocab.txt has 99 tokens, the model in broken 200' vocab.txt '100,$d'
broken 1 'the tokenizer has no mask token: it must have one named <mask> or [MASK]' vocab.txt 's/^\[MASK\]$/[MUSK]/'
broken 1 'broken has no config.json' config.json
broken 1 'broken/model.safetensors is missing' model.safetensors
broken 1 'models of the type "roberta" are not supported' config.json 's/"model_type": "bert"/"model_type": "roberta"/'
broken 1 'key "position_embedding_type": "relative_key" is not supported' config.json 's/"model_type"/"position_embedding_type": "relative_key", &/'
rm -rf broken && cp -r FOLDER broken
for length in 30000 100 4 0; do
    head -c $length FOLDER/model.safetensors >broken/model.safetensors
    expect 1 'broken/model.safetensors: ' "$weft" train bert --from broken --train "$story" --out no --steps 1
done
mv broken/model.safetensors broken/pytorch_model.bin
expect 1 'pytorch_model.bin is not supported: save the model as safetensors' "$weft" train bert --from broken --train "$story" --out no
"$weft" tokenizer train --type word --specials '<pad>,<unk>,<mask>' --vocab-size 60 --out other.json "$story" 2>/dev/null
expect 2 'vocabulary size mismatch: other.json has 60 tokens, the model in FOLDER 200: give the tokenizer that it was trained with' \
    "$weft" train bert --from FOLDER --tokenizer other.json --train "$story" --out no
[ ! -e no/state.safetensors ] || failed 'something was trained'
finish
