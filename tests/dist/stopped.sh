# SPDX-License-Identifier: MIT
# A process that is stopped for a while: one line names its rank, and the training ends with the bytes that it has otherwise. One that is
# killed ends the job. Called as: sh stopped.sh WEFT SOURCE-ROOT ANOTHER.
. "$2/tests/cli/lib.sh"
. "$source/tests/dist/lib.sh"
another=$(cd "$OLDPWD" && realpath "$3")
language="char-rms --train $story --set batch=24 --set accumulate=4 --set dropout=0.1 --set valid_tokens=0 --set schedule=constant"
export WAIT_SECONDS=4
# Others may wait for the stopped one, and rank 0 for them too.
waiting='waiting for ranks\{0,1\} [0-9, ]*2[0-9, ]* since'

# rank_of PID
rank_of() { tr '\000' '\n' <"/proc/$1/environ" | sed -n 's/^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=//p'; }

# at_step RUN RANK: waits for the first step; the process of the rank in $pid
at_step()
{
    tries=0
    until grep -qs '"event":"step"' "$1/metrics.jsonl" || [ $tries -gt 400 ]; do sleep 0.05; tries=$((tries + 1)); done
    pid=
    for p in $(weft=$another && trainings "$1"); do
        [ "$(rank_of "$p")" != "$2" ] || pid=$p
    done
    [ "$pid" ] || failed "no process of rank $2: $(tail -2 log)"
}

# until_says TEXT
until_says()
{
    tries=0
    until grep -q "$1" log || [ $tries -gt 800 ]; do sleep 0.05; tries=$((tries + 1)); done
    grep -q "$1" log || failed "'$1' is not in: $(cat log)"
}

for how in $mpis; do
    rm -f log
    # shellcheck disable=SC2086
    several $how 4 "$another" train $language --steps 1000000 --out stopped-$how >out 2>log &
    job=$!
    at_step stopped-$how 2
    kill -STOP "$pid"
    until_says "warning: $waiting [0-9]* s: .* stopped?"
    told=$(grep -c 'waiting for' log)
    sleep 5 # and not again
    [ "$(grep -c 'waiting for' log)" = "$told" ] || failed "$how: not once: $(grep 'waiting for' log)"
    kill -CONT "$pid"
    sleep 0.3
    kill -TERM "$pid"
    wait $job || true
    grep -q "\"event\":\"warning\".*$waiting" stopped-$how/metrics.jsonl || failed "$how: not in metrics.jsonl"
    grep -q 'interrupted; --resume continues from here' log || failed "$how: after a stop: $(tail -3 log)"
    step=$(sed -n 's/.*"event":"end","step":\([0-9]*\).*/\1/p' stopped-$how/metrics.jsonl)
    # shellcheck disable=SC2086
    several $how 2 "$weft" train $language --steps $((step + 2)) --out stopped-$how --resume >out 2>err || failed "$how, the resume: $(cat err)"
    # shellcheck disable=SC2086
    "$weft" train $language --steps $((step + 2)) --out straight-$how 2>err || failed "straight: $(tail -1 err)"
    for file in state model; do
        cmp stopped-$how/$file.safetensors straight-$how/$file.safetensors || failed "$how: a stop changes $file"
    done

    # --- killed: the launcher says so, and ends the others
    rm -f log
    # shellcheck disable=SC2086
    WAIT_SECONDS='' several $how 2 "$another" train $language --steps 1000000 --out killed-$how >out 2>log &
    job=$!
    at_step killed-$how 1
    kill -KILL "$pid"
    status=0
    wait $job || status=$?
    [ $status != 0 ] || failed "$how: a killed process passes for success"
    [ -z "$(weft=$another && trainings killed-$how)" ] || sleep 1
    [ -z "$(weft=$another && trainings killed-$how)" ] || failed "$how: processes are left behind"
    grep -qi 'kill' log out || failed "$how: nothing says that a process was killed: $(cat log)"
    ! grep '^another: ' log || failed "$how: the others say something too: $(cat log)"
done
finish
