# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/ops_*.safetensors: what PyTorch computes for single ops at edge values (infinities, NaN, signed zeros, ties,
empty tensors), values and gradients. tests/autograd/golden_*.c read them; no test runs Python. Run by hand, with the CPU build of PyTorch
2.13 (pip install torch==2.13.0 safetensors numpy):

    python tests/golden/make_ops.py [SECTION ...]

A case NAME has its operands NAME/0, NAME/1, ..., the result NAME/out, a gradient NAME/dy of the result, and the operands' gradients
NAME/d.0, ... Everything is computed in float64 from numbers that float holds."""
import math, pathlib, sys
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
import torch_reference as R

OUT = pathlib.Path(__file__).parent / 'torch'
torch.set_num_threads(1)
inf, nan = math.inf, math.nan

def save(name, tensors):
    arrays = {k: v.detach().contiguous().numpy() for k, v in tensors.items()}
    save_file(arrays, OUT / f'{name}.safetensors', metadata={'made_by': 'tests/golden/make_ops.py', 'torch': torch.__version__})
    print(f'{name}: {len(arrays)} tensors, {sum(a.nbytes for a in arrays.values())} bytes')

def values(x):
    """A tensor of numbers that float holds."""
    return torch.tensor(x, dtype=torch.float32).to(torch.float64)

def case(out, name, fn, *operands):
    """One case; operands of dtype float64 get gradients."""
    given = [x.clone().requires_grad_() if x.dtype == torch.float64 else x for x in operands]
    y = fn(*given)
    for i, x in enumerate(given):
        out[f'{name}/{i}'] = x
    out[f'{name}/out'] = y
    if not y.requires_grad:
        return
    dy = R.real(f'{name}/dy', tuple(y.shape)) if y.numel() else torch.zeros(y.shape, dtype=torch.float64)
    y.backward(dy)
    out[f'{name}/dy'] = dy
    for i, x in enumerate(given):
        if x.requires_grad:
            out[f'{name}/d.{i}'] = x.grad

EDGES = [-inf, -1e3, -40.5, -20.5, -3, -1.5, -1, -0.5, -1e-7, -0.0, 0, 1e-7, 0.5, 1, 1.5, 3, 20.5, 40.5, 1e3, inf, nan]

# --- elementwise -------------------------------------------------------------------------------------------------------

def elementwise():
    out, x = {}, values(EDGES)
    case(out, 'abs', torch.abs, x)
    case(out, 'square', torch.square, x)
    case(out, 'clamp', lambda x: torch.clamp(x, -1, 1.5), x)
    case(out, 'clamp_low', lambda x: torch.clamp(x, min=0.5), x)
    case(out, 'clamp_high', lambda x: torch.clamp(x, max=-0.5), x)
    case(out, 'clamp_one', lambda x: torch.clamp(x, 1, 1), x)
    # no threshold: PyTorch's linear part begins behind all of these numbers
    case(out, 'softplus', lambda x: F.softplus(x, threshold=700), values([v for v in EDGES if abs(v) != 1e3]))
    case(out, 'softplus_steep', lambda x: F.softplus(x, beta=4, threshold=700), values([v for v in EDGES if abs(v) != 1e3]))
    case(out, 'leaky_relu', lambda x: F.leaky_relu(x, 0.25), x)
    case(out, 'elu', lambda x: F.elu(x, 0.75), values([v for v in EDGES if abs(v) != 1e-7])) # PyTorch cancels there
    for name, p in dict(zero=0, one=1, two=2, three=3, five=5, half=0.5, minus_half=-0.5, minus_one=-1, minus_two=-2, minus_three=-3, other=2.25).items():
        case(out, f'pow_{name}', lambda x: torch.pow(x, p), x)
    case(out, 'add_constant', lambda x: x + 2.5, x)
    case(out, 'constant_minus', lambda x: 2.5 - x, x)
    case(out, 'div_constant', lambda x: x / 3, x)
    case(out, 'constant_over', lambda x: 3 / x, x)
    a, b = torch.meshgrid(x, x, indexing='ij')
    case(out, 'maximum', torch.maximum, a.contiguous(), b.contiguous())
    case(out, 'minimum', torch.minimum, a.contiguous(), b.contiguous())
    case(out, 'maximum_outer', torch.maximum, values([[1], [2], [3]]), values([1, 2, 3, 2]))
    case(out, 'minimum_empty', torch.minimum, values(np.zeros((0, 3))), values([1, 2, 3]))
    # the sum of equal infinities: in PyTorch its gradient is NaN
    alike = a.isinf() & (a == b)
    case(out, 'logaddexp', torch.logaddexp, a[~alike], b[~alike])
    case(out, 'logaddexp_alike', lambda a, b: torch.logaddexp(a.detach(), b.detach()), a[alike], b[alike])
    case(out, 'logaddexp_outer', torch.logaddexp, 4 * R.real('logaddexp_outer/0', (5, 1)), 4 * R.real('logaddexp_outer/1', (7,)))
    case(out, 'logaddexp_empty', torch.logaddexp, values(np.zeros((0, 3))), values([1, 2, 3]))
    bases, powers = values([-inf, -3, -1, -0.5, -0.0, 0, 0.5, 1, 3, inf, nan]), values([-inf, -3, -2, -1.5, -1, -0.0, 0, 0.5, 1, 2, 3, 4.25, inf, nan])
    a, b = torch.meshgrid(bases, powers, indexing='ij')
    case(out, 'pow', torch.pow, a.contiguous(), b.contiguous())
    case(out, 'pow_outer', torch.pow, R.real('pow_outer/0', (5, 1)).abs() + 0.25, 3 * R.real('pow_outer/1', (7,)))
    case(out, 'pow_empty', torch.pow, values(np.zeros((0, 3))), values([1, 2, 3]))
    save('ops_elementwise', out)

# --- comparisons and choices -------------------------------------------------------------------------------------------

def compare():
    out, x = {}, values(EDGES)
    a, b = (v.contiguous() for v in torch.meshgrid(x, x, indexing='ij'))
    ids = torch.arange(-3, 4, dtype=torch.int32)
    yes = torch.tensor([[True, False, True], [False, False, True]])
    for name in 'eq', 'ne', 'lt', 'le', 'gt', 'ge':
        f = getattr(torch, name)
        plain = lambda *x: f(*(v.detach() for v in x))
        case(out, name, plain, a, b)
        case(out, f'{name}_outer', plain, x.view(-1, 1), values([-1, 0.5, nan]))
        case(out, f'{name}_constant', lambda x: f(x.detach(), 0.5), x)
        case(out, f'{name}_ids', f, ids.view(-1, 1), ids)
        case(out, f'{name}_ids_constant', lambda x: f(x, 1), ids)
        case(out, f'{name}_empty', plain, values(np.zeros((0, 3))), values([1, 2, 3]))
    case(out, 'eq_bools', torch.eq, yes, yes[0])
    case(out, 'and', torch.logical_and, yes, yes[1])
    case(out, 'or', torch.logical_or, yes[:, :1].contiguous(), yes[1])
    case(out, 'not', torch.logical_not, yes)
    big = values([[1, inf, nan], [-inf, nan, 2]])
    case(out, 'where', torch.where, yes, big, values([nan, 5, -inf]))
    case(out, 'where_outer', torch.where, yes[:, :1].contiguous(), values([1, 2, 3]), values(4))
    case(out, 'where_empty', torch.where, yes[:0], values(np.zeros((0, 3))), values([1, 2, 3]))
    case(out, 'where_ids', torch.where, ids > 0, ids, torch.tensor(9, dtype=torch.int32))
    # the branch that is not chosen has a NaN as its value, and an infinite slope
    case(out, 'where_safe', lambda c, x: torch.where(c, torch.sqrt(x), torch.tensor(0.0, dtype=torch.float64)), values([-1, 0, 4, 9]) > 1, values([-1, 0, 4, 9]))
    case(out, 'masked_fill', lambda x, m: torch.masked_fill(x, m, -inf), big, yes)
    case(out, 'to_real', lambda x: x.to(torch.float64), yes)
    case(out, 'to_real_ids', lambda x: x.to(torch.float64), ids)
    save('ops_compare', out)

# --- greatest and smallest ---------------------------------------------------------------------------------------------

def extremes():
    out = {}
    rows = values([[1, 3, 2, 3, -1], [nan, 1, nan, inf, 0], [-inf, -inf, -inf, -inf, -inf], [5, 5, 5, 5, 5], [0, -0.0, 1, nan, 2]])
    wide = R.real('extremes', (2, 19, 11))
    for i, j, k in (0, 5, 2), (1, 18, 10), (1, 0, 7):
        wide[i, j, k] = nan
    wide = torch.where(wide.abs() < 0.3, wide, (wide * 8).round() / 8) # ties
    long = (R.real('extremes_long', (2, 131)) * 40).round() / 4
    for name, x, dims in ('rows', rows, (0, 1)), ('wide', wide, (0, 1, 2)), ('long', long, (1,)), ('thin', long.t().contiguous(), (0,)):
        for d in dims:
            for op in 'max', 'min':
                # PyTorch promises no index among equals: the first
                def value(x):
                    y = torch.where(x.detach().isnan(), inf if op == 'max' else -inf, x.detach())
                    best = (y == (y.amax(d, True) if op == 'max' else y.amin(d, True)))
                    best = torch.where(x.detach().isnan().any(d, True), x.detach().isnan(), best)
                    return best.to(torch.int8).argmax(d, True)
                case(out, f'{op}_{name}_{d}', lambda x: torch.gather(x, d, value(x)).squeeze(d), x)
                plain = getattr(torch, op)(x, d).values
                assert torch.equal(torch.nan_to_num(plain, 9e9), torch.nan_to_num(out[f'{op}_{name}_{d}/out'].detach(), 9e9))
                case(out, f'arg{op}_{name}_{d}', lambda x: value(x).squeeze(d).to(torch.int32), x)
    distinct = torch.randperm(4 * 33, generator=torch.Generator().manual_seed(1)).to(torch.float64).view(4, 33)
    distinct[2, 7] = nan
    for k in 1, 3, 33:
        case(out, f'top_{k}', lambda x: torch.topk(x, k, -1).values, distinct)
        case(out, f'top_{k}_ids', lambda x: torch.topk(x.detach(), k, -1).indices.to(torch.int32), distinct)
        case(out, f'top_{k}_columns', lambda x: torch.topk(x, k, 0).values, distinct.t().contiguous())
    save('ops_extremes', out)

# --- more functions of an element --------------------------------------------------------------------------------------

def functions():
    out = {}
    x = values(EDGES + [-2.5, 2.5, -0.25, 0.75, 0.8, 4.5, 1e5, 2e6, -3e7])
    # where PyTorch's formula for the derivative is inf * 0, Weft's gradients are its limits
    limited = x[x.isfinite() | x.isnan()]
    for name, f in dict(rsqrt=torch.rsqrt, sin=torch.sin, cos=torch.cos, erf=torch.erf, sign=torch.sign, floor=torch.floor, round=torch.round,
                        log_sigmoid=F.logsigmoid, hard_swish=F.hardswish, mish=F.mish).items():
        case(out, name, f, limited if name == 'mish' else x)
        case(out, f'{name}_empty', f, values(np.zeros((0, 3))))
        case(out, f'{name}_many', f, 4 * R.real(f'{name}_many', (3, 37)).abs() + 0.125 if name == 'rsqrt' else 4 * R.real(f'{name}_many', (3, 37)))
    case(out, 'mish_infinite', lambda x: F.mish(x.detach()), x)
    for name in 'isnan', 'isfinite':
        case(out, name, lambda x: getattr(torch, name)(x.detach()), x)
        case(out, f'{name}_empty', lambda x: getattr(torch, name)(x.detach()), values(np.zeros((0, 3))))
    save('ops_functions', out)

# --- moments, norms and products ---------------------------------------------------------------------------------------

def moments():
    out = {}
    lines = dict(plain=[1, 3, 2, -4], zeros=[0, 0, 0, -0.0], infinite=[inf, 1, 0, 2], both=[-inf, inf, 1, 1], nan=[nan, 1, 0, 2], ties=[5, -5, 5, 0],
                 one=[3], same=[2.5, 2.5, 2.5], one_zero=[2, 0, 3, 4], two_zeros=[1, 0, 0, 3], infinite_only=[2, inf, -3], large=[1e20, 1e-20, -1e17])
    fns = {f'{f.__name__}_{c}': lambda x, d, f=f, c=c: f(x, d, correction=c) for f in (torch.var, torch.std) for c in (0, 1)}
    norm = torch.linalg.vector_norm
    for name, p in dict(one=1, two=2, greatest=inf, half=0.5, one_and_a_half=1.5, three=3).items():
        fns[f'norm_{name}'] = lambda x, d, p=p: norm(x, p, dim=d)
    fns['prod'] = lambda x, d: torch.prod(x) if d is None else torch.prod(x, d)
    fns['cumprod'] = lambda x, d: torch.cumprod(x, d)
    for name, f in fns.items():
        for line, x in lines.items():
            if line != 'large' or name in ('prod', 'cumprod', 'norm_one', 'norm_two', 'norm_greatest'):
                case(out, f'{name}_{line}', lambda x: f(x, -1), values([x])) # a line alone: prod looks for zeros in all of x
        case(out, f'{name}_middle', lambda x: f(x, 1), 2 * R.real(f'{name}_middle', (3, 5, 4)))
        case(out, f'{name}_empty', lambda x: f(x, 1), values(np.zeros((0, 3))))
        if name != 'norm_greatest':
            case(out, f'{name}_nothing', lambda x: f(x, 1), values(np.zeros((3, 0))))
        if name != 'cumprod':
            case(out, f'{name}_all', lambda x: f(x, None), 1.5 * R.real(f'{name}_all', (3, 7)))
            case(out, f'{name}_scalar', lambda x: f(x, None), values(1.5))
    save('ops_moments', out)

# --- arrangement, sorting and windows ----------------------------------------------------------------------------------

def fold(x, d, length, step):
    """The sum of windows, PyTorch's own backward of Tensor.unfold."""
    shape = list(x.shape[:-1])
    shape[d] = length
    return torch.ops.aten.unfold_backward(x, shape, d, x.shape[-1], step)

def arrange():
    out, x = {}, R.real('arrange', (2, 5, 4))
    edges = values([[inf, 1, nan], [-inf, -0.0, 2]])
    ids, yes = torch.tensor([[3, -1, 7], [0, 2, 5]], dtype=torch.int32), torch.tensor([[True, False, True], [False, False, True]])
    for name, y in dict(x=x, edges=edges, ids=ids, bools=yes, empty=values(np.zeros((0, 3))), nothing=values(np.zeros((3, 0)))).items():
        case(out, f'flip_{name}', lambda y: torch.flip(y, (1,)), y)
        case(out, f'roll_{name}', lambda y: torch.roll(y, 2, 1), y)
        case(out, f'roll_back_{name}', lambda y: torch.roll(y, -7, 1), y)
        case(out, f'pad_{name}', lambda y: F.pad(y, (1, 6, 0, 2), value=1), y)
        case(out, f'tril_{name}', torch.tril, y)
        case(out, f'triu_{name}', lambda y: torch.triu(y, 1), y)
        case(out, f'tril_below_{name}', lambda y: torch.tril(y, -9), y)
        case(out, f'repeat_{name}', lambda y: y.repeat(*((2, 1, 3, 1) if y.dim() == 3 else (2, 1, 3))), y)
    case(out, 'repeat_never', lambda y: y.repeat(1, 0, 2), x)
    case(out, 'pad_one', lambda y: F.pad(y, (0, 0, 3, 1), value=-2.5), x)
    for name, d, size, step in ('overlapping', 1, 3, 1), ('apart', -1, 1, 2), ('steps', 1, 2, 2), ('whole', 2, 4, 9):
        case(out, f'unfold_{name}', lambda y: y.unfold(d, size, step), x)
    case(out, 'unfold_edges', lambda y: y.unfold(1, 2, 1), edges)
    case(out, 'unfold_ids', lambda y: y.unfold(1, 2, 1).contiguous(), ids)
    case(out, 'fold_overlapping', lambda y: fold(y, 1, 7, 1), R.real('fold', (2, 5, 4, 3)))
    case(out, 'fold_longer', lambda y: fold(y, 0, 13, 2), R.real('fold_longer', (5, 3, 4)))
    case(out, 'fold_edges', lambda y: fold(y, 0, 4, 1), values([[1, inf], [-inf, 2], [nan, 3]]))
    ties = values([[3, 1, 2, 1, 3, -0.0, 0], [nan, inf, 1, nan, -inf, inf, 0]])
    long = (R.real('sort_long', (3, 70)) * 20).round() / 4
    wide = (R.real('sort_wide', (2, 40, 3)) * 20).round() / 4
    for name, y, d in ('ties', ties, -1), ('long', long, 1), ('columns', long.t().contiguous(), 0), ('wide', wide, 1), ('one', values([[5], [6]]), 1), \
            ('nothing', values(np.zeros((3, 0))), 1), ('empty', values(np.zeros((0, 3))), 1):
        for descending in False, True:
            case(out, f'sort_{name}_{int(descending)}', lambda y: torch.sort(y, dim=d, descending=descending, stable=True).values, y)
            case(out, f'argsort_{name}_{int(descending)}', lambda y: torch.argsort(y.detach(), dim=d, descending=descending, stable=True).to(torch.int32), y)
    case(out, 'one_hot', lambda i: F.one_hot(i.long(), 5).double(), torch.tensor([[4, 0], [1, 1]], dtype=torch.int32))
    case(out, 'one_hot_empty', lambda i: F.one_hot(i.long(), 5).double(), torch.zeros((0, 2), dtype=torch.int32))
    save('ops_arrange', out)

# --- losses ------------------------------------------------------------------------------------------------------------

REDUCTIONS = dict(mean='mean', sum='sum', none='none')

def losses():
    out = {}
    x, t = (v.contiguous() for v in torch.meshgrid(*2 * [values([-inf, -3, -1, -0.5, -0.0, 0, 0.5, 1, 2, inf, nan])], indexing='ij'))
    small, other = 2 * R.real('losses/0', (4, 5)), 2 * R.real('losses/1', (4, 5))
    for name, f in dict(l1=F.l1_loss, huber=lambda a, b, reduction: F.huber_loss(a, b, reduction, 1.5),
                        huber_narrow=lambda a, b, reduction: F.huber_loss(a, b, reduction, 0.25)).items():
        case(out, f'{name}_edges', lambda a, b: f(a, b, reduction='none'), x, t)
        for how in REDUCTIONS:
            case(out, f'{name}_{how}', lambda a, b: f(a, b, reduction=how), small, other)
    case(out, 'smooth_l1', lambda a, b: F.smooth_l1_loss(a, b, beta=0.5), small, other)
    # distributions; classes are the last dimension of both
    logits, soft, weights = 1.5 * R.real('soft/0', (4, 3, 5)), torch.softmax(2 * R.real('soft/1', (4, 3, 5)), -1).float().double(), R.real('soft/2', (5,)).abs() + 0.5
    ce = lambda a, b, **k: F.cross_entropy(a.movedim(-1, 1), b.movedim(-1, 1), **k)
    for how in REDUCTIONS:
        case(out, f'soft_{how}', lambda a, b: ce(a, b, reduction=how), logits, soft)
        case(out, f'soft_smooth_{how}', lambda a, b: ce(a, b, reduction=how, label_smoothing=0.2), logits, soft)
        case(out, f'soft_weighted_{how}', lambda a, b, w: ce(a, b, reduction=how, label_smoothing=0.1, weight=w.detach()) + 0 * w.sum(), logits, soft, weights)
    case(out, 'soft_edges', lambda a, b: F.cross_entropy(a, b, reduction='none'),
         values([[1e3, -1e3, 0], [-inf, 0, 1], [-inf, 0, 1], [nan, 0, 1], [2, 2, 2]]), values([[0, 1, 0], [0, 0.5, 0.5], [0.5, 0.5, 0], [1, 0, 0], [0, 0, 0]]))
    case(out, 'soft_one_class', lambda a, b: F.cross_entropy(a, b), values([[3], [-1]]), values([[1], [0.5]]))
    a, p, n = (R.real(f'triplet/{i}', (6, 4)) for i in range(3))
    for how in REDUCTIONS:
        case(out, f'triplet_{how}', lambda a, p, n: F.triplet_margin_loss(a, p, n, reduction=how), a, p, n)
    case(out, 'triplet_swap', lambda a, p, n: F.triplet_margin_loss(a, p, n, swap=True, reduction='none'), a, p, n)
    case(out, 'triplet_p', lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=0.5, p=1, reduction='none'), a, p, n)
    case(out, 'triplet_same', lambda a, p, n: F.triplet_margin_loss(a, p, n, reduction='none'), a, a.clone(), a.clone())
    def nce(q, k, extra=None, temperature=0.1, reduction='mean'):
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        keys = k if extra is None else torch.cat([k, F.normalize(extra, dim=-1)])
        return F.cross_entropy(q @ keys.t() / temperature, torch.arange(len(q)), reduction=reduction)
    for how in REDUCTIONS:
        case(out, f'info_nce_{how}', lambda q, k: nce(q, k, reduction=how), a, p)
    case(out, 'info_nce_negatives', lambda q, k, n: nce(q, k, n, 0.5), a, p, R.real('nce/2', (9, 4)))
    case(out, 'info_nce_symmetric', lambda q, k: (nce(q, k, None, 0.07) + nce(k, q, None, 0.07)) / 2, a, p)
    save('ops_losses', out)

SECTIONS = [elementwise, compare, extremes, functions, moments, arrange, losses]

if __name__ == '__main__':
    for section in SECTIONS:
        if len(sys.argv) < 2 or section.__name__ in sys.argv[1:]:
            section()
