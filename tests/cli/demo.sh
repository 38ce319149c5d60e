# SPDX-License-Identifier: MIT
# ./demo and its text: what the rules make is what is committed, it can be learned, it is too varied to be learned by heart, and the
# script runs from the training to what the model writes.
. "$2/tests/cli/lib.sh"
embedded=$source/data/embedded
text=$embedded/tales.txt

bytes=$(wc -c <"$text")
[ "$bytes" -ge 90000 ] || failed "the text has only $bytes bytes"
LC_ALL=C awk 'length($0) > 76 || /[^ -~]/ || / $/ { print FILENAME ":" FNR; bad = 1 } END { exit bad }' "$text" || failed 'lines that are too long or not plain ASCII'
[ -z "$(tail -c 1 "$text")" ] || failed 'the last line has no end'

found=0
for awk in awk mawk gawk 'gawk --posix' original-awk 'busybox awk'; do
    $awk 'BEGIN { exit 0 }' </dev/null >/dev/null 2>&1 || continue
    found=$((found + 1))
    $awk -f "$embedded/tales.awk" "$embedded/tales.rules" >made.txt && cmp made.txt "$text" || failed "$awk makes another text of the rules"
done
[ "$found" -gt 0 ] || failed 'no awk'
printf 'tale: <nothing>\n' >bad.rules
awk -f "$embedded/tales.awk" bad.rules >out 2>err && failed 'rules without a cast are accepted'
grep -q 'tales.awk: no rule is called cast' err || failed "the message on missing rules: $(cat err)"

# The last tenth, which validates, shares no run of 70 characters with the rest.
LC_ALL=C awk '
    { all = all $0 "\n" }
    END {
        cut = int(length(all) * 0.9)
        for (i = 1; i + 70 <= cut; i++) seen[substr(all, i, 70)] = 1
        for (i = cut + 1; i + 70 <= length(all); i++)
            if (substr(all, i, 70) in seen) { print substr(all, i, 70); exit 1 }
    }' "$text" || failed 'the text repeats itself'

# The script, with the command that is there and 60 updates.
demo_folder
for run in demo demo-2; do
    demo/demo --steps 60 --set valid_every=20 >out 2>err || failed "demo: $(tail -3 err)"
    [ -f "demo/runs/$run/best.safetensors" ] || failed "no runs/$run"
    sed -n 's/.*"event":"valid".*"loss\/valid":\([0-9.]*\).*/\1/p' "demo/runs/$run/metrics.jsonl" >losses
    awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR == 3 && last < first - 0.3) }' losses || failed "validation: $(cat losses)"
    grep -q '^The fox and the ' out || failed "what it prints: $(cat out)"
    tail -n 7 err | awk 'length > 80 { print; bad = 1 } END { exit bad }' && grep -q "^  build/cli/weft plot runs/$run$" err ||
        failed 'what it says at the end is wider than 80 columns'
    [ "$(wc -c <out)" -gt 500 ] || failed "it prints only $(wc -c <out) bytes"
done
finish
