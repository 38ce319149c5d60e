# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/*.safetensors: what PyTorch computes for modules, losses, optimisers and two whole models, from weights and
inputs that formula.h gives. The C tests (tests/nn, tests/optim, tests/models/golden.c) read them; no test runs Python.
Run by hand, with the CPU build of PyTorch 2.13 (pip install torch==2.13.0 safetensors numpy):

    python tests/golden/make_torch.py [modules] [losses] [optim] [models]

Everything is computed in float64 and written so, unless a key begins with f32/: that is what torch.float32 computes.
Big tensors are written as their norm, 2048 values at even distances, and 32 projections (see models())."""
import inspect, math, pathlib, sys
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
import torch_reference as R

OUT = pathlib.Path(__file__).parent / 'torch'
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

def save(name, tensors, script='make_torch.py'):
    arrays = {k: np.ascontiguousarray(v.detach().numpy() if isinstance(v, torch.Tensor) else np.asarray(v)) for k, v in tensors.items()}
    save_file(arrays, OUT / f'{name}.safetensors', metadata={'made_by': f'tests/golden/{script}', 'torch': torch.__version__})
    print(f'{name}: {len(arrays)} tensors, {sum(a.nbytes for a in arrays.values())} bytes')

def leaf(name, shape, scale=0.5):
    return R.real(name, shape, scale).requires_grad_()

# --- modules -----------------------------------------------------------------------------------------------------------

def run(out, case, shapes, inputs, fn):
    """One case: leaves by the names of `shapes` (parameters) and `inputs`, the result, and the gradients of sum(result * r)."""
    p = {k: leaf(f'{case}/{k}', s) for k, s in shapes.items()}
    i = {k: leaf(f'{case}/{k}', s, 1.0) for k, s in inputs.items()}
    y = fn(p, i)
    (y * R.real(f'{case}/r', tuple(y.shape))).sum().backward()
    out[f'{case}/out'] = y
    for k, v in (p | i).items():
        out[f'{case}/d.{k}'] = v.grad

def modules():
    out = {}
    lin = lambda prefix, n_in, n_out, bias=True: {f'{prefix}weight': (n_out, n_in)} | ({f'{prefix}bias': (n_out,)} if bias else {})
    run(out, 'linear', lin('', 7, 11), {'x': (3, 5, 7)}, lambda p, i: F.linear(i['x'], p['weight'], p['bias']))
    run(out, 'linear_plain', lin('', 7, 11, False), {'x': (4, 7)}, lambda p, i: F.linear(i['x'], p['weight']))
    run(out, 'embedding', {'weight': (9, 6)}, {}, lambda p, i: 2.5 * F.embedding(R.ids('embedding/ids', (3, 5), 9), p['weight']))
    run(out, 'layer_norm', {'weight': (10,), 'bias': (10,)}, {'x': (4, 3, 10)}, lambda p, i: F.layer_norm(i['x'], (10,), p['weight'], p['bias'], 1e-5))
    run(out, 'layer_norm_plain', {'weight': (10,)}, {'x': (4, 3, 10)}, lambda p, i: F.layer_norm(i['x'], (10,), p['weight'], None, 1e-3))
    run(out, 'rms_norm', {'weight': (10,)}, {'x': (4, 3, 10)}, lambda p, i: R.rms_norm(i['x'], p['weight']))
    run(out, 'rms_norm_from_one', {'weight': (10,)}, {'x': (4, 3, 10)}, lambda p, i: R.rms_norm(i['x'], 1 + p['weight'], 1e-6))
    for kind in 'relu', 'gelu', 'gelu_tanh', 'silu', 'swiglu', 'geglu_tanh':
        for plain in (False, True) if kind == 'swiglu' else (False,):
            shapes = lin('up.', 6, 10, not plain) | lin('down.', 10, 6, not plain) | (lin('gate.', 6, 10, not plain) if kind in ('swiglu', 'geglu_tanh') else {})
            run(out, f'ffn_{kind}{"_plain" * plain}', shapes, {'x': (3, 4, 6)}, lambda p, i: R.ffn(p, '', i['x'], kind))
    run(out, 'positions', {}, {'x': (2, 7, 10)}, lambda p, i: i['x'] + R.sinusoidal(12, 10)[:7])
    run(out, 'positions_learned', {'weight': (12, 10)}, {'x': (2, 7, 10)}, lambda p, i: i['x'] + p['weight'][:7])

    B, T, S, d, H = 2, 5, 7, 12, 4
    lengths = lambda *n: (torch.arange(max(T, S) if max(n) > T else T) < torch.tensor(n).unsqueeze(1)).view(B, 1, 1, -1)
    mask = R.ids('mha_mask/mask', (B, 1, T, T), 2).bool()
    mask[0, 0, 2] = False
    def attend(case, bias=True, G=H, E=d // H, Fv=None, heads=H, cross=0, no_output=False, keep=None, **call):
        Fv = Fv or E
        shapes = lin('q.', d, heads * E, bias) | lin('kv.', cross, G * (E + Fv), bias) if cross else lin('qkv.', d, heads * E + G * (E + Fv), bias)
        if not no_output:
            shapes |= lin('out.', heads * Fv, d, bias)
        def fn(p, i):
            y, w = R.mha(p, '', i['x'], heads, G, E, Fv, i.get('memory'), no_output=no_output, **call)
            if keep:
                out[f'{case}/weights'] = w
            return y
        run(out, case, shapes, {'x': (B, T, d)} | ({'memory': (B, S, cross)} if cross else {}), fn)
    may = R.causal_mask(T, T)
    attend('mha_self', keep=True)
    attend('mha_causal', allowed=may)
    attend('mha_lengths', allowed=lengths(3, 0))
    attend('mha_mask', allowed=mask, keep=True)
    attend('mha_gqa', G=2, allowed=may & lengths(5, 4))
    attend('mha_widths', E=5, Fv=3, allowed=may)
    attend('mha_no_output', bias=False, G=1, heads=1, E=4, Fv=12, no_output=True, keep=True)
    attend('mha_cross', cross=8, allowed=lengths(7, 4))
    attend('mha_cross_gqa', bias=False, cross=12, G=1)
    save('modules', out)

# --- losses ------------------------------------------------------------------------------------------------------------

def losses():
    out = {}
    def case(name, V, D, shape, ignore=None, smoothing=0.0, normalizer=None, linear=False, bias=True):
        targets = R.ids(f'{name}/targets', shape, V).view(-1)
        if linear:
            v = {'x': leaf(f'{name}/x', (*shape, D), 1.0), 'weight': leaf(f'{name}/weight', (V, D), 1.0)}
            if bias:
                v['bias'] = leaf(f'{name}/bias', (V,), 1.0)
            logits = F.linear(v['x'], v['weight'], v.get('bias'))
        else:
            v = {'logits': leaf(f'{name}/logits', (*shape, V), 3.0)}
            logits = v['logits']
        flat, k = logits.reshape(-1, V), {'ignore_index': -100 if ignore is None else ignore}
        loss = F.cross_entropy(flat, targets, label_smoothing=smoothing, **k)
        plain = F.cross_entropy(flat, targets, **k)
        if normalizer:
            loss = F.cross_entropy(flat, targets, label_smoothing=smoothing, reduction='sum', **k) / normalizer
            plain = F.cross_entropy(flat, targets, reduction='sum', **k) / normalizer
        loss.backward()
        out[f'{name}/loss'], out[f'{name}/plain'] = loss, plain
        for n, t in v.items():
            out[f'{name}/d.{n}'] = t.grad
    case('ce', 11, 0, (4, 6))
    case('ce_ignore', 5, 0, (4, 6), ignore=3)
    case('ce_smooth', 11, 0, (4, 6), smoothing=0.1)
    case('ce_both', 5, 0, (4, 6), ignore=0, smoothing=0.1, normalizer=37.0)
    case('linear_ce', 11, 9, (4, 6), linear=True)
    case('linear_ce_both', 5, 9, (4, 6), ignore=2, smoothing=0.2, linear=True, bias=False)
    case('linear_ce_wide', 700, 8, (3, 11), ignore=7, smoothing=0.1, normalizer=50.0, linear=True)
    save('losses', out)

# --- optimisers and schedules ------------------------------------------------------------------------------------------

SHAPES = {'w': (5, 7), 'b': (7,), 'c': (3, 4)}

class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2; torch.optim has none."""
    def __init__(self, params, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {'lr': 0.0, 'betas': betas, 'weight_decay': weight_decay})
    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            b1, b2 = g['betas']
            for p in g['params']:
                m = self.state[p].setdefault('exp_avg', torch.zeros_like(p))
                p.mul_(1 - g['lr'] * g['weight_decay']).sub_(g['lr'] * (b1 * m + (1 - b1) * p.grad).sign())
                m.mul_(b2).add_((1 - b2) * p.grad)

class Muon(torch.optim.Muon):
    """torch.optim.Muon with its Newton-Schulz iterations in the precision of the parameters, instead of bfloat16."""
    source = inspect.getsource(torch.optim._muon._zeropower_via_newtonschulz)
    exact = {**vars(torch.optim._muon)}
    exec(source.replace('grad.bfloat16()', 'grad.clone()'), exact)
    assert 'grad.bfloat16()' in source
    torch.optim._muon._zeropower_via_newtonschulz = exact['_zeropower_via_newtonschulz']

class Both:
    """Two optimisers as one."""
    def __init__(self, *opts):
        self.opts, self.param_groups = opts, sum((o.param_groups for o in opts), [])
    @property
    def state(self):
        return {p: s for o in self.opts for p, s in o.state.items()}
    def step(self):
        for o in self.opts:
            o.step()

def optim():
    out, rules, more = {}, {}, {}
    def case(name, make, clip=0.0, rate=None, out=out, shapes=SHAPES, clip_value=0.0):
        p = {k: leaf(f'{name}/{k}', s) for k, s in shapes.items()}
        opt = make(p)
        norms = []
        for t in range(6):
            for k, v in p.items():
                v.grad = R.real(f'{name}/g{t}.{k}', shapes[k], 0.05 if t == 3 else 2.0)  # a small one is not clipped
            for g in opt.param_groups:
                g['lr'] = (rate(t) if rate else 1e-2) * g.get('factor', 1.0)
            if clip_value:
                torch.nn.utils.clip_grad_value_(p.values(), clip_value)
            norms.append(float(torch.nn.utils.clip_grad_norm_(p.values(), clip if clip else math.inf)))
            opt.step()
            for k, v in p.items():
                out[f'{name}/{t}.{k}'] = v.detach().clone()
        moments = {'row_var': 'row', 'col_var': 'column', 'variance': 'v', 'exp_avg': 'm', 'exp_avg_sq': 'v', 'max_exp_avg_sq': 'most', 'momentum_buffer': 'momentum'}
        for k, v in p.items():
            out.update({f'{name}/{moments[n]}.{k}': x for n, x in opt.state[v].items() if n in moments and x is not None})
        out[f'{name}/norms'] = np.array(norms)
    case('adam', lambda p: torch.optim.Adam(p.values()))
    case('adam_l2', lambda p: torch.optim.Adam(p.values(), betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1))
    case('adamw', lambda p: torch.optim.AdamW(p.values(), weight_decay=0.1))
    case('sgd', lambda p: torch.optim.SGD(p.values()))
    case('sgd_momentum', lambda p: torch.optim.SGD(p.values(), momentum=0.9), clip=1.0)
    case('sgd_nesterov', lambda p: torch.optim.SGD([{'params': [p['w'], p['b']]}, {'params': [p['c']], 'weight_decay': 0.3, 'factor': 0.1}],
         momentum=0.8, nesterov=True, weight_decay=0.1))
    rate = lambda t: R.cosine(1e-2, 1e-3, 2, 6, t)
    case('adamw_all', lambda p: torch.optim.AdamW([{'params': [p['w']], 'weight_decay': 0.1}, {'params': [p['b']], 'weight_decay': 0.0},
         {'params': [p['c']], 'weight_decay': 0.3, 'factor': 0.1}], betas=(0.9, 0.99)), clip=1.0, rate=rate)
    decays = lambda p: [{'params': [p['w'], p['b']]}, {'params': [p['c']], 'weight_decay': 0.3, 'factor': 0.1}]
    case('lion', lambda p: Lion(p.values()), out=rules)
    case('lion_all', lambda p: Lion(decays(p), betas=(0.8, 0.95), weight_decay=0.1), clip=1.0, rate=rate, out=rules)
    case('amsgrad', lambda p: torch.optim.AdamW(decays(p), amsgrad=True, weight_decay=0.1), clip=1.0, out=rules)
    wide = SHAPES | {'c': (9, 4)}
    muon = lambda **k: dict(lr=1e-2, weight_decay=0.0, adjust_lr_fn='match_rms_adamw') | k
    case('muon', lambda p: Both(Muon([p['w'], p['c']], **muon()), torch.optim.AdamW([p['b']], weight_decay=0.0)), out=more, shapes=wide)
    case('muon_all', lambda p: Both(Muon([{'params': [p['w']]}, {'params': [p['c']], 'weight_decay': 0.3, 'momentum': 0.5, 'factor': 0.1}],
         **muon(momentum=0.8, nesterov=False, weight_decay=0.1, ns_steps=3, adjust_lr_fn='original')),
         torch.optim.AdamW([{'params': [p['b']], 'factor': 0.5}], betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)), clip=1.0, rate=rate, out=more, shapes=wide)
    deep = SHAPES | {'c': (2, 3, 4)}
    case('adafactor', lambda p: torch.optim.Adafactor(p.values(), foreach=False), out=more, shapes=deep)
    case('adafactor_all', lambda p: torch.optim.Adafactor([{'params': [p['w'], p['b']]}, {'params': [p['c']], 'weight_decay': 0.3, 'factor': 0.1, 'd': 2.0}],
         beta2_decay=-0.5, eps=(0.3, 0.7), d=1.5, weight_decay=0.1, foreach=False), clip=1.0, rate=rate, out=more, shapes=deep)
    case('adamw_groups', lambda p: torch.optim.AdamW([{'params': [p['w']]}, {'params': [p['b']], 'betas': (0.5, 0.999), 'eps': 0.1},
         {'params': [p['c']], 'betas': (0.5, 0.7), 'weight_decay': 0.3}], weight_decay=0.1), out=more)
    case('sgd_groups', lambda p: torch.optim.SGD([{'params': [p['w']]}, {'params': [p['b']], 'momentum': 0.9}, {'params': [p['c']],
         'momentum': 0.8, 'nesterov': True}]), out=more)
    case('lion_groups', lambda p: Lion([{'params': [p['w'], p['b']]}, {'params': [p['c']], 'betas': (0.5, 0.7)}]), out=more)
    case('clip_value', lambda p: torch.optim.SGD(p.values()), clip_value=0.7, clip=2.5, out=more)
    def rates(make, steps=1000):
        opt = torch.optim.SGD([torch.zeros(1)], lr=1e-3)
        schedule, values = make(opt), []
        for t in range(steps):
            values.append(opt.param_groups[0]['lr'])
            if t + 1 < steps:
                opt.step()
                schedule.step()
        return np.array(values[::7])
    L = torch.optim.lr_scheduler
    more['one_cycle'] = rates(lambda o: L.OneCycleLR(o, 1e-3, total_steps=1000))
    more['one_cycle_linear'] = rates(lambda o: L.OneCycleLR(o, 1e-3, total_steps=1000, pct_start=0.2, anneal_strategy='linear', div_factor=10, final_div_factor=20))
    more['linear'] = rates(lambda o: L.LinearLR(o, start_factor=1, end_factor=0.1, total_iters=990))
    more['wsd'] = rates(lambda o: L.LambdaLR(o, lambda t: (t + 1) / 51 if t < 50 else 1 if t < 800 else 1 - 0.9 * (t - 800) / 200))
    more['wsd_sqrt'] = rates(lambda o: L.LambdaLR(o, lambda t: 1 if t < 900 else 1 - math.sqrt((t - 900) / 100)))
    out['cosine'] = np.array([R.cosine(1e-3, 1e-4, 100, 2000, t) for t in range(0, 2001, 7)])
    out['vaswani'] = np.array([512 ** -0.5 * min(t ** -0.5, t * 4000 ** -1.5) for t in range(1, 20001, 97)])
    save('optim', out)
    save('optim_more', more)
    save('optim_rules', rules)  # optimisers that Weft does not have: rules of the tests

# --- whole models ------------------------------------------------------------------------------------------------------

CASES = {  # family, parameters, B, T, V, steps of the schedule
    'nanogpt-char-small': dict(family='gpt', L=4, H=4, d=128, ff=512, B=12, T=64, V=65, bias=False, decay=0.1, betas=(0.9, 0.99),
                               rate=lambda t: R.cosine(1e-3, 1e-4, 100, 2000, t)),
    'char-rms': dict(family='rms', L=1, H=4, d=64, ff=256, B=16, T=256, V=70, bias=True, decay=0.0, betas=(0.9, 0.999), rate=lambda t: 1e-3),
}

def shapes_of(c):
    d, ff, b = c['d'], c['ff'], c['bias']
    s = {'embed.weight': (c['V'], d)}
    if c['family'] == 'gpt':
        s |= {'positions.weight': (c['T'], d), 'norm.weight': (d,)}
    for i in range(c['L']):
        for n, shape in {'attn.qkv': (3 * d, d), 'attn.out': (d, d), 'ffn.up': (ff, d), 'ffn.down': (d, ff)}.items():
            s[f'blocks.{i}.{n}.weight'] = shape
            if b:
                s[f'blocks.{i}.{n}.bias'] = shape[:1]
        s |= {f'blocks.{i}.norm1.weight': (d,), f'blocks.{i}.norm2.weight': (d,)}
    if c['family'] == 'rms':
        s |= {'head.weight': (c['V'], d), 'head.bias': (c['V'],)}
    return s

def weight(case, name, shape):
    """Matrices in +-1/sqrt(columns), gains 1 +- 1/4, biases +-1/4. As golden_fill() in tests/models/golden_model.h."""
    key = f'{case}/{name}'
    if len(shape) == 2:
        return R.real(key, shape, 1.0 / math.sqrt(shape[1]))
    # 1 + a float of at most 2^-2 in steps of 2^-25 is not always a float: round again.
    return (R.real(key, shape, 0.25) + (1.0 if 'norm' in name else 0.0)).float().double()

def statistics(out, key, name, x):
    """The norm of a difference d is checked through s.d for 32 vectors s of random signs: E (s.d)^2 = |d|^2 and the mean over 32 has a
    relative deviation of sqrt(2/32) = 1/4, so that a norm twice too large passes in about one of a million cases."""
    x = x.detach().numpy()
    flat = x.reshape(-1)
    stride = max(1, -(-flat.size // 2048))
    out[f'{key}/norm'] = np.array([np.linalg.norm(flat.astype(np.float64))])
    out[f'{key}/sample'] = flat[::stride].copy()
    out[f'{key}/projections'] = R.projections(name, x)

def models():
    for case, c in CASES.items():
        out = {}
        shapes = shapes_of(c)
        batch = lambda t: R.ids(f'{case}/ids', (c['B'], c['T']), c['V'], t * c['B'] * c['T'])
        # Something to learn: each id says what the target is.
        batches = [(x, (3 * x + 1) % c['V']) for x in map(batch, range(20))]
        model = lambda p, x: R.MODELS[c['family']](p, x, c['H'], c['L'])
        for kind, dtype in ('f64', torch.float64), ('f32', torch.float32):
            w = {n: weight(case, n, s).to(dtype).requires_grad_() for n, s in shapes.items()}
            x, y = batches[0]
            logits = model(w, x)
            loss = F.cross_entropy(logits.view(-1, c['V']), y.view(-1))
            loss.backward()
            out[f'{kind}/loss'] = loss
            statistics(out, f'{kind}/logits', f'{case}/logits', logits)
            for n, v in w.items():
                statistics(out, f'{kind}/d.{n}', f'{case}/d.{n}', v.grad)
            out[f'{kind}/global_norm'] = np.array([math.sqrt(sum(float(v.grad.double().pow(2).sum()) for v in w.values()))])
            out[f'{kind}/losses'] = np.array(R.train(model, w, batches, c['rate'], c['decay'], c['betas'], 1.0)[0])
            print(case, kind, 'loss', out[f'{kind}/losses'][[0, -1]])
        save(case, out)

if __name__ == '__main__':
    OUT.mkdir(exist_ok=True)
    for part in sys.argv[1:] or ('modules', 'losses', 'optim', 'models'):
        globals()[part]()
