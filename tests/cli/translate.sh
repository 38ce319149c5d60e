# SPDX-License-Identifier: MIT
# weft translate: a stream of lines.
. "$2/tests/cli/lib.sh"

cat >train.en <<'END'
The cat is sleeping on the warm roof.
Where does this old road lead?
She gave her brother a red bicycle.
We never drink coffee in the evening.
The children are building a boat, too.
Winter came early, and the lake froze.
END
cat >train.de <<'END'
Die Katze schläft auf dem warmen Dach.
Wohin führt diese alte Straße?
Sie schenkte ihrem Bruder ein rotes Fahrrad.
Abends trinken wir nie Kaffee.
Auch die Kinder bauen ein Boot.
Der Winter kam früh, und der See fror zu.
END
"$weft" train seq2seq-tiny --train train.en,train.de --out run --seed 1 2>log || failed "training: $(tail -2 log)"
translate() { "$weft" translate run "$@" 2>err; }

expect 2 'weft translate run' "$weft" generate run --prompt 'The cat'

# every target comes back, at any beam, batch and number of threads, and without a line end at the end of the input
translate <train.en >out || failed "translate: $(cat err)"
cmp -s out train.de || failed "not the targets: $(cat out)"
[ "$(grep -c . err)" = 1 ] || failed "more than the line of the start: $(cat err)"
for o in '--beam 1' '--beam 5' '--beam 5 --batch 2' '--beam 2 --length-penalty 0' '--threads 1' '--max-tokens 20'; do
    # shellcheck disable=SC2086
    translate $o <train.en | cmp -s - train.de || failed "other translations with $o"
done
printf '%s' "$(cat train.en)" | translate | cmp -s - train.de || failed 'the last line without its end'
# line for line: empty lines, CR, white space at the edges, no-break spaces, a byte order mark
printf '\357\273\277The cat is sleeping on the warm roof.\r\n\n \302\240\t\r\n\302\240Where does this old road lead? \n\n' | translate >out ||
    failed "line for line: $(cat err)"
printf 'Die Katze schläft auf dem warmen Dach.\n\n\nWohin führt diese alte Straße?\n\n' | cmp -s - out || failed "line for line: $(cat out)"
translate </dev/null >out || failed 'nothing'
[ ! -s out ] || failed 'nothing gave something'
# words stay apart when asked to; otherwise by the rules of Moses
[ "$(head -1 train.en | translate --keep-tokens)" = 'Die Katze schläft auf dem warmen Dach .' ] || failed 'keep-tokens'
[ "$(head -1 train.en | translate --language de)" = 'Die Katze schläft auf dem warmen Dach.' ] || failed 'language'
# n-best lists
head -2 train.en | translate --beam 4 --n-best 3 >out || failed "n-best: $(cat err)"
[ "$(wc -l <out)" = 6 ] || failed "n-best: $(cat out)"
grep -q '^0 ||| Die Katze schläft auf dem warmen Dach\. ||| -0\.[0-9]*$' out || failed "n-best: $(cat out)"
[ "$(sed -n 4p out | cut -d'|' -f1-4)" = '1 ||| Wohin führt diese alte Straße? ' ] || failed "n-best: $(sed -n 4p out)"
printf '\nWe never drink coffee in the evening.\n' | translate --beam 2 --n-best 1 >out
[ "$(head -1 out)" = '0 |||  ||| 0.000000' ] || failed "n-best of an empty line: $(head -1 out)"
expect 2 'exceeds the beam width, 1: add --beam 3' "$weft" translate run --n-best 3 <train.en
# JSON: an object a line of the source, empty ones too, with every hypothesis and what it scores
printf '\357\273\277The cat is sleeping on the warm roof.\r\n\n  Where does this old road lead? \n' >three.en
translate --json <three.en >out || failed "json: $(cat err)"
[ "$(wc -l <out)" = 3 ] || failed "json: $(cat out)"
number='-\{0,1\}[0-9][0-9.e-]*'
hypothesis="{\"text\": \"[^\"]*\", \"score\": $number, \"log_probability\": $number, \"finished\": [a-z]*}"
grep -q "^{\"index\": 0, \"source\": \"The cat is sleeping on the warm roof.\", \"translations\": \[{\"text\": \"Die Katze schläft auf dem warmen Dach.\", \"score\": -0\.[0-9e-]*, \"log_probability\": -[0-9][0-9.e-]*, \"finished\": true}\]}$" out ||
    failed "json: $(sed -n 1p out)"
[ "$(sed -n 2p out)" = '{"index": 1, "source": "", "translations": [{"text": "", "score": 0.0, "log_probability": 0.0, "finished": true}]}' ] ||
    failed "json of an empty line: $(sed -n 2p out)"
grep -q '^{"index": 2, "source": "Where does this old road lead?", "translations": \[{"text": "Wohin führt diese alte Straße?", ' out || failed "json: $(sed -n 3p out)"
translate --json --beam 4 --n-best 3 <three.en >out
grep -q "^{\"index\": 2, \"source\": \"[^\"]*\", \"translations\": \[$hypothesis, $hypothesis, $hypothesis\]}$" out || failed "json, n-best: $(sed -n 3p out)"
# the texts and the scores, rounded, are those of the list
translate --beam 4 --n-best 3 <three.en >list
sed 's/^{"index": \([0-9]*\), .*"translations": \[\(.*\)\]}$/\1 \2/' out | while read -r index all; do
    printf '%s\n' "$all" | sed 's/}, {/}\n{/g' | sed "s/^{\"text\": \"\(.*\)\", \"score\": \($number\), .*/\1|\2/" | while IFS='|' read -r text score; do
        printf '%s ||| %s ||| %.6f\n' "$index" "$text" "$score"
    done
done | cmp - list || failed 'json: other hypotheses than those of the list'
cat train.en train.en train.en | translate --json --beam 2 --batch 2 >out
[ "$(sed 's/^{"index": \([0-9]*\),.*/\1/' out | tr '\n' ' ')" = '0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 ' ] || failed "json: another order"
printf 'The cat is sleeping on the warm roof.\n\377\n' | translate --json >out && failed 'json of a bad line'
[ "$(wc -l <out)" = 1 ] && grep -q '^{"index": 0' out || failed "json: the line before the bad one: $(cat out)"

# a limit that cuts is said
head -1 train.en | translate --max-tokens 3 >out
[ "$(cat out)" = 'Die Katze schläft' ] || failed "max-tokens: $(cat out)"
grep -q '1 of 1 translation reached the maximum length' err || failed "cut translations are not counted: $(cat err)"

# a conversation: a line is answered before the next one comes
mkfifo to from
"$weft" translate run <to >from 2>/dev/null &
talk=$!
exec 3>to 4<from
for i in 1 3; do
    sed -n ${i}p train.en >&3
    read -r answer <&4
    [ "$answer" = "$(sed -n ${i}p train.de)" ] || failed "conversation: $answer"
done
exec 3>&-
wait $talk || failed 'the conversation does not end well'
exec 4<&-

# more lines than a window holds, in order
i=0
while [ $i -lt 500 ]; do
    cat train.en
    i=$((i + 1))
done >many.en
translate --batch 256 <many.en >out || failed "many: $(cat err)"
[ "$(wc -l <out)" = 3000 ] && [ "$(sort -u out | wc -l)" = 6 ] && tail -6 out | cmp -s - train.de || failed 'many lines'

# a word that the vocabulary lacks is counted
expect 0 'unknown tokens: 1 of 18 tokens of the source' "$weft" translate run <<'END'
The cat is sleeping on the warm roof.
The dog is sleeping on the warm roof.
END
[ "$(wc -l <out)" = 2 ] && [ "$(head -1 out)" = 'Die Katze schläft auf dem warmen Dach.' ] || failed "a new word: $(cat out)"
# what is wrong is said in one line, and what came before it is translated
printf 'The cat is sleeping on the warm roof.\n\377\n' >bad
expect 1 'standard input:2:1: not UTF-8' "$weft" translate run <bad
[ "$(cat out)" = 'Die Katze schläft auf dem warmen Dach.' ] || failed "the line before the bad one: $(cat out)"
i=0
while [ $i -lt 600 ]; do
    printf 'cat '
    i=$((i + 1))
done >long
echo >>long
expect 1 'standard input:1: the line has 600 ids, more than the maximum of 512' "$weft" translate run --too-long error <long
expect 1 'truncate' "$weft" translate run --too-long error <long
cat train.en long >both
translate --max-tokens 20 <both >out || failed "truncation: $(cat err)"
[ "$(wc -l <out)" = 7 ] && head -6 out | cmp -s - train.de || failed 'truncation'
[ "$(grep -c 'truncated 1 of 7 lines' err)" = 1 ] || failed "truncation is not said once: $(cat err)"
expect 2 "'cut' is not truncate or error" "$weft" translate run --too-long cut <train.en
expect 2 'RUN is missing' "$weft" translate <train.en
expect 2 'one argument too many' "$weft" translate run train.en </dev/null
expect 2 'did you mean --beam' "$weft" translate run --bean 3 <train.en
expect 2 "--beam: '0'" "$weft" translate run --beam 0 <train.en
expect 2 "--length-penalty: 'x'" "$weft" translate run --length-penalty x <train.en
expect 2 "--length-penalty: '-1'" "$weft" translate run --length-penalty -1 <train.en
expect 2 "'english' is not a language code" "$weft" translate run --language english <train.en
expect 1 'is not a run folder' "$weft" translate nowhere <train.en
expect 1 'is missing' "$weft" translate run --weights none.safetensors <train.en
expect 1 'run is a folder: give a safetensors file' "$weft" translate run --weights run <train.en
"$weft" tokenizer train --type word --specials '<pad>' --out unmarked.json train.en train.de 2>log || failed "unmarked: $(cat log)"
expect 1 'which translation requires: the command `tokenizer train` makes one' "$weft" train seq2seq-tiny --train train.en,train.de --set shared=true \
    --tokenizer unmarked.json --out unmarked
"$weft" translate run --weights run/model.safetensors <train.en 2>/dev/null | cmp -s - train.de || failed 'weights by name'
expect 1 'standard input: cannot be read' "$weft" translate run <&-
expect 1 "standard output can't be written" sh -c "'$weft' translate run <train.en >/dev/full"
"$weft" train char-rms --train "$story" --out language --steps 1 2>/dev/null || failed 'a language model'
expect 2 'does not translate' "$weft" translate language <train.en
# a tokenizer of pieces: what is about words is refused, and pieces that nothing joins are warned of
"$weft" tokenizer train --type bpe --pre-tokenizer whitespace --vocab-size 80 --out pieces.json train.en train.de 2>log || failed "pieces: $(cat log)"
"$weft" train seq2seq-postnorm --train train.en,train.de --tokenizer pieces.json --out pieces --steps 1 2>log || failed "pieces: $(tail -1 log)"
head -1 train.en | "$weft" translate pieces --max-tokens 3 >out 2>err || failed "pieces: $(cat err)"
[ "$(grep -c 'warning: the tokenizer of pieces has no decoder' err)" = 1 ] || failed "pieces without a warning: $(cat err)"
"$weft" evaluate pieces --data train.en,train.de >out 2>err || failed "evaluate pieces: $(cat err)"
[ "$(grep -c 'warning: the tokenizer of pieces has no decoder' err)" = 1 ] || failed "evaluate: pieces without a warning: $(cat err)"
"$weft" evaluate pieces --no-bleu --data train.en,train.de >out 2>err || failed "evaluate --no-bleu: $(cat err)"
grep -q 'warning' err && failed 'the loss alone has no need of text'
expect 2 '--language applies to models with a word tokenizer; that of pieces is bpe' "$weft" translate pieces --language de <train.en
expect 2 '--keep-tokens applies to models with a word tokenizer' "$weft" translate pieces --keep-tokens <train.en
# Ctrl-C ends it with a message
mkfifo wait
"$weft" translate run <wait >out 2>err &
talk=$!
exec 3>wait
head -1 train.en >&3
i=0
while [ ! -s out ] && [ $i -lt 100 ]; do
    sleep 0.1
    i=$((i + 1))
done
kill -INT $talk 2>/dev/null || true
status=0
wait $talk || status=$?
exec 3>&-
# a shell without job control starts background commands with SIGINT ignored; handlers are set all the same
[ "$status" = 130 ] || failed "interrupted: exit code $status"
grep -q 'interrupted after 1 line' err || failed "interrupted: $(cat err)"
"$weft" translate --help 2>&1 | tr -s ' \n' '  ' | grep -q 'INDEX ||| TEXT ||| SCORE' || failed 'help'
finish
