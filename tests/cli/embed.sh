# SPDX-License-Identifier: MIT
# weft embed: a vector a line, in three formats, and cosines.
. "$2/tests/cli/lib.sh"

cat >lines <<'LINES'
The weaver went down to the river.
A boat came.

Nobody spoke, and the night was long; the river went on.
A boat came.
LINES
cat lines lines "$story" >text.txt # which has all their words
"$weft" train encoder-attention --train text.txt --out run --steps 2 --set layers=2 --set d_model=16 --set heads=2 --set d_ff=32 \
    --set vocab_size=1000 --set batch=4 --set context=64 2>log || failed "training: $(tail -1 log)"
embed() { "$weft" embed run "$@" 2>err; }
numbers() { tail -c +129 "$1" | od -An -v -w4 -t f4 | tr -d ' '; }
shape() { head -c 128 "$1" | tr -d '\n' | LC_ALL=C sed 's/.*\(shape.*\), }.*/\1/'; }

# --- three formats of the same numbers
embed <lines >text || failed "embed: $(cat err)"
[ "$(grep -c . err)" = 1 ] || failed "more than the line of the start: $(cat err)"
[ "$(awk '{print NF}' text | sort -u)" = 16 ] && [ "$(wc -l <text)" = 5 ] || failed "not 5 vectors of 16 numbers: $(head -2 text)"
[ "$(sed -n 2p text)" = "$(sed -n 5p text)" ] && [ "$(sed -n 1p text)" != "$(sed -n 2p text)" ] || failed 'equal lines, other vectors'
embed --format json <lines >json || failed "json: $(cat err)"
[ "$(grep -c '^\[-\{0,1\}[0-9.e-]*\(, -\{0,1\}[0-9.e-]*\)\{15\}\]$' json)" = 5 ] || failed "no arrays: $(cat json)"
sed 's/[][,]//g' json | cmp -s - text || failed 'json has other numbers than text'
embed --format npy <lines >npy || failed "npy: $(cat err)"
[ "$(wc -c <npy)" = $((128 + 5 * 16 * 4)) ] || failed "the size of npy: $(wc -c <npy)"
[ "$(shape npy)" = "shape': (5, 16)" ] || failed "the shape of npy: $(shape npy)"
numbers npy >of_npy
tr ' ' '\n' <text | paste - of_npy | awk '{d = $1 - $2; if (d < 0) d = -d; if (d > 1e-6) bad = 1} END {exit NR != 80 || bad}' ||
    failed 'npy has other numbers than text'
printf 'kept\n' | tee kept >behind
embed --format npy <lines >>behind && head -1 behind | cmp -s - kept && tail -c +6 behind | cmp -s - npy ||
    failed 'what >> should keep'
embed --format npy <lines | cmp -s - npy || failed 'npy through a pipe'

# --- lines
head -1 text >first
head -1 lines | embed | cmp -s - first || failed 'a vector depends on the lines beside it'
printf '\357\273\277The weaver went down to the river.\r\nA boat came.\r\n\r\nNobody spoke, and the night was long; the river went on.\nA boat came.' |
    embed | cmp -s - text || failed 'a byte order mark, CR, a last line without its end'
dd if=lines bs=3 2>/dev/null | embed | cmp -s - text || failed 'a slow pipe'
embed --threads 1 <lines | cmp -s - text || failed 'one thread'
embed </dev/null >out && [ ! -s out ] || failed 'nothing gave something'
embed --format npy </dev/null >out && [ "$(shape out)" = "shape': (0, 16)" ] && [ "$(wc -c <out)" = 128 ] || failed 'npy of nothing'
embed --similarity </dev/null >out && [ ! -s out ] || failed 'cosines of nothing'
embed --similarity --format npy </dev/null >out && [ "$(shape out)" = "shape': (0, 0)" ] || failed 'npy of no cosines'
# more than a block holds, in order
i=0
while [ $i -lt 130 ]; do
    cat lines
    i=$((i + 1))
done >many
embed <many >out || failed "many: $(cat err)"
[ "$(wc -l <out)" = 650 ] && head -645 out | tail -5 | cmp -s - text && [ "$(sort -u out | wc -l)" = 4 ] || failed 'many lines'
# a conversation: a line is answered before the next one comes
mkfifo to from
"$weft" embed run <to >from 2>/dev/null &
talk=$!
exec 3>to 4<from
for i in 1 4; do
    sed -n ${i}p lines >&3
    read -r answer <&4
    [ "$answer" = "$(sed -n ${i}p text)" ] || failed "conversation: $answer"
done
exec 3>&-
wait $talk || failed 'the conversation does not end well'
exec 4<&-

# --- unknown tokens, counted over all blocks
{ cat many; printf 'A \342\202\254 boat.\n\342\202\254\n'; } | embed >out || failed "unknown: $(cat err)"
grep -q '^weft: warning: standard input: unknown tokens: 2 of 3,905 (0.1 %)$' err || failed "unknown tokens: $(cat err)"

# --- pooling and length
embed --pooling mean --no-normalize <lines | cmp -s - text || failed 'not the mean, or not as long as it was'
embed --pooling cls <lines >out && ! cmp -s out text || failed 'cls is mean'
printf 'The\n' | embed --pooling cls >out && [ -s out ] || failed "cls: $(cat err)"
embed --pooling mean <<'LINE' | cmp -s - out || failed 'of one token cls is the mean'
The
LINE
embed --normalize <lines >out && [ "$(wc -l <out)" = 5 ] || failed "normalize: $(cat err)"
awk 'NR != 3 {s = 0; for (i = 1; i <= NF; i++) s += $i * $i; if (s < 0.99999 || s > 1.00001) bad = 1} END {exit bad}' out || failed 'not 1 long'

# --- cosines
embed --similarity <lines >cosines || failed "similarity: $(cat err)"
awk 'NR == FNR {for (j = 1; j <= NF; j++) {x[FNR, j] = $j; n[FNR] += $j * $j} next}
    {if (NF != 5) bad = 1
     for (k = 1; k <= 5; k++) {
         s = 0
         for (j = 1; j <= 16; j++) s += x[FNR, j] * x[k, j]
         l = sqrt(n[FNR] * n[k])
         d = (l > 0 ? s / l : 0) - $k
         if (d > 1e-5 || d < -1e-5) bad = 1
         if (FNR == k && n[k] > 0 && $k != 1) bad = 1
         c[FNR, k] = $k
         if (k < FNR && (c[k, FNR] - $k > 1e-6 || $k - c[k, FNR] > 1e-6)) bad = 1
     }} END {exit bad || FNR != 5}' text cosines || failed "no cosines: $(cat cosines)"
embed --similarity --format json <lines | sed 's/[][,]//g' | cmp -s - cosines || failed 'cosines as json'
embed --similarity --format npy <lines >npy || failed "cosines as npy: $(cat err)"
[ "$(shape npy)" = "shape': (5, 5)" ] && [ "$(wc -c <npy)" = 228 ] && [ "$(numbers npy | head -1)" = 1 ] || failed "cosines as npy: $(shape npy)"
embed --similarity <many >out && [ "$(wc -l <out)" = 650 ] && tail -1 out | awk '{exit NF != 650 || $650 != 1 || $645 < 0.99999 || $645 > 1}' || failed 'many cosines'

# --- what is wrong is said in one line; what came before it is embedded
i=0
while [ $i -lt 100 ]; do
    printf 'river '
    i=$((i + 1))
done >long
{ head -2 lines; cat long; echo; head -1 lines; } >with_long
expect 1 'standard input:3: the line has ' "$weft" embed run <with_long
head -2 text | cmp -s - out || failed "the lines before the long one: $(wc -l <out)"
grep -q 'tokens, more than the maximum of 64' message || failed "both lengths: $(cat message)"
expect 0 'truncated 1 of 4 lines to 64 tokens' "$weft" embed run --truncate <with_long
[ "$(wc -l <out)" = 4 ] && tail -1 out | cmp -s - first || failed 'truncation'
{ head -1 lines; printf 'bad \377\n'; cat long; echo; } >bad
expect 1 'standard input:2:5: not UTF-8: byte 0xFF' "$weft" embed run <bad
cmp -s out first || failed "the line before the bad one: $(cat out)"
{ head -1 lines; cat long; printf '\nbad \377\n'; } >bad
expect 1 'standard input:2: the line has ' "$weft" embed run <bad
printf '\357\273\277ab\377\n' >bad
expect 1 'standard input:1:6: not UTF-8' "$weft" embed run <bad
printf 'a\nb\0c\n' >bad
expect 1 'standard input:2:2: a NUL byte' "$weft" embed run <bad
printf '\377\376a\0' >bad
expect 1 'UTF-16' "$weft" embed run <bad
{ head -1 lines; head -c 70000000 /dev/zero; } >bad # which is not read whole
expect 1 'standard input:2: a line of more than 67108864 bytes' "$weft" embed run <bad
cmp -s out first || failed 'the line before the one without end'
expect 1 'standard input: is a folder' "$weft" embed run <run
expect 1 'standard input: cannot be read' "$weft" embed run <&-
expect 1 "standard output can't be written" sh -c "'$weft' embed run <lines >/dev/full"
expect 1 'No space left on device' sh -c "'$weft' embed run --format npy <lines >/dev/full"
expect 1 "standard output can't be written" sh -c "'$weft' embed run --similarity <lines >/dev/full"
{ "$weft" embed run <many 2>err; echo $? >status; } | head -1 | cmp -s - first || failed 'a reader that wants one line'
{ while cat many 2>/dev/null; do :; done | "$weft" embed run 2>err; echo $? >status; } | head -1 >/dev/null
[ "$(cat status)" = 141 ] && [ "$(grep -c . err)" = 1 ] || failed "a reader that went away: $(cat status err)"
expect 2 'RUN is missing' "$weft" embed <lines
expect 2 'one argument too many' "$weft" embed run lines </dev/null
expect 2 "'xml' is not text, json or npy" "$weft" embed run --format xml <lines
expect 2 "'max' is not mean or cls" "$weft" embed run --pooling max <lines
expect 2 'did you mean --similarity' "$weft" embed run --similarty <lines
expect 2 "--threads: '0'" "$weft" embed run --threads 0 <lines
expect 1 'is not a run folder' "$weft" embed nowhere <lines
expect 1 'is missing' "$weft" embed run --weights none.safetensors <lines
embed --weights run/model.safetensors <lines | cmp -s - text || failed 'weights by name'
"$weft" train char-rms --train "$story" --out language --steps 1 2>/dev/null || failed 'a language model'
expect 2 'language: char-rms is not an encoder' "$weft" embed language <lines
# Ctrl-C ends it with a message
mkfifo wait
"$weft" embed run <wait >out 2>err &
talk=$!
exec 3>wait
head -1 lines >&3
i=0
while [ ! -s out ] && [ $i -lt 600 ]; do
    sleep 0.1
    i=$((i + 1))
done
kill -INT $talk 2>/dev/null || true
status=0
wait $talk || status=$?
exec 3>&-
[ "$status" = 130 ] || failed "interrupted: exit code $status"
grep -q 'interrupted after 1 line' err || failed "interrupted: $(cat err)"
"$weft" embed --help 2>&1 | grep -q -- '--similarity' || failed 'help'

# --- the page shows what the command prints, to the last digits, which the instruction set may change
sed -n '/^    \$ printf .* weft embed tests.golden.bert --similarity$/,/^$/p' "$source/docs/encoders.md" | sed 's/^    //' >page
command=$(sed -n '1s/^\$ //p' page)
[ -n "$command" ] || failed 'docs/encoders.md shows no cosines'
mkdir -p tests/golden && ln -s "$source/tests/golden/bert" tests/golden/bert
weft() { "$weft" "$@"; }
eval "$command" >out 2>err || failed "$command: $(cat err)"
sed '1d;/^$/d' page | paste -d ' ' - out | awk '{
        if (NF != 6) bad = 1
        for (i = 1; i <= 3; i++) { d = $i - $(i + 3); if (d < 0) d = -d; if (d > 1e-6) bad = 1; longest = length($i) > longest ? length($i) : longest }
    }
    END { exit NR != 3 || bad || longest < 11 }' || failed "docs/encoders.md shows other cosines than: $(cat out)"
finish
