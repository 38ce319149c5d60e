# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/row_ops.safetensors: logsumexp, log_softmax, cumsum, normalize, cosine_similarity and the recurrence
h = a h + b in PyTorch, values and gradients, from inputs that formula.h gives; and the first two at infinities and NaN, with the inputs.
tests/autograd/golden_row_ops.c reads it. Run by hand, as make_torch.py:

    python tests/golden/make_row_ops.py"""
import math
import torch
import torch.nn.functional as F
import torch_reference as R
from make_torch import run, save

def scan(a, b, h, dim):
    states = []
    for at, bt in zip(a.unbind(dim), b.unbind(dim)):
        h = at * h + bt
        states.append(h)
    return torch.stack(states, dim)

out = {}
run(out, 'logsumexp', {}, {'x': (3, 7, 5)}, lambda p, i: torch.logsumexp(9 * i['x'], -1))
run(out, 'logsumexp_middle', {}, {'x': (3, 7, 5)}, lambda p, i: torch.logsumexp(9 * i['x'], 1, keepdim=True))
run(out, 'log_softmax', {}, {'x': (3, 7, 5)}, lambda p, i: F.log_softmax(9 * i['x'], -1))
run(out, 'log_softmax_first', {}, {'x': (3, 7, 5)}, lambda p, i: F.log_softmax(9 * i['x'], 0))
run(out, 'cumsum', {}, {'x': (3, 7, 5)}, lambda p, i: i['x'].cumsum(-1))
run(out, 'cumsum_middle', {}, {'x': (3, 7, 5)}, lambda p, i: i['x'].cumsum(1))
run(out, 'normalize', {}, {'x': (3, 7, 5)}, lambda p, i: F.normalize(i['x'], dim=-1))
run(out, 'normalize_short', {}, {'x': (3, 7, 5)}, lambda p, i: F.normalize(i['x'], dim=-1, eps=1.2))  # some rows are longer
run(out, 'cosine', {}, {'a': (4, 1, 6), 'b': (5, 6)}, lambda p, i: F.cosine_similarity(i['a'], i['b'], dim=-1))
run(out, 'scan', {}, {'a': (2, 9, 5), 'b': (2, 9, 5), 'h': (2, 5)}, lambda p, i: scan(i['a'], i['b'], i['h'], 1))
run(out, 'scan_last', {}, {'a': (3, 11), 'b': (3, 11)}, lambda p, i: scan(i['a'], i['b'], torch.zeros(3, dtype=torch.float64), 1))

inf, nan = math.inf, math.nan
edges = [[inf, 1, -2], [nan, 1, -inf], [1, -inf, 2], [inf, -inf, inf], [1000, 1000, -1000], [-1e30, -1e30, -1e30], [nan, inf, 3], [0, -0.0, 88.5]]
for name, f in ('logsumexp', torch.logsumexp), ('log_softmax', F.log_softmax):
    x = torch.tensor(edges, dtype=torch.float32).double().requires_grad_()
    y = f(x, 1)
    dy = R.real(f'{name}_edges/r', tuple(y.shape))
    y.backward(dy)
    out |= {f'{name}_edges/x': x, f'{name}_edges/r': dy, f'{name}_edges/out': y, f'{name}_edges/d.x': x.grad}
save('row_ops', out, 'make_row_ops.py')
