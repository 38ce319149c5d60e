# SPDX-License-Identifier: MIT
"""torch.mm on the shapes of bench/gemm: python torch_gemm.py THREADS OP M N K [OP M N K]...

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
        torch.mm(a, b, out=c)
        seconds.append(time.perf_counter() - begin)
    return 2e-9 * m * n * k / statistics.median(seconds), 2e-9 * m * n * k / min(seconds)

torch.set_num_threads(int(sys.argv[1]))
print(f'PyTorch {torch.__version__}, {torch.get_num_threads()} threads; GFLOP/s')
for i in range(2, len(sys.argv) - 3, 4):
    op, (m, n, k) = sys.argv[i], map(int, sys.argv[i + 1:i + 4])
    count = max(2, min(2000, COLD // (4 * (m * k + k * n + m * n))))
    runs = [(torch.randn(k, m).t() if op == 'TN' else torch.randn(m, k), torch.randn(n, k).t() if op == 'NT' else torch.randn(k, n),
             torch.zeros(m, n)) for _ in range(count)]
    rates(m, n, k, runs)
    hot, cold = rates(m, n, k, runs[:1]), rates(m, n, k, runs)
    print(f'{op} {m:6d} {n:6d} {k:6d}  hot {hot[0]:6.1f} ({hot[1]:6.1f}) cold {cold[0]:6.1f} ({cold[1]:6.1f})', flush=True)
