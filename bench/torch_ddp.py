# SPDX-License-Identifier: MIT
"""A step of torch_models.py's cases on several processes: DistributedDataParallel over gloo, the batch split among them.

    torchrun --nproc-per-node=2 bench/torch_ddp.py CASE [--seconds S] [--fused] [--sdpa]

Rank 0 prints the line of torch_models.py. Threads of each process: OMP_NUM_THREADS."""
import argparse, json, os, resource
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import torch_models as models

ap = argparse.ArgumentParser(description=__doc__)
ap.add_argument('case', choices=[*models.CASES])
ap.add_argument('--seconds', type=float, default=8)
ap.add_argument('--fused', action='store_true')
ap.add_argument('--sdpa', action='store_true')
a = ap.parse_args()
torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', 1)))
dist.init_process_group('gloo')
torch.manual_seed(1)
models.Attention.sdpa = a.sdpa
whole = {name: getattr(models, name) for name in ('language', 'pairs')}
for name, make in whole.items():
    setattr(models, name, lambda model, B, *rest, make=make: make(DistributedDataParallel(model, gradient_as_bucket_view=True),
                                                                  max(B // dist.get_world_size(), 1), *rest))
model, loss, tokens = models.CASES[a.case](0.0)
update = (torch.optim.AdamW if isinstance(model.module, models.GPT) else torch.optim.Adam)(model.parameters(), lr=1e-4, fused=a.fused or None)
end = torch.zeros(1)

def step():
    update.zero_grad(set_to_none=True)
    loss().backward()
    update.step()

# All take the same number of steps: those that rank 0 has time for.
import time
for _ in range(2):
    step()
times, start = [], time.perf_counter()
while True:
    end[0] = len(times) >= 3 and time.perf_counter() - start >= a.seconds
    dist.broadcast(end, 0)
    if end[0]:
        break
    before = time.perf_counter()
    step()
    times.append(1e3 * (time.perf_counter() - before))
times.sort()
if dist.get_rank() == 0:
    print(json.dumps({'ms': times[len(times) // 2], 'least': times[0], 'rss': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
dist.destroy_process_group()
