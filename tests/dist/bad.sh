# SPDX-License-Identifier: MIT
# What goes wrong on several processes, each in one line for all, with the exit code of one process, and nothing lost: a full disk, two jobs in
# one folder, processes of another version or instruction set, a launcher that tells them to stop. Called as: sh bad.sh WEFT SOURCE-ROOT ANOTHER.
. "$2/tests/cli/lib.sh"
. "$source/tests/dist/lib.sh"
another=$(cd "$OLDPWD" && realpath "$3")
language="char-rms --train $story --set batch=6 --set accumulate=4 --set dropout=0.1 --set valid_tokens=0 --set schedule=constant --set ema=0.9"

# on RANK VARIABLE=VALUE COMMAND...: the command, with this in the environment of one rank
cat >on <<'END'
#!/bin/sh
rank=$1 variable=$2
shift 2
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != "$rank" ] || export "$variable"
exec "$@"
END
chmod +x on

# one_line CODE 'PART': the exit code in $status, and one line of the command's in err that holds the part
one_line()
{
    [ "$status" = "$1" ] || failed "exit code $status, not $1: $(cat err)"
    [ "$(grep -c '^[a-z]*: ' err)" = 1 ] || failed "not one line: $(cat err)"
    grep '^[a-z]*: ' err | grep -qF -- "$2" || failed "'$2' is not in: $(cat err)"
}

# --- a full disk, on rank 0, which writes: during a save, and before anything is there
# shellcheck disable=SC2086
"$weft" train $language --out begun --steps 4 2>err || failed "begun: $(tail -1 err)"
cp -r begun straight
# shellcheck disable=SC2086
"$weft" train $language --out straight --steps 8 --resume 2>err || failed "straight: $(tail -1 err)"
n=4
for how in $mpis; do
    n=$((6 - n)) # 2, then 4; resumed on the other
    rm -rf full && cp -r begun full
    status=0
    # shellcheck disable=SC2086
    several $how $n ./on 0 DISK_ROOM=20000 "$another" train $language --out full --steps 8 --resume >out 2>err || status=$?
    one_line 1 'No space left on device; after fixing this, --resume continues from step 4'
    grep -q 'full/.*safetensors' err || failed "no file is named: $(cat err)"
    for file in state model ema; do
        cmp full/$file.safetensors begun/$file.safetensors || failed "a full disk damaged $file"
    done
    # shellcheck disable=SC2086
    several $how $((6 - n)) "$weft" train $language --out full --steps 8 --resume >out 2>err || failed "after a full disk: $(cat err)"
    cmp full/model.safetensors straight/model.safetensors || failed "$how, $n: other weights after a full disk"
    cmp full/state.safetensors straight/state.safetensors || failed "$how, $n: another state after a full disk"
    cmp full/ema.safetensors straight/ema.safetensors || failed "$how, $n: other averages after a full disk"
done
for room in 0 700; do # not even the configuration; then not metrics.jsonl
    rm -rf full
    status=0
    # shellcheck disable=SC2086
    several "$mpi" 2 ./on 0 TOLD_LATE=1 ./on 0 DISK_ROOM=$room "$another" train $language --out full --steps 8 >out 2>err || status=$?
    one_line 1 'No space left on device'
    [ ! -f full/state.safetensors ] || failed 'a state on a full disk'
done
# shellcheck disable=SC2086
several "$mpi" 2 "$weft" train $language --out full --steps 4 >out 2>err || failed "after a disk that was full at the start: $(cat err)"
cmp full/model.safetensors begun/model.safetensors || failed 'other weights after a disk that was full at the start'
# the same words on one process
rm -rf full && cp -r begun full
# shellcheck disable=SC2086
expect 1 'No space left on device; after fixing this, --resume continues from step 4' env DISK_ROOM=20000 "$another" train $language --out full --steps 8 --resume

# --- two jobs in one folder: the second is refused, the first goes on
for how in $mpis; do
    rm -rf busy && : >first.log
    # shellcheck disable=SC2086
    several $how 2 "$weft" train $language --out busy --steps 100000000 >out 2>first.log &
    job=$!
    tries=0
    until grep -q parameters first.log || [ $tries -gt 400 ]; do sleep 0.05; tries=$((tries + 1)); done
    status=0
    # shellcheck disable=SC2086
    several $how 2 "$weft" train $language --out busy --steps 9 --resume >out 2>err || status=$?
    one_line 1 'busy is being trained by another process'
    [ "$(trainings busy | wc -l)" = 2 ] || failed "$how: the first job does not go on: $(tail -2 first.log)"
    kill -TERM "$(trainings busy | tail -1)"
    wait $job && failed "$how: the first job ended as done"
    grep -q 'interrupted; --resume continues from here' first.log || failed "$how: the first job: $(tail -2 first.log)"
    step=$(sed -n 's/.*"event":"end","step":\([0-9]*\).*/\1/p' busy/metrics.jsonl)
    # shellcheck disable=SC2086
    "$weft" train $language --out busy --steps $((step + 2)) --resume 2>err || failed "the first job's resume: $(tail -1 err)"
    # shellcheck disable=SC2086
    "$weft" train $language --out undisturbed-$how --steps $((step + 2)) 2>err || failed "undisturbed: $(tail -1 err)"
    cmp busy/model.safetensors undisturbed-$how/model.safetensors || failed "$how: a second job disturbed the first"
    cmp busy/state.safetensors undisturbed-$how/state.safetensors || failed "$how: a second job disturbed the first's state"
done

# --- machines that are not alike
# shellcheck disable=SC2086
for how in $mpis; do
    status=0
    several $how 3 ./on 0 TOLD_LATE=1 ./on 2 ANOTHER_VERSION=9.9.9 "$another" train $language --out unlike --steps 2 >out 2>err || status=$?
    one_line 2 'the processes differ: rank 0 has version='
    grep -q ', rank 2 has version=9.9.9; ' err || failed "versions: $(cat err)"
    if "$weft" train $language --out probe-$how --steps 1 2>&1 | grep -q ', base kernels'; then
        echo 'skipped: this machine has one instruction set'
        continue
    fi
    status=0
    several $how 2 ./on 1 WEFT_ISA=base "$weft" train $language --out unlike --steps 2 >out 2>err || status=$?
    one_line 2 'the processes differ: rank 0 has instruction-set='
    grep -q ', rank 1 has instruction-set=base; ' err || failed "instruction sets: $(cat err)"
    status=0
    several $how 2 ./on 0 TOLD_LATE=1 ./on 1 WEFT_ISA=vax "$another" train $language --out unlike --steps 2 >out 2>err || status=$?
    one_line 2 'rank 1: '
    [ ! -f unlike/config.json ] && [ ! -f unlike/metrics.jsonl ] || failed "$how: processes that differ have written: $(ls unlike)"
done

# --- mpirun is told to stop. Open MPI passes SIGUSR1 on at once; SIGTERM after the seconds of odls_base_sigkill_timeout, and waits as long again
# before it kills.
told()
{
    signal=$1
    shift
    rm -rf told pid && : >log
    # shellcheck disable=SC2016,SC2086
    timeout -k 5 120 sh -c 'echo $$ >pid; exec "$@"' sh mpirun.openmpi "$@" --oversubscribe --bind-to none -n 4 \
        "$weft" train $language --out told --steps 100000000 >out 2>log &
    job=$!
    tries=0
    until grep -qs '"event":"step"' told/metrics.jsonl || [ $tries -gt 400 ]; do sleep 0.05; tries=$((tries + 1)); done
    kill "-$signal" "$(cat pid)"
    status=0
    wait $job || status=$?
    [ "$(grep -c 'interrupted; --resume continues from here' log)" = 1 ] || failed "mpirun and $signal: $(tail -3 log)"
    step=$(sed -n 's/.*"event":"end","step":\([0-9]*\).*/\1/p' told/metrics.jsonl)
    # shellcheck disable=SC2086
    "$weft" train $language --out told --steps $((step + 2)) --resume 2>err || failed "mpirun and $signal, the resume: $(tail -1 err)"
    # shellcheck disable=SC2086
    "$weft" train $language --out "whole-$signal" --steps $((step + 2)) 2>err || failed "whole: $(tail -1 err)"
    cmp told/model.safetensors "whole-$signal/model.safetensors" || failed "mpirun and $signal: other weights"
}
case $mpis in
*openmpi*)
    told TERM --mca odls_base_sigkill_timeout 2
    [ $status != 0 ] || failed 'mpirun and SIGTERM: ended as done'
    told USR1
    [ $status = 138 ] || failed "mpirun and SIGUSR1: exit code $status"
    ;;
esac
finish
