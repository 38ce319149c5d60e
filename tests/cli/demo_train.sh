# SPDX-License-Identifier: MIT
# ./demo as it is: the validation loss falls far and the training ends near the best one, and what the model writes is like the
# text (words of it, lines of its length) without a run of 80 characters from it.
. "$2/tests/cli/lib.sh"
text=$source/data/embedded/tales.txt
demo_folder
demo/demo >out 2>err || failed "demo: $(tail -3 err)"
sed -n 's/.*"event":"valid".*"loss\/valid":\([0-9.]*\).*/\1/p' demo/runs/demo/metrics.jsonl >losses
echo "validation losses:" $(cat losses)
awk 'NR == 1 { first = $1 } NR == 1 || $1 < best { best = $1 } { last = $1 }
    END { exit !(best < 1.95 && first > best + 0.8 && last < best + 0.1) }' losses || failed 'validation'
cat out
LC_ALL=C awk '
    FNR == NR { all = all $0 "\n"; gsub(/[^A-Za-z]+/, " "); n = split($0, w, " "); for (i = 1; i <= n; i++) word[w[i]] = 1; next }
    { made = made $0 "\n"; gsub(/[^A-Za-z]+/, " "); n = split($0, w, " "); for (i = 1; i <= n; i++) { words++; known += w[i] in word } }
    length($0) > 120 { print "a long line: " $0; bad = 1 }
    END {
        for (i = 1; i + 80 <= length(all); i++) seen[substr(all, i, 80)] = 1
        for (i = 1; i + 80 <= length(made); i++)
            if (substr(made, i, 80) in seen) { print "copied: " substr(made, i, 80); bad = 1; break }
        print words " words, " known " of the text"
        exit bad || words < 100 || known < 0.97 * words
    }' "$text" out || failed 'what it writes'
finish
