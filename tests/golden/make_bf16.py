# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/bf16.safetensors: 20 updates of a small model of each family under PyTorch's autocast to bf16, and the
gradients of the first update in float64. Weights and ids are those of formula.h; tests/models/bf16_golden.c makes the same updates.
Run by hand, with the CPU build of PyTorch 2.13 (pip install torch==2.13.0 safetensors numpy):

    python tests/golden/make_bf16.py

For CASE the file has the losses CASE/losses under autocast and CASE/exact in float64; and of each gradient the norm and 32 projections
(make_torch.py says why). The committed file is from an AMD EPYC (Zen 4) with AVX512-BF16. Another processor rounds in another order, so
losses of another run differ from the file's by about as much as the file's do from float's, which this script prints.

Gradients of models with ReLU differ more: rounding moves some of its inputs past 0. With GELU they differ by a third of that.

The logits are made float before the loss, as autocast does on GPUs: the loss of bf16 logits would be rounded to 8 bits."""
import math
import numpy as np
import torch
import torch.nn.functional as F
import make_encoder as E
import make_seq2seq as S
import make_torch as M
import torch_reference as R
from make_torch import save

torch.set_default_dtype(torch.float32)  # the imports of cases set float64
STEPS = 20

# --- families: shapes of the parameters, and logits and targets of a step ---------------------------------------------

class Language:
    def __init__(self, name, c):
        self.name, self.c, self.shapes = name, c, M.shapes_of(c)
    def __call__(self, p, step):
        c = self.c
        x = R.ids(f'{self.name}/ids', (c['B'], c['T']), c['V'], step * c['B'] * c['T'])
        return R.MODELS[c['family']](p, x, c['H'], c['L']), (3 * x + 1) % c['V']

class Encoder:
    """Every third token that is no padding is predicted, from what it is itself."""
    def __init__(self, name, c):
        self.name, self.c, self.shapes = name, c, E.shapes_of(c)
    def vectors(self, p, x, allowed):
        return R.encoder(p, self.c, x, allowed)
    def logits(self, p, h):
        return F.linear(h, p.get('head.weight', p['embed.weight']), p['head.bias'])
    def __call__(self, p, step):
        B, T, V = self.c['B'], self.c['T'], self.c['vocab']
        x = R.ids(f'{self.name}/ids', (B, T), V, step * B * T)
        allowed = R.key_mask(1 + R.ids(f'{self.name}/lengths', (B,), T, step * B), T)
        places = allowed.view(-1).nonzero().view(-1)[step % 3::3]
        h = self.vectors(p, x, allowed)
        return self.logits(p, h.reshape(-1, h.shape[-1])[places]), (3 * x.view(-1)[places] + 1) % V

class Bert(Encoder):
    def __init__(self, name, c):
        self.name, self.c = name, c
        d, lin = c['d'], lambda n, o, i: {n + '.weight': (o, i), n + '.bias': (o,)}
        norm = lambda n: {n + '.weight': (d,), n + '.bias': (d,)}
        s = {'embed.weight': (c['vocab'], d), 'segments.weight': (2, d), 'positions.weight': (c['T'], d)} | norm('norm')
        for i in range(c['layers']):
            b = f'blocks.{i}.'
            s |= lin(b + 'attn.qkv', 3 * d, d) | lin(b + 'attn.out', d, d) | norm(b + 'norm1')
            s |= lin(b + 'ffn.up', c['d_ff'], d) | lin(b + 'ffn.down', d, c['d_ff']) | norm(b + 'norm2')
        self.shapes = s | lin('transform.dense', d, d) | norm('transform.norm') | {'head.bias': (c['vocab'],)}
    def norm(self, p, name, x):
        return F.layer_norm(x, (self.c['d'],), p[name + '.weight'], p[name + '.bias'], 1e-12)
    def vectors(self, p, x, allowed):
        h = self.norm(p, 'norm', p['embed.weight'][x] + p['positions.weight'][:x.shape[1]] + p['segments.weight'][0])
        for i in range(self.c['layers']):
            b = f'blocks.{i}.'
            h = self.norm(p, b + 'norm1', h + R.mha(p, b + 'attn.', h, self.c['heads'], allowed=allowed)[0])
            h = self.norm(p, b + 'norm2', h + R.ffn(p, b + 'ffn.', h, 'gelu'))
        return h
    def logits(self, p, h):
        t = self.norm(p, 'transform.norm', F.gelu(F.linear(h, p['transform.dense.weight'], p['transform.dense.bias'])))
        return super().logits(p, t)

class Pairs:
    def __init__(self, name, c):
        self.name, self.c = name, c
        self.size()
        self.shapes = S.shapes_of(c)
    def size(self):
        S.D, S.FF, S.PAIRS = self.c['d'], self.c['d_ff'], self.c['pairs']
    def __call__(self, p, step):
        self.size()
        b = S.batch(self.name, self.c, step)
        return S.real(R.seq2seq(p, self.c, *b[:4]), b[3]), S.real(b[4], b[3])

# --- cases, as in tests/models/bf16_golden.c: those of translation with a shorter warm-up than their presets -------------------

ADAM = dict(decay=0.0, betas=(0.9, 0.98), eps=1e-9, smoothing=0.1, rate=lambda t: R.inverse_sqrt(2e-3, 10, t))
MASKED = dict(decay=0.01, betas=(0.9, 0.999), eps=1e-8, smoothing=0.0, rate=lambda t: R.cosine(1e-3, 1e-4, 100, 6000, t))
PAIRS = S.BASE | dict(d=64, d_ff=128, heads=4, source_vocab=97, vocab=97, pairs=96, final_norm=True, tied=True, scale_embeddings=True)
CASES = [(Language(n, c), c | dict(eps=1e-8, smoothing=0.0)) for n, c in M.CASES.items()] + [
    (Encoder('encoder', E.BASE | dict(vocab=97, d=64, heads=8, d_ff=256, layers=6, B=32, T=32)), MASKED),
    (Bert('bert', dict(vocab=97, d=64, heads=4, d_ff=256, layers=3, B=32, T=32)), MASKED),
    (Pairs('seq2seq-post', PAIRS), ADAM),
    (Pairs('seq2seq-pre', PAIRS | dict(norm='pre', activation='gelu')), ADAM),
]

def loss_of(case, how, p, step, autocast):
    with torch.autocast('cpu', dtype=torch.bfloat16, enabled=autocast):
        logits, targets = case(p, step)
    return F.cross_entropy(logits.to(p['embed.weight'].dtype).reshape(-1, logits.shape[-1]), targets.reshape(-1), label_smoothing=how['smoothing'])

def train(case, how, dtype, autocast):
    """Losses, and the gradients of the first update."""
    p = {n: v.to(dtype).requires_grad_() for n, v in E.weights_of(case.name, case.shapes).items()}
    opt = torch.optim.AdamW(R.groups(p.values(), how['decay']), lr=1.0, betas=how['betas'], eps=how['eps'])
    losses, first = [], None
    for step in range(STEPS):
        for g in opt.param_groups:
            g['lr'] = how['rate'](step)
        opt.zero_grad(set_to_none=True)
        loss = loss_of(case, how, p, step, autocast)
        loss.backward()
        first = first or {n: v.grad.double().clone() for n, v in p.items()}  # before they are clipped
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        opt.step()
        losses.append(loss.item())
    return np.array(losses), first

def norm_of(gradients):
    return math.sqrt(sum(float(g.pow(2).sum()) for g in gradients))

if __name__ == '__main__':
    out = {}
    for case, how in CASES:
        n = case.name
        exact, reference = train(case, how, torch.float64, False)
        losses, gradients = train(case, how, torch.float32, True)
        apart, whole = norm_of(gradients[k] - g for k, g in reference.items()), norm_of(reference.values())
        print(f'{n}: loss {losses[0]:.4f} ... {losses[-1]:.4f}; of float64 it differs by at most {abs(losses - exact).max():.1e}, gradients by '
              f'{apart / whole * 128:.2f} 2^-7', flush=True)
        out |= {f'{n}/losses': losses, f'{n}/exact': exact}
        for k, g in reference.items():
            out[f'{n}/d.{k}/norm'] = np.array([g.norm().item()])
            out[f'{n}/d.{k}/projections'] = R.projections(f'{n}/d.{k}', g.numpy())
    save('bf16', out, 'make_bf16.py')
