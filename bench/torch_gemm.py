# SPDX-License-Identifier: MIT
"""torch.mm on the shapes of bench/gemm: python torch_gemm.py THREADS[,bf16|,cast] OP M N K [OP M N K]...

With bf16 the operands and the result are in bf16; with cast the operands are floats, which are cast to bf16 first, as in autocast.

OP as there: NT (B stored [n, k]), NN, TN (A stored [k, m]). Operands hot, the same in each run, and cold, others in each run out of 576 MB,
results included; the median of up to 60 runs and (the best), GFLOP/s.
"""
import statistics, sys, time
import torch

SAMPLES, SECONDS, COLD = 60, 3, 576 << 20

def rates(m, n, k, runs):
    seconds = []
    while len(seconds) < SAMPLES and sum(seconds) < SECONDS:
        a, b, c = runs[len(seconds) % len(runs)]
        begin = time.perf_counter()
        torch.mm(a.to(c.dtype), b.to(c.dtype), out=c)
        seconds.append(time.perf_counter() - begin)
    return 2e-9 * m * n * k / statistics.median(seconds), 2e-9 * m * n * k / min(seconds)

threads, _, kind = sys.argv[1].partition(',')
torch.set_num_threads(int(threads))
given, result = (torch.bfloat16 if kind == 'bf16' else torch.float), torch.bfloat16 if kind else torch.float
made = lambda *size: torch.randn(*size).to(given)
print(f'PyTorch {torch.__version__}, {torch.get_num_threads()} threads; GFLOP/s')
for i in range(2, len(sys.argv) - 3, 4):
    op, (m, n, k) = sys.argv[i], map(int, sys.argv[i + 1:i + 4])
    count = max(2, min(2000, COLD // (4 * (m * k + k * n + m * n))))
    runs = [(made(k, m).t() if op == 'TN' else made(m, k), made(n, k).t() if op == 'NT' else made(k, n), torch.zeros(m, n, dtype=result))
            for _ in range(count)]
    rates(m, n, k, runs)
    hot, cold = rates(m, n, k, runs[:1]), rates(m, n, k, runs)
    print(f'{op} {m:6d} {n:6d} {k:6d}  hot {hot[0]:6.1f} ({hot[1]:6.1f}) cold {cold[0]:6.1f} ({cold[1]:6.1f})', flush=True)
