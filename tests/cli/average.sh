# SPDX-License-Identifier: MIT
# weft average, and weft evaluate on pairs.
. "$2/tests/cli/lib.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
cat >train.en <<'END'
a man sleeps
a dog runs
two women sing
a woman reads a book
two dogs play
the man sings
END
cat >train.de <<'END'
ein Mann schläft
ein Hund läuft
zwei Frauen singen
eine Frau liest ein Buch
zwei Hunde spielen
der Mann singt
END
"$weft" train seq2seq-tiny --train train.en,train.de --out run --set save_every=50 --set keep=3 2>log || failed "train: $(tail -1 log)"
"$weft" average run --last 2 --out mean 2>log || failed "average: $(cat log)"
grep -q 'mean of 2 checkpoints up to step 200' log || failed "average says: $(cat log)"
for r in run mean; do
    "$weft" evaluate $r --data train.en,train.de --no-bleu --json >$r.json 2>err || failed "evaluate $r: $(cat err)"
    grep -q '^{"loss": [0-9.e-]*, "perplexity": [0-9.e+-]*, "tokens": 26, "unknown": 0}$' $r.json || failed "evaluate $r: $(cat $r.json)"
done
"$weft" evaluate run --data train.en,train.de --json >scored.json 2>err || failed "evaluate: $(cat err)"
grep -q '"bleu": [0-9.]*, "chrf": [0-9.]*, "bleu_signature": "nrefs:1|case:mixed|eff:no|tok:13a' scored.json || failed "scores: $(cat scored.json)"
"$weft" evaluate mean --data train.en,train.de --beam 3 >scored 2>err || failed "evaluate: $(cat err)"
grep -q '^BLEU|' scored && grep -q '^chrF2|' scored || failed "scores: $(cat scored)"
# the whole set is learnt by heart
awk -F'"bleu": ' '{ exit !($2 + 0 > 99.9) }' scored.json || failed "BLEU of what was learnt: $(cat scored.json)"

# the same scores as by hand, of a model that makes mistakes
"$weft" train seq2seq-tiny --train train.en,train.de --out early --steps 40 2>log || failed "early: $(tail -1 log)"
"$weft" evaluate early --data train.en,train.de --beam 2 >scored 2>err || failed "early: $(cat err)"
"$weft" translate early --beam 2 <train.en >hypotheses 2>err || failed "translate: $(cat err)"
"$weft" bleu --width 2 train.de <hypotheses >bleu 2>err || failed "bleu: $(cat err)"
"$weft" bleu --width 2 --metric chrf train.de <hypotheses >chrf 2>err || failed "chrf: $(cat err)"
cmp hypotheses train.de >/dev/null && failed 'the early model makes no mistake: the comparison says nothing'
grep '^BLEU' scored | cmp - bleu || failed "BLEU: $(grep '^BLEU' scored), $(cat bleu)"
grep '^chrF' scored | cmp - chrf || failed "chrF: $(grep '^chrF' scored), $(cat chrf)"

expect 2 'has 3 checkpoints, but 4 are requested' "$weft" average run --last 4 --out mean4
grep -q 'it keeps 3: train with keep=4, or average fewer' message || failed "of a run that keeps 3: $(cat message)"
expect 2 'train longer with keep=100, or average fewer' "$weft" average early --last 100 --out mean4
expect 2 'average itself (2 checkpoints up to step 200)' "$weft" average mean --last 1 --out mean4
expect 1 'is a run that is being trained' "$weft" average run --last 2 --out run
expect 1 'is not a run folder' "$weft" average nowhere --last 2 --out mean5
expect 2 'needs --last' "$weft" average run --out mean5
expect 2 'needs --out' "$weft" average run --last 2
expect 2 'RUN is missing' "$weft" average --last 2 --out mean5
expect 2 'one argument too many' "$weft" average run mean --last 2 --out mean5
expect 2 'two files, source and target, not 1' "$weft" evaluate run --data train.en
head -3 train.de >short.de
expect 1 'short.de' "$weft" evaluate run --data train.en,short.de
expect 1 'validated' "$weft" evaluate run --data train.en,train.de --weights best
cp run/tokenizer.source.json run/tokenizer.target.json
expect 1 "vocabulary size mismatch" "$weft" evaluate run --data train.en,train.de
"$weft" train char-rms --train "$story" --steps 1 --out language 2>err || failed "language: $(tail -1 err)"
expect 2 'is not a translation model' "$weft" evaluate language --data "$story" --no-bleu
finish
