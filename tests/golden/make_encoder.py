# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/encoder.safetensors: what PyTorch computes in float64 for the encoder of the preset encoder-attention, for
its variants, for attention with one head, and the attention weights of small language models. Weights and ids are those of formula.h.
Run by hand, with the CPU build of PyTorch 2.13 (pip install torch==2.13.0 safetensors numpy):

    python tests/golden/make_encoder.py

The preset's model is made of PyTorch's modules (Transformer below), the variants of primitives (torch_reference.py); where both are the
same model they must agree to 1e-12."""
import math, pathlib
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from safetensors.numpy import save_file
import torch_reference as R

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)

# --- the model in PyTorch's modules ------------------------------------------------------------------------------------

class SelfAttention(nn.Module):
    """One head: keys of a width of their own, values as wide as the model, no output projection."""
    def __init__(self, d_model, d_k):
        super().__init__()
        self.w_q, self.w_k, self.w_v = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k), nn.Linear(d_model, d_model)
        self.scale = math.sqrt(d_k)

    def forward(self, x):
        weights = torch.softmax(self.w_q(x) @ self.w_k(x).transpose(-2, -1) / self.scale, -1)
        return weights @ self.w_v(x), weights

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.d_k = heads, d_model // heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask=None):
        B, T, d = x.shape
        q, k, v = (w(x).view(B, T, self.heads, self.d_k).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = torch.softmax(scores, -1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, d)), weights

class Block(nn.Module):
    def __init__(self, d_model, heads, dropout):
        super().__init__()
        self.attention, self.norm1, self.norm2 = MultiHeadAttention(d_model, heads), nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4 * d_model, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        y, weights = self.attention(x, mask)
        x = self.norm1(x + self.dropout(y))
        return self.norm2(x + self.dropout(self.ffn(x))), weights

class Transformer(nn.Module):
    def __init__(self, vocab, d_model, heads, layers, context):
        super().__init__()
        self.embedding, self.final_norm = nn.Embedding(vocab, d_model), nn.LayerNorm(d_model)
        self.register_buffer('positions', R.sinusoidal(context, d_model))
        self.blocks = nn.ModuleList(Block(d_model, heads, 0.1) for _ in range(layers))

    def forward(self, ids, mask=None):
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.positions[:ids.shape[1]]
        kept = []
        for block in self.blocks:
            x, weights = block(x, mask)
            kept.append(weights)
        return self.final_norm(x), kept

def put(module, weft, p):
    """Weft's parameters under `weft` into a linear map, norm or embedding."""
    with torch.no_grad():
        for name, value in module.named_parameters():
            value.copy_(p[f'{weft}.{name}'])

def transformer(p, c):
    net = Transformer(c['vocab'], c['d'], c['heads'], c['layers'], c['context']).eval()
    put(net.embedding, 'embed', p)
    put(net.final_norm, 'norm', p)
    for i, block in enumerate(net.blocks):
        b = f'blocks.{i}.'
        with torch.no_grad():
            for kind in 'weight', 'bias':
                for w, part in zip((block.attention.w_q, block.attention.w_k, block.attention.w_v), p[f'{b}attn.qkv.{kind}'].chunk(3)):
                    getattr(w, kind).copy_(part)
        put(block.attention.w_o, b + 'attn.out', p)
        put(block.ffn[0], b + 'ffn.up', p)
        put(block.ffn[3], b + 'ffn.down', p)
        put(block.norm1, b + 'norm1', p)
        put(block.norm2, b + 'norm2', p)
    return net

# --- cases -------------------------------------------------------------------------------------------------------------

ROWS, TOKENS, STEPS = 3, 7, 6
LENGTHS = torch.tensor([7, 2, 5])
BASE = dict(vocab=11, d=8, heads=2, d_ff=32, layers=2, context=9, norm='post', final_norm=True, tied=False, bias=True,
            scale_embeddings=True, activation='relu')
CASES = {  # as tests/models/encoder_golden.c
    'document': BASE,
    'pre': BASE | dict(norm='pre', tied=True, bias=False, d_ff=20, activation='gelu'),
    'bare': BASE | dict(final_norm=False, tied=True, scale_embeddings=False, d_ff=20, layers=1, activation='swiglu'),
}
EXAMPLE = BASE | dict(vocab=50, d=32, heads=4, d_ff=128, context=512)

def shapes_of(c):
    d = c['d']
    lin = lambda name, o, i: {name + '.weight': (o, i)} | ({name + '.bias': (o,)} if c['bias'] else {})
    norm = lambda name: {name + '.weight': (d,)} | ({name + '.bias': (d,)} if c['bias'] else {})
    s = {'embed.weight': (c['vocab'], d)}
    for i in range(c['layers']):
        b = f'blocks.{i}.'
        s |= lin(b + 'attn.qkv', 3 * d, d) | lin(b + 'attn.out', d, d) | norm(b + 'norm1') | norm(b + 'norm2')
        s |= lin(b + 'ffn.gate', c['d_ff'], d) if c['activation'] == 'swiglu' else {}
        s |= lin(b + 'ffn.up', c['d_ff'], d) | lin(b + 'ffn.down', d, c['d_ff'])
    if c['final_norm']:
        s |= norm('norm')
    head = lin('head', c['vocab'], d)
    if c['tied']:
        del head['head.weight']
    return s | head

def weights_of(case, shapes):
    """As make_seq2seq.py: matrices in +-1/sqrt(columns), gains 1 +- 1/4, biases +-1/4."""
    def weight(name, shape):
        if len(shape) == 2:
            return R.real(f'{case}/{name}', shape, 1.0 / math.sqrt(shape[1]))
        gain = 'norm' in name and name.endswith('weight')
        return (R.real(f'{case}/{name}', shape, 0.25) + (1.0 if gain else 0.0)).float().double()
    return {n: weight(n, s) for n, s in shapes.items()}

def masks(case, c):
    """What may be attended to, [B or 1, H or 1, T, T]: by name."""
    padded = R.key_mask(LENGTHS, TOKENS).expand(ROWS, 1, TOKENS, TOKENS)
    free = R.ids(f'{case}/mask', (ROWS, c['heads'], TOKENS, TOKENS), 2).bool() | torch.eye(TOKENS, dtype=torch.bool)
    return {'whole': torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool), 'lengths': padded, 'causal': padded & R.causal_mask(TOKENS, TOKENS), 'mask': free}

def ids_of(case, c, step=0):
    return R.ids(f'{case}/ids', (ROWS, TOKENS), c['vocab'], step * ROWS * TOKENS)

def chosen(step=0):
    """Places among the ROWS x TOKENS ids, never in the padding: about every third token; one of them twice."""
    inside = R.key_mask(LENGTHS, TOKENS).view(-1).nonzero().view(-1)
    places = inside[step % 3::3]
    return torch.cat([places, places[:1]])

def masked_loss(p, c, hidden, x, step=0):
    places = chosen(step)
    targets = (3 * x.view(-1)[places] + places) % c['vocab']
    rows = hidden.reshape(-1, c['d'])[places]
    return F.cross_entropy(F.linear(rows, p.get('head.weight', p['embed.weight']), p.get('head.bias')), targets)

def forwards(out, case, c):
    p, x = weights_of(case, shapes_of(c)), ids_of(case, c)
    for name, allowed in masks(case, c).items():
        keep = []
        with torch.no_grad():
            y = R.encoder(p, c, x, allowed, keep)
            if case == 'document':
                net_y, net_keep = transformer(p, c)(x, None if name == 'whole' else allowed)
                apart = max(float((a - b).abs().max()) for a, b in zip([y, *keep], [net_y, *net_keep]))
                print(f'{case}, {name}: primitives differ from the modules by {apart:.1e}')
                assert apart < 1e-12
                y, keep = net_y, net_keep
        if case == 'document' or name == 'lengths':
            out[f'{case}/{name}/output'] = y
            out |= {f'{case}/{name}/weights.{i}': w for i, w in enumerate(keep)}
    out[f'{case}/logits'] = F.linear(R.encoder(p, c, x, masks(case, c)['lengths']), p.get('head.weight', p['embed.weight']), p.get('head.bias'))

def gradients(out, case, c):
    p = {n: v.requires_grad_() for n, v in weights_of(case, shapes_of(c)).items()}
    x = ids_of(case, c)
    loss = masked_loss(p, c, R.encoder(p, c, x, masks(case, c)['lengths']), x)
    loss.backward()
    out[f'{case}/loss'] = np.array([loss.item()])
    out |= {f'{case}/d.{n}': v.grad for n, v in p.items()}

def train(case, c):
    p = {n: v.requires_grad_() for n, v in weights_of(case, shapes_of(c)).items()}
    opt = torch.optim.AdamW(R.groups(p.values(), 0.01), lr=1e-2)
    losses = []
    for step in range(STEPS):
        opt.zero_grad(set_to_none=True)
        x = ids_of(case, c, step)
        loss = masked_loss(p, c, R.encoder(p, c, x, masks(case, c)['lengths']), x, step)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return np.array(losses)

def example(out):
    """A vocabulary of 50, d_model 32, 4 heads, 2 layers, `The cat sat on the mat`."""
    p = weights_of('example', shapes_of(EXAMPLE))
    with torch.no_grad():
        y, keep = transformer(p, EXAMPLE)(torch.tensor([[1, 5, 8, 12, 1, 15]]))
    out['example/output'] = y
    out |= {f'example/weights.{i}': w for i, w in enumerate(keep)}

def single_head(out):
    d, d_k = 8, 5
    p = {k: R.real(f'single/{k}', s, 0.5) for k, s in {'qkv.weight': (2 * d_k + d, d), 'qkv.bias': (2 * d_k + d,)}.items()}
    net = SelfAttention(d, d_k)
    with torch.no_grad():
        for kind in 'weight', 'bias':
            for w, part in zip((net.w_q, net.w_k, net.w_v), p['qkv.' + kind].split((d_k, d_k, d))):
                getattr(w, kind).copy_(part)
    x = R.real('single/x', (2, 4, d), 1.0).requires_grad_()
    y, w = net(x)
    (y * R.real('single/r', tuple(y.shape))).sum().backward()
    out |= {'single/out': y, 'single/weights': w.unsqueeze(1), 'single/d.x': x.grad}
    for kind in 'weight', 'bias':
        out['single/d.qkv.' + kind] = torch.cat([getattr(w, kind).grad for w in (net.w_q, net.w_k, net.w_v)])

LANGUAGE = dict(vocab=11, d=12, heads=4, kv_heads=2, d_ff=20, layers=2, context=9)  # as tests/models/attention_weights.c

def language(out):
    """Attention weights and logits of small language models with biases."""
    c = LANGUAGE
    d, wide = c['d'], c['d'] + 2 * c['kv_heads'] * c['d'] // c['heads']
    lin = lambda name, o, i: {name + '.weight': (o, i), name + '.bias': (o,)}
    for family in 'gpt', 'rms':
        norm = lambda name: {name + '.weight': (d,)} | ({name + '.bias': (d,)} if family == 'gpt' else {})
        s = {'embed.weight': (c['vocab'], d)} | ({'positions.weight': (c['context'], d)} if family == 'gpt' else {})
        for i in range(c['layers']):
            b = f'blocks.{i}.'
            s |= norm(b + 'norm1') | lin(b + 'attn.qkv', wide, d) | lin(b + 'attn.out', d, d) | norm(b + 'norm2')
            s |= lin(b + 'ffn.up', c['d_ff'], d) | lin(b + 'ffn.down', d, c['d_ff'])
        s |= norm('norm') if family == 'gpt' else {'head.weight': (c['vocab'], d), 'head.bias': (c['vocab'],)}
        keep = []
        logits = R.MODELS[family](weights_of(family, s), R.ids(f'{family}/ids', (2, 6), c['vocab']), c['heads'], c['layers'], 'relu', c['kv_heads'], keep)
        out |= {f'{family}/logits': logits} | {f'{family}/weights.{i}': w for i, w in enumerate(keep)}

if __name__ == '__main__':
    out = {}
    for case, c in CASES.items():
        forwards(out, case, c)
        gradients(out, case, c)
        out[f'{case}/losses'] = train(case, c)
        print(case, 'trained:', out[f'{case}/losses'])
    example(out)
    single_head(out)
    language(out)
    arrays = {k: np.ascontiguousarray(v.detach().numpy() if isinstance(v, torch.Tensor) else v) for k, v in out.items()}
    save_file(arrays, pathlib.Path(__file__).parent / 'torch' / 'encoder.safetensors', metadata={'made_by': 'tests/golden/make_encoder.py', 'torch': torch.__version__})
    print(f'{len(arrays)} tensors, {sum(a.nbytes for a in arrays.values())} bytes')
