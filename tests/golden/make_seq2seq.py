# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/seq2seq.safetensors: logits, losses and gradients that PyTorch computes in float64 for small encoder-decoders,
one for each variant of the family, on pairs of unequal lengths, and the losses of 20 updates. Weights and ids are those of formula.h.
Run by hand, with the CPU build of PyTorch 2.13 (pip install torch==2.13.0 safetensors numpy):

    python tests/golden/make_seq2seq.py

Each model is computed from primitives (torch_reference.py); where torch.nn.Transformer is the same architecture, it is computed once
more by that, and both must agree to 1e-12; its logits and loss are written under CASE/module/."""
import math, pathlib
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
import torch_reference as R

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
D, HEADS, FF, PAIRS, STEPS = 12, 3, 20, 5, 20
BASE = dict(heads=HEADS, norm='post', final_norm=False, shared=True, tied=False, scale_embeddings=False, bias=True, activation='relu',
            encoder_layers=2, decoder_layers=2, source_vocab=11, vocab=11, smoothing=0.0)
CASES = {  # as tests/models/seq2seq_golden.c
    'post': BASE,
    'pre': BASE | dict(norm='pre', final_norm=True, shared=False, source_vocab=7, smoothing=0.1),
    'base': BASE | dict(final_norm=True, tied=True, scale_embeddings=True, smoothing=0.1),
    'pre_tied': BASE | dict(norm='pre', final_norm=True, tied=True, scale_embeddings=True, activation='gelu', smoothing=0.1),
    'no_bias': BASE | dict(norm='pre', bias=False, activation='swiglu', encoder_layers=1),
    'target_tied': BASE | dict(final_norm=True, shared=False, tied=True, source_vocab=7, activation='gelu', decoder_layers=1, smoothing=0.3),
}
TRAINED = {'base': (2e-2, 8), 'pre_tied': (1e-2, 30)}  # peak and warm-up: one of them passes its peak

WATCHED = {'pre': 1, 'base': 3}  # pairs whose attention weights are written

def shapes_of(c):
    lin = lambda name, o, i: {name + '.weight': (o, i)} | ({name + '.bias': (o,)} if c['bias'] else {})
    norm = lambda name: {name + '.weight': (D,)} | ({name + '.bias': (D,)} if c['bias'] else {})
    ffn = lambda b: (lin(b + 'ffn.gate', FF, D) if c['activation'] == 'swiglu' else {}) | lin(b + 'ffn.up', FF, D) | lin(b + 'ffn.down', D, FF)
    s = {'embed.weight': (c['vocab'], D)} if c['shared'] else {'source_embed.weight': (c['source_vocab'], D), 'target_embed.weight': (c['vocab'], D)}
    for i in range(c['encoder_layers']):
        b = f'encoder.{i}.'
        s |= lin(b + 'attn.qkv', 3 * D, D) | lin(b + 'attn.out', D, D) | norm(b + 'norm1') | ffn(b) | norm(b + 'norm2')
    for i in range(c['decoder_layers']):
        b = f'decoder.{i}.'
        s |= lin(b + 'self.qkv', 3 * D, D) | lin(b + 'self.out', D, D) | norm(b + 'norm1')
        s |= lin(b + 'cross.q', D, D) | lin(b + 'cross.kv', 2 * D, D) | lin(b + 'cross.out', D, D) | norm(b + 'norm2') | ffn(b) | norm(b + 'norm3')
    if c['final_norm']:
        s |= norm('encoder_norm') | norm('decoder_norm')
    return s if c['tied'] else s | lin('head', c['vocab'], D)

def weight(case, name, shape):
    """As make_torch.py: matrices in +-1/sqrt(columns), gains 1 +- 1/4, biases +-1/4."""
    if len(shape) == 2:
        return R.real(f'{case}/{name}', shape, 1.0 / math.sqrt(shape[1]))
    gain = 'norm' in name and name.endswith('weight')
    return (R.real(f'{case}/{name}', shape, 0.25) + (1.0 if gain else 0.0)).float().double()

def batch(case, c, step):
    """Source, input and target ids, padded, with lengths: 1 to 7, and 1 to 6."""
    draw = lambda what, n, count, first: R.ids(f'{case}/{what}', (count,), n, first)
    sl, tl = 1 + draw('source_length', 7, PAIRS, step * PAIRS), 1 + draw('target_length', 6, PAIRS, step * PAIRS)
    rows = lambda what, n, lengths: [draw(what, n, int(l), 64 * (step * PAIRS + i)) for i, l in enumerate(lengths)]
    source, given = rows('source', c['source_vocab'], sl), rows('input', c['vocab'], tl)
    target = [(3 * y + x[0]) % c['vocab'] for x, y in zip(source, given)]
    pad = lambda r: torch.nn.utils.rnn.pad_sequence(r, batch_first=True)
    return pad(source), sl, pad(given), tl, pad(target)

def real(x, lengths):
    """The rows of [B,T,...] that are no padding, end to end."""
    return torch.cat([x[i, :l] for i, l in enumerate(lengths)])

def from_primitives(p, c, b):
    return R.seq2seq(p, c, *b[:4])

def same_as_module(c):
    return c['final_norm'] and c['bias'] and c['activation'] in ('relu', 'gelu')

def from_module(p, c, b):
    """torch.nn.Transformer with the same weights, as a function of p."""
    source, sl, given, tl, _ = b
    net = torch.nn.Transformer(D, HEADS, c['encoder_layers'], c['decoder_layers'], FF, 0.0, c['activation'], batch_first=True, norm_first=c['norm'] == 'pre')
    q = {}
    for stack, side in ('encoder', 'encoder'), ('decoder', 'decoder'):
        for i in range(c[stack + '_layers']):
            theirs, ours = f'{stack}.layers.{i}.', f'{stack}.{i}.'
            for kind in 'weight', 'bias':
                attn = ours + ('attn.' if stack == 'encoder' else 'self.')
                q[theirs + 'self_attn.in_proj_' + kind], q[theirs + 'self_attn.out_proj.' + kind] = p[attn + 'qkv.' + kind], p[attn + 'out.' + kind]
                if stack == 'decoder':
                    q[theirs + 'multihead_attn.in_proj_' + kind] = torch.cat([p[ours + 'cross.q.' + kind], p[ours + 'cross.kv.' + kind]])
                    q[theirs + 'multihead_attn.out_proj.' + kind] = p[ours + 'cross.out.' + kind]
                q[theirs + 'linear1.' + kind], q[theirs + 'linear2.' + kind] = p[ours + 'ffn.up.' + kind], p[ours + 'ffn.down.' + kind]
                for n in range(1, 3 if stack == 'encoder' else 4):
                    q[theirs + f'norm{n}.' + kind] = p[ours + f'norm{n}.' + kind]
        for kind in 'weight', 'bias':
            q[f'{stack}.norm.{kind}'] = p[f'{stack}_norm.{kind}']
    assert q.keys() == dict(net.named_parameters()).keys()
    e = p.get('embed.weight', p.get('source_embed.weight'))
    t = p.get('target_embed.weight', e)
    scale = math.sqrt(D) if c['scale_embeddings'] else 1.0
    embed = lambda table, x: F.embedding(x, table) * scale + R.sinusoidal(x.shape[1], D)
    hide_s, hide_t = (torch.arange(x.shape[1]) >= l.view(-1, 1) for x, l in ((source, sl), (given, tl)))
    future = torch.ones(given.shape[1], given.shape[1], dtype=torch.bool).triu(1)
    net.train()  # no fast path, no nested tensors
    y = torch.func.functional_call(net, q, (embed(e, source), embed(t, given)), dict(tgt_mask=future, src_key_padding_mask=hide_s, tgt_key_padding_mask=hide_t, memory_key_padding_mask=hide_s))
    return F.linear(y, p.get('head.weight', t), p.get('head.bias'))

def evaluate(model, case, c, step=0):
    p = {n: weight(case, n, s).requires_grad_() for n, s in shapes_of(c).items()}
    b = batch(case, c, step)
    logits, target = real(model(p, c, b), b[3]), real(b[4], b[3])
    loss = F.cross_entropy(logits, target, label_smoothing=c['smoothing'])
    loss.backward()
    return logits.detach(), loss.item(), F.cross_entropy(logits, target).item(), {n: v.grad for n, v in p.items()}

def attention(case, c, pair):
    """The weights of one pair: {layer.attention: [1,H,T,S]}."""
    source, sl, given, tl, _ = batch(case, c, 0)
    keep, one = {}, slice(pair, pair + 1)
    with torch.no_grad():
        R.seq2seq({n: weight(case, n, s) for n, s in shapes_of(c).items()}, c, source[one, :sl[pair]], sl[one], given[one, :tl[pair]], tl[one], keep)
    return keep

def train(case, c, peak, warmup):
    p = {n: weight(case, n, s).requires_grad_() for n, s in shapes_of(c).items()}
    opt = torch.optim.Adam(p.values(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(STEPS):
        opt.param_groups[0]['lr'] = R.inverse_sqrt(peak, warmup, step)
        opt.zero_grad(set_to_none=True)
        b = batch(case, c, step)
        loss = F.cross_entropy(real(from_primitives(p, c, b), b[3]), real(b[4], b[3]), label_smoothing=c['smoothing'])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        opt.step()
        losses.append(loss.item())
    return losses

if __name__ == '__main__':
    out = {}
    for case, c in CASES.items():
        logits, loss, plain, grads = evaluate(from_primitives, case, c)
        out |= {f'{case}/logits': logits, f'{case}/loss': np.array([loss]), f'{case}/plain': np.array([plain])}
        out |= {f'{case}/d.{n}': g for n, g in grads.items()}
        if same_as_module(c):
            m_logits, m_loss, _, m_grads = evaluate(from_module, case, c)
            whole = math.sqrt(sum(float(g.pow(2).sum()) for g in grads.values()))
            apart = max([float((m_logits - logits).norm() / logits.norm())] + [float((m_grads[n] - g).norm()) / whole for n, g in grads.items()])
            print(f'{case}: nn.Transformer differs by {apart:.1e}')
            assert apart < 1e-12
            out |= {f'{case}/module/logits': m_logits, f'{case}/module/loss': np.array([m_loss])}
        if case in WATCHED:
            out |= {f'{case}/weights.{n}': w for n, w in attention(case, c, WATCHED[case]).items()}
        if case in TRAINED:
            out[f'{case}/losses'] = np.array(train(case, c, *TRAINED[case]))
            print(case, 'trained:', out[f'{case}/losses'][[0, -1]])
    arrays = {k: np.ascontiguousarray(v.numpy() if isinstance(v, torch.Tensor) else v) for k, v in out.items()}
    save_file(arrays, pathlib.Path(__file__).parent / 'torch' / 'seq2seq.safetensors', metadata={'made_by': 'tests/golden/make_seq2seq.py', 'torch': torch.__version__})
    print(f'{len(arrays)} tensors, {sum(a.nbytes for a in arrays.values())} bytes')
