# SPDX-License-Identifier: MIT
# Generation, evaluation, inspection: what they print.
. "$2/tests/cli/lib.sh"

"$weft" train nanogpt-char-small --train "$story" --out run --steps 60 --set layers=2 --set d_model=32 --set heads=2 --set d_ff=64 --set context=16 \
    --set batch=8 --set warmup=5 2>log || failed "training: $(tail -2 log)"
grep -q 'thread' log || failed 'no line about threads at start-up'
# OpenMP's binding of the first thread leaves the others their processors; not where a program has clang's libomp beside the libgomp of BLIS,
# which binds before libomp looks
"$weft" bench seq2seq-tiny --seconds 0.01 --json >plain.out 2>log && OMP_PROC_BIND=close OMP_PLACES=threads "$weft" bench seq2seq-tiny --seconds 0.01 --json >bound.out 2>log ||
    failed "weft bench: $(cat log)"
ldd "$weft" | grep -q libomp || [ "$(sed 's/.*"threads":\([0-9]*\).*/\1/' plain.out)" = "$(sed 's/.*"threads":\([0-9]*\).*/\1/' bound.out)" ] || failed "fewer threads with OMP_PROC_BIND: $(cat bound.out)"
for f in config.json model.safetensors tokenizer.json best.safetensors state.safetensors metrics.jsonl; do
    [ -f run/$f ] || failed "no $f in the run"
done
gen() { "$weft" generate run "$@" 2>/dev/null; }
text=$(gen --prompt 'The ' --max-tokens 50 --seed 3)
case $text in 'The '*) ;; *) failed "the prompt is not printed first: $text" ;; esac
# the new tokens are characters; the story has some that take more than one byte
[ "$(printf '%s' "$text" | wc -m)" -ge 40 ] || failed "too short: $text"
[ "$(gen --prompt 'The ' --max-tokens 50 --seed 3)" = "$text" ] || failed 'the same seed gave another text'
other=$(gen --prompt 'The ' --max-tokens 50 --seed 4)
[ -n "$other" ] && [ "$other" != "$text" ] || failed 'another seed gave the same text'
greedy=$(gen --prompt 'The ' --max-tokens 50 --greedy)
[ -n "$greedy" ] || failed 'no greedy text'
[ "$(gen --prompt 'The ' --max-tokens 50 --top-k 1 --seed 8)" = "$greedy" ] || failed 'top-k 1 is not greedy'
[ "$(gen --prompt 'The ' --max-tokens 50 --greedy --threads 1)" = "$greedy" ] || failed 'one thread gave another text'
[ "$(gen --prompt 'The ' --max-tokens 0)" = 'The ' ] || failed 'no tokens: the prompt alone'
[ -n "$(gen --max-tokens 20)" ] || failed 'no prompt'
best=$(gen --prompt 'The ' --max-tokens 5 --weights best --greedy)
[ -n "$best" ] && [ "$(gen --prompt 'The ' --max-tokens 5 --weights run/best.safetensors --greedy)" = "$best" ] ||
    failed 'best by name and by file differ'

# --- a temperature of 0 is greedy, of the run's config.json too
[ "$(gen --prompt 'The ' --max-tokens 50 --temperature 0 --seed 8)" = "$greedy" ] || failed '--temperature 0 is not greedy'
cp -r run cold && sed 's/"temperature": [0-9.]*/"temperature": 0/' run/config.json >cold/config.json
cmp -s run/config.json cold/config.json && failed 'the temperature is not in config.json'
[ "$("$weft" generate cold --prompt 'The ' --max-tokens 50 --seed 8 2>/dev/null)" = "$greedy" ] || failed 'temperature 0 of config.json is not greedy'
[ "$("$weft" generate cold --prompt 'The ' --max-tokens 50 --temperature 1 --seed 3 2>/dev/null)" != "$greedy" ] || failed 'the option does not count over config.json'

# --- a prompt from standard input and from a file: all of it, without one line end at its end
gen --prompt 'The ' --max-tokens 50 --seed 3 >as-option
printf 'The ' | gen --prompt - --max-tokens 50 --seed 3 | cmp - as-option || failed 'a prompt through a pipe gives another text'
printf 'The \n' >prompt.txt
for how in '--prompt -' '--prompt-file prompt.txt' '--prompt-file -'; do
    # shellcheck disable=SC2086
    gen $how --max-tokens 50 --seed 3 <prompt.txt | cmp - as-option || failed "$how: another text"
done
printf '\357\273\277The \r\n' >marked.txt
gen --prompt-file marked.txt --max-tokens 50 --seed 3 | cmp - as-option || failed 'a byte order mark or a carriage return is in the prompt'
printf 'The \n\n' | gen --prompt - --max-tokens 0 >out
printf 'The \n\n' | cmp - out || failed 'more than one line end was taken away'
printf 'The\nThe \n' | gen --prompt - --max-tokens 0 >out
printf 'The\nThe \n' | cmp - out || failed 'a prompt of two lines'
printf 'The\n\377' >bad.txt
expect 1 'bad.txt:2:1: not UTF-8' "$weft" generate run --prompt-file bad.txt
expect 1 'standard input:2:1: not UTF-8' sh -c '"$1" generate run --prompt - <bad.txt' sh "$weft"
printf 'a\000b' >nul.txt
expect 1 'nul.txt:1:2' "$weft" generate run --prompt-file nul.txt
expect 1 'no-such.txt' "$weft" generate run --prompt-file no-such.txt
# what is not asked for is not ignored in silence; what holds nothing is nothing
expect 0 'standard input is not read: give --prompt -' sh -c 'printf The | (sleep 0.2; "$1" generate run --max-tokens 1)' sh "$weft"
expect 0 'standard input is not read: give --prompt -' sh -c '"$1" generate run --max-tokens 1 <prompt.txt' sh "$weft"
quiet() { grep -q 'standard input' err && failed "$1: $(cat err)"; }
"$weft" generate run --max-tokens 1 </dev/null >out 2>err || failed '/dev/null'
quiet /dev/null
: | "$weft" generate run --max-tokens 1 >out 2>err || failed 'an empty pipe'
quiet 'an empty pipe'
: >empty && "$weft" generate run --max-tokens 1 <empty >out 2>err || failed 'an empty file'
quiet 'an empty file'
"$weft" generate run --max-tokens 1 <&- >out 2>err || failed 'no standard input'
quiet 'no standard input'
"$weft" generate run --prompt 'The ' --max-tokens 1 <prompt.txt >out 2>err || failed 'a prompt, and input'
quiet 'a prompt, and input'
mkfifo never
sleep 60 >never & # keeps it open, writes nothing
writer=$!
timeout 20 "$weft" generate run --max-tokens 1 <never >out 2>err || failed "a pipe into which nothing is written: $?"
quiet 'a pipe into which nothing is written'
kill $writer

# --- samples: each is that of its seed; one is printed as ever
gen --prompt 'The ' --max-tokens 50 --seed 3 --samples 1 | cmp - as-option || failed '--samples 1 is not the text alone'
gen --prompt 'The ' --max-tokens 50 --seed 3 --samples 3 >three
for i in 1 2 3; do
    echo "=== sample $i of 3, seed $((i + 2)) ==="
    gen --prompt 'The ' --max-tokens 50 --seed $((i + 2))
done | cmp - three || failed "--samples 3: $(cat three)"
expect 2 'would give the same text each time' "$weft" generate run --samples 2 --greedy
expect 2 'would give the same text each time' "$weft" generate run --samples 2 --temperature 0
expect 2 'would give the same text each time' "$weft" generate cold --samples 2

# --- JSON: an object a line, from which the text comes back
printf 'The\nThe ' | gen --prompt - --max-tokens 0 --json >out
[ "$(cat out)" = '{"prompt": "The\nThe ", "text": "The\nThe ", "continuation": "", "seed": 1, "prompt_tokens": 8, "log_probability": 0, "tokens": 0, "end": "max_tokens"}' ] ||
    failed "--json: $(cat out)"
gen --prompt 'The ' --max-tokens 50 --seed 3 --samples 2 --json >out
[ "$(wc -l <out)" = 2 ] || failed "--json: $(cat out)"
grep -q '^{"prompt": "The ", "text": "The .*", "continuation": ".*", "seed": 4, "prompt_tokens": 4, "log_probability": -[0-9.]*, "tokens": 50, "end": "max_tokens"}$' out || failed "--json: $(cat out)"
# with the escapes undone: the text of the other form, and its continuation
printf '%b\n' "$(head -1 out | sed 's/.*"text": "\(.*\)", "continuation".*/\1/')" | cmp - as-option || failed "text: $(head -1 out)"
printf 'The %b\n' "$(head -1 out | sed 's/.*"continuation": "\(.*\)", "seed".*/\1/')" | cmp - as-option || failed "continuation: $(head -1 out)"

"$weft" tokenizer train --type char --specials '<unk>,<s>,</s>' --out ends.json "$story" 2>log || failed "a tokenizer: $(cat log)"
"$weft" train char-rms --train "$story" --tokenizer ends.json --out ends --steps 1 --set context=16 2>log || failed "training: $(tail -1 log)"
"$weft" generate ends --prompt 'The ' --max-tokens 100000 --top-k 0 --json >out 2>err || failed "generate: $(cat err)"
grep -q '"tokens": [0-9]*, "end": "end_token"}$' out && ! grep -q '"tokens": 100000,' out || failed "an end token: $(tail -c 200 out)"

# a tokenizer's file may say how to cut and pad the sentences of a batch: neither a text nor a prompt is one
"$weft" tokenizer train --type char --out plain.json "$story" 2>log || failed "a tokenizer: $(cat log)"
sed 's/"truncation": null/"truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}/' plain.json >cut.json
cmp -s plain.json cut.json && failed 'the tokenizer says nothing of truncation'
for t in plain cut; do
    "$weft" train char-rms --train "$story" --tokenizer $t.json --out $t --steps 2 2>log || failed "training with $t.json: $(tail -1 log)"
    "$weft" generate $t --prompt 'The ' --max-tokens 50 --greedy >$t.text 2>log || failed "generate: $(tail -1 log)"
done
cmp -s plain.text cut.text || failed "a prompt was cut: $(cat cut.text)"

"$weft" evaluate run --data "$story" --json 2>/dev/null >json || failed 'evaluate'
grep -q '^{"loss": [0-9.]*, "perplexity": [0-9.]*, "bits_per_character": [0-9.]*, "tokens": [0-9]*, "unknown": 0}$' json || failed "json: $(cat json)"
"$weft" evaluate run --data "$story" 2>/dev/null | grep -q '^loss [0-9.]*$' || failed 'evaluate, plain'
"$weft" inspect run >out 2>err || failed 'inspect'
grep -q 'blocks.0.attn.qkv.weight *F32 *\[96,32\]' out || failed "inspect: $(head -30 out)"
[ ! -s err ] || failed "inspect said: $(cat err)"
# for programs: one object with all of it, uncut and by its type
"$weft" inspect run --json >json.out 2>err || failed "inspect --json: $(cat err)"
[ "$(wc -l <json.out)" = 1 ] || failed "inspect --json: $(wc -l <json.out) lines"
for part in '{"model":"nanogpt-char-small","family":"gpt","settings":{"d_model":32,' '"dropout":0.0,' '"activation":"gelu"' '"tied":true' '"metadata":{' \
    '"tensors":[{"name":"' '"name":"blocks.0.attn.qkv.weight","dtype":"F32","shape":[96,32],"elements":3072,"bytes":12288}'; do
    grep -qF -- "$part" json.out || failed "inspect --json lacks $part: $(head -c 1500 json.out)"
done
total=$("$weft" inspect run | sed -n 's/^[0-9]* tensors, \([0-9]*\) elements, \([0-9]*\) bytes$/],"elements":\1,"bytes":\2}/p')
[ "$(tail -c $((${#total} + 1)) json.out)" = "$total" ] || failed "inspect --json: $(tail -c 100 json.out), not $total"
"$weft" inspect run | sed -n 's/^\([a-z_]*\): \([0-9.e-]*\)$/"\1":\2/p' >numbers
[ "$(wc -l <numbers)" -gt 20 ] || failed "inspect: $(wc -l <numbers) numbers"
while read -r number; do
    grep -qF -- "$number" json.out || failed "inspect --json lacks $number"
done <numbers
"$weft" inspect run/state.safetensors --json >out 2>err || failed "inspect --json of a state: $(cat err)"
grep -q '^{"metadata":{.*"tensors":\[' out && ! grep -q '\.\.\."* ([0-9]* bytes)' out || failed 'inspect --json of a state'
"$weft" models >out 2>err || failed 'models'
for m in char-rms nanogpt-char nanogpt-char-small; do grep -q "^$m " out || failed "models lacks $m"; done
# what a file says is no command to the terminal, and a long text is not printed whole
"$weft" inspect run/state.safetensors >out 2>err || failed "inspect a state: $(cat err)"
[ "$(awk 'length > 200' out | wc -l)" = 0 ] && grep -q '\.\.\."* ([0-9]* bytes)$' out || failed "long metadata: $(awk 'length > 200 {print substr($0, 1, 80)}' out)"
header='{"__metadata__":{"a\u001b[2J":"b\u0007","c\nd":"\u009b31m","fine":"größe"},"w\u001b]0;x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
{ printf "\\$(printf %o "$(printf %s "$header" | wc -c)")\\0\\0\\0\\0\\0\\0\\0"; printf '%s\0\0\0\0' "$header"; } >hostile.safetensors
"$weft" inspect hostile.safetensors >out 2>err || failed "inspect a hostile file: $(cat err)"
[ "$(tr -d '\n' <out | LC_ALL=C tr -d '\040-\176\303\266\237' | wc -c)" = 0 ] || failed "escape sequences: $(cat -v out)"
grep -qF '"a\x1b[2J": "b\x07"' out && grep -q '^fine: größe$' out && [ "$(wc -l <out)" = 5 ] || failed "names: $(cat -v out)"

version=$("$weft" --version) && [ -n "$version" ] || failed 'weft --version'
for c in '' models train generate evaluate inspect bench translate average bleu tokenizer; do
    # shellcheck disable=SC2086
    "$weft" $c --help >out 2>&1 || failed "weft $c --help"
    grep -q '^Usage: ' out || failed "weft $c --help has no usage line"
    # shellcheck disable=SC2086
    [ "$("$weft" $c --version)" = "$version" ] || failed "weft $c --version"
done
"$weft" bench char-rms --seconds 0.1 --steps 3 --json 2>/dev/null >out || failed 'bench'
for key in case parameters tokens ms ms_min ms_max gflops peak_rss_mib threads isa; do
    grep -q "\"$key\":" out || failed "bench lacks $key: $(cat out)"
done
LC_ALL=$comma "$weft" evaluate run --data "$story" --json 2>/dev/null | cmp -s - json || failed 'a locale changed what is printed'
finish
