# SPDX-License-Identifier: MIT
# What fails on one of several processes fails on all, in the same words, with nobody left waiting; and what a program does with an optimiser
# that the processes share. Called as: sh faults.sh WEFT SOURCE-ROOT FAULTS.
. "$2/tests/cli/lib.sh"
faults=$(cd "$OLDPWD" && realpath "$3")
. "$2/tests/dist/lib.sh"
mpi=${mpis##* }

# told N HOW TEXT: each of the N ranks has this error
told()
{
    several "$mpi" "$1" "$faults" "$2-$1" "$2" >log 2>&1 && failed "$2 on $1: no failure"
    [ "$(grep -c "^rank [0-9]* has .*$3" log)" = "$1" ] || failed "$2 on $1: $(cat log)"
}

"$faults" clean-1 clean 2>log || failed "alone: $(cat log)"
told 3 full 'cannot be written at byte .* after fixing this, .resume continues from step 2'
several "$mpi" 2 "$faults" full-3 clean >log 2>&1 && failed 'a run that is there already'
told 2 sample 'no sample today'
told 3 step 'step 3: beta1 = 2 is not in 0 <= beta1 < 1'
told 2 exists 'holds a run already.*; zeros: 0$'
several "$mpi" 3 "$faults" teacher teacher >log 2>&1 || failed "a registry without gradients: $(cat log)"
"$faults" teacher-1 teacher 2>log || failed "a registry without gradients, alone: $(cat log)"
alike teacher-1 teacher
"$faults" norm-1 norm 2>log || failed "a norm, alone: $(cat log)"
several "$mpi" 3 "$faults" norm norm >log 2>&1 || failed "a norm: $(tail -2 log)"
alike norm-1 norm
several "$mpi" 2 "$faults" save save >log 2>&1 || failed "an own save: $(cat log)"
grep -q 'saved: own.safetensors: the optimiser is shared among several processes until wf_fit returns' log || failed "an own save: $(cat log)"
grep -q 'stepped: wf_optimizer_step: the optimiser is shared among several processes until wf_fit returns' log || failed "an own step: $(cat log)"
alike clean-1 save

# the command, whose folder cannot take what a resume changes
train="char-rms --train $story --set batch=4 --set accumulate=2 --set context=16"
# shellcheck disable=SC2086
"$weft" train $train --steps 2 --out folder >log 2>&1 || failed "the command: $(tail -1 log)"
: >folder/.weft-new
# shellcheck disable=SC2086
several "$mpi" 2 "$weft" train $train --steps 3 --set lr=0.002 --out folder --resume >log 2>&1 && failed 'a folder that takes nothing'
[ "$(grep -c 'folder/.weft-new: ' log)" = 1 ] || failed "a folder that takes nothing: $(cat log)"
finish
