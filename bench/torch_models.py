# SPDX-License-Identifier: MIT
"""The cases of `weft bench` in PyTorch on the CPU, in float or with --bf16 in autocast; ./bench/compare runs this.

    torch_models.py CASE [options]       time of a training step (forward, loss, backward, Adam or AdamW), or of generation
    torch_models.py CASE --check FILE    the loss from the weights and the batch in FILE, which bench/parity wrote

Parameters have Weft's names, except that q, k and v are three products outside of GPT-2. Prints one JSON object."""
import argparse, json, math, resource, time
import torch, torch.nn as nn, torch.nn.functional as F

class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1.1920929e-7) * self.weight

class Attention(nn.Module):
    """Written out, or with sdpa through scaled_dot_product_attention. mask: True = may attend."""
    sdpa = False

    def __init__(self, d, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.q, self.k, self.v, self.out = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x, memory, mask):  # [B,T,D], [B,S,D], [B,1,T or 1,S] -> [B,T,D]
        split = lambda linear, x: linear(x).view(len(x), x.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = split(self.q, x), split(self.k, memory), split(self.v, memory)
        dropout = self.dropout if self.training else 0.0
        if Attention.sdpa:
            y = F.scaled_dot_product_attention(q, k, v, mask, dropout)
        else:
            scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(~mask, -1e9)
            y = F.dropout(scores.softmax(-1), dropout) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))

class FeedForward(nn.Module):
    def __init__(self, d, d_ff, dropout):
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(d, d_ff), nn.Linear(d_ff, d), nn.Dropout(dropout)

    def forward(self, x):
        return self.down(self.drop(F.relu(self.up(x))))

class Layer(nn.Module):
    """A block of an encoder, or with cross of a decoder. inner: dropout on attention weights and inside the feed-forward."""
    def __init__(self, d, heads, d_ff, pre, dropout, inner, norm=nn.LayerNorm, cross=False):
        super().__init__()
        self.pre, self.drop, self.name = pre, nn.Dropout(dropout), 'self' if cross else 'attn'
        setattr(self, self.name, Attention(d, heads, inner))
        if cross:
            self.cross = Attention(d, heads, inner)
            self.norm3 = norm(d)
        self.norm1, self.norm2, self.ffn = norm(d), norm(d), FeedForward(d, d_ff, inner)

    def around(self, norm, x, sublayer):
        return x + self.drop(sublayer(norm(x))) if self.pre else norm(x + self.drop(sublayer(x)))

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.around(self.norm1, x, lambda y: getattr(self, self.name)(y, y, mask))
        if memory is None:
            return self.around(self.norm2, x, self.ffn)
        x = self.around(self.norm2, x, lambda y: self.cross(y, memory, memory_mask))
        return self.around(self.norm3, x, self.ffn)

def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril().view(1, 1, n, n)

def not_padding(ids):
    return (ids != 0).view(len(ids), 1, 1, -1)

class Sinusoidal(nn.Module):
    """What Encoder and Seq2seq share: embeddings, scaled or not, with sinusoidal positions."""
    def __init__(self, d, dropout, scaled, longest=512):
        super().__init__()
        self.scale, self.drop = math.sqrt(d) if scaled else 1.0, nn.Dropout(dropout)
        angle = torch.arange(longest)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        self.register_buffer('table', torch.stack((angle.sin(), angle.cos()), -1).flatten(1), persistent=False)

    def embedded(self, embedding, ids):
        return self.drop(embedding(ids) * self.scale + self.table[:ids.shape[1]])

class Encoder(Sinusoidal):
    """ids [B,T] -> logits [B,T,V]; causal: a language model."""
    def __init__(self, V, layers, d, heads, d_ff, dropout, scaled=False, final=False, norm=nn.LayerNorm, causal=False):
        super().__init__(d, dropout, scaled)
        self.causal, self.embed, self.head = causal, nn.Embedding(V, d), nn.Linear(d, V)
        self.blocks = nn.ModuleList(Layer(d, heads, d_ff, False, dropout, dropout, norm) for _ in range(layers))
        if final:
            self.norm = norm(d)

    def forward(self, ids):
        mask = not_padding(ids) & causal(ids.shape[1]) if self.causal else not_padding(ids)
        x = self.embedded(self.embed, ids)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x) if hasattr(self, 'norm') else x)

class Seq2seq(Sinusoidal):
    """source [B,S], target [B,T] -> logits [B,T,V]; tied: one embedding, for the output too; shared: for both sides."""
    def __init__(self, V, layers, d, heads, d_ff, dropout, inner=None, pre=False, final=False, shared=False, tied=False, scaled=False):
        super().__init__(d, dropout, scaled)
        inner = dropout if inner is None else inner
        if shared or tied:
            self.embed = nn.Embedding(V, d)
        else:
            self.source_embed, self.target_embed = nn.Embedding(V, d), nn.Embedding(V, d)
        self.encoder = nn.ModuleList(Layer(d, heads, d_ff, pre, dropout, inner) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(d, heads, d_ff, pre, dropout, inner, cross=True) for _ in range(layers))
        if final:
            self.encoder_norm, self.decoder_norm = nn.LayerNorm(d), nn.LayerNorm(d)
        if tied:
            nn.init.normal_(self.embed.weight, std=d ** -0.5)
        else:
            self.head = nn.Linear(d, V)

    def forward(self, source, target):
        one, end = hasattr(self, 'embed'), hasattr(self, 'encoder_norm')
        mask = not_padding(source)
        x = self.embedded(self.embed if one else self.source_embed, source)
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.encoder_norm(x) if end else x
        y = self.embedded(self.embed if one else self.target_embed, target)
        both = not_padding(target) & causal(target.shape[1])
        for layer in self.decoder:
            y = layer(y, both, x, mask)
        y = self.decoder_norm(y) if end else y
        return self.head(y) if hasattr(self, 'head') else F.linear(y, self.embed.weight)

class GPTAttention(nn.Module):
    def __init__(self, d, heads, dropout, bias):
        super().__init__()
        self.heads, self.dropout, self.qkv, self.out = heads, dropout, nn.Linear(d, 3 * d, bias=bias), nn.Linear(d, d, bias=bias)

    def forward(self, x):
        q, k, v = (t.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(x.shape[-1], 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(x.shape))

class GPTBlock(nn.Module):
    def __init__(self, d, heads, dropout, bias):
        super().__init__()
        self.norm1, self.norm2, self.attn = nn.LayerNorm(d, bias=bias), nn.LayerNorm(d, bias=bias), GPTAttention(d, heads, dropout, bias)
        self.ffn = nn.ModuleDict({'up': nn.Linear(d, 4 * d, bias=bias), 'down': nn.Linear(4 * d, d, bias=bias)})
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.attn(self.norm1(x)))
        return x + self.drop(self.ffn['down'](F.gelu(self.ffn['up'](self.norm2(x)))))

class GPT(nn.Module):
    """GPT-2: learned positions, the output tied to the embedding. ids [B,T] -> logits [B,T,V]."""
    def __init__(self, V, context, layers, d, heads, dropout, bias):
        super().__init__()
        self.embed, self.positions, self.drop = nn.Embedding(V, d), nn.Embedding(context, d), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(GPTBlock(d, heads, dropout, bias) for _ in range(layers))
        self.norm = nn.LayerNorm(d, bias=bias)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, ids, last=False):
        x = self.drop(self.embed(ids) + self.positions.weight[:ids.shape[1]])
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return F.linear(x[:, -1:] if last else x, self.embed.weight)

    @torch.no_grad()
    def generate(self, ids, n, temperature=0.8, top_k=200):
        """Without a cache, as nanoGPT samples."""
        for _ in range(n):
            logits = self(ids[:, -len(self.positions.weight):], last=True)[:, -1] / temperature
            least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
            ids = torch.cat((ids, torch.multinomial(logits.masked_fill(logits < least, -math.inf).softmax(-1), 1)), 1)
        return ids

def cross_entropy(logits, ids, **options):
    return F.cross_entropy(logits.flatten(0, -2), ids.flatten(), **options)

def language(model, B, T, V, first=0):
    ids = torch.randint(first, V, (B, T + 1))
    x, y = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    return model, lambda: cross_entropy(model(x), y), B * T

def pairs(model, B, low, high, V, smoothing=0.0):
    """B pairs of low to high ids a side, padded with 0 where their lengths differ."""
    lengths = torch.randint(low, high + 1, (2, B))
    padded = lambda n: torch.randint(1, V, (B, int(n.max()))) * (torch.arange(int(n.max())) < n[:, None])
    source, x, y = padded(lengths[0]), padded(lengths[1]), padded(lengths[1])
    return model, lambda: cross_entropy(model(source, x), y, ignore_index=0, label_smoothing=smoothing), int(lengths.sum())

def gpt(B, T, V, layers, heads, d, dropout, context=None):
    return language(GPT(V, context or T, layers, d, heads, dropout, bias=context is not None), B, T, V)

def encoder(B, T, dropout):
    return language(Encoder(1000, 6, 64, 8, 256, dropout, scaled=True, final=True), B, T, 1000, first=1)

CASES = {  # dropout -> model, loss of a step, tokens of a step
    'char-rms': lambda p: language(Encoder(70, 1, 64, 4, 256, p, norm=RMSNorm, causal=True), 16, 256, 70, first=1),
    'nanogpt-char-small': lambda p: gpt(12, 64, 65, 4, 4, 128, p),
    'nanogpt-char-8': lambda p: gpt(8, 256, 65, 6, 6, 384, p),
    'nanogpt-char': lambda p: gpt(64, 256, 65, 6, 6, 384, p),
    'gpt2-4x64': lambda p: gpt(4, 64, 50257, 12, 12, 768, p, context=1024),
    'gpt2-1x1024': lambda p: gpt(1, 1024, 50257, 12, 12, 768, p, context=1024),
    'encoder-attention': lambda p: encoder(2, 10, p),
    'encoder-attention-32x128': lambda p: encoder(32, 128, p),
    'seq2seq-tiny': lambda p: pairs(Seq2seq(30, 2, 32, 4, 128, p, pre=True, final=True), 6, 6, 6, 30),
    'seq2seq-postnorm': lambda p: pairs(Seq2seq(1000, 2, 128, 8, 512, p, shared=True), 2, 5, 5, 1000),
    'multi30k': lambda p: pairs(Seq2seq(10000, 4, 128, 4, 256, p, inner=0.0, pre=True, final=True, tied=True, scaled=True), 200, 8, 20, 10000, 0.1),
    'transformer-base': lambda p: pairs(Seq2seq(37000, 6, 512, 8, 2048, p, final=True, tied=True, scaled=True), 32, 32, 32, 37000, 0.1),
}
GENERATED = {'generate-nanogpt-char-small': ('nanogpt-char-small', 256), 'generate-nanogpt-char': ('nanogpt-char-8', 100)}  # case, tokens

def check(case, path):
    from safetensors.torch import load_file
    tensors = load_file(path)
    model = CASES[case](0.0)[0].eval()
    known, weights = model.state_dict(), {}
    for name, value in tensors.items():
        if name.startswith('weights.'):
            *place, linear, kind = name.split('.')[1:]
            whole = '.'.join([*place, linear, kind])
            parts = ('qkv',) if whole in known or linear not in ('qkv', 'kv') else tuple(linear)
            for part, piece in zip(parts, value.chunk(len(parts))):
                weights[whole if len(parts) == 1 else '.'.join([*place, part, kind])] = piece
    model.load_state_dict(weights)
    with torch.no_grad():
        if isinstance(model, Seq2seq):
            def padded(ids, offsets):
                rows = [tensors[ids][a:b].long() for a, b in zip(tensors[offsets], tensors[offsets][1:])]
                return nn.utils.rnn.pad_sequence(rows, batch_first=True)
            logits = model(padded('source', 'source_offsets'), padded('input', 'target_offsets'))
            loss = cross_entropy(logits, padded('target', 'target_offsets'), ignore_index=0, label_smoothing=float(tensors['label_smoothing'][0]))
        else:
            loss = cross_entropy(model(tensors['x'].long()), tensors['y'].long())
    return {'weft': float(tensors['loss'][0]), 'torch': float(loss)}

def timed(f, seconds):
    """Milliseconds of a call: median and least, of at least 3 after 2 that are not counted."""
    for _ in range(2):
        f()
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        f()
        times.append(1e3 * (time.perf_counter() - before))
    times.sort()
    return {'ms': times[len(times) // 2], 'least': times[0]}

def measure(a):
    cast = lambda: torch.autocast('cpu', dtype=torch.bfloat16, enabled=a.bf16)
    if a.case in GENERATED:
        case, tokens = GENERATED[a.case]
        model = CASES[case](0.0)[0].eval()

        def step():
            with cast():
                model.generate(torch.zeros((1, 1), dtype=torch.long), tokens)
    else:
        model, loss, tokens = CASES[a.case](a.dropout)
        optimizer = torch.optim.AdamW if isinstance(model, GPT) else torch.optim.Adam
        update = optimizer(model.parameters(), lr=1e-4, fused=a.fused or None)
        if a.compile:
            model.compile()

        def step():
            update.zero_grad(set_to_none=True)
            with cast():
                x = loss()
            x.backward()
            update.step()
    r = timed(step, a.seconds)
    return r | {'rate': tokens / r['ms'] * 1e3, 'rss': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('case', choices=[*CASES, *GENERATED])
    ap.add_argument('--check', metavar='FILE')
    ap.add_argument('--sdpa', action='store_true', help='attention through scaled_dot_product_attention (GPT-2 always does)')
    ap.add_argument('--fused', action='store_true', help='the fused optimiser')
    ap.add_argument('--compile', action='store_true', help='torch.compile')
    ap.add_argument('--bf16', action='store_true', help="products in bf16, as torch.autocast('cpu') computes them")
    ap.add_argument('--dropout', type=float, default=0.0)
    ap.add_argument('--threads', type=int, default=2)
    ap.add_argument('--seconds', type=float, default=8)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    Attention.sdpa = a.sdpa
    print(json.dumps(check(a.case, a.check) if a.check else measure(a)))

if __name__ == '__main__':
    main()
