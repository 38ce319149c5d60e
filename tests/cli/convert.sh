# SPDX-License-Identifier: MIT
# weft convert: a run becomes a folder of Hugging Face and back, and generates the same text; other dtypes and shards; what cannot be
# converted is said in one line, and neither that, nor a full disk, nor an interrupt leaves anything.
. "$2/tests/cli/lib.sh"

golden=$source/tests/golden/decoders
small='--steps 3 --set layers=2 --set d_model=32 --set heads=4 --set d_ff=64 --set context=32 --set batch=2 --set accumulate=1 --set valid_tokens=0'

# convert ARGUMENT...: must succeed; its messages are in log
convert() { "$weft" convert "$@" >out 2>log || failed "convert $*: $(tail -1 log)"; }
# texts FOLDER FILE
texts() { "$weft" generate "$1" --prompt 'the ' --seed 3 --max-tokens 40 >"$2" 2>err || failed "generate $1: $(tail -1 err)"; }
# nothing NAME: neither the folder nor anything beside it is there
nothing() { [ -z "$(find . -maxdepth 1 -name "*$1*")" ] || failed "left: $(find . -maxdepth 1 -name "*$1*")"; }

# --- runs of one's own, without biases, with biases and untied, and a llama: the text of the folder, and of the run that is made of it
# shellcheck disable=SC2086
{
    "$weft" train nanogpt-char-small --train "$story" --out plain $small 2>log || failed "train: $(tail -1 log)"
    "$weft" train gpt2 --train "$story" --out biased $small --set tied=false --set vocab_size=300 2>log || failed "train: $(tail -1 log)"
    "$weft" train smollm2-135m --train "$story" --out rotary $small --set kv_heads=2 --set vocab_size=300 2>log || failed "train: $(tail -1 log)"
}
for run in plain biased rotary; do
    convert $run $run.folder
    grep -q "^$run.folder: a folder of Hugging Face, [0-9]* tensors, [0-9,]* bytes in F32, in 1 file\$" log || failed "not told: $(cat log)"
    convert $run.folder $run.again
    texts $run text
    for folder in folder again; do
        texts $run.$folder other
        cmp text other || failed "$run.$folder writes another text"
    done
    convert $run.again $run.twice
    cmp $run.folder/model.safetensors $run.twice/model.safetensors || failed "$run: other tensors after two conversions"
    cmp $run.folder/config.json $run.twice/config.json || failed "$run: another config.json after two conversions"
    "$weft" train $run.again --resume >out 2>&1 && failed 'a converted run was resumed'
    "$weft" train --from $run.folder --train "$story" --out further --steps 1 --set batch=2 --set valid_tokens=0 2>log || failed "further: $(tail -1 log)"
    rm -rf further
done
grep -q '"model_type": "gpt2"' plain.folder/config.json && grep -q '"model_type": "llama"' rotary.folder/config.json || failed 'another model_type'
grep -q '"eos_token_id": 0' rotary.folder/generation_config.json || failed "no end: $(cat rotary.folder/generation_config.json)"
grep -q '"temperature": 0.8' plain.folder/generation_config.json || failed "no settings: $(cat plain.folder/generation_config.json)"
grep -q '"post_processor": null' rotary.folder/tokenizer.json || failed 'prompts end with the end token'

# --- folders of others: there and back, the same bytes of each tensor, whose names are sorted in both
for name in gpt2 llama llama-linear mistral qwen2 qwen3 phi3 gemma2 gemma3 llama-bias qwen2-window; do
    convert "$golden/$name" run
    convert run folder
    "$weft" inspect --json run/model.safetensors >out 2>err || failed "inspect: $(cat err)"
    cmp run/tokenizer.json "$golden/$name/tokenizer.json" || failed "$name: another tokenizer"
    texts "$golden/$name" text
    for folder in run folder; do
        texts $folder other
        cmp text other || failed "$name: the $folder writes another text"
    done
    # the folder as it is, in shards, and those in one file: the same file as the folder directly
    convert "$golden/$name" direct --to hf
    convert folder shards --to hf --shard-size 5KB
    [ "$(ls shards/model-0000?-of-0000?.safetensors | wc -l)" -gt 2 ] || failed "$name: few shards: $(ls shards)"
    convert shards one --to hf --shard-size 1GiB
    texts shards other
    cmp text other || failed "$name: shards write another text"
    "$weft" inspect shards >out 2>err || failed "inspect of shards: $(cat err)"
    [ ! -e one/model.safetensors.index.json ] && [ -e shards/model.safetensors.index.json ] || failed "$name: an index"
    rm -rf run folder direct shards one
done

# --- what belongs to a folder stays with a run that was trained on it, with its average, and in the folder made of them
cp -r "$golden/llama" FOLDER
chmod -R u+w FOLDER
echo '{"eos_token_id": [1, 5], "do_sample": true, "temperature": 0.5, "top_k": 3}' >FOLDER/generation_config.json
echo '{{ messages }}' >FOLDER/chat_template.jinja
echo '{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>"}' >FOLDER/tokenizer_config.json
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'abc def ghi jkl mno pqr stu vw bcd efg hij klm %s' ''; done >letters
"$weft" train --from FOLDER --train letters --out tuned --steps 2 --set batch=2 --set valid_tokens=0 --set top_k=7 2>log || failed "train: $(tail -1 log)"
"$weft" average tuned --last 1 --out mean 2>log || failed "average: $(tail -1 log)"
convert FOLDER converted
convert tuned tuned.folder
for folder in tuned mean converted tuned.folder; do
    for file in chat_template.jinja tokenizer_config.json; do
        cmp "FOLDER/$file" "$folder/$file" || failed "$folder: $file is not the folder's"
    done
    tr -d ' \n' <$folder/generation_config.json | grep -q '"eos_token_id":\[1,5\]' || failed "$folder has other end tokens"
done
cmp FOLDER/generation_config.json converted/generation_config.json || failed 'generation_config.json was changed'
"$weft" inspect tuned | grep -q '^temperature: 0.5$' || failed "the folder's temperature is lost: $("$weft" inspect tuned | grep temperature)"
grep -q '"top_k": 7' tuned.folder/generation_config.json || failed "--set top_k is lost: $(cat tuned.folder/generation_config.json)"
# the end tokens end a text of the run: of all tokens but these, the first greedy one becomes one
first=$("$weft" generate tuned --prompt abc --greedy --max-tokens 1 2>/dev/null | cut -c 4)
id=$(awk -v c="$first" 'BEGIN { print index("abcdefghijklmnopqrstuvw ", c) + 1 }')
echo "{\"eos_token_id\": [0, $id]}" >FOLDER/generation_config.json
"$weft" train --from FOLDER --train letters --out tuned2 --steps 2 --set batch=2 --set valid_tokens=0 2>log || failed "train: $(tail -1 log)"
"$weft" generate tuned2 --prompt abc --greedy --json >out 2>err || failed "generate: $(cat err)"
grep -q '"tokens": 0, "end": "end_token"' out || failed "the run does not end at the folder's token: $(cat out)"
# end tokens that only config.json has
rm FOLDER/generation_config.json
convert FOLDER ended
tr -d ' \n' <ended/generation_config.json | grep -qx '{"eos_token_id":1}' || failed "the end token is lost: $(cat ended/generation_config.json)"

# --- BERT: from vocab.txt, with the layer for masked tokens, trained further; with settings of sentence vectors
cp -r "$source/tests/golden/bert_train" BERT
head -5 "$story" | tr -s '\n' >lines
"$weft" train bert --from BERT --train "$story" --out bert --steps 2 --set crop=8 --set batch=2 2>log || failed "train: $(tail -1 log)"
convert bert bert.folder
grep -q BertForMaskedLM bert.folder/config.json || failed "another architecture: $(cat bert.folder/config.json)"
convert BERT bert.run
"$weft" inspect bert.run | grep -q '^masked_head: true$' || failed 'the layer for masked tokens is lost'
convert "$source/tests/golden/bert" sentences
grep -q '^sentences: without 2 tensors of .* that Weft does not use$' log || failed "the pooler is not mentioned: $(cat log)"
convert sentences sentences.folder
for pair in bert:bert.folder BERT:bert.run "$source/tests/golden/bert:sentences" sentences:sentences.folder; do
    "$weft" embed "${pair%:*}" --truncate <lines >vectors 2>err || failed "embed: $(tail -1 err)"
    "$weft" embed "${pair#*:}" --truncate <lines >other 2>err || failed "embed: $(tail -1 err)"
    cmp vectors other || failed "$pair: other vectors"
done

# --- dtypes
convert rotary bf16 --dtype bf16 --to hf
grep -q '"dtype": "bfloat16"' bf16/config.json || failed "another dtype: $(cat bf16/config.json)"
"$weft" generate rotary --dtype bf16 --prompt 'the ' --seed 3 --max-tokens 40 >text 2>err || failed "generate: $(tail -1 err)"
convert rotary.folder bf16.direct --dtype bf16 --to hf
cmp bf16/model.safetensors bf16.direct/model.safetensors || failed 'bf16 of a run and of a folder differ'
grep -q '"dtype": "bfloat16"' bf16.direct/config.json && grep -q '"torch_dtype": "bfloat16"' bf16.direct/config.json || failed 'dtype of a folder'
convert bf16 bf16.run
grep -q ' bytes in BF16' log || failed "bf16 was not kept: $(cat log)"
convert rotary f16.run --to weft --dtype f16
texts f16.run text
convert bf16.run f32.run --to weft --dtype f32
texts bf16.run text
texts f32.run other
cmp text other || failed 'floats of bf16 write another text'

# --- refused, in one line, and nothing is left
expect 1 'plain.folder exists and is not empty: choose another folder' "$weft" convert plain plain.folder
: >file
expect 1 'file exists: choose another folder' "$weft" convert plain file
expect 1 'none is not a run folder' "$weft" convert none refused
expect 2 'weft convert takes two folders: weft convert FROM TO' "$weft" convert plain
expect 2 "--shard-size: '5 apples' is not a size" "$weft" convert plain refused --shard-size '5 apples'
expect 2 "--shard-size: '0' is not a size" "$weft" convert plain refused --shard-size 0
expect 2 '--dtype' "$weft" convert plain refused --dtype f64
expect 1 'best.safetensors is missing' "$weft" convert rotary.folder refused --weights best
# shellcheck disable=SC2086
{
    "$weft" train char-rms --train "$story" --out rms --steps 1 --set d_model=32 --set d_ff=32 --set layers=1 --set valid_tokens=0 2>log || failed "train: $(tail -1 log)"
    "$weft" train nanogpt-char-small --train "$story" --out grouped $small --set kv_heads=2 2>log || failed "train: $(tail -1 log)"
    "$weft" train smollm2-135m --train "$story" --out mixed $small --set kv_heads=2 --set vocab_size=300 --set window=8 --set ffn_bias=true 2>log || failed "train: $(tail -1 log)"
    "$weft" train smollm2-135m --train "$story" --out ntk $small --set kv_heads=1 --set vocab_size=300 --set rope_scaling=ntk --set rope_factor=2 2>log || failed "train: $(tail -1 log)"
}
expect 2 "char-rms is of the family rms, which has no counterpart in Hugging Face's transformers" "$weft" convert rms refused
expect 2 'kv_heads=2: GPT-2 of transformers has as many heads of keys as of queries' "$weft" convert grouped refused
expect 2 'no architecture of transformers has these settings together: window=8 window_from=0 ffn_bias=true' "$weft" convert mixed refused
expect 2 'rope_scaling=ntk has no counterpart in transformers' "$weft" convert ntk refused
convert rms rms.bf16 --to weft --dtype bf16
head -c 9000 "$golden/llama/model.safetensors" >FOLDER/model.safetensors
expect 1 'is it truncated?' "$weft" convert FOLDER refused
nothing refused
convert plain deep/er/folder/
mkdir empty
convert plain empty

# --- a full disk: at each size of a file that does not suffice nothing is left
blocks=1
while [ $blocks -lt 200 ]; do
    status=0
    (ulimit -f $blocks && exec "$weft" convert plain full --shard-size 30KB >out 2>err) || status=$?
    [ $status = 0 ] && break
    [ $status = 1 ] || failed "exit code $status on a full disk: $(cat err)"
    [ "$(wc -l <err)" = 1 ] && grep -q 'full/\|\.full\.weft-part/' err || failed "a full disk: $(cat err)"
    nothing full
    blocks=$((blocks + 3))
done
[ $blocks -gt 20 ] && [ $blocks -lt 200 ] || failed "$blocks blocks"
texts plain text
texts full other
cmp text other || failed 'another text'

# --- what a killed conversion left is removed by the next one to the same folder
mkdir -p .killed.weft-part/inner
: >.killed.weft-part/model.safetensors
: >.killed.weft-part/inner/config.json
: >.killed.weft-lock
convert plain killed
[ ! -e .killed.weft-part ] && [ ! -e .killed.weft-lock ] || failed 'a killed conversion left something'
[ ! -e killed/inner ] || failed 'files of a killed conversion are in the folder'
finish
