# SPDX-License-Identifier: MIT
# Work that is no gradient, on several processes: validations, evaluations and translations, with the bytes of one process. Called as:
# sh split.sh WEFT SOURCE-ROOT TOGETHER.
. "$2/tests/cli/lib.sh"
sample=mpich
. "$source/tests/dist/lib.sh"
together=$(cd "$OLDPWD" && realpath "$3")

# --- items that are dealt out, and their results in order; ranks that fail
for mpi in $mpis; do
    for n in $(some "1 3" "1 2 3 5"); do
        several $mpi $n "$together" share >out 2>&1 || failed "$mpi, $n processes share: $(cat out)"
        grep -qx "$n processes share" out || failed "$mpi, $n processes share: $(cat out)"
    done
done

# --- validations in a training: about 20 batches in language and encoder, more pairs than a batch has in translation
awk 'BEGIN { srand(3); for (i = 0; i < 300; i++) { n = 1 + int(rand() * 30); s = t = ""
    for (k = 0; k < n; k++) { w = int(rand() * 9); s = s (k ? " " : "") "s" w; t = "t" w (k ? " " : "") t } print s > "a.en"; print t > "a.de" } }'
language="char-rms --train $story --set batch=6 --set accumulate=4 --set valid_tokens=0"
encoder="encoder-attention --train $story --set layers=1 --set batch=6 --set accumulate=4 --set context=32 --set valid_tokens=0"
translation="seq2seq-tiny --train a.en,a.de --valid a.en,a.de --set batch_tokens=300 --set accumulate=4 --set label_smoothing=0.1
    --set valid_scores=true --set best_by=chrf --set max_tokens=20"
for model in language encoder translation; do
    eval "settings=\$$model"
    settings="$settings --steps 4 --set save_every=4 --set valid_every=2"
    # shellcheck disable=SC2086
    "$weft" train $settings --out $model >log 2>&1 || failed "$model: $(tail -1 log)"
    grep -q '"event":"valid"' $model/metrics.jsonl || failed "$model: no validation"
    for mpi in $mpis; do
        for n in 3 4; do
            # shellcheck disable=SC2086
            several $mpi $n "$weft" train $settings --out $model-$mpi-$n --threads 1 >log 2>&1 || failed "$model, $mpi, $n: $(tail -1 log)"
            alike $model $model-$mpi-$n
        done
    done
done

# --- told to stop at any moment, mostly in a validation; resumed on another number of processes
# shellcheck disable=SC2086
{
several "$mpi" 3 "$weft" train $translation --steps 4 --set save_every=4 --set valid_every=2 --set leaves=4 --out told-amid >out 2>log &
job=$!
tries=0
until grep -qs '^step 2' log || [ $tries -gt 600 ]; do sleep 0.02; tries=$((tries + 1)); done
kill -TERM "$(trainings told-amid | tail -1)" 2>/dev/null || true
wait $job || true
several "$mpi" 2 "$weft" train $translation --steps 4 --set save_every=4 --set valid_every=2 --out told-amid --resume >log 2>&1 || failed "told: $(tail -1 log)"
}
for file in state model best; do
    cmp translation/$file.safetensors told-amid/$file.safetensors || failed "told to stop: $file"
done
[ "$(grep '"valid"' told-amid/metrics.jsonl | sed 's/"seconds":[^,}]*//')" = "$(grep '"valid"' translation/metrics.jsonl | sed 's/"seconds":[^,}]*//')" ] || failed 'told to stop: other validations'

# --- a number that goes bad: every process looks at all parts, also at those that it had not encoded
bad="seq2seq-tiny --train a.en,a.de --set batch_tokens=300 --set accumulate=4 --set clip=0 --set lr=1e12 --set warmup=0 --steps 6"
# shellcheck disable=SC2086
{
"$weft" train $bad --out bad >log 2>&1 && failed 'numbers that go bad'
several "$mpi" 3 "$weft" train $bad --out bad-3 >out 2>&1 && failed 'numbers that go bad, on 3'
}
grep -q 'the first bad tensor' log && [ "$(grep -c "$(tail -1 log | sed 's/[][*.]/\\&/g')" out)" = 1 ] || failed "numbers that go bad: $(cat out)"
finish
