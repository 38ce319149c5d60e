# SPDX-License-Identifier: MIT
# Folders of Hugging Face with a decoder: generated from, evaluated, inspected, trained further; what is wrong with one is said in one line.
. "$2/tests/cli/lib.sh"

golden=$source/tests/golden/decoders
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'abc def ghi jkl mno pqr stu vw bcd efg hij klm %s' ''; done >text
for name in gpt2 llama llama-linear mistral phi3 gemma2 gemma3 llama-bias qwen2-window qwen2 qwen3; do
    folder=$golden/$name
    "$weft" generate "$folder" --prompt 'abc d' --seed 3 --max-tokens 60 --json >cached 2>err || failed "$name: generate: $(cat err)"
    "$weft" generate "$folder" --prompt 'abc d' --seed 3 --max-tokens 60 --json --no-cache >uncached 2>err || failed "$name: $(cat err)"
    cmp cached uncached || failed "$name: the cache changes the text"
    grep -q '"prompt_tokens": 5' cached || failed "$name: another prompt: $(cat cached)"
    "$weft" evaluate "$folder" --data text --json >loss 2>err || failed "$name: evaluate: $(cat err)"
    grep -q '"tokens": 5[0-9][0-9]' loss || failed "$name: evaluated $(cat loss)"
    "$weft" inspect "$folder" >out 2>err || failed "$name: inspect: $(cat err)"
    grep -q '^d_model: [12][06]$' out || failed "$name: inspect says $(head -3 out)"
    grep -q '^\(lr\|steps\|tokenizer\|optimizer\|temperature\): ' out && failed "$name: inspect shows settings that the folder has not"
done
"$weft" inspect "$golden/qwen3" --json >json 2>err || failed "inspect --json: $(cat err)"
grep -q '"d_model":' json && ! grep -q '"lr":' json || failed "inspect --json: $(head -c 600 json)"
grep -q '^rope_base: 1000000.0$' out || failed "no rope_base: $(cat out)"

# --- perplexity in windows that overlap: as a Python program with transformers computes it for qwen3, with every token scored once
evaluate() { "$weft" evaluate "$golden/qwen3" --data text "$@" >loss 2>err || failed "evaluate $*: $(cat err)"; }
evaluate --json && cp loss whole
evaluate --json --context 32 && cp loss same
cmp whole same || failed 'the context of the model as --context changes the loss'
for row in 1:80.260:563 7:83.555:563 24:82.577:540; do
    stride=${row%%:*}
    evaluate --context 24 --stride "$stride" --json --threads 1 && cp loss one
    evaluate --context 24 --stride "$stride" --json --threads 2
    cmp one loss || failed "stride $stride: the threads change the loss"
    evaluate --context 24 --stride "$stride"
    printf '%s\n' "${row#*:}" | tr : '\n' >want
    awk '$1 == "perplexity" { printf "%.3f\n", $2 } $1 == "tokens" { print $2 }' loss | cmp - want || failed "stride $stride: $(cat loss)"
done
expect 2 '--context 33 is more than the context of' "$weft" evaluate "$golden/qwen3" --data text --context 33
expect 2 '--stride 25 is more than the 24 tokens of a window' "$weft" evaluate "$golden/qwen3" --data text --context 24 --stride 25
expect 2 '--stride' "$weft" evaluate "$golden/qwen3" --data text --stride 0

# --- the end of a text: eos_token_id of generation_config.json, one id or several, else of config.json
cp -r "$golden/llama" FOLDER
chmod -R u+w FOLDER
"$weft" generate FOLDER --prompt abc --greedy --json --max-tokens 200 >own 2>err || failed "generate: $(cat err)"
grep -q '"end": "end_token"' own || failed "no end: $(cat own)"
first=$("$weft" generate FOLDER --prompt abc --greedy --max-tokens 1 2>/dev/null | cut -c 4)
id=$(awk -v c="$first" 'BEGIN { print index("abcdefghijklmnopqrstuvw ", c) + 1 }')
echo "{\"eos_token_id\": [0, $id], \"temperature\": 0.5, \"top_k\": 3}" >FOLDER/generation_config.json
"$weft" generate FOLDER --prompt abc --greedy --json >out 2>err || failed "generate: $(cat err)"
grep -q '"tokens": 0, "end": "end_token"' out || failed "token $id ('$first') does not end the text: $(cat out)"
# --- sampling: as transformers, greedy without do_sample; an option asks for sampling; the file's settings are the defaults
say() { "$weft" generate FOLDER --prompt 'the king' --max-tokens 30 "$@" 2>/dev/null; }
echo '{"temperature": 0.9}' >FOLDER/generation_config.json
[ "$(say)" = "$(say --greedy)" ] || failed 'not greedy without do_sample'
[ "$(say --temperature 5 --seed 2)" != "$(say)" ] || failed '--temperature does not ask for sampling'
[ "$(say --top-p 1 --seed 2)" = "$(say --temperature 0.9 --top-k 50 --seed 2)" ] || failed "the file's temperature, and transformers' top_k, are not the defaults"
echo '{"do_sample": true, "temperature": 3.0, "top_k": 20, "top_p": 0.9, "min_p": 0.02, "repetition_penalty": 1.3}' >FOLDER/generation_config.json
[ "$(say --seed 2)" = "$(say --temperature 3 --top-k 20 --top-p 0.9 --min-p 0.02 --repetition-penalty 1.3 --seed 2)" ] || failed "the file's settings are not the defaults"
[ "$(say --seed 2)" != "$(say --greedy)" ] || failed 'do_sample is not obeyed'
[ "$(say --greedy)" != "$(say --greedy --repetition-penalty 1)" ] || failed "the file's penalty is not the default"
rm -rf converted trained
"$weft" convert FOLDER converted 2>err >/dev/null || failed "convert: $(cat err)"
"$weft" train --from FOLDER --train text --out trained --steps 1 --set lr=1e-12 --set warmup=0 2>err || failed "train --from: $(tail -1 err)"
for run in converted trained; do
    [ "$("$weft" generate $run --prompt 'the king' --max-tokens 30 --seed 2 2>/dev/null)" = "$(say --seed 2)" ] || failed "$run has other settings than its folder"
    "$weft" inspect $run | grep -q '^repetition_penalty: 1.3$' || failed "$run has not the penalty of its folder"
done
echo '{"num_beams": 4}' >FOLDER/generation_config.json
rm -r converted && "$weft" convert FOLDER converted 2>err >/dev/null || failed "convert: $(cat err)"
expect 1 'converted/generation_config.json: key "num_beams": this setting of generation is not supported' "$weft" generate converted
expect 1 'generation_config.json: key "num_beams": this setting of generation is not supported' "$weft" generate FOLDER
"$weft" evaluate FOLDER --data text >out 2>err || failed "num_beams is no matter for evaluate: $(cat err)"
echo '{"max_new_tokens": 7}' >FOLDER/generation_config.json
"$weft" generate FOLDER --prompt abc --temperature 1 --json 2>/dev/null | grep -q '"tokens": [0-7], ' || failed 'max_new_tokens is not the default'
rm FOLDER/generation_config.json
[ "$(say)" = "$(say --greedy)" ] || failed 'not greedy without generation_config.json'
echo '{"num_beams": 1, "min_length": 0, "guidance_scale": null}' >FOLDER/generation_config.json
say >out || failed 'settings that change nothing are refused'
echo "{\"eos_token_id\": 99}" >FOLDER/generation_config.json
expect 1 'generation_config.json: key "eos_token_id": an id is not a number from 0 to 25' "$weft" generate FOLDER
rm FOLDER/generation_config.json

# --- a template that begins a text with a special token, as those of Llama 3 and Gemma do: the prompt gets it; one with tokens behind is not for prompts
cp -r "$golden/llama" BOS
chmod -R u+w BOS
first=$(sed -n 's/.*"content": "\(<[^"]*>\)".*/\1/p' BOS/tokenizer.json | head -1)
grep -q '"post_processor": null' BOS/tokenizer.json || failed 'the golden tokenizer has a post_processor'
with() { sed "s|\"post_processor\": null|\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [$1], \"pair\": [], \"special_tokens\": {\"$first\": {\"id\": \"$first\", \"ids\": [0], \"tokens\": [\"$first\"]}}}|" "$golden/llama/tokenizer.json" >BOS/tokenizer.json; }
token="{\"SpecialToken\": {\"id\": \"$first\", \"type_id\": 0}}"
text='{"Sequence": {"id": "A", "type_id": 0}}'
with "$token, $text"
"$weft" generate BOS --prompt abc --greedy --json 2>err >out || failed "a template: $(cat err)"
grep -q '"prompt_tokens": 4' out || failed "the prompt does not begin with $first: $(cat out)"
grep -q '"text": "abc' out || failed "the special token is printed: $(cat out)"
# evaluation begins each window with it where the model needs that, or where one asks for it: then the first token of each window is scored
tokens() { "$weft" evaluate "$@" 2>err | sed -n 's/^tokens //p;s/^questions //p'; }
all=$("$weft" tokenizer encode BOS/tokenizer.json <text 2>err | wc -w)
[ "$(tokens BOS --data text --context 32)" = $((all - 1)) ] || failed "llama: $(tokens BOS --data text) of $all tokens: $(cat err)"
[ "$(tokens BOS --data text --context 32 --bos)" = "$all" ] || failed "--bos: $(tokens BOS --data text --bos) of $all tokens: $(cat err)"
[ "$(tokens BOS --data text --context 24 --stride 7 --bos)" = "$all" ] || failed "--bos with a stride: $(cat err)"
expect 2 '--stride 24 is more than the 23 tokens of a window less those of --bos' "$weft" evaluate BOS --data text --context 24 --stride 24 --bos
expect 2 'qwen3 has no template that puts tokens before a text only' "$weft" evaluate "$golden/qwen3" --data text --bos
echo '{"context": "abc", "choices": ["def", "ghi"], "answer": 0}' >questions
"$weft" evaluate BOS --choices questions --details bare >out 2>err || failed "choices: $(cat err)"
"$weft" evaluate BOS --choices questions --details after --bos >out 2>err || failed "choices: $(cat err)"
cmp -s bare after && failed '--bos changes no log-likelihood of a choice'
cp -r "$golden/gemma2" GEMMA
chmod -R u+w GEMMA
cp BOS/tokenizer.json GEMMA/
[ "$(tokens GEMMA --data text)" = "$all" ] || failed "gemma: $(tokens GEMMA --data text) of $all tokens: $(cat err)"
"$weft" evaluate GEMMA --data text --json >one 2>err
"$weft" evaluate GEMMA --data text --json --bos >other 2>err
cmp one other || failed 'gemma: --bos changes the loss'
with "$token, $text, $token"
"$weft" generate BOS --prompt abc --greedy --json 2>err | grep -q '"prompt_tokens": 3' || failed 'a template with a token behind the text is used for a prompt'

# --- trained further; interrupted and resumed, with another number of threads
further="--from FOLDER --train text --set batch=4 --set lr=1e-2 --set valid_tokens=0 --set save_every=3"
# shellcheck disable=SC2086
"$weft" train $further --steps 8 --out straight 2>log || failed "train: $(tail -1 log)"
# shellcheck disable=SC2086
"$weft" train $further --steps 5 --out halves --threads 1 2>log || failed "train: $(tail -1 log)"
"$weft" train halves --resume --steps 8 --threads 2 2>log || failed "resume: $(tail -1 log)"
cmp straight/model.safetensors halves/model.safetensors || failed 'a resume gives other weights'
"$weft" generate straight --prompt abc --max-tokens 5 >out 2>err || failed "the run: $(cat err)"
# the other families; killed at some moment, and resumed
for name in gemma2 phi3; do
    rm -rf straight halves
    further="--from $golden/$name --train text --set batch=4 --set lr=1e-2 --set valid_tokens=0 --set save_every=3"
    # shellcheck disable=SC2086
    "$weft" train $further --steps 100000 --out halves --threads 1 2>log &
    killed=$!
    while [ ! -e halves/state.safetensors ] && kill -0 $killed 2>err; do sleep 0.01; done # old checkpoints are removed
    kill -9 $killed 2>err || failed "$name: the training ended before it was killed: $(tail -1 log)"
    wait $killed 2>err || true
    last=$(ls halves/checkpoints 2>err | sed -n '$s/step-0*\([0-9]*\).*/\1/p')
    "$weft" train halves --resume --steps $((last + 7)) --threads 2 2>log || failed "$name: resume: $(tail -1 log)"
    # shellcheck disable=SC2086
    "$weft" train $further --steps $((last + 7)) --out straight 2>log || failed "$name: train: $(tail -1 log)"
    cmp straight/model.safetensors halves/model.safetensors || failed "$name: a resume gives other weights"
done

# --- what is wrong with a folder
sed 's/.*"rope_theta".*//' "$golden/llama/config.json" >FOLDER/config.json
expect 1 'the base of rotary positions is missing' "$weft" generate FOLDER
sed 's/"llama3"/"yarn"/' "$golden/llama/config.json" >FOLDER/config.json
expect 1 'key "rope_scaling": "yarn" is not supported: only the rope types default, linear and llama3' "$weft" generate FOLDER
sed 's/"model_type": "llama"/"model_type": "mamba"/' "$golden/llama/config.json" >FOLDER/config.json
expect 1 'models of the type "mamba" are not supported; these types are: gpt2, llama, mistral, qwen2, qwen3, phi3, gemma2, gemma3_text, bert' "$weft" generate FOLDER
cp "$golden/llama/config.json" FOLDER/config.json
head -c 9000 "$golden/llama/model.safetensors" >FOLDER/model.safetensors
expect 1 'is it truncated?' "$weft" generate FOLDER
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n' >FOLDER/model.safetensors
expect 1 'FOLDER/model.safetensors' "$weft" generate FOLDER
rm FOLDER/model.safetensors
expect 1 'FOLDER/model.safetensors is missing' "$weft" generate FOLDER

finish
