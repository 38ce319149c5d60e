# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/ops_second.safetensors: second derivatives of single ops by PyTorch, also at edge values (0, ties, infinities).
tests/autograd/golden_second.c reads it; no test runs Python. Run by hand, with the CPU build of PyTorch 2.13 (pip install torch==2.13.0
safetensors numpy):

    python tests/golden/make_second.py

A case NAME has its operands NAME/0, NAME/1, ..., the gradient NAME/v of the result, and weights NAME/w.0, ... of the operands' gradients.
With g.i the gradient of sum(v * op(x)) by operand i, and s = sum over i of sum(w.i * g.i), NAME/d.i is the gradient of s by operand i, and
NAME/d.v the one by v. Everything is computed in float64 from numbers that float holds."""
import math
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
import torch_reference as R
from make_ops import EDGES, OUT, inf, values

def case(out, name, fn, *operands):
    given = [x.clone().requires_grad_() if x.dtype == torch.float64 else x for x in operands]
    real = {i: x for i, x in enumerate(given) if x.requires_grad}
    y = fn(*given)
    v = R.real(f'{name}/v', tuple(y.shape)).requires_grad_()
    g = torch.autograd.grad(y, list(real.values()), v, create_graph=True)
    w = {i: R.real(f'{name}/w.{i}', tuple(x.shape)) for i, x in real.items()}
    # operands on which s does not depend get zeros; s + 0 * sum(x) would be NaN at infinities
    s = sum((w[i] * gi).sum() for i, gi in zip(real, g)) + 0 * v.sum()
    d = torch.autograd.grad(s, [*real.values(), v], allow_unused=True)
    for i, x in enumerate(given):
        out[f'{name}/{i}'] = x
    out[f'{name}/v'] = v
    for k, i in enumerate(real):
        out[f'{name}/w.{i}'] = w[i]
        out[f'{name}/d.{i}'] = torch.zeros_like(given[i]) if d[k] is None else d[k]
    out[f'{name}/d.v'] = d[-1]

def scan(a, b, initial):
    h, rows = initial, []
    for t in range(a.shape[1]):
        h = a[:, t] * h + b[:, t]
        rows.append(h)
    return torch.stack(rows, 1)

def pack(x, offsets):
    return torch.cat([x[i, :b - a] for i, (a, b) in enumerate(zip(offsets, offsets[1:]))])

def pad(x, offsets):
    longest = max(b - a for a, b in zip(offsets, offsets[1:]))
    return torch.stack([F.pad(x[a:b], (0, 0, 0, longest - (b - a)), value=0.5) for a, b in zip(offsets, offsets[1:])])

def elements(out):
    x, finite = values(EDGES), values([v for v in EDGES if math.isfinite(v) and abs(v) < 1e3])
    case(out, 'abs', torch.abs, x)
    case(out, 'clamp', lambda x: torch.clamp(x, -1, 1.5), x)
    case(out, 'softplus', lambda x: F.softplus(x, beta=2, threshold=700), finite)
    case(out, 'leaky_relu', lambda x: F.leaky_relu(x, 0.25), x)
    case(out, 'elu', lambda x: F.elu(x, 0.75), x)
    case(out, 'softcap', lambda x: 2 * torch.tanh(x / 2), finite)
    case(out, 'square', torch.square, x)
    for name, p in dict(zero=0, one=1, two=2, three=3, five=5, half=0.5, minus_one=-1, other=2.25).items():
        case(out, f'pow_{name}', lambda x: torch.pow(x, p), x)
    a, b = torch.meshgrid(values([0.5, 1, 3]), values([-1.5, -1, 0, 0.5, 1, 2, 3.25]), indexing='ij')
    case(out, 'pow', torch.pow, a.contiguous(), b.contiguous())
    case(out, 'pow_of_zero', lambda x: torch.pow(x, b[0]), values([0] * 7)) # with respect to exponents of 0, all is NaN in PyTorch
    a, b = torch.meshgrid(values([-40.5, -1, 0, 0.5, 20.5]), values([-20.5, -1, 0, 3]), indexing='ij')
    case(out, 'logaddexp', torch.logaddexp, a.contiguous(), b.contiguous())
    case(out, 'rsqrt', torch.rsqrt, x)
    case(out, 'sin', torch.sin, finite)
    case(out, 'cos', torch.cos, finite)
    case(out, 'erf', torch.erf, x)
    case(out, 'sign', torch.sign, x)
    case(out, 'floor', torch.floor, x)
    case(out, 'log_sigmoid', F.logsigmoid, x)
    case(out, 'hard_swish', F.hardswish, finite)
    case(out, 'mish', F.mish, finite)
    gate, up = 2 * R.real('gate', (3, 5)), R.real('up', (3, 5))
    case(out, 'swiglu', lambda g, u: F.silu(g) * u, gate, up)
    case(out, 'geglu_tanh', lambda g, u: F.gelu(g, approximate='tanh') * u, gate, up)

def reductions(out):
    x, zeros = 2 * R.real('reduced', (3, 5)), values([[0, 0, 0], [3, 0, -1], [2, -2, 2]])
    for c in 0, 1:
        case(out, f'var_{c}', lambda x: torch.var(x, 1, correction=c), x)
        case(out, f'std_{c}', lambda x: torch.std(x, 1, correction=c), x)
    # where the result is 0, PyTorch's d.v is NaN, though the gradient is 0 for every v
    case(out, 'std_same', lambda x: torch.std(x, 1, correction=1), values([[1, 1, 1], [2, 3, 4]]))
    del out['std_same/d.v']
    for name, p in dict(one=1, two=2, three=3, half=0.5, infinite=inf).items():
        case(out, f'norm_{name}', lambda x: torch.linalg.vector_norm(x, p, 1), x)
        if p >= 1: # for p < 1 the derivatives at 0 are infinite, and PyTorch's are NaN
            case(out, f'norm_{name}_zeros', lambda x: torch.linalg.vector_norm(x, p, 1), zeros)
            del out[f'norm_{name}_zeros/d.v']
    products = values([[2, 3, 0.5, -1], [0, 2, 3, -1], [2, 0, 3, 0], [0, 0, 0, 2]])
    case(out, 'prod', lambda x: torch.prod(x, 1), products)
    case(out, 'prod_all', torch.prod, products[1])
    case(out, 'cumprod', lambda x: torch.cumprod(x, 1), products)
    case(out, 'cumprod_first', lambda x: torch.cumprod(x, 0), products)
    ties = values([[3, 1, 2, 1, 3], [5, inf, 1, -inf, inf]])
    case(out, 'max', lambda x: torch.max(x, 1).values, ties)
    case(out, 'min', lambda x: torch.min(x, 0, keepdim=True).values, ties)
    case(out, 'top_k', lambda x: torch.topk(x, 2, 1).values, x)
    case(out, 'sort', lambda x: torch.sort(x, dim=1, descending=True, stable=True).values, ties)

def places(out):
    x = R.real('places', (3, 5))
    case(out, 'flip', lambda x: torch.flip(x, [1]), x)
    case(out, 'roll', lambda x: torch.roll(x, 2, 1), x)
    case(out, 'pad', lambda x: F.pad(x, (1, 2), value=0.5), x)
    case(out, 'tril', lambda x: torch.tril(x, -1), x)
    case(out, 'triu', lambda x: torch.triu(x, 1), x)
    case(out, 'unfold', lambda x: x.unfold(1, 3, 1), x)
    ids = torch.tensor([2, 0, 2, 1], dtype=torch.int32)
    by_row = torch.tensor([[0, 4], [3, 3], [1, 0]], dtype=torch.int32)
    case(out, 'embedding', lambda w, i: F.embedding(i.long(), w), x, ids)
    case(out, 'index_select', lambda x, i: torch.index_select(x, 0, i.long()), x, ids)
    case(out, 'index_add', lambda x, i, s: torch.index_add(x, 0, i.long(), s), x, ids, R.real('places/source', (4, 5)))
    case(out, 'gather', lambda x, i: torch.gather(x, 1, i.long()), x, by_row)
    case(out, 'scatter_add', lambda x, i, s: torch.scatter_add(x, 1, i.long(), s), x, by_row, R.real('places/scatter', (3, 2)))
    case(out, 'cumsum', lambda x: torch.cumsum(x, 1), x)
    case(out, 'scan', scan, R.real('scan/a', (2, 4, 3)), R.real('scan/b', (2, 4, 3)), R.real('scan/0', (2, 3)))
    offsets = [0, 4, 5, 9]
    case(out, 'pad_rows', lambda x: pad(x, offsets), R.real('rows', (9, 2)))
    case(out, 'pack_rows', lambda x: pack(x, offsets), R.real('padded', (3, 5, 2)))
    case(out, 'mean_packed', lambda x: torch.stack([x[a:b].mean(0) for a, b in zip(offsets, offsets[1:])]), R.real('rows', (9, 2)))
    picture = R.real('picture', (1, 2, 5, 6))
    case(out, 'avg_pool', lambda x: F.avg_pool2d(x, 3, 2, 1), picture)
    case(out, 'avg_pool_inside', lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), picture)
    case(out, 'adaptive', lambda x: F.adaptive_avg_pool2d(x, (3, 4)), picture)
    case(out, 'max_pool', lambda x: F.max_pool2d(x, 3, 2, 1), (picture * 4).round())
    case(out, 'nearest', lambda x: F.interpolate(x, (7, 4), mode='nearest'), picture)
    case(out, 'linear', lambda x: F.interpolate(x, (7, 4), mode='bilinear'), picture)
    case(out, 'corners', lambda x: F.interpolate(x, (7, 4), mode='bilinear', align_corners=True), picture)

if __name__ == '__main__':
    out = {}
    for section in elements, reductions, places:
        section(out)
    arrays = {k: v.detach().contiguous().numpy(force=True) for k, v in out.items()}
    save_file(arrays, OUT / 'ops_second.safetensors', metadata={'made_by': 'tests/golden/make_second.py', 'torch': torch.__version__})
    print(f'{len(arrays)} tensors, {sum(a.nbytes for a in arrays.values())} bytes')
