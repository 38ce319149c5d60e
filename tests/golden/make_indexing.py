# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/indexing.safetensors: PyTorch's gather, index_select, index_add and scatter_add, values and gradients, from
inputs that formula.h gives. tests/autograd/golden_indexing.c reads it. Run by hand, as make_torch.py:

    python tests/golden/make_indexing.py"""
import torch_reference as R
from make_torch import run, save

out = {}
run(out, 'index_select', {}, {'x': (3, 7, 5)}, lambda p, i: i['x'].index_select(1, R.ids('index_select/ids', (11,), 7)))
run(out, 'index_select_last', {}, {'x': (4, 6)}, lambda p, i: i['x'].index_select(-1, R.ids('index_select_last/ids', (9,), 6)))
run(out, 'index_add', {}, {'x': (7, 5), 's': (11, 5)}, lambda p, i: i['x'].index_add(0, R.ids('index_add/ids', (11,), 7), i['s']))
run(out, 'gather', {}, {'x': (3, 7, 5)}, lambda p, i: i['x'].gather(1, R.ids('gather/ids', (2, 9, 4), 7)))
run(out, 'gather_last', {}, {'x': (6, 8)}, lambda p, i: i['x'].gather(-1, R.ids('gather_last/ids', (6, 3), 8)))
run(out, 'scatter_add', {}, {'x': (3, 7, 5), 's': (2, 9, 4)},
    lambda p, i: i['x'].scatter_add(1, R.ids('scatter_add/ids', (2, 9, 4), 7), i['s']))
save('indexing', out, 'make_indexing.py')
