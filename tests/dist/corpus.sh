# SPDX-License-Identifier: MIT
# A parallel text with filters on several processes: one of a machine trains the tokenizer and surveys the text, the others map what it wrote;
# killed and resumed. Called as: sh corpus.sh WEFT SOURCE-ROOT TOGETHER.
. "$2/tests/cli/lib.sh"
. "$source/tests/dist/lib.sh"
together=$(cd "$OLDPWD" && realpath "$3")
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
awk 'BEGIN { srand(3); for (i = 0; i < 3000; i++) { n = 1 + int(rand() * 9); s = t = ""
    for (k = 0; k < n; k++) { w = int(rand() * 40); s = s (k ? " " : "") "s" w; t = "t" w (k ? " " : "") t }
    if (rand() < 0.1) t = t " t1 t2 t3 t4 t5 t6 t7 t8 t9 t10 t11 t12 t13 t14 t15 t16 t17 t18 t19 t20"
    if (rand() < 0.01) s = ""
    print s > "a.en"; print t > "a.de" } }'
settings="transformer-base --train a.en,a.de --set d_model=16 --set heads=2 --set d_ff=32 --set encoder_layers=1 --set decoder_layers=1
    --set vocab_size=120 --set batch_tokens=300 --set batch_tolerance=0 --set accumulate=4 --set dropout=0.1 --set max_ratio=2 --set deduplicate=true
    --set save_every=5 --set keep=0"
# shellcheck disable=SC2086
"$weft" train $settings --steps 240 --out alone >log 2>&1 || failed "alone: $(tail -1 log)"
grep -q '^training: .* empty source, .* with a length ratio above 2, .* duplicates$' log || failed "what is left out: $(cat log)"
sed -n 's/.*\("used":.*"target_tokens":[0-9]*\).*/\1/p' alone/metrics.jsonl >used
[ -s used ] || failed "what is left out: $(head -1 alone/metrics.jsonl)"

for how in $mpis; do
    # --- who waits for that process sleeps
    for n in 1 2 3 5; do
        several $how $n "$together" rest >out 2>&1 && grep -qx "$n processes rest" out || failed "$how, $n processes: $(cat out)"
    done

    # --- one process fills the cache, and all have the survey mapped
    rm -r cache
    # shellcheck disable=SC2086
    several $how 4 "$weft" train $settings --steps 1000000 --out mapped-$how >log 2>&1 &
    job=$!
    tries=0
    until [ -f mapped-$how/state.safetensors ] || [ $tries -gt 400 ]; do sleep 0.05; tries=$((tries + 1)); done
    pids=$(trainings mapped-$how)
    count=0
    for pid in $pids; do
        ! grep -q "cache/weft/survey-[0-9a-f]*.bin" "/proc/$pid/maps" || count=$((count + 1))
    done
    [ $count = 4 ] || failed "$how: $count of 4 processes have the survey mapped: $(tail -1 log)"
    # shellcheck disable=SC2086
    kill -9 $pids
    wait $job
    [ "$(find cache/weft -name 'survey-*' | wc -l) $(find cache/weft -name 'tokenizer-*' | wc -l)" = '1 1' ] || failed "$how: the cache: $(ls cache/weft)"
    sed -n 's/.*\("used":.*"target_tokens":[0-9]*\).*/\1/p' mapped-$how/metrics.jsonl | cmp -s - used || failed "$how: other pairs: $(head -1 mapped-$how/metrics.jsonl)"

    # --- killed, resumed on another number
    tries=0
    kills=0
    while [ $tries -lt 2 ]; do
        tries=$((tries + 1))
        # shellcheck disable=SC2086
        several $how $((2 + tries % 2 * 2)) "$weft" train $settings --steps 240 --out killed-$how --resume >log 2>&1 &
        job=$!
        wait_for=0 # some steps of this start are done, and most are not
        until [ "$(grep -c '^step ' log)" -gt 0 ] || [ $wait_for -gt 500 ]; do wait_for=$((wait_for + 1)); sleep 0.02; done
        pids=$(trainings killed-$how)
        # shellcheck disable=SC2086
        set -- $pids
        [ $# = 0 ] || { shift $((tries % $#)); ! kill -9 "$1" 2>/dev/null || kills=$((kills + 1)); }
        wait $job || true
    done
    [ $kills -gt 0 ] || failed "$how: nothing was killed"
    # shellcheck disable=SC2086
    several $how 2 "$weft" train $settings --steps 240 --out killed-$how --resume >log 2>&1 || failed "$how: the last resume: $(tail -1 log)"
    alike alone killed-$how
done
finish
