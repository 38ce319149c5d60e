# SPDX-License-Identifier: MIT
"""The programs examples/lstm.c, vit.c, llama.c and moe.c in PyTorch, float32 on the CPU; ./bench/compare examples runs this.

    torch_examples.py NAME [options]                  trains, and times it
    torch_examples.py NAME --check FILE [options]     trains from the weights in FILE, which the program wrote

A step is all of it: a batch, forward, loss, backward, clipping, AdamW with the schedule's rate, and the loss as a number.
Parameters have Weft's names. Prints one JSON object."""
import argparse, json, math, time
import torch, torch.nn as nn, torch.nn.functional as F

class Rows(nn.Module):
    """A language model's ends: ids [B,T] -> [B,T,d] -> logits [B,T,V]."""
    def __init__(self, vocab, d, bias=False):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab, bias=bias)

    def forward(self, ids):
        return self.head(self.hidden(self.embed(ids)))

class Lstm(Rows):
    """Written out, as examples/lstm.c, or with the fused cell of nn.LSTM, which has a second bias."""
    def __init__(self, vocab, d=128, cell=False):
        super().__init__(vocab, d, bias=True)
        self.cell = nn.LSTM(d, d, batch_first=True) if cell else None
        self.layers = nn.ModuleList() if cell else nn.ModuleList([nn.ModuleDict({'input': nn.Linear(d, 4 * d), 'recurrent': nn.Linear(d, 4 * d, bias=False)})])

    def load(self, weights):
        if self.cell is None:
            return self.load_state_dict(weights)
        place = {'layers.0.input.weight': 'cell.weight_ih_l0', 'layers.0.input.bias': 'cell.bias_ih_l0', 'layers.0.recurrent.weight': 'cell.weight_hh_l0'}
        weights = {place.get(name, name): w for name, w in weights.items()}
        self.load_state_dict(weights | {'cell.bias_hh_l0': torch.zeros_like(weights['cell.bias_ih_l0'])})
        self.cell.bias_hh_l0.requires_grad_(False)

    def hidden(self, x):
        if self.cell is not None:
            return self.cell(x)[0]
        for layer in self.layers:
            h = c = torch.zeros_like(x[:, 0])
            recurrent, states = layer['recurrent'], []
            for step in layer['input'](x).unbind(1):
                i, f, g, o = (step + recurrent(h)).chunk(4, 1)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
                states.append(h)
            x = torch.stack(states, 1)
        return x

class RMSNorm(nn.RMSNorm):
    def __init__(self, d):
        super().__init__(d, eps=1.1920929e-7)

class Attention(nn.Module):
    """[B,T,d] -> [B,T,d]; `rotary`: the table of angles, and causal."""
    def __init__(self, d, heads, kv_heads, bias):
        super().__init__()
        self.heads, self.kv_heads, self.width = heads, kv_heads, d // heads
        self.qkv = nn.Linear(d, (heads + 2 * kv_heads) * self.width, bias=bias)
        self.out = nn.Linear(d, d, bias=bias)

    def forward(self, x, rotary=None):
        B, T, d = x.shape
        q, k, v = self.qkv(x).view(B, T, -1, self.width).transpose(1, 2).split((self.heads, self.kv_heads, self.kv_heads), 1)
        if rotary is not None:
            cosine, sine = rotary
            turn = lambda x: x * cosine + torch.cat((-x[..., self.width // 2:], x[..., :self.width // 2]), -1) * sine
            q, k = turn(q), turn(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=rotary is not None, enable_gqa=self.heads != self.kv_heads)
        return self.out(y.transpose(1, 2).reshape(B, T, d))

class SwiGLU(nn.Module):
    def __init__(self, d, d_ff):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, d_ff, bias=False), nn.Linear(d, d_ff, bias=False), nn.Linear(d_ff, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))

class Moe(nn.Module):
    """As Mixtral in transformers: the rows of an expert are gathered, and added to the result with their weights."""
    def __init__(self, d, d_ff, experts=8, chosen=2):
        super().__init__()
        self.chosen, self.router = chosen, nn.Linear(d, experts, bias=False)
        self.experts = nn.ModuleList(SwiGLU(d, d_ff) for _ in range(experts))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        self.routed = self.router(rows).softmax(-1)
        weight, chosen = self.routed.topk(self.chosen, -1)
        self.load = F.one_hot(chosen.detach(), len(self.experts)).sum((0, 1)).float()
        weight = weight / weight.sum(-1, keepdim=True)
        y = torch.zeros_like(rows)
        for e, expert in enumerate(self.experts):
            row, place = torch.where(chosen == e)
            y = y.index_add(0, row, expert(rows[row]) * weight[row, place, None])
        return y.view(x.shape)

class Block(nn.Module):
    def __init__(self, d, heads, kv_heads, name, ffn):
        super().__init__()
        self.norm1, self.norm2, self.attn, self.name = RMSNorm(d), RMSNorm(d), Attention(d, heads, kv_heads, bias=False), name
        setattr(self, name, ffn)

    def forward(self, x, rotary):
        x = x + self.attn(self.norm1(x), rotary)
        return x + getattr(self, self.name)(self.norm2(x))

class Decoder(Rows):
    """Llama, and with `experts` the mixture."""
    def __init__(self, vocab, d, heads, kv_heads, d_ff, layers, experts=False, context=64):
        super().__init__(vocab, d)
        ffn = (lambda: Moe(d, d_ff)) if experts else (lambda: SwiGLU(d, d_ff))
        self.blocks = nn.ModuleList(Block(d, heads, kv_heads, 'moe' if experts else 'ffn', ffn()) for _ in range(layers))
        self.norm = RMSNorm(d)
        angle = torch.outer(torch.arange(context), 1e4 ** (-torch.arange(0, d // heads, 2) / (d // heads)))
        angle = torch.cat((angle, angle), -1)
        self.register_buffer('cosine', angle.cos(), persistent=False)
        self.register_buffer('sine', angle.sin(), persistent=False)
        if not experts:
            self.head.weight = self.embed.weight
            for name, p in self.named_parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02 / (math.sqrt(2 * layers) if 'out' in name or 'down' in name else 1))

    def load(self, weights):
        self.load_state_dict({'head.weight': weights['embed.weight']} | weights)

    def hidden(self, x):
        rotary = self.cosine[:x.shape[1]], self.sine[:x.shape[1]]
        for block in self.blocks:
            x = block(x, rotary)
        return self.norm(x)

class Vit(nn.Module):
    def __init__(self, side=16, patch=4, d=64, heads=4, blocks=2, classes=4):
        super().__init__()
        self.patch, self.patches, self.head = patch, nn.Linear(patch * patch, d), nn.Linear(d, classes)
        self.positions = nn.ParameterDict({'weight': nn.Parameter(0.02 * torch.randn((side // patch) ** 2, d))})
        layer = lambda: nn.ModuleDict({'norm1': nn.LayerNorm(d), 'attn': Attention(d, heads, heads, bias=True), 'norm2': nn.LayerNorm(d),
                                       'ffn': nn.ModuleDict({'up': nn.Linear(d, 4 * d), 'down': nn.Linear(4 * d, d)})})
        self.blocks, self.norm = nn.ModuleList(layer() for _ in range(blocks)), nn.LayerNorm(d)

    def load(self, weights):
        self.load_state_dict(weights)

    def forward(self, x):  # [B,side,side] -> [B,classes]
        B, side, p = len(x), x.shape[1], self.patch
        x = x.view(B, side // p, p, side // p, p).transpose(2, 3).reshape(B, -1, p * p)
        x = self.patches(x) + self.positions['weight']
        for b in self.blocks:
            x = x + b['attn'](b['norm1'](x))
            x = x + b['ffn']['down'](F.gelu(b['ffn']['up'](b['norm2'](x))))
        return self.head(self.norm(x).mean(1))

SHAPES = [[c == '#' for c in s] for s in ('.###.#...##...##...#.###.', '#...#.#.#...#...#.#.#...#')]  # ring and cross

def pictures(count=64, side=16):
    """As examples/vit.c draws them, all at once."""
    ring = torch.randint(0, side - 4, (count, 2))
    cross = (ring + 1 + torch.randint(0, side - 5, (count, 2))) % (side - 4)
    x = 0.1 * torch.randn(count, side, side)
    picture, place = torch.arange(count)[:, None], torch.arange(25)
    for at, shape in zip((ring, cross), torch.tensor(SHAPES, dtype=torch.float32)):
        x.index_put_((picture, at[:, :1] + place // 5, at[:, 1:] + place % 5), shape.expand(count, 25), accumulate=True)
    return x, (2 * (ring[:, 0] > cross[:, 0]) + (ring[:, 1] > cross[:, 1])).long()

def weft_numbers(seed, stream):
    """Weft's wf_rng_next (Philox 4x32-10), for the pictures of a check."""
    block = 0
    while True:
        c, k = [block & 0xffffffff, block >> 32, stream & 0xffffffff, stream >> 32], [seed & 0xffffffff, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
            k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
        yield from c
        block += 1

def weft_pictures(step, count=64, side=16):
    """The batch of a step of examples/vit.c, number for number."""
    numbers = weft_numbers(1, step)
    uniform = lambda: ((next(numbers) | next(numbers) << 32) >> 11) * 2.0 ** -53
    def below(n):
        while True:
            product = next(numbers) * n
            if product & 0xffffffff >= (-n % 2 ** 32) % n:
                return product >> 32
    def normal():
        u, v = uniform(), uniform()
        return math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)
    x, label = torch.zeros(count, side, side), torch.zeros(count, dtype=torch.long)
    for i in range(count):
        at = [[0, 0], [0, 0]]
        for axis in (0, 1):
            at[0][axis] = below(side - 4)
            at[1][axis] = (at[0][axis] + 1 + below(side - 5)) % (side - 4)
        x[i] = torch.tensor([0.1 * normal() for _ in range(side * side)]).view(side, side)
        for (row, column), shape in zip(at, torch.tensor(SHAPES, dtype=torch.float32)):
            x[i, row:row + 5, column:column + 5] += shape.view(5, 5)
        label[i] = 2 * (at[0][0] > at[1][0]) + (at[0][1] > at[1][1])
    return x, label

def windows(text, batch, context=64):
    """Random windows of a text, characters as ids in the order of their first use."""
    known = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([known[c] for c in text])
    def draw():
        at = torch.randint(0, len(ids) - context, (batch,)).tolist()
        return torch.stack([ids[i:i + context] for i in at]), torch.stack([ids[i + 1:i + context + 1] for i in at])
    return len(known), draw

PROGRAMS = {  # settings as the presets and vit.c have them
    'lstm': dict(batch=16, lr=5e-3, min_lr=5e-4, warmup=20, decay=0, beta2=0.999),
    'vit': dict(batch=64, lr=3e-3, min_lr=0, warmup=50, decay=0, beta2=0.999),
    'llama': dict(batch=12, lr=1e-3, min_lr=1e-4, warmup=50, decay=0.1, beta2=0.99),
    'moe': dict(batch=16, lr=4e-3, min_lr=4e-4, warmup=20, decay=0, beta2=0.999),
}

def balance(model):
    """Of each layer, experts times the sum of f_e P_e: the share of choices and the mean probability of expert e (Switch); their mean."""
    return sum(len(m.load) * (m.load * m.routed.sum(0)).sum() / len(m.routed) ** 2 for m in (b.moe for b in model.blocks)) / len(model.blocks)

def model_of(name, vocab, cell):
    return (Vit() if name == 'vit' else Lstm(vocab, cell=cell) if name == 'lstm' else
            Decoder(vocab, 128, 4, 2, 344, 4) if name == 'llama' else Decoder(vocab, 64, 4, 4, 128, 2, experts=True))

def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('name', choices=PROGRAMS)
    ap.add_argument('--check', metavar='FILE')
    ap.add_argument('--first', type=int, default=0, help='the step that a check begins with')
    ap.add_argument('--text', help='what a language model learns from')
    ap.add_argument('--cell', action='store_true', help='nn.LSTM')
    ap.add_argument('--fused', action='store_true', help='the fused optimiser')
    ap.add_argument('--compile', action='store_true', help='torch.compile')
    ap.add_argument('--threads', type=int, default=2)
    ap.add_argument('--steps', type=int, default=100)
    ap.add_argument('--group', type=int, default=10, help='steps that are timed together')
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    s = PROGRAMS[a.name]
    vocab, draw = windows(open(a.text, encoding='utf-8').read(), s['batch']) if a.name != 'vit' else (0, pictures)
    model = model_of(a.name, vocab, a.cell)
    if a.check:
        from safetensors.torch import load_file
        model.load(load_file(a.check))
        draw = (lambda: weft_pictures(step)) if a.name == 'vit' else draw
    if a.compile:
        model.compile()
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [{'params': [p for p in parameters if p.dim() > 1], 'weight_decay': s['decay']},
              {'params': [p for p in parameters if p.dim() <= 1], 'weight_decay': 0.0}]
    adam = torch.optim.AdamW(groups, lr=s['lr'], betas=(0.9, s['beta2']), fused=a.fused or None)
    whole = 1500 if a.name == 'vit' else a.steps
    losses, norms, times, begin = {}, {}, [], 0.0
    for step in range(a.first, a.first + a.steps):
        if step % a.group == 0 and step > a.first:
            now = time.perf_counter()
            if begin:
                times.append(1e3 * (now - begin) / a.group)
            begin = now
        rate = s['lr'] * (step + 1) / (s['warmup'] + 1)
        if step >= s['warmup']:
            done = min((step - s['warmup']) / max(whole - s['warmup'], 1), 1)
            rate = s['min_lr'] + 0.5 * (1 + math.cos(math.pi * done)) * (s['lr'] - s['min_lr'])
        for group in adam.param_groups:
            group['lr'] = rate
        x, y = draw()
        loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
        adam.zero_grad(set_to_none=True)
        (loss + 0.01 * balance(model) if a.name == 'moe' else loss).backward()
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        losses[step + 1] = loss.item()
        norms[step + 1] = norm.item() if a.check else 0
    print(json.dumps({'ms': times, 'losses': losses, 'norms': norms, 'parameters': sum(p.numel() for p in parameters)}))

if __name__ == '__main__':
    main()
