# SPDX-License-Identifier: MIT
# weft bleu: what sacreBLEU's command prints, and what is refused. The texts and commands.txt are made by tests/golden/make_scores.py.
. "$(dirname "$0")/lib.sh"
golden=$source/tests/golden/scores
version=$("$weft" --version | cut -d' ' -f2)

# --- blocks of commands.txt: text, number of references, options; what sacreBLEU prints; an empty line
count=0
while read -r text references options; do
    : >want
    while IFS= read -r line && [ -n "$line" ]; do
        printf '%s\n' "$line" | sed "s/version:[0-9.]*/version:weft-$version/" >>want
    done
    files=
    for i in $(seq "$references"); do
        files="$files $golden/$text.reference$i.txt"
    done
    # shellcheck disable=SC2086
    "$weft" bleu $files $options <"$golden/$text.hypotheses.txt" >out 2>err || failed "$text $references $options: $(cat err)"
    cmp -s want out || failed "$text $references $options: $(cat out) is not $(cat want)"
    [ ! -s err ] || failed "$text $references $options said: $(cat err)"
    count=$((count + 1))
done <"$golden/commands.txt"
[ "$count" -ge 12 ] || failed "only $count commands were tried"

# --- nothing depends on the locale, on the size of pieces that a pipe gives, or on the order of arguments
one=$golden/plain.reference1.txt
hypotheses=$golden/plain.hypotheses.txt
"$weft" bleu "$one" --width 6 <"$hypotheses" >want && [ -s want ] || failed '--width 6'
LC_ALL=$comma "$weft" bleu --width=6 "$one" <"$hypotheses" | cmp -s - want || failed 'the locale or the order changes the output'
dd if="$hypotheses" bs=7 2>/dev/null | "$weft" bleu "$one" --width 6 | cmp -s - want || failed 'a slow pipe changes the output'

# --- --json: one object a metric, with the keys that are promised
"$weft" bleu "$one" --json --metric bleu,chrf <"$hypotheses" >out || failed '--json'
[ "$(wc -l <out)" = 2 ] || failed "--json does not print a line for each metric: $(cat out)"
has() { grep -q "$1" out || failed "$1 is not in $(cat out)"; }
has '^{"name": "BLEU", "score": 68\.[0-9]*, "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:weft-'
has '^{"name": "chrF2", "score": [0-9]*\.[0-9]*, "signature": "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:weft-'
has '"precisions": \[88\.[0-9]*, .*"matches": \[[0-9]*, .*"totals": \[[0-9]*, .*"hyp_len": [0-9]*, "ref_len": [0-9]*, "lines": 100}'

# --- bad files: exit 1, one line
head -40 "$hypotheses" >short.txt
lines() { "$weft" bleu "$@"; }
expect 1 'standard input has 40 lines of hypotheses' lines "$one" <short.txt
expect 1 'plain.reference1.txt has 100 of references' lines "$one" <short.txt
expect 1 'short.txt has 40 of references' lines "$one" short.txt <"$hypotheses"
expect 1 'no-such.txt: cannot be opened: No such file' lines "$one" no-such.txt <"$hypotheses"
expect 1 'is a folder' lines "$work" <"$hypotheses"
{ sed -n 1,4p "$one"; printf 'bad \377 byte\n'; tail -n +6 "$one"; } >bad.txt
expect 1 'bad.txt:5:5: not UTF-8: byte 0xFF' lines bad.txt <"$hypotheses"
expect 1 'standard input:5:5: not UTF-8' lines "$one" <bad.txt
: >empty.txt
expect 1 'no lines' lines empty.txt <empty.txt
expect 1 'standard output' sh -c '"$1" bleu "$2" <"$3" >/dev/full' sh "$weft" "$one" "$hypotheses"

# --- wrong usage: exit 2, one line
expect 2 'REFERENCE is missing' lines </dev/null
expect 2 "'ter' is not bleu, chrf" lines "$one" --metric ter
expect 2 "--metric: 'bleu,' is not" lines "$one" --metric bleu,
expect 2 "'13b' is not 13a, intl, none or char" lines "$one" --tokenize 13b
expect 2 "'linear' is not exp, floor, add-k or none" lines "$one" --smooth linear
expect 2 '--smooth-value' lines "$one" --smooth floor --smooth-value -1
expect 2 'applies to --smooth floor and add-k, not to exp' lines "$one" --smooth-value 0.5
expect 2 '--chrf-word-order applies to chrF' lines "$one" --chrf-word-order 2
expect 2 '--tokenize applies to BLEU' lines "$one" --metric chrf --tokenize intl
expect 2 '--effective-order applies to BLEU' lines "$one" --metric chrf --effective-order
expect 2 'from 1 to 32' lines "$one" --metric chrf --chrf-char-order 33
expect 2 'exclude each other' lines "$one" --json --score-only
expect 2 'from 0 to 15' lines "$one" --width 99
expect 2 'did you mean' lines "$one" --lower-case

# --- text that was split into tokens is noticed, and scored
for i in $(seq 120); do echo "line $i ."; done >split.txt
"$weft" bleu split.txt <split.txt >out 2>err || failed 'split text'
grep -q '^weft: warning: 120 lines end in " ."' err || failed "no warning: $(cat err)"
"$weft" bleu split.txt --tokenize none <split.txt >out 2>err && [ ! -s err ] || failed "a warning for --tokenize none: $(cat err)"
finish
