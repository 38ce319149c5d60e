# SPDX-License-Identifier: MIT
# nanogpt-char-small learns tinyshakespeare: 2,000 steps, seeds 1 to 3, mean loss over the validation split at most 1.930
# (PyTorch with the same settings: 1.910).
. "$2/tests/cli/lib.sh"
text=$source/../shared/data/tinyshakespeare/input.txt
[ -f "$text" ] || { echo "skipped: $text is absent"; exit 77; }
sum=0
for seed in 1 2 3; do
    "$weft" train nanogpt-char-small --train "$text" --set valid_tokens=0 --out run-$seed --seed $seed 2>log || failed "seed $seed: $(tail -1 log)"
    loss=$(sed -n 's/.*"event":"valid","step":2000,"loss\/valid":\([0-9.]*\).*/\1/p' run-$seed/metrics.jsonl)
    echo "seed $seed: $loss"
    sum=$(awk "BEGIN { print $sum + $loss }")
done
awk "BEGIN { print \"mean\", $sum / 3; exit !($sum / 3 <= 1.930) }" || failed 'the mean is above 1.930'
finish
