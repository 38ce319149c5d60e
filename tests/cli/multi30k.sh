# SPDX-License-Identifier: MIT
# The preset multi30k on raw text, seed 1: after 3,000 updates the mean of the last ten checkpoints reaches a validation loss of 2.03 and a
# cased BLEU of 35.5 on test_2016_flickr (PyTorch with the same settings: 2.001 and 36.03).
. "$2/tests/cli/lib.sh"
data=$source/../shared/data/multi30k
[ -f "$data/train.en" ] || { echo "skipped: $data is absent"; exit 77; }
unset XDG_CACHE_HOME
HOME=$work
export HOME
"$weft" train multi30k --train "$data/train.en,$data/train.de" --valid "$data/val.en,$data/val.de" --out run --steps 3000 2>log ||
    failed "train: $(tail -1 log)"
"$weft" average run --last 10 --out mean 2>log || failed "average: $(tail -1 log)"
"$weft" evaluate mean --data "$data/val.en,$data/val.de" --no-bleu --json >valid.json 2>log || failed "valid: $(tail -1 log)"
"$weft" evaluate mean --data "$data/test_2016_flickr.en,$data/test_2016_flickr.de" --json >test.json 2>log || failed "test: $(tail -1 log)"
loss=$(sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' valid.json)
bleu=$(sed -n 's/.*"bleu": \([0-9.]*\).*/\1/p' test.json)
chrf=$(sed -n 's/.*"chrf": \([0-9.]*\).*/\1/p' test.json)
echo "validation loss $loss, BLEU $bleu, chrF $chrf"
awk "BEGIN { exit !($loss <= 2.03) }" || failed 'the validation loss is above 2.03'
awk "BEGIN { exit !($bleu >= 35.5) }" || failed 'BLEU is below 35.5'
finish
