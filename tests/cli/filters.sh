# SPDX-License-Identifier: MIT
# Filters of pairs: a training with them on a text with repeats and with pairs that are no translations gives the bytes of a training
# without them on the text that is left.
. "$2/tests/cli/lib.sh"
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

# Both texts at once: what is left, and between it repeats of earlier lines, with other white space around them, lines of another length,
# empty ones, and some with the source of one pair and the target of another.
awk 'BEGIN {
    srand(4)
    for (i = 1; i <= 400; i++) {
        n = 1 + int(rand() * 8); s = t = ""
        for (k = 0; k < n; k++) { w = int(rand() * 20); s = s (k ? " " : "") "s" w; t = "t" w (k ? " " : "") t }
        if (rand() < 0.1) s = s " yes\302\240" "yes"
        if (!((s, t) in seen)) { seen[s, t] = 1; S[++used] = s; T[used] = t; print s > "left.en"; print t > "left.de"; print s > "all.en"; print t > "all.de" }
        if (used > 9 && rand() < 0.2) { j = 1 + int(rand() * used); repeats++; print " " S[j] "\302\240\r" > "all.en"; print T[j] "\t" > "all.de" }
        if (rand() < 0.1) { uneven++; print "s1 s2" > "all.en"; print "t1 t2 t3 t4 t5 t6 t7 t8 t9" > "all.de" }
        if (rand() < 0.1) { uneven++; print "s1 s2 s3 s4 s5 s6 s7 s8 s9 s10" > "all.en"; print "t1 t2 t" int(rand() * 9) > "all.de" }
        if (rand() < 0.05) { empty++; print "" > "all.en"; print "t1" > "all.de" }
    }
    printf "repeats=%d uneven=%d empty=%d used=%d\n", repeats, uneven, empty, used > "counts"
}'
. ./counts
[ "$repeats" -gt 30 ] && [ "$uneven" -gt 30 ] && [ "$empty" -gt 5 ] && [ "$used" -gt 350 ] || failed "the text: $(cat counts)"
lines=$((repeats + uneven + empty + used))
for side in en de; do
    "$weft" tokenizer train --type word --out $side.json all.$side >log 2>&1 || failed "tokenizer: $(cat log)"
done
small="--tokenizer en.json,de.json --set d_model=16 --set d_ff=32 --set heads=2 --set encoder_layers=1 --set decoder_layers=1
       --set batch_tokens=150 --set dropout=0.2 --set save_every=5 --set valid_every=15 --valid all.en,all.de"
filters='--set max_ratio=3 --set deduplicate=true'

# --- what is counted, and the bytes
# shellcheck disable=SC2086
{
    "$weft" train seq2seq-tiny --train left.en,left.de --out left --steps 60 $small >log 2>&1 || failed "left: $(tail -1 log)"
    "$weft" train seq2seq-tiny --train all.en,all.de --out unfiltered --steps 60 $small >log 2>&1 || failed "unfiltered: $(tail -1 log)"
    grep -q "^training: $((lines - empty)) pairs.*tokens; $empty skipped: $empty empty source$" log || failed "unfiltered: $(cat log)"
    for run in first second; do # the second with the survey of the first
        "$weft" train seq2seq-tiny --train all.en,all.de --out $run --steps 60 $small $filters >log 2>&1 || failed "$run: $(tail -1 log)"
        grep -q "^training: $used pairs.*tokens; $((lines - used)) skipped: $empty empty source, $uneven with a length ratio above 3, $repeats duplicates$" log ||
            failed "$run: $(cat log)"
        grep -q "^validation: $((lines - empty)) pairs.*tokens; $empty skipped: $empty empty source$" log || failed "the validation text is filtered: $(cat log)"
        cmp left/model.safetensors $run/model.safetensors || failed "$run: other bytes than of what is left"
    done
}
cmp -s left/model.safetensors unfiltered/model.safetensors && failed 'filters that change nothing'
grep -q "\"event\":\"data\".*\"used\":$used,.*\"over_ratio\":$uneven,\"duplicates\":$repeats," first/metrics.jsonl || failed "metrics: $(head -1 first/metrics.jsonl)"
grep -q '"deduplicate": true' first/config.json && grep -q '"max_ratio": 3' first/config.json || failed "config.json: $(cat first/config.json)"
# one filter alone
# shellcheck disable=SC2086
"$weft" train seq2seq-tiny --train all.en,all.de --out one --steps 1 $small --set max_ratio=3 >log 2>&1 || failed "max_ratio: $(tail -1 log)"
grep -q "^training: $((used + repeats)) pairs.*, $uneven with a length ratio above 3$" log || failed "max_ratio alone: $(cat log)"

# --- a resume has the run's filters; others begin the next epoch, and say so
# shellcheck disable=SC2086
{
    "$weft" train seq2seq-tiny --train all.en,all.de --out resumed --steps 23 $small $filters >log 2>&1 || failed "to 23: $(tail -1 log)"
    cp -r resumed changed
    "$weft" train seq2seq-tiny --train all.en,all.de --valid all.en,all.de --out resumed --steps 60 --resume >log 2>&1 || failed "resumed: $(tail -1 log)"
}
cmp first/model.safetensors resumed/model.safetensors || failed 'resumed: other bytes'
"$weft" train seq2seq-tiny --train all.en,all.de --valid all.en,all.de --out changed --steps 24 --set deduplicate=false --resume >log 2>&1 || failed "changed: $(tail -1 log)"
grep -q 'deduplicate false instead of true; epoch [0-9]* begins' log || failed "changed: $(cat log)"
grep -q "^training: $((used + repeats)) pairs" log || failed "changed: $(cat log)"

# --- the survey alone
"$weft" tokenizer survey en.json,de.json all.en,all.de --max-ratio 3 --deduplicate >out 2>err || failed "survey: $(cat err)"
grep -q "^$used pairs.*$uneven with a length ratio above 3, $repeats duplicates$" out || failed "survey: $(cat out)"
"$weft" tokenizer survey en.json,de.json all.en,all.de >out 2>err && grep -q "^$((lines - empty)) pairs" out || failed "survey without filters: $(cat out err)"

# --- what is refused
t="$weft train seq2seq-tiny --train all.en,all.de --out no"
expect 2 'max_ratio = 0.5 would leave no pair' $t --set max_ratio=0.5
expect 2 'max_ratio' $t --set max_ratio=-1
expect 2 'deduplicate' $t --set deduplicate=some
expect 2 'max_ratio' "$weft" train char-rms --train "$story" --out no --set max_ratio=2
printf 'a b\na b\n' >uneven.en
printf 'a\na\n' >uneven.de
expect 1 'no pair of lines can be used: 0 pairs; 2 skipped: 2 with a length ratio above 1' "$weft" train seq2seq-tiny --train uneven.en,uneven.de --out no --set max_ratio=1
finish
