# SPDX-License-Identifier: MIT
# weft plot: of a run that was really trained, of several, in the terminal and as pictures; bad input.
. "$2/tests/cli/lib.sh"

small='--set layers=1 --set d_model=16 --set heads=2 --set d_ff=32 --set context=16 --set batch=2'
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out runs/a $small --set valid_every=10 --steps 60 >out 2>err || failed "training: $(cat err)"
mkdir -p "more/a \$x_{1}"
cp runs/a/metrics.jsonl "more/a \$x_{1}/"

# --- in the terminal: the size of a window that is none, nothing but the drawing on standard output
"$weft" plot runs/a >drawn 2>err || failed "plot: $(cat err)"
[ ! -s err ] || failed "plot says: $(cat err)"
[ "$(wc -l <drawn)" = 24 ] || failed "$(wc -l <drawn) lines, not 24"
[ "$(awk 'length > 80' drawn | wc -l)" = 0 ] || failed 'a line of more than 80 characters'
head -1 drawn | grep -qF 'loss (nats per token): * training  o validation  a' || failed "the first line is: $(head -1 drawn)"
grep -q '^learning rate (1e-3)$' drawn || failed 'no learning rate'
tail -2 drawn | head -1 | grep -q ' 0  .* 60$' || failed "the steps are: $(tail -2 drawn)"
grep -q 'o' drawn && grep -q '\*\*' drawn || failed 'no curves'
"$weft" plot --log runs/a "more/a \$x_{1}/" >drawn 2>err || failed "plot --log: $(cat err)"
head -1 drawn | grep -q 'logarithmic' || failed 'no logarithm'
grep -qF '# training  B validation  more/a $x_{1}' drawn || failed "the legend is: $(head -3 drawn)"
expect 1 'standard output' sh -c '"$1" plot runs/a >/dev/full' sh "$weft"

# --- pictures, with and without what users have set up for themselves
mkdir home
echo 'set title "of the home folder"' >home/.gnuplot
HOME=$work/home GNUTERM=nosuch "$weft" plot runs/a "more/a \$x_{1}" --out p.svg >out 2>err || failed "svg: $(cat err)"
[ ! -s out ] || failed 'a picture prints something'
grep -q 'of the home folder' p.svg && failed 'the own settings of a user draw along'
grep -qF '>more/a $x_{1}<' p.svg || failed 'the name of a run is not in its picture'
tail -2 p.svg | grep -q '</svg>' || failed 'the SVG has no end'
"$weft" plot runs/a --out p.png 2>err || failed "png: $(cat err)"
[ "$(head -c 4 p.png | od -An -c | tr -d ' ')" = '211PNG' ] || failed 'p.png is no PNG'

# --- axes, parts and metrics, of a run that was resumed
# shellcheck disable=SC2086
"$weft" train char-rms --train "$story" --out runs/a $small --set valid_every=10 --resume --steps 80 >out 2>err || failed "resuming: $(cat err)"
"$weft" plot runs/a --x tokens >drawn 2>err || failed "plot --x tokens: $(cat err)"
tail -2 drawn | tr -d '\n' | grep -q ' 0  .* 2,500 *tokens$' || failed "80 updates of 32 tokens: $(tail -2 drawn)"
tokens=$(grep '"step":80,' runs/a/metrics.jsonl | grep -c '"tokens":2560,')
[ "$tokens" = 2 ] || failed "the last step and validation of 2560 tokens: $tokens lines"
"$weft" plot runs/a --x seconds --out seconds.svg 2>err || failed "plot --x seconds: $(cat err)"
grep -q '>seconds<' seconds.svg || failed 'no axis of seconds'
"$weft" plot runs/a --from 20 --to 40 --smooth 3 --metric grad_norm,lr --metric tokens_per_second >drawn 2>err || failed "plot --from: $(cat err)"
tail -2 drawn | head -1 | grep -q '^ *20 .* 40$' || failed "from 20 to 40: $(tail -2 drawn)"
head -1 drawn | grep -q '^grad_norm' && grep -q '^tokens_per_second' drawn && grep -q '^learning rate' drawn || failed "panels: $(cat drawn)"
grep -q 'loss' drawn && failed 'a loss that was not asked for'
cp -r runs/a runs/b
"$weft" plot runs/a runs/b runs/a runs/b runs/a runs/b runs/a runs/b --smooth 0 >drawn 2>err || failed "eight runs: $(cat err)"
grep -q '^  = training  G validation  a$' drawn && grep -q '^  h training  H validation  b$' drawn || failed "eight runs: $(head -9 drawn)"

# --- bad input
cp p.svg before.svg
expect 2 "no run has a metric 'grad': there are best, grad_norm, loss/train, loss/valid, lr, tokens, tokens_per_second" "$weft" plot runs/a --metric lr --metric grad
expect 2 "'lr,,x' is not a list of names" "$weft" plot runs/a --metric lr,,x
expect 2 "'miles' is not steps, tokens or seconds" "$weft" plot runs/a --x miles
expect 2 'nothing to plot from 100 to the end: the runs go from step 1 to 80' "$weft" plot runs/a --from 100
expect 2 'from 9 to 3 is no part of the axis' "$weft" plot runs/a --from 9 --to 3
expect 2 '--to' "$weft" plot runs/a --to 0
expect 2 '--smooth' "$weft" plot runs/a --smooth -1
expect 2 'RUN is missing' "$weft" plot
expect 2 'did you mean --log?' "$weft" plot runs/a --lgo
expect 2 'p.pdf: no format of pictures; the name must end in .svg or .png' "$weft" plot runs/a --out p.pdf
expect 1 'nowhere is not a run folder' "$weft" plot runs/a nowhere --out p.svg
mkdir bare
expect 1 'bare has no metrics.jsonl' "$weft" plot bare
expect 1 'runs/a/metrics.jsonl is not a run folder' "$weft" plot runs/a/metrics.jsonl
mkdir bad young
head -5 runs/a/metrics.jsonl >bad/metrics.jsonl
echo '{"step": 7,' >>bad/metrics.jsonl
expect 1 'bad/metrics.jsonl:6:' "$weft" plot bad --out p.svg
grep '"start"' runs/a/metrics.jsonl >young/metrics.jsonl
expect 1 'young/metrics.jsonl holds no loss yet' "$weft" plot young
expect 1 'none' "$weft" plot runs/a --out none/p.svg
mkdir folder.svg
expect 1 'folder.svg' "$weft" plot runs/a --out folder.svg
expect 1 'package gnuplot-nox' env PATH=/nowhere "$weft" plot runs/a
expect 1 'package gnuplot-nox' env PATH=/nowhere "$weft" plot runs/a --out p.svg
cmp -s p.svg before.svg || failed 'a failure changed the picture that was there'
[ "$(ls -A | grep -c 'p.svg')" = 1 ] || failed "something is left behind: $(ls -A)"
# a FIFO, at which reading would wait for ever
mkdir pipe
mkfifo pipe/metrics.jsonl
expect 1 'pipe/metrics.jsonl: is not a regular file' timeout 10 "$weft" plot pipe
finish
