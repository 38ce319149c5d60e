# SPDX-License-Identifier: MIT
"""PyTorch beside bench/ssm: PY bench/torch_ssm.py [--build DIR] [--threads N] [--rounds N] [--forward] [--cpu]

PyTorch has no fused scan for processors. The scan is timed as a loop over the steps (loop) and in the parallel form of sums and
exponentials (parallel), which overflows for long texts; the block is MambaMixer of transformers, whose scan is a loop. Medians of rounds of
new processes in turn, milliseconds."""
import argparse, json, pathlib, statistics, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('--build', default=str(ROOT / 'build'))
ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--forward', action='store_true', help='the forward alone, without gradients')
ap.add_argument('--cpu', action='store_true', help='processor time in place of the clock, for a busy machine')
ap.add_argument('--torch', action='store_true', help=argparse.SUPPRESS)
A = ap.parse_args()
CASES = [('scan', 4, 256, 256, 16), ('block', 4, 256, 256, 16), ('block', 1, 1, 512, 16)]

def measure():
    import torch
    import torch.nn.functional as F
    from transformers import MambaConfig
    from transformers.models.mamba.modeling_mamba import MambaMixer
    torch.set_num_threads(A.threads)
    now = time.process_time if A.cpu else time.perf_counter

    def loop(x, dt, a, b, c, d):
        dt = F.softplus(dt)
        power, enter, h, ys = torch.exp(dt[..., None] * a), (dt * x)[..., None] * b[:, :, None], 0, []
        for t in range(x.shape[1]):
            h = power[:, t] * h + enter[:, t]
            ys.append((h @ c[:, t, :, None])[..., 0])
        return torch.stack(ys, 1) + d * x

    def parallel(x, dt, a, b, c, d):  # h_t = e^(s_t) * (sum of e^(-s_k) * what enters at k), with the cumulative sums s of dt A
        dt = F.softplus(dt)
        s = torch.cumsum(dt[..., None] * a, 1)
        h = torch.exp(s) * torch.cumsum(torch.exp(-s) * ((dt * x)[..., None] * b[:, :, None]), 1)
        return (h @ c[..., None])[..., 0] + d * x

    def median_of(fn, inputs, count):
        ms = []
        for _ in range(2 + count):
            for v in inputs:
                v.grad = None
            start = now()
            if A.forward:
                with torch.inference_mode():
                    fn()
            else:
                fn().sum().backward()
            ms.append(1e3 * (now() - start))
        return statistics.median(ms[2:])

    found = {}
    for kind, B, T, E, N in CASES:
        name, leaf = f'{kind} {B} x {T} x {E} x {N}', lambda *s: torch.randn(*s, requires_grad=True)
        if kind == 'scan':
            a = (-1 - torch.arange(N, dtype=torch.float32)).repeat(E, 1).requires_grad_()
            v = [leaf(B, T, E), (torch.randn(B, T, E) - 3).requires_grad_(), a, leaf(B, T, N), leaf(B, T, N), leaf(E)]
            found[name] = {'loop': median_of(lambda: loop(*v), v, 9), 'parallel': median_of(lambda: parallel(*v), v, 9)}
        else:
            m, x = MambaMixer(MambaConfig(hidden_size=E // 2, num_hidden_layers=1, state_size=N), 0).eval(), leaf(B, T, E // 2)
            found[name] = {'transformers': median_of(lambda: m(x), [x, *m.parameters()], 9 if T > 1 else 101)}
    print(json.dumps(found))

if A.torch:
    measure()
    sys.exit()
rounds = []
for _ in range(A.rounds):
    flags = ['-f'] * A.forward + ['-c'] * A.cpu
    ours = json.loads(subprocess.check_output([f'{A.build}/bench/ssm', '-t', str(A.threads), '-j'] + flags))
    theirs = json.loads(subprocess.check_output([sys.executable, __file__, '--torch', '--threads', str(A.threads)] +
                                                ['--forward'] * A.forward + ['--cpu'] * A.cpu, stderr=subprocess.DEVNULL))
    rounds.append((ours, theirs))
for name in rounds[0][0]:
    ours = statistics.median(r[0][name] for r in rounds)
    for way in rounds[0][1][name]:
        theirs = statistics.median(r[1][name][way] for r in rounds)
        print(f'{name:26s} weft {ours:9.3f}   torch, {way:12s} {theirs:9.3f}   ratio {theirs / ours:.2f}')
