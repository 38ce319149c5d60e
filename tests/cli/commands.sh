# SPDX-License-Identifier: MIT
# README's section "The command" as a stranger would run it, and each command with each kind of tokenizer. Small data, few steps.
. "$2/tests/cli/lib.sh"

# --- small texts
head -c 4000 "$story" >text.txt
{ printf 'Ein Satz über größere Bäche.\nNoch einer, kürzer – „ja“.\n'; tr -d '.,' <text.txt | fold -s -w 60; } | grep '[a-z]' | head -40 >source.txt
sed 's/the/der/g; s/and/und/g; s/a /ä /g' source.txt >target.txt
for part in train val test; do
    cp source.txt $part.en
    cp target.txt $part.de
done
cp text.txt text
head -5 source.txt | cut -d ' ' -f 1-5 >lines
lm='--set layers=1 --set d_model=16 --set heads=2 --set d_ff=32 --set context=16 --set batch=2 --set warmup=0'
pairs='--set encoder_layers=1 --set decoder_layers=1 --set d_model=16 --set heads=2 --set d_ff=32 --set batch_tokens=300 --set max_length=128 --set positions=0 --set warmup=0'

# said COMMAND...: runs it, and keeps what it prints in `out` and says in `err`
said()
{
    "$weft" "$@" >out 2>err </dev/null || failed "weft $*: $(tail -2 err)"
}

# --- no line of a help is wider than a terminal
for c in '' models train generate chat translate embed evaluate average convert bleu tokenizer 'tokenizer train' 'tokenizer encode' 'tokenizer decode' \
    'tokenizer info' 'tokenizer survey' attention plot inspect bench; do
    # shellcheck disable=SC2086
    "$weft" $c --help >out 2>err || failed "weft $c --help: $(cat err)"
    awk 'length > 80 { print; bad = 1 } END { exit bad }' out || failed "weft $c --help has lines of more than 80 columns"
done

# --- README's lines
sed -n '/^## The command/,/^## A program/p' "$source/README.md" | sed -n 's/^    weft /weft /p' | sed 's/   *[^ ].*$//' >readme
[ "$(wc -l <readme)" -ge 18 ] || failed "README has few commands: $(cat readme)"
cp -r "$source/tests/golden/bert_train" FOLDER
cp -r "$source/tests/golden/chat/model" CHAT
while read -r line; do
    more=
    case $line in
    *'train RUN --resume'*) more='--steps 14' ;;
    *'train '*--out\ RUN*)
        steps=12
        case $line in *--resume*) steps=14 ;; *RUN2*) rm -rf RUN2 ;; *) rm -rf RUN ;; esac
        more="--steps $steps --set save_every=1 --set valid_every=20"
        case $line in *multi30k*) more="$more --set keep=10 $pairs --set shared=false" ;; *FOLDER*) more="$more --set crop=8 --set batch=2" ;; *) more="$more $lm" ;; esac
        ;;
    'weft bench gpt2'*) more='--set d_model=48 --set d_ff=64 --set heads=2 --set context=64 --seconds 0.1 --steps 2' ;;
    'weft bench'*) more='char-rms --seconds 0.1 --steps 2' ;;
    'weft generate'*) more='--max-tokens 10' ;;
    esac
    command=$(echo "$line" | sed "s/FILE\.\.\./train.en train.de/; s/chat FOLDER/chat CHAT/; s/FILE\.json/config.json/; s/FILE/text.txt/g; s/TEXT/'The '/; s/RUN\.\.\./RUN/; s/\[.*\]//; s/ < / $more < /; t; s/\$/ $more/")
    case $command in *"$more"*) ;; *) command="$command $more" ;; esac
    echo "$command" | sed "s|^weft|'$weft'|" >script
    sh ./script >out 2>err </dev/null || failed "README: $line: $command: $(tail -2 err)"
done <readme
[ -s test.hypotheses ] || failed 'README: no translations'
[ -s maps.html ] || failed 'README: no maps'

# --- each kind of tokenizer: trained here, and given
"$weft" tokenizer train --type bpe --vocab-size 300 --specials '<s>,<pad>,</s>,<unk>,<mask>' --out given.json source.txt target.txt 2>err || failed "tokenizer train: $(cat err)"
wordpiece=$source/tests/golden/tokenizers/wordpiece.json
# of KIND: the arguments of train that ask for it
of()
{
    case $1 in
    char) echo '--set tokenizer=char' ;;
    given) echo '--tokenizer given.json' ;;
    wordpiece) echo "--tokenizer $wordpiece" ;;
    *) echo "--set tokenizer=$1 --set vocab_size=400" ;;
    esac
}
# counted KIND FILE: evaluate has counted the unknown tokens of the text that it was trained on: where the tokenizer was trained on it too, none
counted()
{
    case $1 in
    given | wordpiece)
        grep -q '"unknown": [1-9][0-9]*}$' out || failed "$2: unknown tokens are not counted: $(cat out)"
        grep -q 'warning: .*unknown tokens: [1-9][0-9,]* of [0-9,]* ([<0-9][0-9.]* %)$' err || failed "$2: no warning of unknown tokens: $(cat err)"
        ;;
    *)
        grep -q '"unknown": 0}$' out || failed "$2: unknown tokens in its own text: $(cat out)"
        grep -q unknown err && failed "$2: a warning of no unknown tokens: $(cat err)"
        ;;
    esac
}
text() { iconv -f UTF-8 -t UTF-8 out >/dev/null 2>&1 || failed "$1: what it writes is not UTF-8"; }

for kind in char word bpe byte-bpe given wordpiece; do
    # a language model: train, resume, generate, evaluate, inspect
    run=language-$kind
    # shellcheck disable=SC2046,SC2086
    said train nanogpt-char-small --train text.txt --out $run --steps 3 $lm $(of $kind)
    # shellcheck disable=SC2046,SC2086
    said train nanogpt-char-small --train text.txt --out $run --steps 4 $lm $(of $kind) --resume
    said generate $run --max-tokens 30
    text $run
    said generate $run --prompt 'The lamp' --max-tokens 30
    text $run
    head -c 20 out | tr A-Z a-z | grep -q '^the lamp' || failed "$run: the prompt is not there: $(head -1 out)"
    said evaluate $run --data text.txt --json
    counted $kind $run
    said inspect $run

    # a translation model
    run=pairs-$kind
    # shellcheck disable=SC2046,SC2086
    said train seq2seq-tiny --train train.en,train.de --valid val.en,val.de --out $run --steps 3 $pairs $(of $kind)
    # shellcheck disable=SC2046,SC2086
    said train seq2seq-tiny --train train.en,train.de --valid val.en,val.de --out $run --steps 4 $pairs $(of $kind) --resume
    "$weft" translate $run <test.en >out 2>err || failed "$run: translate: $(tail -2 err)"
    text $run
    cp out hypotheses
    "$weft" bleu test.de <hypotheses >out 2>err || failed "$run: bleu: $(tail -2 err)"
    said evaluate $run --data test.en,test.de --no-bleu --json
    if [ $kind = given ]; then counted own $run; else counted $kind $run; fi
    said inspect $run

    # an encoder
    run=encoder-$kind
    # shellcheck disable=SC2046,SC2086
    said train encoder-attention --train text.txt --out $run --steps 3 $lm $(of $kind)
    # shellcheck disable=SC2046,SC2086
    said train encoder-attention --train text.txt --out $run --steps 4 $lm $(of $kind) --resume
    "$weft" embed $run --truncate <lines >out 2>err || failed "$run: embed: $(tail -2 err)"
    [ "$(wc -l <out)" = 5 ] || failed "$run: embed: $(wc -l <out) vectors"
    said attention $run --text 'The lamp' --out maps.json
    said evaluate $run --data text.txt --json
    counted $kind $run
    said inspect $run
done

# --- GPT-2 trains a byte-level BPE first, as large as the text gives; the model has its size
# a batch smaller than the preset's accumulate, and an lr below its min_lr: neither is complained of
# shellcheck disable=SC2086
said train gpt2 --train text.txt --out gpt2 --steps 2 $lm --set lr=1e-5
size=$(sed -n 's/^ *"vocab_size": \([0-9]*\),*$/\1/p' gpt2/config.json)
[ "$size" -gt 257 ] && [ "$size" -lt 5000 ] || failed "gpt2: a vocabulary of $size"
grep -q '"ByteLevel"' gpt2/tokenizer.json || failed 'gpt2: no byte-level BPE'

# --- bytes that make a character together are printed together
i=0
while [ $i -lt 40 ]; do printf 'Über größere Bäche – 海の向こう。\n'; i=$((i + 1)); done >bytes.txt
# shellcheck disable=SC2086
said train gpt2 --train bytes.txt --out bytes --steps 150 $lm --set d_model=32 --set context=64 --set lr=1e-2 --set schedule=constant --set vocab_size=270 --set dropout=0
said generate bytes --prompt 'Über' --max-tokens 80 --greedy
grep -q '^Über größere Bäche – 海の' out || failed "bytes: $(cat out)"
finish
