# SPDX-License-Identifier: MIT
# weft tokenizer: train, encode, decode, info, survey.
. "$2/tests/cli/lib.sh"

tokenizer() { "$weft" tokenizer "$@"; }
# like FILE WANTED: the same bytes
like() { cmp -s "$1" "$2" || failed "$3: $(diff "$1" "$2" | head -5)"; }

printf 'low lower lowest\nnew newer newest  wide wider widest\n\n low\n' >text.txt

# --- train, and back
for type in bpe byte-bpe; do
    tokenizer train --type $type --vocab-size 300 --out $type.json text.txt >out 2>err || failed "$type: $(tail -1 err)"
    [ -s out ] && failed "$type: training prints on standard output"
    tail -2 err | grep -q "$type.json: $type, vocabulary size [0-9]*, [0-9]* merges, [0-9.]* s" || failed "$type: no summary: $(tail -2 err)"
    tokenizer encode $type.json <text.txt >ids || failed "$type: encode"
    [ "$(wc -l <ids)" = 4 ] || failed "$type: not a line for each line"
    [ -z "$(sed -n 3p ids)" ] || failed "$type: an empty line does not give an empty line"
    tokenizer decode $type.json <ids >back || failed "$type: decode"
    [ $type = byte-bpe ] && like back text.txt "$type does not give back the text"
done
sed 's/^ //' text.txt >trimmed # Metaspace takes one blank at the beginning for the mark of the first word
tokenizer decode bpe.json <<EOF >back
$(tokenizer encode bpe.json <text.txt)
EOF
sed 's/^ //' back >back2
like back2 trimmed 'bpe does not give back the text'
tokenizer train --type char --out char.json text.txt 2>err || failed "char: $(tail -1 err)"
tokenizer encode char.json <text.txt | tokenizer decode char.json >back
like back text.txt 'char does not give back the text'
printf 'a\nb\n' >lines.txt # a line end that is a token does not end the line of its text
tokenizer train --type char --out lines.json lines.txt 2>err || failed "char: $(tail -1 err)"
[ "$(printf '1 0 2\n1\n' | tokenizer decode lines.json | tr '\n' '|')" = 'a b|a|' ] || failed 'a line end among the tokens'
tokenizer train --type word --out word.json text.txt 2>err || failed "word: $(tail -1 err)"
[ "$(printf 'newest low\n' | tokenizer encode word.json --tokens)" = '["newest", "low"]' ] || failed 'tokens of words'
[ "$(printf 'low\n' | tokenizer encode bpe.json --tokens)" = '["▁low"]' ] || failed 'tokens of bpe'
[ "$(printf 'low\n' | tokenizer encode bpe.json --specials --tokens)" = '["<s>", "▁low", "</s>"]' ] || failed 'special tokens'
[ "$(printf 'low\n' | tokenizer encode bpe.json --specials | tokenizer decode bpe.json)" = low ] || failed 'special tokens are printed'
[ "$(printf 'low\n' | tokenizer encode bpe.json --specials | tokenizer decode --specials bpe.json)" = '<s> low</s>' ] || failed 'special tokens are not printed'
printf 'low\r\nlow' | tokenizer encode bpe.json >ids
[ "$(sort -u ids | wc -l)" = 1 ] && [ "$(wc -l <ids)" = 2 ] || failed 'DOS lines, or a last line without its end'
printf '\357\273\277low\n' | tokenizer encode bpe.json >ids2
head -1 ids >ids1 && like ids2 ids1 'a byte order mark is taken for text'
: | tokenizer encode bpe.json >ids && [ ! -s ids ] || failed 'nothing does not give nothing'

# --- options
tokenizer train --type bpe --specials '<a>,<b>' --pre-tokenizer whitespace --min-frequency 3 --threads 1 --out small.json text.txt 2>err ||
    failed "options: $(tail -1 err)"
tokenizer info small.json >info || failed 'info'
grep -q '^special token: <a> 0$' info && grep -q '^special token: <b> 1$' info || failed "special tokens: $(cat info)"
grep -q '^pre-tokenizer: Whitespace$' info && grep -q '^kind: bpe$' info || failed "info: $(cat info)"
merges=$(sed -n 's/^merges: //p' info)
[ "$merges" -gt 0 ] && [ "$merges" -lt 20 ] || failed "merges of pairs that come 3 times: $merges"
tokenizer info --json bpe.json | grep -q '{"kind":"bpe","vocab_size":[0-9]*,"merges":[0-9]*,.*"specials":{"<s>":0,"<pad>":1,"</s>":2,"<unk>":3}' ||
    failed "info --json: $(tokenizer info --json bpe.json)"
tokenizer train --type bpe --specials '' --out none.json text.txt 2>err || failed "no special tokens: $(tail -1 err)"
expect 2 "--specials: an empty token in '<s>,,x'" tokenizer train --type bpe --specials '<s>,,x' --out t.json text.txt
expect 2 "--specials: '  c' begins or ends with a space" tokenizer train --type bpe --specials 'a b,  c' --out t.json text.txt
: >'<a>,<b>'
tokenizer train --type bpe --specials '<a>,<b>' --out small2.json text.txt 2>err || failed "options: $(tail -1 err)"
tokenizer info small2.json | grep -q '^special token: <b> 1$' || failed 'a file of that name is taken for a special token'
tokenizer info none.json >info && [ -s info ] || failed 'info of a tokenizer without special tokens'
grep -q 'special token' info && failed 'special tokens that nobody asked for'
for n in 1 2; do
    tokenizer train --type bpe --threads $n --vocab-size 2000 --out threads$n.json "$story" text.txt 2>/dev/null || failed "$n threads"
done
like threads1.json threads2.json 'the number of threads changes the tokenizer'

# --- survey
tokenizer survey bpe.json text.txt --max-length 2 >out || failed 'survey of a file'
grep -q '^4 lines, 1 empty$' out && grep -q '^[0-9] lines longer than 2$' out || failed "survey: $(cat out)"
head -2 text.txt >a.txt && head -2 text.txt >b.txt
awk 'BEGIN { for (i = 0; i < 1234; i++) print "low" }' >many.txt
tokenizer survey bpe.json many.txt --max-length 1000 >out || failed 'survey of a file'
grep -q '^1,234 lines, 0 empty$' out && grep -q '^0 lines longer than 1,000$' out && grep -q '^many.txt: 1,234 tokens; per line: mean 1.0, median 1,' out || failed "survey: $(cat out)"
# how long lines are, not what a file that cuts and pads them leaves
sed 's/"truncation": null/"truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}/' bpe.json >cut.json
cmp -s bpe.json cut.json && failed 'the tokenizer says nothing of truncation'
tokenizer survey bpe.json text.txt >out && tokenizer survey cut.json text.txt | cmp -s out - || failed 'a survey of lines that were cut'
XDG_CACHE_HOME=$work tokenizer survey bpe.json,byte-bpe.json a.txt,b.txt --batch-tokens 100 >out 2>err || failed "survey of pairs: $(tail -1 err)"
grep -q '^2 pairs' out && grep -q '% of the positions' out && grep -q '^target: ' out || failed "survey of pairs: $(cat out)"
# as a preset's training counts: its marks, its limit, its batches
XDG_CACHE_HOME=$work tokenizer survey bpe.json a.txt,b.txt --model multi30k >out 2>err || failed "survey --model: $(tail -1 err)"
grep -q '^batches of [0-9,]* a side: .*% of the positions' out || failed "survey --model: $(cat out)"
XDG_CACHE_HOME=$work tokenizer survey bpe.json a.txt,b.txt --source-eos --batch-tokens 40 --batch-cost side >side 2>err || failed "survey: $(tail -1 err)"
like_line() { grep "^$1" out >line && [ "$(cat line)" = "$(grep "^$1" side)" ] || failed "survey --model counts the $1 otherwise: $(cat out side)"; }
like_line source && like_line target
XDG_CACHE_HOME=$work tokenizer survey bpe.json a.txt,b.txt --model multi30k --batch-tokens 40 --max-length 2 >out 2>err && failed 'survey --model over-rules an option'
grep -q 'longer than 2' err || failed "survey --model over-rules --max-length: $(cat err)"
expect 2 'is a language model' tokenizer survey bpe.json a.txt,b.txt --model char-rms
expect 2 'encoder-attention is an encoder' tokenizer survey bpe.json a.txt,b.txt --model encoder-attention
expect 2 'multi30k' tokenizer survey bpe.json a.txt,b.txt --model multi30
expect 2 'are for two texts' tokenizer survey bpe.json text.txt --model multi30k
expect 2 "'none' is not both or side" tokenizer survey bpe.json a.txt,b.txt --batch-tokens 40 --batch-cost none
expect 2 'give both' tokenizer survey bpe.json a.txt,b.txt --batch-cost side

# --- usage
expect 2 'did you mean train?' tokenizer trian
expect 2 'needs --type' tokenizer train --out t.json text.txt
expect 2 'needs --out' tokenizer train --type bpe text.txt
expect 2 'needs files of text' tokenizer train --type bpe --out t.json
expect 2 "'wordpiece' is not char, word, bpe or byte-bpe" tokenizer train --type wordpiece --out t.json text.txt
expect 2 "'x' is not metaspace" tokenizer train --type bpe --pre-tokenizer x --out t.json text.txt
expect 2 '--pre-tokenizer applies to' tokenizer train --type byte-bpe --pre-tokenizer whitespace --out t.json text.txt
expect 2 '--type char takes neither' tokenizer train --type char --vocab-size 9 --out t.json text.txt
expect 2 '--vocab-size' tokenizer train --type bpe --vocab-size 0 --out t.json text.txt
expect 2 'characters need at least' tokenizer train --type bpe --vocab-size 5 --out t.json text.txt
expect 2 'and 256 bytes need at least' tokenizer train --type byte-bpe --vocab-size 5 --out t.json text.txt
expect 2 'given twice' tokenizer train --type bpe --specials a,a --out t.json text.txt
cp text.txt own.txt && ln own.txt link.txt
for out in own.txt ./link.txt; do
    expect 2 "--out $out would replace the text own.txt" tokenizer train --type bpe --out $out text.txt own.txt
done
cmp -s text.txt own.txt || failed 'a refused --out changed the text'
expect 2 'TOKENIZER.json is missing' tokenizer encode
expect 2 'one argument too many' tokenizer encode bpe.json text.txt
expect 2 'did you mean --tokens?' tokenizer encode bpe.json --token-s
expect 2 'the text is missing' tokenizer survey bpe.json
expect 2 'are for two texts' tokenizer survey bpe.json text.txt --batch-tokens 9
expect 2 'are for two texts' tokenizer survey bpe.json text.txt --max-ratio 2
expect 2 'are for two texts' tokenizer survey bpe.json text.txt --deduplicate
expect 2 '--max-ratio' tokenizer survey bpe.json a.txt,b.txt --max-ratio 0.5
expect 2 '2 tokenizers for 1 text:' tokenizer survey bpe.json,bpe.json text.txt
"$weft" tokenizer >out 2>err && failed 'weft tokenizer alone passes'
for sub in '' train encode decode info survey; do
    # shellcheck disable=SC2086
    tokenizer $sub --help 2>&1 >out | grep -q . && failed "$sub --help writes to standard error"
    grep -q "Usage: weft tokenizer $sub" out || failed "$sub --help: $(head -1 out)"
done
[ ! -e t.json ] || failed 'a wrong call left a file behind'

# --- bad input
: >empty.txt
printf 'one\ntwo \377 three\n' >bad.txt
expect 1 'empty.txt' tokenizer train --type bpe --out t.json empty.txt
expect 1 'bad.txt:2:5' tokenizer train --type bpe --out t.json text.txt bad.txt
expect 1 'no-such.txt' tokenizer train --type word --out t.json text.txt no-such.txt
expect 1 "$work" tokenizer train --type bpe --out t.json "$work"
expect 1 'no-folder/t.json' tokenizer train --type bpe --out no-folder/t.json bad.txt # before the text is read
expect 1 'no-such.json' tokenizer info no-such.json
expect 1 'text.txt' tokenizer info text.txt
expect 1 'standard input:2:5: not UTF-8' sh -c '"$1" tokenizer encode bpe.json <bad.txt' sh "$weft"
expect 1 'standard input:2:3: this id is not in the vocabulary' sh -c 'printf "1 2\n3 99999999999 4\n" | "$1" tokenizer decode bpe.json' sh "$weft"
expect 1 'standard input:1:3: this is not an id' sh -c 'printf "1 x\n" | "$1" tokenizer decode bpe.json' sh "$weft"
expect 1 'standard input:1:1: this is not an id' sh -c 'printf "%s\n" -1 | "$1" tokenizer decode bpe.json' sh "$weft"
expect 1 'standard input:2:5: the word "high"' sh -c 'printf "low\nlow high\n" | "$1" tokenizer encode word.json' sh "$weft"
expect 1 'standard input:1:4: the word "high"' sh -c 'printf "\357\273\277high\n" | "$1" tokenizer encode word.json' sh "$weft"
expect 1 'standard input:2:4: a NUL byte' sh -c 'printf "low\nlow\000high\n" | "$1" tokenizer encode byte-bpe.json' sh "$weft"
printf 'low\nlow\000\n' >nul.txt
expect 1 'nul.txt:2:4: a NUL byte' tokenizer survey byte-bpe.json nul.txt
printf 'low\nlow high\n' >high.txt
expect 1 'high.txt:2:5: the word "high"' tokenizer survey word.json high.txt
expect 1 'standard output' sh -c 'printf "low\n" | "$1" tokenizer encode bpe.json >/dev/full' sh "$weft"
printf 'a\n' >c.txt
XDG_CACHE_HOME=$work expect 1 'c.txt' tokenizer survey bpe.json a.txt,c.txt
[ ! -e t.json ] || failed 'a failure left a file behind'

# --- streams: an answer comes before the next question
mkfifo question
"$weft" tokenizer encode bpe.json <question >answer &
child=$!
exec 3>question
printf 'low\n' >&3
n=0
while [ ! -s answer ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
like answer ids1 'no answer to a line while the next is awaited'
exec 3>&-
wait $child || failed 'a stream ends with an error'

# --- Ctrl-C leaves no file
awk 'BEGIN { srand(1); for (i = 0; i < 60000; i++) { s = ""; for (k = 0; k < 12; k++) s = s sprintf("%c%d%c ", 97 + int(26 * rand()), int(1e6 * rand()), 97 + int(26 * rand())); print s } }' >long.txt
cp bpe.json before.json
"$weft" tokenizer train --type bpe --vocab-size 1000000 --out bpe.json long.txt long.txt long.txt 2>err &
child=$!
n=0
while ! grep -q thread err && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
sleep 0.2
kill -INT $child
status=0
wait $child || status=$?
[ $status = 130 ] || failed "Ctrl-C: exit code $status: $(tail -1 err)"
grep -q 'stopped\|interrupted' err || failed "Ctrl-C: $(tail -1 err)"
like bpe.json before.json 'Ctrl-C changed the file that was there'
[ "$(find . -name '*.tmp*' | wc -l)" = 0 ] || failed "Ctrl-C left files behind: $(ls)"
finish
