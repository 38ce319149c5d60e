# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/ssm.safetensors: the selective scan as a loop in PyTorch, results, last states and gradients; results at
infinities and NaN, with the inputs; and the block of Mamba, MambaMixer of transformers. Weights and inputs are those that formula.h gives.
tests/nn/ssm.c reads it. Run by hand, as make_torch.py, with transformers 5.24:

    python tests/golden/make_ssm.py"""
import math
from unittest import mock
import torch
import torch.nn.functional as F
from transformers import MambaConfig
from transformers.models.mamba.modeling_mamba import MambaMixer
import torch_reference as R
from make_torch import run, save

def scan(x, dt, a, b, c, d, h, softplus):
    dt = F.softplus(dt) if softplus else dt
    ys = []
    for t in range(x.shape[1]):
        h = torch.exp(dt[:, t, :, None] * a) * h + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None]
        y = (h * c[:, t, None]).sum(-1)
        ys.append(y if d is None else y + d * x[:, t])
    return torch.stack(ys, 1), h

def scan_case(out, name, B, T, E, N, softplus=False, plain=False):
    def fn(p, i):
        h = torch.zeros(B, E, N, dtype=torch.float64) if plain else p['h']
        y, last = scan(i['x'], i['dt'], -torch.exp(p['a']), i['b'], i['c'], p.get('d'), h, softplus)
        return y if plain else torch.cat([y.reshape(-1), last.reshape(-1)])
    shapes = {'a': (E, N)} | ({} if plain else {'d': (E,), 'h': (B, E, N)})
    run(out, name, shapes, {'x': (B, T, E), 'dt': (B, T, E), 'b': (B, T, N), 'c': (B, T, N)}, fn)

def mixer_case(out, name, B, T, d, **options):
    config = MambaConfig(hidden_size=d, num_hidden_layers=1, **options)
    module = MambaMixer(config, 0).double().eval()
    shapes = {k: tuple(v.shape) for k, v in module.named_parameters()}
    # The slow path converts some weights to float, also in a model of doubles.
    with mock.patch.object(torch.Tensor, 'float', lambda self: self):
        run(out, name, shapes, {'x': (B, T, d)}, lambda p, i: torch.func.functional_call(module, p, (i['x'],)))

out = {}
scan_case(out, 'scan', 2, 7, 5, 3)
scan_case(out, 'scan_softplus', 3, 5, 19, 6, softplus=True)
scan_case(out, 'scan_plain', 2, 4, 3, 4, plain=True)
scan_case(out, 'scan_long', 2, 70, 3, 2, softplus=True)
scan_case(out, 'scan_wide', 1, 3, 131, 9, softplus=True)
scan_case(out, 'scan_one_step', 3, 1, 4, 5, softplus=True)
scan_case(out, 'scan_one_state', 2, 9, 4, 1)

# Each row is a channel with its steps: dt of 0, large, infinite and NaN, and such x.
inf, nan = math.inf, math.nan
dt = [[0, 0, 0, 0], [1, 0, 1, 0], [inf, 1, 1, 1], [1, nan, 1, 1], [1e4, 1e30, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1e-40, 200, 0.5]]
x = [[1, 2, 3, 4], [1, inf, 2, 3], [1, 1, 2, 1], [1, 1, 1, 1], [1, 2, 1, 1], [inf, 1, 1, 1], [1, nan, 1, 1], [1, 1, 1, 1]]
a = [[-1, -0.5], [-1, -2], [-1, -3], [-1, -1], [-1, -2], [-1, -1], [-1, -1], [-1, 0.25]]
tensor = lambda v: torch.tensor(v, dtype=torch.float32).double()
x, dt, a = tensor(x).T[None].contiguous(), tensor(dt).T[None].contiguous(), tensor(a)
b, c, h = R.real('scan_edges/b', (1, 4, 2)), R.real('scan_edges/c', (1, 4, 2)), R.real('scan_edges/h', (1, 8, 2))
y, last = scan(x, dt, a, b, c, None, h, False)
out |= {'scan_edges/x': x, 'scan_edges/dt': dt, 'scan_edges/a': a, 'scan_edges/out': y, 'scan_edges/last': last}

mixer_case(out, 'mixer', 2, 9, 12, state_size=5, time_step_rank=3)
mixer_case(out, 'mixer_bias', 3, 4, 6, state_size=16, time_step_rank=1, expand=3, use_bias=True, use_conv_bias=False)
mixer_case(out, 'mixer_long', 1, 75, 4, state_size=3, time_step_rank=2, conv_kernel=3)
mixer_case(out, 'mixer_short', 2, 3, 20, state_size=4, time_step_rank='auto')
save('ssm', out, 'make_ssm.py')
