# SPDX-License-Identifier: MIT
"""Weft's bench/conv beside PyTorch: forward and backward of convolutions, in turn. Milliseconds and ratios.

    python bench/conv.py [--build build-bench] [--threads 2] [--seconds 0.5] [--rounds 3] [--case NAME]"""
import argparse, json, math, os, pathlib, statistics, subprocess, time
import torch
import torch.nn.functional as F

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('--build', default='build-bench')
ap.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
ap.add_argument('--seconds', type=float, default=0.5)
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--case', help='only this one')
A = ap.parse_args()
torch.set_num_threads(A.threads)

def torch_ms(c):
    b, ch, h, w = c['x']
    one = h == 1
    x = torch.randn(b, ch, w) if one else torch.randn(b, ch, h, w)
    rows, cols = (ch, c['filters'] // c['groups']) if c['transposed'] else (c['filters'], ch // c['groups'])
    weight = torch.randn(rows, cols, *(c['kernel'][1:] if one else c['kernel']))
    bias = torch.randn(c['filters'])
    f = {(False, False): F.conv2d, (False, True): F.conv1d, (True, False): F.conv_transpose2d}[c['transposed'], one]
    for t in x, weight, bias:
        t.requires_grad_()
    def once():
        x.grad = weight.grad = bias.grad = None
        begin = time.perf_counter()
        y = f(x, weight, bias, stride=c['stride'], padding=(c['padding'] if one else (c['padding'], c['padding'])), groups=c['groups'])
        y.backward(torch.zeros_like(y))
        return 1e3 * (time.perf_counter() - begin)
    once()
    times, end = [], time.perf_counter() + A.seconds
    while len(times) < 3 or time.perf_counter() < end:
        times.append(once())
    return statistics.median(times)

ours, theirs = {}, {}
for _ in range(A.rounds):
    program = [pathlib.Path(A.build) / 'bench' / 'conv', '-t', str(A.threads), '-s', str(A.seconds), '-w']
    weft = subprocess.Popen(program + (['-n', A.case] if A.case else []), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while True:
        try:
            weft.stdin.write('\n')
            weft.stdin.flush()
        except BrokenPipeError:
            break
        line = weft.stdout.readline()
        if not line:
            break
        c = json.loads(line)
        ours.setdefault(c['case'], []).append(c['ms'])
        theirs.setdefault(c['case'], []).append(torch_ms(c))
ratios = []
if not ours:
    raise SystemExit('no case was run')
for case in ours:
    ratio = statistics.median(t / o for t, o in zip(theirs[case], ours[case]))
    ratios.append(ratio)
    print(f'{case:24} {statistics.median(ours[case]):9.2f} ms  PyTorch {statistics.median(theirs[case]):9.2f} ms  {ratio:5.2f}')
print(f'{"geometric mean":24} {math.exp(statistics.mean(map(math.log, ratios))):44.2f}')
