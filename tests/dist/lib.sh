# SPDX-License-Identifier: MIT
# What the scripts of several processes share. Sourced after tests/cli/lib.sh.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 OMPI_MCA_btl_base_warn_component_unused=0
WEFT_PLUGINS=$WEFT_BUILD_ROOT # a program in no folder of the build
export WEFT_PLUGINS OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMP_NUM_THREADS OMPI_MCA_btl_base_warn_component_unused

# Each MPI whose plug-in was built, and whose launcher is here.
mpis=
for name in openmpi mpich; do
    ! command -v mpirun.$name >/dev/null || [ ! -f "$WEFT_BUILD_ROOT/weft-mpi-$name.so" ] || mpis="$mpis $name"
done
# Outside the suite slow a script that sets $sample runs with this MPI alone.
case $mpis in *" ${sample:-of none}"*) [ "${WEFT_TEST_ALL:-}" ] || mpis=" $sample" ;; esac
[ "$mpis" ] || { echo 'skipped: neither Open MPI nor MPICH is here'; exit 77; }

# several MPI N COMMAND...: with a limit, since processes that wait for each other wait for ever
several()
{
    mpi=$1 n=$2
    shift 2
    case $mpi in
    openmpi) timeout -k 5 120 mpirun.openmpi --oversubscribe --bind-to none -n "$n" "$@" ;;
    mpich) timeout -k 5 120 mpirun.mpich -n "$n" "$@" ;;
    esac
}

# running PATTERN: the processes of "weft PATTERN", whose arguments end with a blank each; a bare machine has no pgrep
running()
{
    for folder in /proc/[0-9]*; do
        case $(tr '\000' ' ' 2>/dev/null <"$folder/cmdline") in
        "$weft "$1) echo "${folder#/proc/}" ;;
        esac
    done 2>/dev/null
}

# trainings RUN: those that train there
trainings() { running "train *--out $1 *"; }

# alike RUN RUN: the bytes of their files, and of the numbers in metrics.jsonl but times
numbers() { sed 's/"seconds":[^,}]*//; s/"[a-z]*_per_second":[^,}]*//' "$1/metrics.jsonl" | grep -v -e '"warning"' -e '"event":"data"' -e '"start"' -e '"end"'; }
alike()
{
    for file in state model best; do
        [ ! -f "$1/$file.safetensors" ] || cmp "$1/$file.safetensors" "$2/$file.safetensors" || failed "$file of $1 and $2"
    done
    numbers "$1" >a && numbers "$2" >b
    cmp -s a b || failed "metrics of $1 and $2: $(diff a b | head -4)"
}
mpi=${mpis#* } # one of them, for what does not depend on it
mpi=${mpi%% *}
