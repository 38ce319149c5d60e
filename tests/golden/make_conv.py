# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/conv.safetensors: convolutions, transposed convolutions, pooling and interpolation in PyTorch, values and gradients, from inputs that
formula.h gives. tests/nn/convolution.c reads it. Run by hand, as make_torch.py:

    python tests/golden/make_conv.py"""
import torch.nn.functional as F
from make_torch import run, save

out = {}
def conv(name, x, w, f, bias=True, **o):
    n = w[1] * o.get('groups', 1) if 'transpose' in f.__name__ else w[0]
    shapes = {'weight': w} | ({'bias': (n,)} if bias else {})
    run(out, name, shapes, {'x': x}, lambda p, i: f(i['x'], p['weight'], p.get('bias'), **o))

conv('plain', (2, 3, 9, 7), (5, 3, 3, 3), F.conv2d)
conv('padded', (2, 3, 8, 8), (4, 3, 3, 3), F.conv2d, stride=2, padding=1)
conv('uneven', (1, 4, 9, 6), (6, 4, 5, 2), F.conv2d, bias=False, stride=(3, 1), padding=(2, 1), dilation=(1, 2))
conv('pointwise', (3, 8, 5, 4), (6, 8, 1, 1), F.conv2d)
conv('groups', (2, 6, 7, 7), (9, 2, 3, 3), F.conv2d, padding=1, groups=3)
conv('depthwise', (2, 5, 8, 9), (10, 1, 3, 3), F.conv2d, stride=(2, 1), padding=1, groups=5)
conv('wide', (1, 20, 4, 19), (9, 20, 3, 3), F.conv2d, padding=4)
conv('sequence', (2, 4, 19), (5, 4, 4), F.conv1d, stride=2, padding=3, dilation=2)
conv('sequence_depthwise', (2, 6, 15), (6, 1, 4), F.conv1d, padding=3, groups=6)
conv('transposed', (2, 5, 4, 6), (5, 3, 3, 3), F.conv_transpose2d)
conv('transposed_stride', (2, 4, 5, 3), (4, 3, 4, 4), F.conv_transpose2d, stride=2, padding=1)
conv('transposed_uneven', (1, 6, 4, 5), (6, 2, 3, 2), F.conv_transpose2d, stride=(2, 3), padding=(1, 0), output_padding=(1, 2), dilation=(2, 1), groups=2)
conv('transposed_sequence', (2, 4, 7), (4, 3, 5), F.conv_transpose1d, bias=False, stride=3, padding=2, output_padding=1)
conv('transposed_depthwise', (2, 4, 5, 5), (4, 1, 3, 3), F.conv_transpose2d, stride=2, padding=1, output_padding=1, groups=4)
def op(name, x, f):
    run(out, name, {}, {'x': x}, lambda p, i: f(i['x']))

op('max', (2, 3, 7, 8), lambda x: F.max_pool2d(x, 3, stride=2, padding=1))
op('max_sequence', (2, 3, 11), lambda x: F.max_pool1d(x, 4))
op('mean', (2, 3, 7, 8), lambda x: F.avg_pool2d(x, (3, 2), stride=(2, 3), padding=(1, 0)))
op('mean_inside', (2, 3, 7, 6), lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False))
op('mean_sequence', (2, 3, 10), lambda x: F.avg_pool1d(x, 3, stride=1, padding=1))
op('adaptive', (2, 3, 7, 5), lambda x: F.adaptive_avg_pool2d(x, (3, 4)))
op('adaptive_sequence', (2, 3, 7), lambda x: F.adaptive_avg_pool1d(x, 2))
op('nearest', (2, 3, 4, 5), lambda x: F.interpolate(x, size=(8, 7), mode='nearest'))
op('bilinear', (2, 3, 4, 5), lambda x: F.interpolate(x, size=(8, 3), mode='bilinear', align_corners=False))
op('corners', (2, 3, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode='bilinear', align_corners=True))
op('linear', (2, 3, 6), lambda x: F.interpolate(x, size=9, mode='linear', align_corners=False))
def group_norm(name, x, groups, bias=True):
    shapes = {'weight': (x[1],)} | ({'bias': (x[1],)} if bias else {})
    run(out, name, shapes, {'x': x}, lambda p, i: F.group_norm(i['x'], groups, p['weight'], p.get('bias'), 1e-5))

group_norm('group_norm', (2, 6, 5, 3), 3)
group_norm('group_norm_sequence', (3, 4, 7), 1, False)
save('conv', out, 'make_conv.py')
