# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/losses_by_row.safetensors: PyTorch's mse_loss, binary_cross_entropy_with_logits, kl_div, the divergence of a
diagonal normal from the standard normal, and cross_entropy with class weights and without a reduction, values and gradients, from inputs
that formula.h gives. tests/autograd/golden_losses.c reads it. Run by hand, as make_torch.py:

    python tests/golden/make_losses.py"""
import torch
import torch.nn.functional as F
import torch_reference as R
from make_torch import run, save

out = {}
two = {'x': (4, 5), 't': (4, 5)}
for how in 'mean', 'sum', 'none':
    run(out, f'mse_{how}', {}, two, lambda p, i: F.mse_loss(i['x'], i['t'], reduction=how))
    run(out, f'bce_{how}', {}, two, lambda p, i: F.binary_cross_entropy_with_logits(4 * i['x'], i['t'] / 2 + 0.5, reduction=how))
    run(out, f'bce_weighted_{how}', {}, two | {'w': (5,)}, lambda p, i:
        F.binary_cross_entropy_with_logits(4 * i['x'], i['t'] / 2 + 0.5, pos_weight=i['w'].detach() + 1.5, reduction=how) + 0 * i['w'].sum())
for how in 'mean', 'sum', 'none', 'batchmean':
    log = lambda x: F.log_softmax(3 * x, -1)
    run(out, f'kl_{how}', {}, two, lambda p, i: F.kl_div(log(i['x']), log(i['t']).exp(), reduction=how))
    run(out, f'kl_log_{how}', {}, two, lambda p, i: F.kl_div(log(i['x']), log(i['t']), reduction=how, log_target=True))
normal = lambda m, s: torch.distributions.kl_divergence(torch.distributions.Normal(m, (s / 2).exp()), torch.distributions.Normal(0.0, 1.0))
run(out, 'kl_normal_none', {}, two, lambda p, i: normal(i['x'], 2 * i['t']))
run(out, 'kl_normal_batchmean', {}, two, lambda p, i: normal(i['x'], 2 * i['t']).sum() / 4)

V, shape = 7, (4, 6)
for name, weighted, smoothing, ignore, how in (('weighted', True, 0.0, -100, 'mean'), ('weighted_smooth', True, 0.2, 3, 'mean'),
        ('weighted_sum', True, 0.2, 3, 'sum'), ('sum', False, 0.1, -100, 'sum'), ('each', False, 0.0, -100, 'none'),
        ('each_smooth', False, 0.1, 2, 'none'), ('each_weighted', True, 0.2, 3, 'none')):
    for linear in False, True:
        case = ('linear_ce_' if linear else 'ce_') + name
        targets, w = R.ids(f'{case}/targets', shape, V), R.real(f'{case}/w', (V,)) + 1.5
        def loss(p, i):
            z = F.linear(i['x'], i['weight'], i['bias']) if linear else 3 * i['x']
            return F.cross_entropy(z.movedim(-1, 1), targets, weight=w if weighted else None, label_smoothing=smoothing, ignore_index=ignore, reduction=how)
        run(out, case, {}, {'x': (*shape, 5), 'weight': (V, 5), 'bias': (V,)} if linear else {'x': (*shape, V)}, loss)

x, t = torch.meshgrid(torch.tensor([-1e4, -800, -90, -20, -1e-6, 0, 1e-6, 20, 90, 800, 1e4], dtype=torch.float32).double(), torch.tensor([0, 0.25, 1]).double(), indexing='ij')
x = x.contiguous().requires_grad_()
y = F.binary_cross_entropy_with_logits(x, t, reduction='none')
y.sum().backward()
out |= {'bce_edges/x': x, 'bce_edges/t': t, 'bce_edges/out': y, 'bce_edges/d.x': x.grad}
save('losses_by_row', out, 'make_losses.py')
