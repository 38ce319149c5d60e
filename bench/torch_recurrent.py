# SPDX-License-Identifier: MIT
"""nn.LSTM and nn.GRU of PyTorch beside bench/recurrent: PY bench/torch_recurrent.py [--build DIR] [--threads N] [--rounds N] [--forward]
    [--cpu] [--steps T]

Medians of rounds of new processes in turn, milliseconds."""
import argparse, json, pathlib, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('--build', default=str(ROOT / 'build'))
ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--forward', action='store_true', help='the forward alone, without gradients')
ap.add_argument('--cpu', action='store_true', help='processor time in place of the clock, for a busy machine')
ap.add_argument('--steps', type=int, default=10 ** 9, help='at most T steps')
ap.add_argument('--torch', action='store_true', help=argparse.SUPPRESS)
A = ap.parse_args()
CASES = [(k, B, T, H) for B, T, H in ((16, 64, 128), (64, 256, 512)) for k in ('LSTM', 'GRU')] + [('LSTM', 1, 1, 512)]

def measure():
    import torch
    torch.set_num_threads(A.threads)
    found = {}
    now = time.process_time if A.cpu else time.perf_counter
    for kind, B, T, H in CASES:
        name, T = f'{kind} {B} x {T} x {H}', min(T, A.steps)
        m, x, ms = getattr(torch.nn, kind)(H, H, batch_first=True), torch.randn(B, T, H, requires_grad=not A.forward), []
        for _ in range(2 + (5 if B == 64 else 41 if B == 16 else 201)):
            m.zero_grad()
            x.grad = None
            start = now()
            if A.forward:
                with torch.inference_mode():
                    m(x)
            else:
                m(x)[0].sum().backward()
            ms.append(1e3 * (now() - start))
        found[name] = statistics.median(ms[2:])
    print(json.dumps(found))

if A.torch:
    measure()
    sys.exit()
rounds = []
for _ in range(A.rounds):
    flags = ['-s', str(A.steps)] + ['-f'] * A.forward + ['-c'] * A.cpu
    ours = json.loads(subprocess.check_output([f'{A.build}/bench/recurrent', '-t', str(A.threads), '-j'] + flags))
    theirs = json.loads(subprocess.check_output([sys.executable, __file__, '--torch', '--threads', str(A.threads)] +
                                                ['--steps', str(A.steps)] + ['--forward'] * A.forward + ['--cpu'] * A.cpu))
    rounds.append((ours, theirs))
for name in rounds[0][0]:
    ours, theirs = (statistics.median(r[i][name] for r in rounds) for i in (0, 1))
    print(f'{name:22s} weft {ours:9.3f}   torch {theirs:9.3f}   ratio {theirs / ours:.2f}')
