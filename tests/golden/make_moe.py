# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/moe.safetensors: mixtures of experts in PyTorch, as Mixtral and Switch have them, with the balancing loss of
transformers (load_balancing_loss_func, modeling_mixtral.py), values and gradients, from weights and inputs that formula.h gives.
tests/nn/moe.c reads it. Run by hand, as make_torch.py:

    python tests/golden/make_moe.py"""
import torch
import torch.nn.functional as F
import torch_reference as R
from make_torch import run, save

def moe(p, prefix, x, experts, k, kind, raw):
    """-> y, the router's logits. Every expert sees every row here; the weights of the others are 0."""
    logits = F.linear(x.reshape(-1, x.shape[-1]), p[prefix + 'router.weight'])
    w, chosen = torch.topk(F.softmax(logits, -1), k, dim=-1)
    if not raw:
        w = w / w.sum(-1, keepdim=True)
    w = (F.one_hot(chosen, experts) * w.unsqueeze(-1)).sum(1)  # [N, experts]
    y = sum(w[:, e].view(*x.shape[:-1], 1) * R.ffn(p, f'{prefix}experts.{e}.', x, kind) for e in range(experts))
    return y, logits

def load_balancing_loss(gate_logits, experts, k):
    routing = F.softmax(torch.cat(gate_logits, 0), -1)
    _, chosen = torch.topk(routing, k, dim=-1)
    tokens_per_expert = F.one_hot(chosen, experts).double().mean(0)
    return (tokens_per_expert * routing.mean(0).unsqueeze(0)).sum() * experts

def shapes(prefix, d, ff, experts, kind, bias):
    s = {f'{prefix}router.weight': (experts, d)}
    for e in range(experts):
        for n, shape in (({'gate': (ff, d)} if kind == 'swiglu' else {}) | {'up': (ff, d), 'down': (d, ff)}).items():
            s[f'{prefix}experts.{e}.{n}.weight'] = shape
            if bias:
                s[f'{prefix}experts.{e}.{n}.bias'] = shape[:1]
    return s

out = {}
def case(name, experts, k, kind, raw=False, bias=True, balance=0.0):
    def fn(p, i):
        y, logits = moe(p, '', i['x'], experts, k, kind, raw)
        return y + balance * load_balancing_loss([logits], experts, k)
    run(out, name, shapes('', 6, 10, experts, kind, bias), {'x': (3, 5, 6)}, fn)
case('mixtral', 5, 2, 'swiglu', bias=False, balance=0.7)
case('switch', 4, 1, 'gelu', raw=True, balance=0.3)
case('dense', 3, 3, 'relu')
case('one', 1, 1, 'silu')
def two(p, i):
    y, first = moe(p, 'a.', i['x'], 4, 2, 'swiglu', False)
    y, second = moe(p, 'b.', i['x'] + y, 4, 2, 'swiglu', False)
    return y + 0.5 * load_balancing_loss([first, second], 4, 2)
run(out, 'two', shapes('a.', 6, 10, 4, 'swiglu', False) | shapes('b.', 6, 10, 4, 'swiglu', False), {'x': (3, 5, 6)}, two)
save('moe', out, 'make_moe.py')
