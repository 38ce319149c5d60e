# SPDX-License-Identifier: MIT
"""Weft's bench/finetune beside transformers with PyTorch: the same steps on the same batches. Losses, milliseconds and memory.

    python bench/finetune.py FOLDER TEXT [--bf16] [--steps 200] [--build build-bench] [--threads 2]

PyTorch: scaled_dot_product_attention, fused AdamW; with --bf16 autocast, as Weft's precision=bf16 is. Exit status 1 if a loss differs by more
than 1 %."""
import argparse, json, os, pathlib, resource, statistics, subprocess, sys, time
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('folder')
ap.add_argument('text')
ap.add_argument('--bf16', action='store_true')
ap.add_argument('--steps', type=int, default=200)
ap.add_argument('--rate', type=float, default=2e-5)
ap.add_argument('--build', default='build-bench')
ap.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
A = ap.parse_args()
torch.set_num_threads(A.threads)
ROWS, LENGTH = 4, 256
ids = torch.tensor(Tokenizer.from_file(f'{A.folder}/tokenizer.json').encode(open(A.text, encoding='utf-8', newline='').read()).ids)
model = AutoModelForCausalLM.from_pretrained(A.folder, dtype=torch.float32).train()
matrices = [p for p in model.parameters() if p.ndim > 1]
others = [p for p in model.parameters() if p.ndim <= 1]
adam = torch.optim.AdamW([{'params': matrices, 'weight_decay': 0.1}, {'params': others, 'weight_decay': 0.0}], lr=A.rate, fused=True)
command = [pathlib.Path(A.build) / 'bench' / 'finetune', '-t', str(A.threads), '-p', 'bf16' if A.bf16 else 'f32', '-n', str(A.steps), '-l', str(A.rate), '-w',
           A.folder, A.text]
weft = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
worst, mine, theirs = 0, [], []
for step in range(A.steps):
    weft.stdin.write('\n')  # one of the two computes at a time
    weft.stdin.flush()
    r = json.loads(weft.stdout.readline())
    at = step * ROWS * LENGTH
    x, y = ids[at:at + ROWS * LENGTH].view(ROWS, LENGTH), ids[at + 1:at + 1 + ROWS * LENGTH].view(ROWS, LENGTH)
    begin = time.perf_counter()
    with torch.autocast('cpu', torch.bfloat16, enabled=A.bf16):
        logits = model(x).logits
        loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), y.reshape(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    adam.step()
    adam.zero_grad()
    ms = 1e3 * (time.perf_counter() - begin)
    mine.append(r['ms'])
    theirs.append(ms)
    worst = max(worst, abs(r['loss'] / loss.item() - 1))
    if step % 10 == 0 or step == A.steps - 1:
        print(f'step {step + 1}: loss {r["loss"]:.5f} and {loss.item():.5f}; {r["ms"]:.0f} and {ms:.0f} ms', flush=True)
peak = json.loads(weft.stdout.readline())['peak_mib']
print(f'largest difference of a loss {100 * worst:.4f} %; median step {statistics.median(mine):.0f} and {statistics.median(theirs):.0f} ms, ratio '
      f'{statistics.median(t / m for t, m in zip(theirs, mine)):.2f}; peak {peak} and {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB')
sys.exit(worst > 0.01)
