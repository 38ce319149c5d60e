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
