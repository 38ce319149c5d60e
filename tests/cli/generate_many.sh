# SPDX-License-Identifier: MIT
# Generation from many prompts, with a draft, stop texts, penalties and log-probabilities: the texts are those alone.
. "$2/tests/cli/lib.sh"

small='--set layers=2 --set d_model=32 --set heads=2 --set d_ff=64 --set context=24 --set batch=8 --set warmup=5'
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train "$story" --out run --steps 80 $small 2>log || failed "training: $(tail -2 log)"
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train "$story" --out little --tokenizer run/tokenizer.json --steps 60 $small --set layers=1 2>log ||
    failed "training a draft: $(tail -2 log)"
"$weft" tokenizer train --type byte-bpe --vocab-size 300 --out other.json "$story" 2>log || failed 'a tokenizer'
# shellcheck disable=SC2086
"$weft" train nanogpt-char-small --train "$story" --out stranger --tokenizer other.json --steps 1 $small 2>log || failed 'training'
gen() { "$weft" generate run "$@" 2>/dev/null; }

# --- a prompt a line, also an empty one and one without a line end: each text is the one alone, in order, whatever the batch
printf 'The \nA man\n\nShe said that it was\nThe ' >prompts
for i in 1 2 3 4 5; do
    echo "=== prompt $i ==="
    case $i in
    1 | 5) gen --prompt 'The ' --max-tokens 60 --seed 3 ;;
    2) gen --prompt 'A man' --max-tokens 60 --seed 3 ;;
    3) gen --prompt '' --max-tokens 60 --seed 3 ;;
    4) gen --prompt 'She said that it was' --max-tokens 60 --seed 3 ;;
    esac
done >alone
for how in '--batch 1' '--batch 2' '--batch 16' '--batch 3 --threads 1' '--no-cache'; do
    # shellcheck disable=SC2086
    gen --input prompts --max-tokens 60 --seed 3 $how >batch || failed "--input $how"
    cmp -s alone batch || failed "--input $how: $(diff alone batch)"
done
gen --input - --max-tokens 60 --seed 3 <prompts | cmp -s - alone || failed '--input -'
"$weft" generate run --input prompts --max-tokens 60 --seed 3 2>err >batch
grep -q '5 texts, 300 tokens in .*: [0-9.]* tokens/s' err || failed "no report: $(cat err)"
# a slow pipe is answered as lines come
(
    printf 'The \n'
    sleep 1
    printf 'A man\n'
) | gen --input - --max-tokens 5 --seed 3 >slow || failed 'a slow pipe'
[ "$(grep -c '^=== prompt' slow)" = 2 ] || failed "a slow pipe: $(cat slow)"
gen --input prompts --samples 2 --max-tokens 20 --seed 3 >both
[ "$(grep -c '^=== prompt [1-5], sample [12] of 2, seed [34] ===$' both)" = 10 ] || failed "samples of prompts: $(cat both)"
gen --input prompts --max-tokens 20 --seed 4 >seed4
grep -A1 'sample 2' both | grep -v '^=== \|^--' >samples && grep -v '^===' seed4 >singles
head -1 samples >one && head -1 singles | cmp -s - one || failed 'the second sample is not the text of the next seed'
gen --input prompts --max-tokens 20 --seed 3 --json >json
[ "$(wc -l <json)" = 5 ] && sed -n 4p json | grep -q '^{"line": 4, "prompt": "She said that it was", "text": "She said' || failed "--json: $(cat json)"
: >empty
gen --input empty >out && [ ! -s out ] || failed 'an empty file'
printf 'The \n\377\n' >bad
expect 1 'bad:2:1: not UTF-8' "$weft" generate run --input bad
"$weft" generate run --input bad --max-tokens 60 --seed 3 >out 2>err && failed 'a line that is not UTF-8 is no failure'
head -"$(wc -l <out)" alone | cmp -s - out && [ -s out ] || failed 'the texts before a wrong line are not printed'
expect 2 '--batch applies to --input and --samples' "$weft" generate run --batch 4
expect 2 '--draft-tokens applies to --draft' "$weft" generate run --draft-tokens 4
expect 2 'leave --prompt out' "$weft" generate run --input prompts --prompt x
expect 2 'leave --prompt-file out' "$weft" generate run --input prompts --prompt-file prompts

# a prompt that is longer than the context is cut at its beginning, and it is said
expect 0 'weft: warning: the prompt has 30 tokens, but the context 24: the first 6 are not seen' "$weft" generate run --max-tokens 1 --prompt 'the the the the the the the th'
printf 'The \nthe the the the the the the th\n' >long
"$weft" generate run --max-tokens 1 --input long >out 2>err || failed 'a long line'
grep -q 'the prompt in line 2 has 30 tokens' err || failed "a long line: $(cat err)"

# --- stop texts: the text ends before the first place after the prompt
text=$(gen --prompt 'The ' --max-tokens 60 --seed 3)
rest=${text#The }
stop=$(printf '%s' "$rest" | cut -c 9-11 | head -1)
cut=${rest%%"$stop"*}
[ "$(gen --prompt 'The ' --max-tokens 60 --seed 3 --stop 'no such text' --stop "$stop"; printf x)" = "The $cut
x" ] || failed "--stop '$stop': $(gen --prompt 'The ' --max-tokens 60 --seed 3 --stop "$stop")"
gen --prompt 'The ' --max-tokens 60 --seed 3 --stop "$stop" --json | grep -q '"end": "stop"}$' || failed 'the end by a stop text is not said'
[ "$(gen --prompt 'The ' --max-tokens 60 --seed 3 --stop 'no such text')" = "$text" ] || failed 'a stop text that never comes'
expect 2 'the text is empty' "$weft" generate run --stop ''

# --- penalties, min-p
greedy=$(gen --prompt 'The ' --max-tokens 60 --greedy)
[ "$(gen --prompt 'The ' --max-tokens 60 --greedy --repetition-penalty 1)" = "$greedy" ] || failed 'a penalty of 1 changes the text'
for penalty in '--repetition-penalty 3' '--presence-penalty 50' '--frequency-penalty 5'; do
    # shellcheck disable=SC2086
    other=$(gen --prompt 'The ' --max-tokens 60 --greedy $penalty)
    [ "$other" != "$greedy" ] || failed "$penalty changes nothing"
    # shellcheck disable=SC2086
    [ "$(gen --prompt 'The ' --max-tokens 60 --greedy --no-cache $penalty)" = "$other" ] || failed "$penalty: another text without a cache"
done
new=$(gen --prompt 'The ' --max-tokens 12 --greedy --presence-penalty 1000 | tail -c +5 | fold -w1 | sort | uniq -d | tr -d '\n')
[ -z "$new" ] || failed "a presence penalty of 1000, and these come twice: $new"
[ "$(gen --prompt 'The ' --max-tokens 60 --min-p 1 --seed 8)" = "$greedy" ] || failed 'min-p 1 is not greedy'

# --- log-probabilities
gen --prompt 'The ' --max-tokens 4 --greedy --json --logprobs 2 >json
grep -q '"log_probability": -[0-9.]*, "log_probabilities": \[{"id": [0-9]*, "token": ".", "log_probability": -[0-9.e-]*, "top": \[{"id": ' json || failed "--logprobs: $(cat json)"
[ "$(grep -o '"top"' json | wc -l)" = 4 ] || failed "--logprobs: $(cat json)"
gen --prompt 'The ' --max-tokens 4 --greedy --json --logprobs 0 | grep -q '"top"' && failed '--logprobs 0 lists other tokens'
expect 2 'give --json' "$weft" generate run --logprobs 3

# --- a draft changes no text, and a line says how often it was right
"$weft" generate run --prompt 'The ' --greedy --draft run 2>err >out
grep -q 'draft: \([0-9]*\) of \1 guesses were right; [0-9.]* tokens for each pass' err || failed "the model as its own draft: $(cat err)"
for how in '--greedy' '--seed 3' '--seed 4 --temperature 0.5 --top-k 5' '--seed 5 --repetition-penalty 1.2'; do
    # shellcheck disable=SC2086
    gen --prompt 'The ' --max-tokens 150 $how >plain
    for draft in little run; do
        # shellcheck disable=SC2086
        gen --prompt 'The ' --max-tokens 150 $how --draft $draft >drafted || failed "--draft $draft $how"
        cmp -s plain drafted || failed "--draft $draft $how: another text"
        # shellcheck disable=SC2086
        gen --prompt 'The ' --max-tokens 150 $how --draft $draft --draft-tokens 1 | cmp -s plain - || failed "--draft-tokens 1 $how: another text"
    done
done
expect 2 'has another tokenizer than run' "$weft" generate run --draft stranger
expect 2 'leave --input out' "$weft" generate run --draft little --input prompts
expect 2 'leave --samples out' "$weft" generate run --draft little --samples 2
expect 1 'nowhere' "$weft" generate run --draft nowhere
finish
