# SPDX-License-Identifier: MIT
# Several processes: what they do together, and trainings whose bytes do not depend on their number. Called as: sh world.sh WEFT SOURCE-ROOT
# TOGETHER.
. "$2/tests/cli/lib.sh"
. "$source/tests/dist/lib.sh"
together=$(cd "$OLDPWD" && realpath "$3")

# --- what programs call
"$together" sums | grep -q '^1 processes add' || failed 'one process'
for mpi in $mpis; do
    for n in $(some 3 "1 2 3 4 5"); do
        several $mpi $n "$together" sums >out 2>&1 || failed "$mpi, $n processes: $(cat out)"
        grep -q "^$n processes add" out || failed "$mpi, $n processes: $(cat out)"
    done
    several $mpi 3 "$together" fails 1 >out 2>&1 && grep -qx 'rank 1: no file here' out || failed "$mpi, rank 1 fails: $(cat out)"
    several $mpi 3 "$together" fails 0 >out 2>&1 && grep -qx 'no file here' out || failed "$mpi, rank 0 fails: $(cat out)"
done

# --- wf_fit: a program that knows nothing of processes; a third of its batches leave parts empty
for parts in 4 8; do
    PARTS=$parts "$together" fit alone-$parts 10 || failed "alone, $parts parts"
done
for mpi in $mpis; do
    for n in $(some 3 "2 3 4"); do
        PARTS=4 several $mpi $n "$together" fit fit-$mpi-$n 10 >log 2>&1 || failed "$mpi, $n processes: $(tail -2 log)"
        alike alone-4 fit-$mpi-$n
    done
    [ "$(some '' all)" ] || continue
    PARTS=8 several $mpi 8 "$together" fit fit-$mpi-8 10 >log 2>&1 || failed "$mpi, 8 processes: $(tail -2 log)"
    alike alone-8 fit-$mpi-8
done
# more processes than parts: more parts, which a resume on fewer processes keeps
PARTS=2 several "$mpi" 4 "$together" fit raised 7 >log 2>&1 || failed "raised: $(cat log)"
grep -q '4 processes share a batch, which is cut into 4 micro-batches instead of 2: set accumulate = 4 for the same bytes' log || failed "what is raised is not told: $(cat log)"
PARTS=2 several "$mpi" 2 "$together" fit raised 9 >log 2>&1 || failed "raised, on 2: $(cat log)"
PARTS=2 "$together" fit raised 10 >log 2>&1 || failed "raised, alone: $(cat log)"
cmp alone-4/model.safetensors raised/model.safetensors || failed 'raised: other bytes'
PARTS=2 several "$mpi" 5 "$together" fit raised 11 >log 2>&1 && failed 'more processes than leaves'
grep -q 'the run has leaves = 4, the largest number of processes that can resume it; 5 were started' log || failed "more processes than leaves: $(cat log)"
# running statistics of batch normalisation: the same on all processes (together compares them) and in the files; resumed on other numbers
PARTS=8 "$together" fit norm-alone 10 norm || failed 'batch normalisation, alone'
for mpi in $mpis; do
    for n in $(some 3 "2 3"); do
        PARTS=8 several $mpi $n "$together" fit norm-$mpi-$n 10 norm >log 2>&1 || failed "batch normalisation, $mpi, $n processes: $(tail -2 log)"
        alike norm-alone norm-$mpi-$n
    done
done
PARTS=8 several "$mpi" 4 "$together" fit norm-resumed 4 norm >log 2>&1 || failed "batch normalisation, 4 steps: $(cat log)"
PARTS=8 several "$mpi" 2 "$together" fit norm-resumed 7 norm >log 2>&1 || failed "batch normalisation, resumed on 2: $(cat log)"
PARTS=8 "$together" fit norm-resumed 10 norm >log 2>&1 || failed "batch normalisation, resumed alone: $(cat log)"
cmp norm-alone/model.safetensors norm-resumed/model.safetensors || failed 'batch normalisation, resumed: other bytes'
grep -q 'body.norm.running_var' norm-alone/model.safetensors || failed 'batch normalisation: no running statistics in the file'
# a program that may know of no parts
several "$mpi" 2 "$together" fit whole 5 >out 2>log && failed 'a program of one part'
grep -q "2 processes were started, and the program's batch is one micro-batch: set .accumulate to 2 or more" log || failed "a program of one part: $(cat log)"
# a NaN in one part: one line, which says where
PARTS=4 several "$mpi" 4 "$together" fit bad 5 bad >out 2>log && failed 'a NaN'
[ "$(grep -c 'the loss is not finite; the first bad tensor' log)" = 1 ] || failed "a NaN: $(cat log)"
# in the gradient of one part, and in rank 0's validation: one line, which says what made it, and nobody is left waiting
PARTS=4 several "$mpi" 4 "$together" fit steep 5 steep >out 2>log && failed 'a NaN in a gradient'
[ "$(grep -c 'the forward pass is, and the backward of sqrt(flattened .* for its operand flattened' log)" = 1 ] || failed "a NaN in a gradient: $(cat log)"
PARTS=4 several "$mpi" 4 "$together" fit held 5 held >out 2>log && failed 'a NaN in a validation'
[ "$(grep -c 'step 4: the validation loss is nan; the first bad tensor: the input noise \[1\] has nan at \[0\]' log)" = 1 ] || failed "a NaN in a validation: $(cat log)"
# a turn for each optimiser, ended by a NaN too
PARTS=4 "$together" fit phases 6 phases >out 2>&1 || failed "phases, alone: $(cat out)"
PARTS=4 several "$mpi" 4 "$together" fit phases-4 6 phases >out 2>&1 || failed "phases: $(cat out)"
alike phases phases-4
# validations that are not alike: rank 0's decide, on all
PARTS=4 several "$mpi" 2 "$together" fit unequal 40 unequal >out 2>&1 || failed "validations that differ: $(cat out)"
grep -q '"event":"end","step":4,' unequal/metrics.jsonl || failed "validations that differ: $(tail -2 unequal/metrics.jsonl)"
# a process whose options are wrong: told by all, waited for by none
PARTS=4 several "$mpi" 3 "$together" fit lost 4 lost >out 2>log && failed 'a process without a folder'
grep -q 'rank 1: wf_fit: .out is NULL, and of rank 0 a folder' log || failed "a process without a folder: $(cat log)"
PARTS=4 several "$mpi" 3 "$together" fit nowhere 4 nowhere >out 2>log || failed "no folder for anybody: $(cat log)"
[ ! -e nowhere ] || failed 'a training without a folder has made one'
# rank 0 can write no more, while the others are in the next update
PARTS=4 several "$mpi" 2 "$together" fit full 9 full >out 2>log && failed 'a full disk'
grep -q 'metrics.jsonl' log || failed "a full disk: $(cat log)"
# weights that are not alike
PARTS=4 several "$mpi" 4 "$together" fit unlike 5 seed >out 2>log && failed 'other weights'
grep -q 'the processes differ: rank 0 and rank 1 do not have the same weights; ' log || failed "other weights: $(cat log)"

# --- the command
awk 'BEGIN { srand(3); for (i = 0; i < 120; i++) { n = 1 + int(rand() * 9); s = t = ""
    for (k = 0; k < n; k++) { w = int(rand() * 9); s = s (k ? " " : "") "s" w; t = "t" w (k ? " " : "") t } print s > "a.en"; print t > "a.de" } }'
language="char-rms --train $story --set batch=6 --set accumulate=4 --set dropout=0.1"
translation="seq2seq-tiny --train a.en,a.de --valid a.en,a.de --set batch_tokens=100 --set accumulate=4 --set dropout=0.1 --set label_smoothing=0.1"
encoder="encoder-attention --train $story --set layers=1 --set batch=6 --set accumulate=4 --set context=32"
for model in language translation encoder; do
    eval "settings=\$$model"
    settings="$settings --steps 12 --set save_every=4 --set valid_every=6"
    # shellcheck disable=SC2086
    "$weft" train $settings --out $model >log 2>&1 || failed "$model: $(tail -1 log)"
    n=2 # 2 and 4 processes with either MPI, in turns
    for how in $mpis; do
        [ "$model" != translation ] || n=$((6 - n))
        # shellcheck disable=SC2086
        several $how $n "$weft" train $settings --out $model-$n --threads $((n / 2)) >log 2>&1 || failed "$model, $how, $n: $(tail -1 log)"
        alike $model $model-$n
        [ "$(grep -c '^step 12 of 12' log)" = 1 ] || failed "$model, $how, $n: not one line at the end: $(cat log)"
        [ "$model" = translation ] || n=$((6 - n))
    done
done

# --- killed: any rank, at any moment; resumed on another number of processes
try=0
kills=0
long=$(some 250 500)
# shellcheck disable=SC2086
"$weft" train $language --steps $long --set save_every=5 --set valid_every=0 --out straight >log 2>&1 || failed "straight: $(tail -1 log)"
while [ $try -lt 4 ]; do
    try=$((try + 1))
    n=$((1 << try % 3))
    # shellcheck disable=SC2086
    several "$mpi" $n "$weft" train $language --steps $long --set save_every=5 --set valid_every=0 --out killed --resume >log 2>&1 &
    job=$!
    sleep 0.$((3 + try % 5))
    pids=$(trainings killed)
    # shellcheck disable=SC2086
    set -- $pids
    [ $# = 0 ] || { shift $((try % $#)); ! kill -9 "$1" 2>/dev/null || kills=$((kills + 1)); }
    wait $job || true
    [ -z "$(trainings killed)" ] || sleep 1
    [ -z "$(trainings killed)" ] || failed 'processes are left behind after the death of one'
done
[ $kills -ge 2 ] || failed "only $kills processes were killed"
# shellcheck disable=SC2086
several "$mpi" 2 "$weft" train $language --steps $long --set save_every=5 --set valid_every=0 --out killed --resume >log 2>&1 || failed "the last resume: $(tail -1 log)"
alike straight killed

# --- told to stop: one of them, by a queue; or all, by mpirun
for signal in $(some TERM 'USR1 TERM'); do
    rm -f log
    # shellcheck disable=SC2086
    several "$mpi" 4 "$weft" train $language --steps 1000000 --set valid_every=0 --set save_every=0 --out told-$signal >out 2>log &
    job=$!
    tries=0
    until grep -qs '"event":"step"' told-$signal/metrics.jsonl || [ $tries -gt 600 ]; do sleep 0.05; tries=$((tries + 1)); done
    kill -$signal "$(trainings told-$signal | tail -1)" || failed "no process to tell: $(tail -2 log)"
    status=0
    wait $job || status=$?
    [ $status != 0 ] && [ -f told-$signal/state.safetensors ] || failed "told to stop by $signal: $status, $(tail -2 log)"
    [ "$(grep -c 'continues from here' log)" = 1 ] || failed "told to stop by $signal: $(tail -3 log)"
done

# --- what is refused, in one line
# shellcheck disable=SC2086
{
several "$mpi" 8 "$weft" train $language --out many >out 2>err && failed 'more processes than rows'
grep -q 'batch (6) must be at least accumulate (8)' err || failed "more processes than rows: $(cat err)"
cp "$story" other.txt && echo more >>other.txt
cat >pick <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] && text=$1 || text=other.txt
shift
exec "$@" --train "$text"
END
chmod +x pick
several "$mpi" 2 ./pick "$story" "$weft" train char-rms --set accumulate=2 --steps 2 --out differ >out 2>err && failed 'other texts'
[ "$(grep -c 'the processes differ: rank 0 and rank 1 do not have the same training text; ' err)" = 1 ] || failed "other texts: $(cat err)"
}
several "$mpi" 2 "$weft" generate straight --prompt a >out 2>err && failed 'generate on two'
[ "$(grep -c 'runs as one process, and mpirun started 2' err)" = 1 ] || failed "generate on two: $(cat err)"
several "$mpi" 2 "$weft" train char-rms --train missing.txt --out no >out 2>err && failed 'a missing text'
[ "$(grep -c 'missing.txt' err)" = 1 ] || failed "a missing text: $(cat err)"
# an mpirun of another MPI: each process is alone with its own
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 timeout 60 "$together" sums >out 2>err && failed 'a foreign launcher'
case $mpis in *openmpi*) grep -q 'the launcher started 2 processes, and Open MPI knows of 1' err || failed "a foreign launcher: $(cat err)" ;; esac
# no plug-in beside the program
mkdir bare && cp "$together" bare/ && WEFT_PLUGINS='' OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 bare/together sums >out 2>err && failed 'no plug-in'
grep -q 'weft-mpi-openmpi.so was not found: build Weft where' err || [ -f /usr/local/lib/x86_64-linux-gnu/weft/weft-mpi-openmpi.so ] || failed "no plug-in: $(cat err)"
finish
