# SPDX-License-Identifier: MIT
"""The losses of examples/maml.c, pinn_poisson.c, pinn_burgers.c and wgan_gp.c in PyTorch 2.13, from the weights with which they begin
(example_weights.c writes them to FOLDER):

    make_example_losses.py FOLDER [STEPS] > example_losses.txt

Each line: the program, the step, its numbers. tests/examples/programs.sh compares those that the programs print."""
import math, sys
import torch, torch.nn.functional as F
from safetensors.torch import load_file

folder, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
torch.set_num_threads(1)
def weights(name):
    return {k: v.clone().requires_grad_() for k, v in load_file(f'{folder}/{name}.safetensors').items()}
def even(i, step, low=0.0, high=1.0):
    return low + (high - low) * math.fmod(i * step, 1)
A, B, C = 0.7548776662466927, 0.5698402909980532, 0.6180339887498949

def maml():
    w = weights('maml'); p = list(w.values())
    adam = torch.optim.Adam(p, lr=2e-3)
    def net(w, x):
        for l in range(3):
            x = x @ w[f'layer.{l}.weight'].transpose(-1, -2) + w[f'layer.{l}.bias']
            x = F.relu(x) if l < 2 else x
        return x
    for step in range(steps):
        x, y = torch.empty(2, 25, 10, 1), torch.empty(2, 25, 10, 1)
        for t in range(25):
            k = step * 25 + t
            amplitude, phase = even(k, A, .1, 5), even(k, B, 0, 3.14159265)
            for s in range(2):
                for i in range(10):
                    at = even((k * 2 + s) * 10 + i, C, -5, 5)
                    x[s, t, i], y[s, t, i] = at, amplitude * math.sin(at - phase)
        before, after = 0, 0
        for t in range(25):
            before = before + F.mse_loss(net(w, x[1, t]), y[1, t]) / 25
            g = torch.autograd.grad(F.mse_loss(net(w, x[0, t]), y[0, t]), p, create_graph=True)
            fast = {n: v - 0.01 * d for (n, v), d in zip(w.items(), g)}
            after = after + F.mse_loss(net(fast, x[1, t]), y[1, t]) / 25
        print(f'maml {step} {before.item():.7g} {after.item():.7g}')
        adam.zero_grad(); after.backward(); adam.step()

def pinn(name, total, residual):
    w = weights('pinn')
    adam = torch.optim.Adam(w.values(), lr=5e-3)
    def net(x):
        for l in ('in', 'hidden', 'deep'):
            x = torch.tanh(F.linear(x, w[f'{l}.weight'], w[f'{l}.bias']))
        return F.linear(x, w['out.weight'], w['out.bias'])
    for step in range(steps):
        x = torch.tensor([[even(step * 512 + i, A), even(step * 512 + i, B)] for i in range(512)], requires_grad=True)
        loss = residual(net, x).square().mean()
        print(f'{name} {step} {loss.item():.7g}')
        adam.zero_grad(); loss.backward()
        adam.param_groups[0]['lr'] = 5e-3 * 0.5 * (1 + math.cos(math.pi * step / total))
        adam.step()

def derivatives(u, x):
    return torch.autograd.grad(u.sum(), x, create_graph=True)[0]
def poisson(net, x):
    a, b = x[:, :1], x[:, 1:]
    u = 16 * a * (1 - a) * b * (1 - b) * net(x)
    g = derivatives(u, x)
    laplacian = derivatives(g[:, :1], x)[:, :1] + derivatives(g[:, 1:], x)[:, 1:]
    return laplacian / (2 * math.pi ** 2) + torch.sin(math.pi * a) * torch.sin(math.pi * b)
def burgers(net, x):
    at, t = 2 * x[:, :1] - 1, x[:, 1:]
    u = (1 - at * at) * t * net(x) - torch.sin(math.pi * at)
    g = derivatives(u, x)
    ux = g[:, :1] / 2
    return g[:, 1:] + u * ux - 0.1 / math.pi * derivatives(ux, x)[:, :1] / 2

def wgan():
    w = {'generator': weights('generator'), 'critic': weights('critic')}
    adam = {n: torch.optim.Adam(v.values(), lr=1e-3, betas=(.5, .9)) for n, v in w.items()}
    def net(n, x):
        for l in ('in', 'hidden'):
            x = F.relu(F.linear(x, w[n][f'{l}.weight'], w[n][f'{l}.bias']))
        return F.linear(x, w[n]['out.weight'], w[n]['out.bias'])
    def points(first, count, deviation, ring):
        x = []
        for i in range(count):
            length = deviation * math.sqrt(-2 * math.log(1 - even(first + i + 1, A)))
            turn, centre = 2 * math.pi * even(first + i + 1, B), 2 * math.pi / 8 * (i % 8)
            x.append([length * math.cos(turn) + ring * math.cos(centre), length * math.sin(turn) + ring * math.sin(centre)])
        return torch.tensor(x)
    for step in range(steps):
        for turn in range(4):
            first = (step * 4 + turn) * 128
            fake = net('generator', points(first, 128, 1, 0))
            for a in adam.values():
                a.zero_grad(); a.param_groups[0]['lr'] = 1e-3 * (1 - step / 3000)
            if turn < 3:
                fake, real = fake.detach(), points(first, 128, .05, 1)
                e = torch.tensor([[even(first + i + 1, C)] for i in range(128)])
                between = (fake + e * (real - fake)).requires_grad_()
                slope = derivatives(net('critic', between), between)
                critic = net('critic', fake).mean() - net('critic', real).mean() + (slope.norm(dim=1) - 1).square().mean()
                critic.backward(); adam['critic'].step()
            else:
                generator = -net('critic', fake).mean()
                generator.backward(); adam['generator'].step()
        print(f'wgan_gp {step} {critic.item():.7g} {generator.item():.7g}')

maml(); pinn('pinn_poisson', 2000, poisson); pinn('pinn_burgers', 4000, burgers); wgan()
