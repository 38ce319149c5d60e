# SPDX-License-Identifier: MIT
# weft attention: pictures, numbers and pages of all kinds of models, and what it says of bad input.
. "$2/tests/cli/lib.sh"

train() { "$weft" train "$@" --steps 2 --set d_model=16 --set heads=2 --set d_ff=32 2>log || failed "training $1: $(tail -2 log)"; }
printf 'the cat sat on the mat\nthe dog ran in the sun\na bird sang a song\n' >en.txt
printf 'die Katze saß auf der Matte\nder Hund lief in der Sonne\nein Vogel sang ein Lied\n' >de.txt
for i in 1 2 3 4 5 6 7 8; do cat en.txt; done >text.txt
train nanogpt-char-small --train text.txt --out lm --set layers=3 --set context=40 --set batch=2
train encoder-attention --train text.txt --out encoder --set layers=2 --set context=8 --set batch=2
train seq2seq-tiny --train en.txt,de.txt --out pairs
show() { "$weft" attention "$@" >out 2>err || failed "attention $*: $(tail -1 err)"; [ ! -s out ] || failed "attention $* printed $(head -c 99 out)"; }

# --- pictures
show lm --text 'the cat' --out grid.svg
grep -q '>nanogpt-char-small · decoder-attention<' grid.svg || failed 'the title'
[ "$(grep -c '<image ' grid.svg)" = 6 ] || failed "$(grep -c '<image ' grid.svg) heads in the grid, not 6"
show lm --text 'the cat' --layer 3 --head 2 --out one.svg
grep -q '>nanogpt-char-small · decoder-attention · layer 3, head 2<' one.svg || failed 'the title of a head'
[ "$(grep -c '<image ' one.svg)" = 1 ] || failed 'not one head'
show lm --text 'the cat' --pick 1:2,3:1 --out pick.png --threads 1
[ "$(head -c 4 pick.png | tail -c 3)" = PNG ] || failed 'no PNG'
show encoder --text 'the dog sat' --out words.svg
grep -q '<text>dog</text>' words.svg || failed "no token in the picture of an encoder"
grep -q '>encoder-attention<' words.svg || failed 'the title of an encoder'
show pairs --source 'the cat sat' --target 'die Katze' --layer 1 --head 1 --out cross.svg
grep -q '>seq2seq-tiny · cross-attention · layer 1, head 1<' cross.svg || failed 'a translation model shows cross first'
for kind in encoder decoder cross; do
    show pairs --source 'the cat sat' --kind $kind --out kind.svg
    grep -q ">seq2seq-tiny · $kind-attention<" kind.svg || failed "--kind $kind"
done

for text in 'encoder --text zzz' 'pairs --source zzz' 'pairs --source cat --target zzz'; do
    # shellcheck disable=SC2086
    show $text --out unknown.svg
    grep -q '^weft: warning: the text: unknown tokens: 1 of ' err || failed "unknown tokens of $text: $(cat err)"
done

# --- folders
mkdir there
show lm --text 'the' --out there
[ "$(find there -type f | wc -l)" = 7 ] && [ -f there/decoder-grid.svg ] && [ -f there/decoder-layer-3-head-2.svg ] || failed "there: $(ls there)"
grep -q '7 pictures in there' err || failed "nothing was said: $(tail -1 err)"
show pairs --source 'the cat' --out new/deep/
heads=$(find new/deep -name 'cross-layer-*.svg' | wc -l)
[ "$heads" -gt 0 ] && [ "$(find new/deep -type f | wc -l)" = $((3 * heads + 3)) ] || failed "new/deep: $(ls new/deep)"
show pairs --source 'the cat' --kind cross --out one-kind
[ "$(find one-kind -type f | wc -l)" = $((heads + 1)) ] || failed "one-kind: $(ls one-kind)"

show lm --text 'the' --pick 3:1,1:2 --out some/
[ "$(cd some && echo *)" = 'decoder-layer-1-head-2.svg decoder-layer-3-head-1.svg' ] || failed "some: $(ls some)"
show pairs --source 'the cat' --layer 1 --head 1 --out one-each/
[ "$(cd one-each && echo *)" = 'cross-layer-1-head-1.svg decoder-layer-1-head-1.svg encoder-layer-1-head-1.svg' ] || failed "one-each: $(ls one-each)"
grep -q '1 picture in one' err && failed 'three pictures are not one'
show pairs --source 'the cat' --layer 1 --head 1 --kind decoder --out one-each
grep -q '1 picture in one-each$' err || failed "one picture: $(tail -1 err)"

# --- numbers: the same in every locale, and of other weights too
show pairs --source 'the cat sat' --target 'die Katze' --kind decoder --out map.json
head -1 map.json | grep -q '^{"kind": "decoder", "query": \["<s>","die","Katze"\],$\|^{"kind": "decoder", "query": \["<bos>","die","Katze"\],$' ||
    failed "json: $(head -1 map.json)"
sed -n 3p map.json | grep -q '^"weights": \[\[\[\[1,0,0\],\[[0-9.e-]*,[0-9.e-]*,0\],\[' || failed "json: $(sed -n 3p map.json)"
LC_ALL=$comma show pairs --source 'the cat sat' --target 'die Katze' --kind decoder --out locale.json
cmp -s map.json locale.json || failed 'a locale changed the numbers'
show pairs --source 'the cat sat' --target 'die Katze' --kind decoder --out file.json --weights pairs/model.safetensors
cmp -s map.json file.json || failed 'weights by their file differ'

show lm --text 'the cat' --out all.json
show lm --text 'the cat' --layer 3 --head 2 --out head.json
{ head -2 all.json && echo '"layer": 3, "head": 2,' && sed -n '8s/^\(.*\)\]\]}$/"weights": [[\1]]}/p' all.json; } >wanted.json
cmp -s head.json wanted.json || failed "json of a head: $(diff head.json wanted.json | cut -c 1-200)"

# --- the page has all kinds, and opens with what is chosen
opens() { grep -o '"opening": {[^}]*}' page.html | tr -d '" {}'; }
show pairs --source 'the cat sat' --out page.html
grep -qi '<!doctype html>' page.html || failed 'no page'
[ "$(opens)" = opening:kind:cross,layer:1,head:1 ] || failed "the page opens with $(opens)"
show pairs --source 'the cat sat' --kind decoder --layer 2 --head 1 --out page.html
[ "$(opens)" = opening:kind:decoder,layer:2,head:1 ] || failed "the page opens with $(opens)"
[ "$(grep -c '^{"kind": ' page.html)" = 3 ] || failed 'the page lacks a kind'
show lm --text 'the cat' --pick 3:2,1:1 --out page.html
[ "$(opens)" = opening:kind:decoder,layer:3,head:2 ] || failed "the page opens with $(opens)"

# --- bad input: one line each
expect 2 'RUN is missing' "$weft" attention
expect 2 'needs --out' "$weft" attention lm --text a
expect 2 'one argument too many' "$weft" attention lm a cat --out x.svg
expect 2 'give --text' "$weft" attention lm --out x.svg
expect 2 'give --source' "$weft" attention pairs --out x.svg
expect 2 'give --source TEXT' "$weft" attention pairs --text 'the cat' --out x.svg
expect 2 'give --text TEXT' "$weft" attention lm --source 'the cat' --out x.svg
expect 2 'give --text TEXT' "$weft" attention encoder --source 'the cat' --out x.svg
expect 2 'no --target' "$weft" attention lm --target 'the cat' --out x.svg
expect 2 'give only one' "$weft" attention lm --text a --source a --out x.svg
expect 2 'empty' "$weft" attention lm --text '' --out x.svg
expect 2 'empty' "$weft" attention pairs --source ' ' --out x.svg
expect 2 'several lines' "$weft" attention pairs --source 'the cat
the dog' --out x.svg
expect 2 'has 44 tokens, more than the maximum of 40' "$weft" attention lm --text 'the cat sat on the mat the cat sat on the ma' --out x.svg
expect 1 'U+00E9' "$weft" attention lm --text 'caté' --out x.svg
expect 2 "'self' is not encoder, decoder or cross" "$weft" attention lm --text a --kind self --out x.svg
expect 2 'no cross-attention: give --kind decoder' "$weft" attention lm --text a --kind cross --out x.svg
expect 2 'no decoder-attention: give --kind encoder' "$weft" attention encoder --text 'the cat' --kind decoder --out x.json
expect 2 'no layer 4: ' "$weft" attention lm --text a --layer 4 --head 1 --out x.svg
expect 2 '3 layers of 2 heads' "$weft" attention lm --text a --pick 1:1,1:3 --out x.svg
expect 2 '--layer' "$weft" attention lm --text a --layer 0 --head 1 --out x.svg
expect 2 'add --head' "$weft" attention lm --text a --layer 1 --out x.svg
expect 2 'add --layer' "$weft" attention lm --text a --head 1 --out x.svg
expect 2 'both select' "$weft" attention lm --text a --layer 1 --head 1 --pick 1:1 --out x.svg
for pick in 1 1: :1 1:1, 1:1,,1:2 a:b 1:1:1 ' 1:1' 0:1 1:-1 1:99999999999999999999; do
    expect 2 'not a list of layers and heads' "$weft" attention lm --text a --pick "$pick" --out x.svg
done
expect 2 'x.json holds every head or one, not some' "$weft" attention lm --text a --pick 1:1 --out x.json
for name in x.svg x.json x.html x/; do
    expect 2 'no layer 4: the decoder-attention of nanogpt-char-small has 3 layers of 2 heads' "$weft" attention lm --text a --layer 4 --head 1 --out $name
done
expect 2 'no head 3' "$weft" attention lm --text a --pick 1:1,1:3 --out x.html
expect 2 'no head 3' "$weft" attention lm --text a --pick 1:1,1:3 --out x/
expect 2 'no cross-attention' "$weft" attention lm --text a --kind cross --out x.html
expect 2 'no cross-attention' "$weft" attention lm --text a --kind cross --out x/
for name in x.jpg x.SVG svg x.svg.txt; do
    expect 2 '.svg, .png, .json or .html' "$weft" attention lm --text a --out "$name"
done
expect 1 'no/such' "$weft" attention lm --text a --out no/such/x.svg
expect 1 'no/such' "$weft" attention lm --text a --out no/such/x.json
expect 1 'grid.svg' "$weft" attention lm --text a --out grid.svg/
mkdir hollow && cp lm/config.json lm/tokenizer.json hollow
expect 1 'hollow/model.safetensors is missing' "$weft" attention hollow --text a --out x.svg
expect 1 'no-run' "$weft" attention no-run --text a --out x.svg
expect 1 'none.safetensors' "$weft" attention lm --text a --weights none.safetensors --out x.svg
mkdir empty
expect 1 'install the package gnuplot' env PATH="$work/empty" "$weft" attention lm --text a --out x.svg
expect 1 'install the package gnuplot' env PATH="$work/empty" "$weft" attention lm --text a --out x.png
PATH="$work/empty" "$weft" attention lm --text a --out nothing-drawn.json 2>/dev/null || failed 'numbers need no gnuplot'
mkdir stopping
printf '#!/bin/sh\nkill -INT $PPID\nexec %s "$@"\n' "$(command -v gnuplot)" >stopping/gnuplot
chmod +x stopping/gnuplot
expect 130 'interrupted: not all pictures were drawn' env PATH="$work/stopping:$PATH" "$weft" attention lm --text a --out stopped/
[ "$(ls stopped)" = decoder-grid.svg ] || failed "stopped: $(ls stopped)"
for name in x.svg x.json x.html x.png x.jpg x; do [ ! -e $name ] || failed "a refused call left $name behind"; done
"$weft" attention --help | grep -q -- '--pick=L:H' || failed 'attention --help'
finish
