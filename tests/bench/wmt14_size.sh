# SPDX-License-Identifier: MIT
# The corpus of WMT14's size, a small one: the same bytes each time, aligned lines, what it says of lengths, repeats and rare words. Called
# as: sh wmt14_size.sh WEFT SOURCE-ROOT.
. "$2/tests/cli/lib.sh"
mkdir few
awk 'BEGIN {
    x = 1
    for (i = 0; i < 500; i++) {
        s = t = ""
        for (k = 0; k < 12; k++) { x = x * 16807 % 2147483647; w = x % 900; s = s " Saw" w % 30 "x en" sprintf("%c%c", 97 + w % 26, 97 + w / 40); t = t " Sah" w % 30 "x für" sprintf("%c%c", 97 + w % 26, 97 + w / 40) }
        print substr(s, 2) > "few/train.en"; print substr(t, 2) > "few/train.de"
    }
}'
for out in a b; do
    "$source/bench/wmt14_size" few $out 10000 >log 2>&1 || failed "wmt14_size: $(cat log)"
done
cmp a.en b.en && cmp a.de b.de || failed 'other bytes the second time'
for side in en de; do
    [ "$(wc -l <a.$side)" = 10000 ] || failed "$(wc -l <a.$side) lines of $side"
    grep -q '^$' a.$side || failed "no line of $side is empty"
done
# a half has 12 words; 4.1 halves on average, and a rare word for each tenth
awk '{ n += NF } END { exit !(n / NR > 46 && n / NR < 54) }' a.en || failed "the mean length: $(awk '{ n += NF } END { print n / NR }' a.en)"
awk 'length($0) > 0 { for (i = 1; i <= NF; i++) if (!($i in seen)) { seen[$i] = 1; n++ } } END { exit !(n > 1300) }' a.de || failed 'no rare words'
head -1000 a.en >head.en
"$source/bench/wmt14_size" few b 1000 && cmp head.en b.en || failed 'fewer pairs are not the first ones'
expect 1 'nowhere/train.en cannot be read' "$source/bench/wmt14_size" nowhere c
"$source/bench/wmt14_size" few >log 2>&1 && failed 'without OUT'
grep -q 'bench/wmt14_size MULTI30K OUT' log || failed "usage: $(cat log)"
finish
