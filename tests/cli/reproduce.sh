# SPDX-License-Identifier: MIT
# The same bytes on 1 to 4 threads, with dropout, on each instruction set, with BLIS and own products.
. "$2/tests/cli/lib.sh"

# Under the sanitizers, which are slow and look for other things, less of it.
threads='1 2 3 4'
steps=50
case ${WEFT_SANITIZE:-none} in none) ;; *) threads='1 2' steps=4 ;; esac

runs() { # runs NAME STEPS: with 1 to 4 threads, all alike
    for n in $threads; do
        "$weft" train nanogpt-char-small --train "$story" --out "$1-$n" --steps "$2" --set dropout=0.1 --threads $n 2>log ||
            failed "$1 on $n threads: $(tail -1 log)"
        cmp "$1-1/model.safetensors" "$1-$n/model.safetensors" || failed "$1: $n threads gave other bytes than 1"
    done
}
runs own $steps
(
    WEFT_ISA=avx2
    export WEFT_ISA
    "$weft" train nanogpt-char-small --train "$story" --out probe --steps 1 2>/dev/null && runs avx2 $steps
    [ "$failures" = 0 ]
) || { [ ! -e avx2-1 ] && echo 'skipped: no AVX2 here'; } || failures=$((failures + 1))
(
    WEFT_GEMM=blis
    export WEFT_GEMM
    runs blis $((steps < 5 ? steps : 5))
    [ "$failures" = 0 ]
) || failures=$((failures + 1))
cmp -s own-1/model.safetensors blis-1/model.safetensors && failed 'blis and own give the same file: is the switch at work?'
# Accumulation: dropout's masks are those of the large batch, the loss is that of the large batch.
"$weft" train nanogpt-char-small --train "$story" --out parts --steps 5 --set dropout=0.1 --set accumulate=5 2>/dev/null || failed accumulate
"$weft" train nanogpt-char-small --train "$story" --out whole --steps 5 --set dropout=0.1 2>/dev/null || failed whole
a=$(sed -n 's/.*"step":5,"loss\/train":\([0-9.]*\).*/\1/p' parts/metrics.jsonl | head -1)
b=$(sed -n 's/.*"step":5,"loss\/train":\([0-9.]*\).*/\1/p' whole/metrics.jsonl | head -1)
[ "$(printf '%.4f' "$a")" = "$(printf '%.4f' "$b")" ] && [ -n "$a" ] || failed "accumulated loss $a, whole $b"
finish
