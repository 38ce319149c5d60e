# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/recurrent.safetensors: nn.LSTM and nn.GRU of PyTorch, results, last states and gradients, from weights and
inputs that formula.h gives. Rows with lengths go through pack_padded_sequence. tests/nn/lstm.c reads it. Run by hand, as make_torch.py:

    python tests/golden/make_recurrent.py"""
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from make_torch import run, save

def case(out, name, kind, B, T, n_in, H, layers=1, both=False, bias=True, states=False, lengths=None):
    module = getattr(torch.nn, kind)(n_in, H, layers, bias=bias, batch_first=True, bidirectional=both).double()
    shapes = {k: tuple(v.shape) for k, v in module.named_parameters()}
    inputs, n = {'x': (B, T, n_in)}, layers * (1 + both)
    if states:
        inputs |= {'h': (n, B, H)} | ({'c': (n, B, H)} if kind == 'LSTM' else {})
    def fn(p, i):
        state = (i['h'], i['c']) if kind == 'LSTM' and states else i.get('h')
        x = pack_padded_sequence(i['x'], torch.tensor(lengths), batch_first=True, enforce_sorted=False) if lengths else i['x']
        y, last = torch.func.functional_call(module, p, (x, state) if states else (x,))
        if lengths:
            y = pad_packed_sequence(y, batch_first=True, total_length=T)[0]
        return torch.cat([v.reshape(-1) for v in ((y, *last) if kind == 'LSTM' else (y, last))])
    run(out, name, shapes, inputs, fn)

out = {}
for kind in 'LSTM', 'GRU':
    name = kind.lower()
    case(out, f'{name}', kind, 3, 5, 4, 6)
    case(out, f'{name}_states', kind, 2, 4, 3, 19, states=True)
    case(out, f'{name}_both', kind, 3, 5, 4, 3, layers=2, both=True, states=True)
    case(out, f'{name}_lengths', kind, 4, 6, 3, 3, layers=2, both=True, states=True, lengths=[4, 1, 5, 3])
    case(out, f'{name}_one_step', kind, 3, 1, 4, 5)
    case(out, f'{name}_one_row', kind, 1, 7, 4, 5, bias=False)
    case(out, f'{name}_long', kind, 2, 60, 2, 3)
save('recurrent', out, 'make_recurrent.py')
