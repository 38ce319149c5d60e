# SPDX-License-Identifier: MIT
"""The models and modules of Weft in PyTorch's primitives, under Weft's parameter names, and the numbers of formula.h.
For make_torch.py and bench/parity.py."""
import math
import numpy as np
import torch
import torch.nn.functional as F

# --- formula.h ---------------------------------------------------------------------------------------------------------

def name_hash(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h

def hashes(name, n, first=0):
    with np.errstate(over='ignore'):
        z = np.uint64(name_hash(name)) + (np.arange(first, first + n, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

def real(name, shape, scale=1.0):
    n = int(np.prod(shape)) if len(shape) else 1
    u = ((hashes(name, n) >> np.uint64(40)).astype(np.float64) - 8388608.0) / 8388608.0
    return torch.from_numpy((u * scale).astype(np.float32).astype(np.float64).reshape(shape))

def ids(name, shape, n, first=0):
    return torch.from_numpy(((hashes(name, int(np.prod(shape)), first) >> np.uint64(33)) % np.uint64(n)).astype(np.int64).reshape(shape))

def projections(name, x):
    """32 sums of x with random signs."""
    h = hashes(name, x.size)
    x = x.reshape(-1).astype(np.float64)
    return np.array([np.where((h >> np.uint64(j)) & np.uint64(1), x, -x).sum() for j in range(32)])

# --- modules -----------------------------------------------------------------------------------------------------------

def activate(kind, x, gate=None):
    if kind == 'swiglu':
        return F.silu(gate) * x
    if kind == 'geglu_tanh':
        return F.gelu(gate, approximate='tanh') * x
    return {'relu': F.relu, 'gelu': F.gelu, 'gelu_tanh': lambda v: F.gelu(v, approximate='tanh'), 'silu': F.silu}[kind](x)

def ffn(p, prefix, x, kind):
    lin = lambda name: F.linear(x, p[prefix + name + '.weight'], p.get(prefix + name + '.bias'))
    h = activate(kind, lin('up'), lin('gate') if kind in ('swiglu', 'geglu_tanh') else None)
    return F.linear(h, p[prefix + 'down.weight'], p.get(prefix + 'down.bias'))

def rms_norm(x, gain, eps=2.0 ** -23):
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain

def sinusoidal(length, d):
    place = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    angle = place * torch.exp(torch.arange(0, d, 2, dtype=torch.float64) * (-math.log(10000.0) / d))
    table = torch.zeros(length, d, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = torch.sin(angle), torch.cos(angle)
    return table

def attention(q, k, v, heads, kv_heads, allowed):
    """q [B,T,HE], k [B,S,GE], v [B,S,GF]; allowed: bools that broadcast to [B,H,T,S]. -> [B,T,HF], weights."""
    B, T, S = q.shape[0], q.shape[1], k.shape[1]
    q = q.view(B, T, heads, -1).transpose(1, 2)
    k = k.view(B, S, kv_heads, -1).transpose(1, 2).repeat_interleave(heads // kv_heads, 1)
    v = v.view(B, S, kv_heads, -1).transpose(1, 2).repeat_interleave(heads // kv_heads, 1)
    a = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    # A row that may attend to nothing gives zeros.
    w = torch.softmax(a.masked_fill(~allowed, -1e30), -1) * allowed
    return (w @ v).transpose(1, 2).reshape(B, T, -1), w

def causal_mask(T, S):
    return torch.ones(T, S, dtype=torch.bool).tril(S - T)

def mha(p, prefix, x, heads, kv_heads=0, d_key=0, d_value=0, memory=None, allowed=None, no_output=False):
    """Weft's layout: qkv [(H + G) E + G F, d], or q and kv with memory."""
    kv_heads = kv_heads or heads
    d_value = d_value or d_key or x.shape[-1] // heads
    d_key = d_key or x.shape[-1] // heads
    lin = lambda name, v: F.linear(v, p[prefix + name + '.weight'], p.get(prefix + name + '.bias'))
    wide, kw, vw = heads * d_key, kv_heads * d_key, kv_heads * d_value
    if memory is not None:
        q, (k, v) = lin('q', x), lin('kv', memory).split((kw, vw), -1)
    else:
        q, k, v = lin('qkv', x).split((wide, kw, vw), -1)
    if allowed is None:
        allowed = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool)
    y, w = attention(q, k, v, heads, kv_heads, allowed)
    return (y if no_output else lin('out', y)), w

# --- models ------------------------------------------------------------------------------------------------------------

def gpt(p, x, heads, layers, kind='gelu', kv_heads=0, keep=None):
    """keep: a list that receives the attention weights of every layer."""
    d = p['embed.weight'].shape[1]
    norm = lambda name, v: F.layer_norm(v, (d,), p[name + '.weight'], p.get(name + '.bias'), 1e-5)
    h = p['embed.weight'][x] + p['positions.weight'][:x.shape[1]]
    may = causal_mask(x.shape[1], x.shape[1])
    for i in range(layers):
        b = f'blocks.{i}.'
        y, w = mha(p, b + 'attn.', norm(b + 'norm1', h), heads, kv_heads, allowed=may)
        h = h + y
        if keep is not None:
            keep.append(w)
        h = h + ffn(p, b + 'ffn.', norm(b + 'norm2', h), kind)
    return F.linear(norm('norm', h), p.get('head.weight', p['embed.weight']))

def rms(p, x, heads, layers, kind='relu', kv_heads=0, keep=None):
    e = p['embed.weight']
    h = e[x] + sinusoidal(x.shape[1], e.shape[1]).to(e.dtype)
    may = causal_mask(x.shape[1], x.shape[1])
    for i in range(layers):
        b = f'blocks.{i}.'
        y, w = mha(p, b + 'attn.', h, heads, kv_heads, allowed=may)
        h = rms_norm(h + y, p[b + 'norm1.weight'])
        if keep is not None:
            keep.append(w)
        h = rms_norm(h + ffn(p, b + 'ffn.', h, kind), p[b + 'norm2.weight'])
    return F.linear(h, p['head.weight'], p.get('head.bias'))

MODELS = {'gpt': gpt, 'rms': rms}

def encoder(p, c, x, allowed, keep=None):
    """Ids [B,T] -> [B,T,d]. c: the names of Weft's config.json; allowed: bools that broadcast to [B,H,T,T]."""
    d, pre = p['embed.weight'].shape[1], c['norm'] == 'pre'
    norm = lambda name, v: F.layer_norm(v, (d,), p[name + '.weight'], p.get(name + '.bias'), 1e-5)
    h = p['embed.weight'][x] * (math.sqrt(d) if c['scale_embeddings'] else 1.0) + sinusoidal(x.shape[1], d).to(p['embed.weight'].dtype)
    def sublayer(name, h, f):
        return h + f(norm(name, h)) if pre else norm(name, h + f(h))
    def attend(name, v):
        y, w = mha(p, name, v, c['heads'], allowed=allowed)
        if keep is not None:
            keep.append(w)
        return y
    for i in range(c['layers']):
        b = f'blocks.{i}.'
        h = sublayer(b + 'norm1', h, lambda v: attend(b + 'attn.', v))
        h = sublayer(b + 'norm2', h, lambda v: ffn(p, b + 'ffn.', v, c['activation']))
    return norm('norm', h) if c['final_norm'] else h

def key_mask(lengths, n):
    """[B,1,1,n]: the first lengths[b] keys of row b."""
    return (torch.arange(n) < lengths.view(-1, 1)).view(len(lengths), 1, 1, n)

def seq2seq(p, c, source, source_lengths, target, target_lengths, keep=None):
    """Padded ids [B,S] and [B,T] with their lengths -> logits [B,T,V]; what stands in the padding does not matter. c: the names of
    Weft's config.json. keep: a dict that receives the attention weights of every layer."""
    e = p['source_embed.weight'] if 'source_embed.weight' in p else p['embed.weight']
    t = p['target_embed.weight'] if 'target_embed.weight' in p else e
    d, heads, pre = e.shape[1], c['heads'], c['norm'] == 'pre'
    norm = lambda name, v: F.layer_norm(v, (d,), p[name + '.weight'], p.get(name + '.bias'), 1e-5)
    def embed(table, x):
        h = table[x] * (math.sqrt(d) if c['scale_embeddings'] else 1.0)
        return h + sinusoidal(x.shape[1], d).to(h.dtype)
    def attend(name, x, allowed, memory=None):
        y, w = mha(p, name + '.', x, heads, memory=memory, allowed=allowed)
        if keep is not None:
            keep[name] = w
        return y
    def sublayer(name, x, f):
        return x + f(norm(name, x)) if pre else norm(name, x + f(x))
    seen, own = key_mask(source_lengths, source.shape[1]), key_mask(target_lengths, target.shape[1]) & causal_mask(*[target.shape[1]] * 2)
    m = embed(e, source)
    for i in range(c['encoder_layers']):
        b = f'encoder.{i}.'
        m = sublayer(b + 'norm1', m, lambda x: attend(b + 'attn', x, seen))
        m = sublayer(b + 'norm2', m, lambda x: ffn(p, b + 'ffn.', x, c['activation']))
    m = norm('encoder_norm', m) if c['final_norm'] else m
    y = embed(t, target)
    for i in range(c['decoder_layers']):
        b = f'decoder.{i}.'
        y = sublayer(b + 'norm1', y, lambda x: attend(b + 'self', x, own))
        y = sublayer(b + 'norm2', y, lambda x: attend(b + 'cross', x, seen, m))
        y = sublayer(b + 'norm3', y, lambda x: ffn(p, b + 'ffn.', x, c['activation']))
    y = norm('decoder_norm', y) if c['final_norm'] else y
    return F.linear(y, p.get('head.weight', t), p.get('head.bias'))

def cosine(peak, least, warmup, steps, t):
    """As nanoGPT: warm-up, then a half cosine."""
    if t < warmup:
        return peak * (t + 1) / (warmup + 1)
    return least + 0.5 * (1 + math.cos(math.pi * (t - warmup) / (steps - warmup))) * (peak - least)

def inverse_sqrt(peak, warmup, t):
    """Vaswani et al. 2017, section 5.3, by its peak: d^-0.5 min(n^-0.5, n w^-1.5) with n = t + 1."""
    n = t + 1
    return peak * min(n / warmup, math.sqrt(warmup / n))

def groups(parameters, decay):
    """Only matrices decay."""
    p = list(parameters)
    return [{'params': [v for v in p if v.dim() > 1], 'weight_decay': decay}, {'params': [v for v in p if v.dim() < 2], 'weight_decay': 0.0}]

def train(model, p, batches, rate, decay, betas, clip, eps=1e-8, smoothing=0.0):
    """Losses of AdamW steps (without decay: Adam) on batches [(x, y)], in the dtype of the parameters p, which change."""
    p = {k: v.detach().clone().requires_grad_() for k, v in p.items()}
    opt = torch.optim.AdamW(groups(p.values(), decay), lr=1e-3, betas=betas, eps=eps)
    losses = []
    for t, (x, y) in enumerate(batches):
        for g in opt.param_groups:
            g['lr'] = rate(t)
        opt.zero_grad(set_to_none=True)
        logits = model(p, x)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1), label_smoothing=smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(p.values()), clip)
        opt.step()
        losses.append(loss.item())
    return losses, p
