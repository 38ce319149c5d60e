# SPDX-License-Identifier: MIT
# The same bytes on 1 to 4 threads, with dropout, on each instruction set, with BLIS and own products.
. "$2/tests/cli/lib.sh"

threads=$(some '1 2 3' '1 2 3 4')
steps=$(some 8 20)
few=$(some 3 4)

runs() { # runs NAME STEPS [VARIABLE=VALUE]: with 1 to 4 threads, all alike
    name=$1 count=$2
    shift 2
    for n in $threads; do
        env "$@" "$weft" train nanogpt-char-small --train "$story" --out "$name-$n" --steps "$count" --set dropout=0.1 --threads "$n" 2>log ||
            failed "$name on $n threads: $(tail -1 log)"
        cmp "$name-1/model.safetensors" "$name-$n/model.safetensors" || failed "$name: $n threads gave other bytes than 1"
    done
}
runs auto $steps
for isa in avx512 avx2 base; do
    if WEFT_ISA=$isa "$weft" train nanogpt-char-small --train "$story" --out probe-$isa --steps 1 2>log; then
        runs $isa $few WEFT_ISA=$isa
        # BLIS is named, in the first line and in the state, only where it computes
        "$weft" inspect probe-$isa/state.safetensors >state
        if head -1 log | grep -q 'BLIS'; then
            grep -q '^blas: BLIS ' state || failed "$isa: the first line names BLIS, the state does not"
        else
            grep -q '^blas: none$' state || failed "$isa: the state names BLIS, the first line does not: $(grep blas state)"
        fi
    elif grep -q "does not support $isa" log; then
        echo "skipped: $isa is not supported here"
    else
        failed "$isa: $(tail -1 log)"
    fi
done
for side in own blis; do
    runs $side $few WEFT_GEMM=$side
    head -1 log >line
    if [ $side = own ]; then grep -q BLIS line; else ! grep -q BLIS line; fi && failed "WEFT_GEMM=$side: $(cat line)"
done
cmp -s own-1/model.safetensors blis-1/model.safetensors && failed 'blis and own give the same file: is the switch at work?'
# Accumulation: dropout's masks are those of the large batch, the loss is that of the large batch.
"$weft" train nanogpt-char-small --train "$story" --out parts --steps 5 --set dropout=0.1 --set accumulate=5 2>/dev/null || failed accumulate
"$weft" train nanogpt-char-small --train "$story" --out whole --steps 5 --set dropout=0.1 2>/dev/null || failed whole
loss() { sed -n 's/.*"step":5,"loss\/train":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl" | head -1; }
[ -n "$(loss whole)" ] && [ "$(printf '%.4f' "$(loss parts)")" = "$(printf '%.4f' "$(loss whole)")" ] ||
    failed "accumulated loss $(loss parts), whole $(loss whole)"
finish
