# SPDX-License-Identifier: MIT
# weft evaluate and weft translate on several processes: what they print, and how they end. Called as: sh commands.sh WEFT SOURCE-ROOT.
. "$2/tests/cli/lib.sh"
sample=mpich
. "$source/tests/dist/lib.sh"
awk 'BEGIN { srand(3); for (i = 0; i < 150; i++) { n = 1 + int(rand() * 9); s = t = ""
    for (k = 0; k < n; k++) { w = int(rand() * 9); s = s (k ? " " : "") "s" w; t = "t" w (k ? " " : "") t } print s > "a.en"; print t > "a.de" } }'
train() { "$weft" train "$@" >log 2>&1 || failed "$*: $(tail -1 log)"; }
train char-rms --train "$story" --set batch=4 --steps 3 --out language
train encoder-attention --train "$story" --set layers=1 --set batch=4 --set context=32 --steps 3 --out encoder
train seq2seq-tiny --train a.en,a.de --set batch_tokens=500 --steps 40 --out translation

# printed N COMMAND...: standard output is that of one process, in `alone`, and so are the messages but the first, which counts threads
printed()
{
    n=$1
    shift
    several $mpi "$n" "$@" --threads 1 <"$input" >out 2>err || failed "$mpi, $n: $*: $(tail -3 err)"
    cmp alone out || failed "$mpi, $n: $*: another output"
    [ "$(grep -c ' threads*, BLIS' err)" -le 1 ] || failed "$mpi, $n: $*: each process says its threads"
    sed -e '/^\[hwloc/d' -e '/ threads*, /d' err | cmp - messages || failed "$mpi, $n: $*: other messages: $(cat err)"
}
# as_alone COMMAND...: on each MPI and number of processes
as_alone()
{
    "$@" <"$input" >alone 2>messages || failed "$*: $(tail -1 messages)"
    sed -i '/ threads*, /d' messages
    for mpi in $mpis; do
        for n in $counts; do
            printed "$n" "$@"
        done
    done
}
input=/dev/null
counts=$(some 3 '2 3')
as_alone "$weft" evaluate language --data "$story" --json
as_alone "$weft" evaluate language --data "$story" --stride 5 --json
as_alone "$weft" evaluate encoder --data "$story"
as_alone "$weft" evaluate translation --data a.en,a.de
counts=4
as_alone "$weft" evaluate translation --data a.en,a.de --no-bleu --json
as_alone "$weft" evaluate translation --data a.en,a.de --beam 2 --json

# --- translations: a file, standard input through a pipe, a beam, lines that are empty, unknown, too long
counts=$(some 2 '1 2 3')
{ cat a.en; printf '\n   \nnobody knows\n'; head -c 3000 /dev/zero | tr '\0' 's' | sed 's/ss/s1 /g'; printf '\ns1 s2'; } >lines
input=lines
as_alone "$weft" translate translation
counts=4
as_alone "$weft" translate translation --beam 3 --n-best 2
as_alone "$weft" translate translation --beam 3 --n-best 2 --json
for n in 0 1 3; do # fewer lines than processes
    head -n $n a.en >few
    input=few
    as_alone "$weft" translate translation --beam 2
done
mpi=${mpis#* }
mpi=${mpi%% *}
"$weft" translate translation <a.en >alone 2>/dev/null
(head -n 5 a.en; sleep 0.3; tail -n +6 a.en) | several "$mpi" 2 "$weft" translate translation >out 2>err || failed "a pipe: $(tail -1 err)"
cmp alone out || failed 'a pipe: another output'

# --- a line that is refused: the lines before it, and one message, which names the line
{ head -n 30 a.en; printf 'not \377 UTF-8\n'; head -n 30 a.en; } >bad
"$weft" translate translation <bad >alone 2>messages && failed 'a line that is not UTF-8'
for how in $mpis; do
    several "$how" 3 "$weft" translate translation <bad >out 2>err && failed "$how: a line that is not UTF-8"
    cmp alone out || failed "$how: a line that is not UTF-8: another output"
    [ "$(grep -c "$(tail -1 messages)" err)" = 1 ] || failed "$how: a line that is not UTF-8: $(cat err)"
done
head -n 100 a.en >short
several "$mpi" 3 "$weft" evaluate translation --data short,a.de >out 2>err && failed 'files of different lengths'
[ "$(grep -c 'short has 100 lines and a.de has 150' err)" = 1 ] && [ ! -s out ] || failed "files of different lengths: $(cat err)"

# --- one process that fails, or does something else: one line, and nobody waits
cat >pick <<'END'
#!/bin/sh
# pick RUN OTHER COMMAND...: RUN on all but rank 1
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && run=$2 || run=$1
command=$4
weft=$3
shift 4
exec "$weft" "$command" "$run" "$@"
END
chmod +x pick
train seq2seq-tiny --train a.en,a.de --set batch_tokens=500 --steps 41 --out other
for command in translate evaluate; do
    [ $command = translate ] && data= || data='--data a.en,a.de'
    # shellcheck disable=SC2086
    {
    several "$mpi" 3 ./pick translation missing "$weft" $command $data <a.en >out 2>err && failed "$command: a run that is missing"
    [ "$(grep -c '^weft: rank 1: .*missing' err)" = 1 ] && [ ! -s out ] || failed "$command: a run that is missing: $(cat err)"
    several "$mpi" 3 ./pick translation other "$weft" $command $data <a.en >out 2>err && failed "$command: other weights"
    [ "$(grep -c '^weft: the processes differ: rank 0 has .*, rank 1 has ' err)" = 1 ] && [ ! -s out ] || failed "$command: other weights: $(cat err)"
    }
done
# --- told to stop while it waits for lines
mkfifo nothing && exec 3<>nothing
several "$mpi" 2 "$weft" translate translation <nothing >out 2>err 3>&- &
job=$!
tries=0
until [ "$(running 'translate translation ' | wc -l)" = 2 ] && grep -qs ' threads*, ' err || [ $tries -gt 400 ]; do sleep 0.05; tries=$((tries + 1)); done
for pid in $(running 'translate translation '); do kill -TERM "$pid"; done
tries=0
while [ -n "$(running 'translate translation ')" ] && [ $tries -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
[ $tries -lt 200 ] || failed 'told to stop: they go on'
wait $job && failed 'told to stop: exit code 0'

# --- ./demo and others build the command alone: what mpirun needs comes with it
ninja -C "$WEFT_BUILD_ROOT" -t inputs cli/weft 2>/dev/null | grep -q "weft-mpi-$mpi.so" || failed 'the command is built without its plug-ins'
finish
