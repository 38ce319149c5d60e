# SPDX-License-Identifier: MIT
"""The nets of bench/nets.c in PyTorch, in turn with those: forward and backward, medians of rounds of new processes, and ratios.

    PY bench/torch_nets.py [--build build-bench] [--threads 2] [--seconds 3] [--rounds 3] [--net NAME]

The scan of the state-space model is a loop over time (scan), or the closed form of transformers' slow path with [B,T,E,N] in memory before
the loop (loop of transformers); the faster of the two counts."""
import argparse, json, math, pathlib, statistics, subprocess, sys, time

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('--build', default='build-bench')
ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--seconds', type=float, default=3)
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--net', choices=('resnet', 'unet', 'ssm'))
ap.add_argument('--torch', help=argparse.SUPPRESS)
A = ap.parse_args()
NETS = [A.net] if A.net else ['resnet', 'unet', 'ssm']

def measure(which):
    import torch, torch.nn as nn, torch.nn.functional as F
    torch.set_num_threads(A.threads)
    torch.manual_seed(1)
    class Unit(nn.Sequential):
        def __init__(self, i, o, k, stride=1):
            super().__init__(nn.Conv2d(i, o, k, stride, k // 2, bias=False), nn.BatchNorm2d(o))
    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.first, self.second = Unit(i, o, 3, 2 if i != o else 1), Unit(o, o, 3)
            self.shortcut = Unit(i, o, 1, 2) if i != o else nn.Identity()
        def forward(self, x):
            return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))
    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            w = [32, 32, 32, 64, 64, 128, 128]
            self.stem, self.blocks, self.head = Unit(3, 32, 3), nn.Sequential(*[Block(i, o) for i, o in zip(w, w[1:])]), nn.Linear(128, 10)
        def loss(self, x=torch.randn(32, 3, 32, 32), t=torch.arange(32) % 10):
            return F.cross_entropy(self.head(F.adaptive_avg_pool2d(self.blocks(F.relu(self.stem(x))), 1).flatten(1)), t)
    class Residual(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.norm1, self.conv1, self.time = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1), nn.Linear(128, o)
            self.norm2, self.conv2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
            self.shortcut = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
        def forward(self, x, t):
            y = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
            return self.conv2(F.silu(self.norm2(y))) + self.shortcut(x)
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            w = [32, 32, 64, 128]
            self.first = nn.Conv2d(3, 32, 3, padding=1)
            self.before = nn.ModuleList(Residual(w[i], w[i + 1]) for i in range(3))
            self.down = nn.ModuleList(nn.Conv2d(w[i + 1], w[i + 1], 3, 2, 1) for i in range(2))
            self.up = nn.ModuleList(nn.Conv2d(w[i + 2], w[i + 1], 3, padding=1) for i in range(2))
            self.after = nn.ModuleList(Residual(2 * w[i + 1], w[i + 1]) for i in range(2))
            self.middle, self.norm, self.last = Residual(128, 128), nn.GroupNorm(8, 32), nn.Conv2d(32, 3, 3, padding=1)
        def loss(self, noise=torch.randn(16, 3, 32, 32), t=torch.randn(16, 128)):
            x, skip = self.first(noise), []
            for i in range(3):
                x = self.before[i](x, t)
                skip.append(x)
                x = self.down[i](x) if i < 2 else x
            x = self.middle(x, t)
            for i in (1, 0):
                x = self.up[i](F.interpolate(x, size=skip[i].shape[2:], mode='nearest'))
                x = self.after[i](torch.cat((x, skip[i]), 1), t)
            return F.mse_loss(self.last(F.silu(self.norm(x))), noise)
    class Mixer(nn.Module):
        def __init__(self, d=128, n=16, closed=False):
            super().__init__()
            e, r = 2 * d, d // 16
            self.closed, self.n, self.r = closed, n, r
            self.in_proj, self.conv = nn.Linear(d, 2 * e, bias=False), nn.Conv1d(e, e, 4, padding=3, groups=e)
            self.x_proj, self.dt_proj = nn.Linear(e, r + 2 * n, bias=False), nn.Linear(r, e)
            self.A_log = nn.Parameter(torch.log(torch.arange(1., n + 1)).repeat(e, 1))
            self.D, self.out_proj = nn.Parameter(torch.ones(e)), nn.Linear(e, d, bias=False)
        def forward(self, x):
            u, z = self.in_proj(x).chunk(2, -1)
            u = F.silu(self.conv(u.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
            r, b, c = self.x_proj(u).split((self.r, self.n, self.n), -1)
            dt, a = F.softplus(self.dt_proj(r)), -self.A_log.exp()
            h, ys = x.new_zeros(x.shape[0], u.shape[2], self.n), []
            if self.closed:
                da, db = torch.exp(dt[..., None] * a), dt[..., None] * b[:, :, None] * u[..., None]
            for t in range(x.shape[1]):
                if self.closed:
                    h = da[:, t] * h + db[:, t]
                else:
                    h = torch.exp(dt[:, t, :, None] * a) * h + (dt[:, t] * u[:, t])[..., None] * b[:, t, None]
                ys.append(torch.matmul(h, c[:, t, :, None])[..., 0])
            return self.out_proj((torch.stack(ys, 1) + self.D * u) * F.silu(z))
    class Ssm(nn.Module):
        def __init__(self, closed):
            super().__init__()
            self.embed, self.norm, self.head = nn.Embedding(96, 128), nn.RMSNorm(128), nn.Linear(128, 96, bias=False)
            self.norms, self.mixers = nn.ModuleList(nn.RMSNorm(128) for _ in range(4)), nn.ModuleList(Mixer(closed=closed) for _ in range(4))
        def loss(self, ids=torch.arange(1024).view(8, 128) * 31 % 96):
            x = self.embed(ids)
            for norm, mixer in zip(self.norms, self.mixers):
                x = x + mixer(norm(x))
            return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), ((torch.arange(1024) + 1) * 31 % 96))
    for variant, make in {'resnet': {'': ResNet}, 'unet': {'': UNet}, 'ssm': {'loop': lambda: Ssm(False), 'loop of transformers': lambda: Ssm(True)}}[which].items():
        net = make()
        def once():
            net.zero_grad()
            begin = time.perf_counter()
            loss = net.loss()
            loss.backward()
            loss.item()
            return 1e3 * (time.perf_counter() - begin)
        once()
        times, end = [], time.perf_counter() + A.seconds
        while len(times) < 3 or time.perf_counter() < end:
            times.append(once())
        print(json.dumps({'net': which, 'variant': variant, 'ms': statistics.median(times), 'parameters': sum(p.numel() for p in net.parameters())}))

if A.torch:
    measure(A.torch)
    sys.exit()
ratios = []
for net in NETS:
    ours, theirs = [], {}
    for _ in range(A.rounds):
        w = json.loads(subprocess.check_output([pathlib.Path(A.build) / 'bench' / 'nets', '-t', str(A.threads), '-s', str(A.seconds), '-n', net]))
        ours.append(w['ms'])
        for line in subprocess.check_output([sys.executable, '-B', __file__, '--torch', net, '--threads', str(A.threads), '--seconds', str(A.seconds)]).splitlines():
            p = json.loads(line)
            theirs.setdefault(p['variant'], []).append(p['ms'])
            if abs(p['parameters'] - w['parameters']) > 0:
                sys.exit(f"{net}: {w['parameters']} parameters, PyTorch {p['parameters']}")
    best = min(theirs.values(), key=statistics.median)
    ratio = statistics.median(t / o for t, o in zip(best, ours))
    ratios.append(ratio)
    print(f'{net:8} weft {statistics.median(ours):8.2f} ms', *(f'PyTorch {v} {statistics.median(t):8.2f} ms' for v, t in theirs.items()), f'ratio {ratio:.2f}', flush=True)
print(f'geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}')
