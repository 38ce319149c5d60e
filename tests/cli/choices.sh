# SPDX-License-Identifier: MIT
# weft evaluate --choices: the log-likelihoods of a Python program with transformers, by the rules of lm-evaluation-harness; and errors.
. "$2/tests/cli/lib.sh"

golden=$source/tests/golden/decoders
cat >questions <<'END'
{"context": "abc def", "choices": ["ghi", "jk lm", " no"], "answer": 1, "other": [1]}
{"context": "abc d ", "choices": ["e", "qrs"], "answer": 0}

{"context": "", "choices": ["stu", "v", "w"], "answer": 2}
{"context": "aaaa bbbb cccc dddd eeee ffff gggg hhhh", "choices": ["iiii jjjj", "k"], "answer": 0}
{"context": "abc def ghi jkl mno pqr st", "choices": ["u", "u vw abc def", "ab"], "answer": 2}
END
cat >qwen3 <<'END'
-14.78146 -25.41406 -14.16220
-14.53259 -23.14637
-16.20298 -7.02475 -6.81677
-43.36325 -8.82847
-10.83561 -61.70823 -12.29248
END
cat >gpt2 <<'END'
-22.25441 -32.08254 -13.57693
-16.29314 -25.70860
-10.01176 -7.16262 -7.74830
-45.04179 -10.36678
-12.96816 -62.80839 -14.54145
END
for name in qwen3 gpt2; do
    "$weft" evaluate "$golden/$name" --choices questions --details details --json >one 2>err || failed "$name: $(cat err)"
    sed 's/.*"log_likelihood": \[\(.*\)\]}/\1/; s/,//g' details >scores
    paste -d ' ' scores $name | awk '{ for (i = 1; i <= NF / 2; i++) if (($i - $(i + NF / 2)) ^ 2 > 4e-10) exit 1 }' || failed "$name: $(cat scores)"
    "$weft" evaluate "$golden/$name" --choices questions --threads 1 --json >other 2>err || failed "$name: $(cat err)"
    cmp one other || failed "$name: the threads change the scores"
done
head -2 details | tail -1 | grep -q '^{"line": 2, "answer": 0, "best": 0, "best_norm": 1, "log_likelihood": \[' || failed "details: $(cat details)"
grep -q '^{"acc": 0.2[0-9]*, "acc_stderr": 0.2[0-9]*, "acc_norm": 0.2[0-9]*, "acc_norm_stderr": 0.2[0-9]*, "questions": 5}$' one || failed "$(cat one)"
"$weft" evaluate "$golden/qwen3" --choices questions >out 2>err || failed "$(cat err)"
printf 'acc 0.4000 +- 0.2449\nacc_norm 0.2000 +- 0.2000\nquestions 5\n' | cmp - out || failed "printed $(cat out)"
head -1 questions >alone
"$weft" evaluate "$golden/qwen3" --choices alone >out 2>err || failed "$(cat err)"
printf 'acc 0.0000\nacc_norm 0.0000\nquestions 1\n' | cmp - out || failed "printed $(cat out)"
"$weft" evaluate "$golden/qwen3" --choices alone --json >out 2>err || failed "$(cat err)"
grep -q '"acc_stderr": null' out || failed "$(cat out)"

# --- errors
bad() { printf '%s\n%s\n' '{"context": "a", "choices": ["b"], "answer": 0}' "$1" >bad.jsonl; }
bad '{"context": "a", "choices": ["b"]}'
expect 1 'bad.jsonl:2: the key "answer" is missing' "$weft" evaluate "$golden/qwen3" --choices bad.jsonl
bad '{"context": "a", "choices": [], "answer": 0}'
expect 1 'bad.jsonl:2: key "choices": the list is empty' "$weft" evaluate "$golden/qwen3" --choices bad.jsonl
bad '{"context": "a", "choices": ["b"], "answer": 1}'
expect 1 'bad.jsonl:2: key "answer": 1 is out of range' "$weft" evaluate "$golden/qwen3" --choices bad.jsonl
bad '{"context": "a", "choices": ["b", "X"], "answer": 1}'
expect 1 'bad.jsonl:2: choice 2: ' "$weft" evaluate "$golden/qwen3" --choices bad.jsonl
bad '{"context": "a", "choices": ["b", "abc def ghi jkl mno pqr stu vw abc"], "answer": 1}'
expect 1 'bad.jsonl:2: choice 2 has 35 tokens, more than the model' "$weft" evaluate "$golden/qwen3" --choices bad.jsonl
expect 1 'none.jsonl' "$weft" evaluate "$golden/qwen3" --choices none.jsonl
expect 2 'evaluate needs --data FILE: the text to evaluate on; or --choices FILE' "$weft" evaluate "$golden/qwen3"
expect 2 'without --data' "$weft" evaluate "$golden/qwen3" --choices questions --data questions
expect 2 'without --stride' "$weft" evaluate "$golden/qwen3" --choices questions --stride 2
cp questions kept && expect 2 '--details questions would replace the questions' "$weft" evaluate "$golden/qwen3" --choices questions --details questions
cmp questions kept || failed 'the questions are gone'
expect 2 '--details out belongs to --choices' "$weft" evaluate "$golden/qwen3" --data questions --details out
expect 2 'is not a language model: --stride, --context, --bos and --choices apply only to those' "$weft" evaluate "$source/tests/golden/bert" \
    --choices questions

finish
