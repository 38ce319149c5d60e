# SPDX-License-Identifier: MIT
"""The cases of bench/views in PyTorch, beside Weft's: PY bench/torch_views.py [--build DIR] [--threads N] [--rounds N]

Medians of rounds of new processes in turn, milliseconds."""
import argparse, json, pathlib, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('--build', default=str(ROOT / 'build'))
ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--torch', action='store_true', help=argparse.SUPPRESS)
A = ap.parse_args()
N, PASSES, STATES = 4096, 11, 1024

def measure():
    import torch
    torch.set_num_threads(A.threads)
    x, leaf, one = torch.randn(N, N), torch.randn(N, N, requires_grad=True), torch.randn(())
    heads = torch.randn(32, 256, 8, 64, requires_grad=True)
    parts = [torch.randn(32, 128, requires_grad=True) for _ in range(STATES)]
    cases = {
        'sum of a transpose': lambda: x.t().sum(),
        'sum of a slice': lambda: x[:, 7:N - 9].sum(),
        'sum of an expanded scalar': lambda: one.expand(8192, 8192).sum(),
        'sums along rows of a transpose': lambda: x.t().sum(1),
        'sums along columns of a transpose': lambda: x.t().sum(0),
        'exp of a transpose, with gradient': lambda: leaf.t().exp(),
        'two users, one of a transpose, with gradient': lambda: leaf.t().exp() + leaf.tanh(),
        'heads to the front, with gradient': lambda: heads.permute(0, 2, 1, 3).contiguous(),
        'stack of 1,024 states, with gradient': lambda: torch.stack(parts, 1),
        'rows of 4,096 sorted': lambda: x[:1024].topk(N, 1),
        'the 256 greatest of rows of 4,096': lambda: x[:1024].topk(256, 1),
    }
    found = {}
    for name, run in cases.items():
        ms = []
        for _ in range(PASSES + 2):
            for t in leaf, heads, *parts:
                t.grad = None
            begin = time.perf_counter()
            y = run()
            if 'gradient' in name:
                y.backward(torch.ones(()).expand_as(y))
            ms.append((time.perf_counter() - begin) * 1e3)
        found[name] = statistics.median(ms[2:])
    print(json.dumps(found))

if A.torch:
    measure()
    sys.exit()
runs = {'Weft': [pathlib.Path(A.build) / 'bench' / 'views', '-j', '-t', A.threads], 'PyTorch': [sys.executable, '-B', __file__, '--torch', '--threads', A.threads]}
found = {name: [] for name in runs}
for _ in range(A.rounds):
    for name, command in runs.items():
        r = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if r.returncode:
            sys.exit(f'{name}: {r.stderr.strip()[-400:]}')
        found[name].append(json.loads(r.stdout))
print('| | Weft | PyTorch | times as fast |\n|---|---|---|---|')
for case in found['Weft'][0]:
    weft, torch = (statistics.median(r[case] for r in found[name]) for name in runs)
    print(f'| {case} | {weft:.3g} | {torch:.3g} | {torch / weft:.2f} |')
