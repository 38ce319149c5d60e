# SPDX-License-Identifier: MIT
"""Writes tests/golden/torch/batch_norm.safetensors: three steps of SGD with nn.BatchNorm1d or nn.BatchNorm2d, then the module in evaluation. Each step k has the input
x<k>, the result y<k>, the gradients of sum(y r<k>), and the running statistics after it; `e` is the evaluation. Tensors under state/ are a state dict as PyTorch
saves it. tests/nn/batch_norm.c reads the file. Run by hand, as make_torch.py:

    python tests/golden/make_batch_norm.py"""
import torch
from make_torch import save
import torch_reference as R

out = {}
def fill(case, m):
    for name, p in m.named_parameters():
        with torch.no_grad():
            p.copy_(R.real(f'{case}/{name}', tuple(p.shape), 0.5))
            out[f'{case}/{name}'] = p.clone()

def step(case, m, x, k):
    x = x.clone().requires_grad_()
    y = m(x)
    r = R.real(f'{case}/r{k}', tuple(y.shape))
    (y * r).sum().backward()
    out.update({f'{case}/x{k}': x, f'{case}/y{k}': y, f'{case}/r{k}': r, f'{case}/dx{k}': x.grad})
    for name, p in m.named_parameters():
        out[f'{case}/d{name}{k}'] = p.grad.clone()

def norm(case, m, shape, constant=False):
    m = m.double()
    fill(case, m)
    sgd = torch.optim.SGD(m.parameters(), lr=0.1) if list(m.parameters()) else None
    for k in 0, 1, 2, 'e':
        x = R.real(f'{case}/x{k}', shape, 2.0) + 0.5
        if constant:
            x[:, 1] = 0.75
        m.train(k != 'e')
        m.zero_grad()
        step(case, m, x, k)
        if sgd and k != 'e':
            sgd.step()
        out[f'{case}/running_mean{k}'], out[f'{case}/running_var{k}'] = m.running_mean.clone(), m.running_var.clone()
    return m

norm('rows', torch.nn.BatchNorm1d(4), (5, 4))
norm('two_rows', torch.nn.BatchNorm1d(3), (2, 3))
norm('sequence', torch.nn.BatchNorm1d(3, momentum=0.3, eps=1e-3), (2, 3, 7))
norm('pictures', torch.nn.BatchNorm2d(5), (3, 5, 4, 6))
norm('plain', torch.nn.BatchNorm2d(3, affine=False), (2, 3, 3, 3))
norm('one_channel', torch.nn.BatchNorm2d(1), (2, 1, 3, 5))
norm('constant', torch.nn.BatchNorm2d(3), (2, 3, 4, 2), constant=True)
norm('last', torch.nn.BatchNorm1d(2, momentum=1.0), (4, 2))
m = norm('one_picture', torch.nn.BatchNorm2d(2), (1, 2, 5, 5))
for name, value in m.state_dict().items():
    out[f'state/norm.{name}'] = value
save('batch_norm', out, 'make_batch_norm.py')
