# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/attention.safetensors: rotary positions and attention's options in plain PyTorch, from inputs that formula.h
gives, in float64. Read by tests/nn/attention.c. Run by hand, with the CPU build of PyTorch 2.13:

    python tests/golden/make_attention.py"""
import functools, math
import torch
import torch.nn.functional as F
import make_torch as M
import torch_reference as R

out = {}
run = functools.partial(M.run, out)

# --- rotary positions: the conventions of transformers ------------------------------------------------------------------

def frequencies(width, base=10000.0, linear=None, ntk=None, llama3=None):
    if ntk:
        base = base * ntk ** (width / (width - 2))
    f = 1.0 / base ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    if linear:
        f = f / linear
    if llama3:  # modeling_rope_utils._compute_llama3_parameters
        factor, low, high, context = llama3
        wavelength = 2 * math.pi / f
        scaled = torch.where(wavelength > context / low, f / factor, f)
        smooth = (context / wavelength - low) / (high - low)
        between = (1 - smooth) * scaled / factor + smooth * scaled
        medium = ~(wavelength < context / high) & ~(wavelength > context / low)
        f = torch.where(medium, between, scaled)
    return f

def halves(x):  # Llama's rotate_half
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)

def every_two(x):  # GPT-J's rotate_every_two
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)

def rope(x, heads, positions, f, width=None, interleaved=False):
    """x [..., T, H E], positions [..., T]"""
    y = x.unflatten(-1, (heads, -1))
    width = width or y.shape[-1]
    angle = positions.to(torch.float64).unsqueeze(-1) * f
    angle = (angle.repeat_interleave(2, -1) if interleaved else torch.cat((angle, angle), -1)).unsqueeze(-2)
    turned = y[..., :width]
    turned = turned * angle.cos() + (every_two if interleaved else halves)(turned) * angle.sin()
    return torch.cat((turned, y[..., width:]), -1).flatten(-2)

def rotate(case, shape, heads, positions, f, **options):
    run(case, {}, {'x': shape}, lambda p, i: rope(i['x'], heads, positions, f, **options))

up = torch.arange
rotate('rope_halves', (2, 5, 24), 3, up(5), frequencies(8))
rotate('rope_interleaved', (2, 5, 24), 3, up(5) + 11, frequencies(8), interleaved=True)
rotate('rope_part', (2, 5, 20), 2, up(5) + 11, frequencies(6), width=6)
rotate('rope_part_interleaved', (2, 5, 20), 2, up(5) + 11, frequencies(6), width=6, interleaved=True)
rotate('rope_wide', (1, 4, 74), 1, up(4) + 61, frequencies(74, 500000.0))
rotate('rope_wide_interleaved', (1, 4, 74), 1, up(4) + 61, frequencies(74, 500000.0), interleaved=True)
rotate('rope_linear', (1, 5, 8), 1, up(5) + 1000, frequencies(8, linear=4.0))
rotate('rope_ntk', (1, 5, 8), 1, up(5) + 1000, frequencies(8, ntk=4.0))
rotate('rope_llama3', (1, 5, 64), 1, up(5) + 9000, frequencies(64, 500000.0, llama3=(8.0, 1.0, 4.0, 8192)))
rotate('rope_far', (1, 5, 16), 1, up(5) + 100000, frequencies(16))
rotate('rope_given', (1, 5, 8), 2, up(5) + 3, torch.tensor([1.0, -0.25], dtype=torch.float64))
rotate('rope_starts', (3, 4, 8), 2, up(4) + torch.tensor([[7], [0], [300]]), frequencies(4))
rotate('rope_packed', (9, 8), 2, torch.tensor([0, 1, 2, 3, 0, 0, 1, 2, 3]), frequencies(4))
rotate('rope_ids', (2, 3, 8), 2, torch.tensor([[5, 5, 90000], [-2, 0, 1]]), frequencies(4))

# --- multi-head attention -----------------------------------------------------------------------------------------------

B, T, D, H = 2, 7, 16, 4

def shapes(G, E, Fv, bias=True):
    wide = H * E + G * (E + Fv)
    both = {'qkv.weight': (wide, D), 'out.weight': (D, H * Fv)}
    return both | ({'qkv.bias': (wide,), 'out.bias': (D,)} if bias else {})

def attend(case, G=H, E=D // H, Fv=None, x=(B, T, D), allowed=None, turn=None, keep=False, norm=None):
    Fv = Fv or E
    def norm_heads(v, n, gain):
        return R.rms_norm(v.unflatten(-1, (n, E)), gain, norm).flatten(-2)
    def fn(p, i):
        q, k, v = F.linear(i['x'], p['qkv.weight'], p['qkv.bias']).split((H * E, G * E, G * Fv), -1)
        if norm:
            q, k = norm_heads(q, H, p['q_norm.weight']), norm_heads(k, G, p['k_norm.weight'])
        if turn:
            q, k = turn(q, H), turn(k, G)
        if q.dim() == 2:
            q, k, v = q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)
        y, w = R.attention(q, k, v, H, G, allowed)
        if keep:
            out[f'{case}/weights'] = w
        return F.linear(y.view(*i['x'].shape[:-1], -1), p['out.weight'], p['out.bias'])
    run(case, shapes(G, E, Fv) | ({'q_norm.weight': (E,), 'k_norm.weight': (E,)} if norm else {}), {'x': x}, fn)

causal = R.causal_mask(T, T)
attend('mha_rope', keep=True, allowed=causal, turn=lambda x, h: rope(x, h, up(T), frequencies(4)))
attend('mha_rope_gptj', G=2, E=6, Fv=3, allowed=causal,
       turn=lambda x, h: rope(x, h, up(T), frequencies(4, 500.0), width=4, interleaved=True))
offsets = torch.tensor([0, 0, 0, 0, 1, 2, 2, 2, 2])  # the sequence of each row
attend('mha_rope_packed', G=1, x=(9, D), allowed=(offsets.unsqueeze(0) == offsets.unsqueeze(1)) & R.causal_mask(9, 9),
       turn=lambda x, h: rope(x, h, torch.tensor([0, 1, 2, 3, 0, 0, 1, 2, 3]), frequencies(4)))
attend('mha_rope_ids', allowed=causal, turn=lambda x, h: rope(x, h, torch.tensor([[0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 9, 9, 70000]]), frequencies(4)))

# --- windows: a query at p sees p-W+1 .. p, without causality |p - s| < W --------------------------------------------------

def band(T, W, both=False):
    distance = torch.arange(T).unsqueeze(1) - torch.arange(T)
    return (distance.abs() < W) & (both | (distance >= 0))

attend('mha_window', keep=True, allowed=band(T, 3), turn=lambda x, h: rope(x, h, up(T), frequencies(4)))
attend('mha_window_both', keep=True, G=2, allowed=band(T, 2, True))
attend('mha_window_long', G=2, E=6, Fv=5, x=(1, 150, D), allowed=band(150, 37))
attend('mha_window_packed', x=(9, D), allowed=(offsets.unsqueeze(0) == offsets.unsqueeze(1)) & band(9, 2))

# --- soft caps, as in Gemma 2: c tanh(score / c) before the mask ---------------------------------------------------------

def capped(q, k, v, H, G, allowed, cap, scale):
    q, k, v = (x.unflatten(-1, (n, -1)).transpose(1, 2) for x, n in ((q, H), (k, G), (v, G)))
    k, v = k.repeat_interleave(H // G, 1), v.repeat_interleave(H // G, 1)
    w = (cap * torch.tanh(scale * q @ k.transpose(-1, -2) / cap)).masked_fill(~allowed, -math.inf).softmax(-1)
    return (w @ v).transpose(1, 2).flatten(-2), w

def soft(case, cap, G=H, E=D // H, x=(B, T, D), allowed=None):
    def fn(p, i):
        q, k, v = F.linear(i['x'], p['qkv.weight'], p['qkv.bias']).split((H * E, G * E, G * E), -1)
        y, out[f'{case}/weights'] = capped(q, k, v, H, G, allowed, cap, E ** -0.5)
        return F.linear(y, p['out.weight'], p['out.bias'])
    run(case, shapes(G, E, E), {'x': x}, fn)

soft('mha_softcap', 0.3, G=2, allowed=causal)
soft('mha_softcap_long', 0.5, G=1, E=6, x=(1, 75, D), allowed=band(75, 70))

# --- another scale of the scores, as T5's of 1 --------------------------------------------------------------------------

def scaled(case, scale):
    def fn(p, i):
        q, k, v = (x.unflatten(-1, (H, -1)).transpose(1, 2) for x in F.linear(i['x'], p['qkv.weight'], p['qkv.bias']).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=causal, scale=scale)
        return F.linear(y.transpose(1, 2).flatten(-2), p['out.weight'], p['out.bias'])
    run(case, shapes(H, D // H, D // H), {'x': (B, T, D)}, fn)

scaled('mha_scale', 1.0)

# --- a bias of the scores: scaled_dot_product_attention's attn_mask of floats -------------------------------------------

def biased(case, shape, T, S, G=2, E=6, Fv=5, allowed=None, hidden=()):
    def fn(p, i):
        bias = i['bias'] * 1.0
        bias[..., list(hidden)] = -math.inf
        bias = bias.expand(B, H, T, S)
        if allowed is not None:
            bias = bias.masked_fill(~allowed, -math.inf)
        q, k, v = (i[n].unflatten(-1, (m, -1)).transpose(1, 2) for n, m in (('q', H), ('k', G), ('v', G)))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True).transpose(1, 2).flatten(-2)
    run(case, {}, {'q': (B, T, H * E), 'k': (B, S, G * E), 'v': (B, S, G * Fv), 'bias': shape}, fn)

biased('bias_full', (B, H, 7, 9), 7, 9)
biased('bias_heads', (H, 7, 7), 7, 7, allowed=causal)
biased('bias_keys', (B, 1, 1, 9), 7, 9, hidden=(2, 8))
biased('bias_long', (H, 40, 75), 40, 75, G=4, allowed=R.causal_mask(40, 75))

# --- positions as a bias: T5's buckets, as transformers' _relative_position_bucket, and ALiBi's slopes, as its authors' code --

def bucket(position, bidirectional, buckets, most):
    first = 0
    if bidirectional:
        buckets //= 2
        first = (position > 0).long() * buckets
        position = position.abs()
    else:
        position = -torch.min(position, torch.zeros_like(position))
    exact = buckets // 2
    far = exact + (torch.log(position.float() / exact) / math.log(most / exact) * (buckets - exact)).long()
    return first + torch.where(position < exact, position, torch.min(far, torch.full_like(far, buckets - 1)))

for case, both, n, most in ('buckets', False, 32, 128), ('buckets_both', True, 32, 128), ('buckets_few', False, 7, 20), ('buckets_few_both', True, 10, 64):
    out[case] = bucket(torch.arange(-400, 401), both, n, most).double()

for case, both in ('relative', False), ('relative_both', True):
    distance = torch.arange(30) - torch.arange(21, 30).unsqueeze(1)
    run(case, {'weight': (8, 3)}, {}, lambda p, i: F.embedding(bucket(distance, both, 8, 20), p['weight']).permute(2, 0, 1))

def slopes(n):
    def of_power(n):
        start = 2 ** (-2 ** -(math.log2(n) - 3))
        return [start * start ** i for i in range(n)]
    if math.log2(n).is_integer():
        return of_power(n)
    power = 2 ** math.floor(math.log2(n))
    return of_power(power) + slopes(2 * power)[0::2][:n - power]

out['slopes'] = torch.tensor(sum((slopes(n) for n in range(1, 18)), []), dtype=torch.float64)

# --- T5's attention: no scale, no biases, a bias of relative positions; packed sequences are padded here ----------------------

def t5(case, lengths, both, packed):
    longest = max(lengths)
    distance = torch.arange(longest) - torch.arange(longest).unsqueeze(1)
    real = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)
    allowed = real.view(len(lengths), 1, 1, longest) & (torch.ones(longest, longest, dtype=torch.bool) if both else R.causal_mask(longest, longest))
    def fn(p, i):
        x = i['x']
        if packed:
            x = torch.zeros(len(lengths), longest, D, dtype=torch.float64).masked_scatter(real.unsqueeze(-1), x)
        q, k, v = (y.unflatten(-1, (H, -1)).transpose(1, 2) for y in F.linear(x, p['qkv.weight']).chunk(3, -1))
        bias = F.embedding(bucket(distance, both, 8, 20), p['bias.weight']).permute(2, 0, 1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(~allowed, -math.inf), scale=1.0)
        y = F.linear(y.transpose(1, 2).flatten(-2), p['out.weight'])
        return y[real] if packed else y
    run(case, shapes(H, D // H, D // H, False) | {'bias.weight': (8, H)}, {'x': (sum(lengths), D) if packed else (len(lengths), longest, D)}, fn)

t5('t5', (12, 12), False, False)
t5('t5_packed', (4, 1, 30, 12), True, True)
t5('t5_packed_causal', (4, 1, 30, 12), False, True)

# --- norms of queries and keys, as in Qwen 3 ----------------------------------------------------------------------------

attend('mha_qk_norm', keep=True, G=2, E=6, Fv=5, allowed=causal, norm=1e-6, turn=lambda x, h: rope(x, h, up(T), frequencies(6)))
attend('mha_qk_norm_packed', x=(9, D), norm=2.0 ** -23, turn=lambda x, h: rope(x, h, torch.tensor([0, 1, 2, 3, 0, 0, 1, 2, 3]), frequencies(4)),
       allowed=(offsets.unsqueeze(0) == offsets.unsqueeze(1)) & R.causal_mask(9, 9))

def across(case, norm, S=5):
    def fn(p, i):
        q, kv = F.linear(i['x'], p['q.weight'], p['q.bias']), F.linear(i['memory'], p['kv.weight'], p['kv.bias'])
        q, k = (R.rms_norm(v.unflatten(-1, (H, -1)), p[n], norm).flatten(-2) for v, n in ((q, 'q_norm.weight'), (kv[..., :D], 'k_norm.weight')))
        y, _ = R.attention(q, k, kv[..., D:], H, H, torch.ones(T, S, dtype=torch.bool))
        return F.linear(y, p['out.weight'], p['out.bias'])
    run(case, {'q.weight': (D, D), 'q.bias': (D,), 'kv.weight': (2 * D, D), 'kv.bias': (2 * D,), 'out.weight': (D, D), 'out.bias': (D,),
               'q_norm.weight': (D // H,), 'k_norm.weight': (D // H,)}, {'x': (B, T, D), 'memory': (B, S, D)}, fn)

across('mha_qk_norm_cross', 1e-3)

# --- keys and values of two inputs of different widths: PyTorch's multi_head_attention_forward with kdim and vdim ------------

def apart(case, kdim, vdim, S=5):
    def fn(p, i):
        y, _ = F.multi_head_attention_forward(
            i['x'].transpose(0, 1), i['memory'].transpose(0, 1), i['value'].transpose(0, 1), D, H, None,
            None, None, None, False, 0.0, p['out.weight'], None, training=False,
            need_weights=False, use_separate_proj_weight=True, q_proj_weight=p['q.weight'], k_proj_weight=p['k.weight'],
            v_proj_weight=p['v.weight'])
        return y.transpose(0, 1).contiguous()
    # without biases: that of the keys has a gradient of 0 but for rounding
    run(case, {'q.weight': (D, D), 'k.weight': (D, kdim), 'v.weight': (D, vdim), 'out.weight': (D, D)}, {'x': (B, T, D), 'memory': (B, S, kdim), 'value': (B, S, vdim)}, fn)

apart('mha_apart', 9, 11)

M.save('attention', out, 'make_attention.py')
