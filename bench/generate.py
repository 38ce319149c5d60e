# SPDX-License-Identifier: MIT
"""Generation of Weft, of transformers with PyTorch and of llama.cpp with the same weights, in turn: tokens per second of a prompt of 512 tokens,
of one text, and of 16 texts at once, and medians of the ratios.

    python bench/generate.py FOLDER [--bf16] [--build build-bench] [--threads 2] [--rounds 3] [--llama PLACE FILE.gguf]

PLACE is a folder in which `npm install node-llama-cpp@3.22.1` ran; bench/make_gguf.py makes FILE.gguf of FOLDER. transformers' own loop is timed
for one text (greedy, with a cache); llama.cpp for the prompt and one text. With --bf16 the folder's weights are BF16, PyTorch computes in
bfloat16 and Weft with --precision bf16."""
import argparse, json, os, pathlib, statistics, subprocess, time
import torch
from transformers import AutoModelForCausalLM

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('folder')
ap.add_argument('--bf16', action='store_true')
ap.add_argument('--build', default='build-bench')
ap.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--llama', nargs=2)
A = ap.parse_args()
here = pathlib.Path(__file__).resolve().parent
torch.set_num_threads(A.threads)
model = AutoModelForCausalLM.from_pretrained(A.folder, dtype=torch.bfloat16 if A.bf16 else torch.float32).eval()

def ids(rows, length):
    return torch.tensor([[(i * 7919 + 13 + 104729 * r) % (model.config.vocab_size - 3) + 3 for i in range(length)] for r in range(rows)])

@torch.inference_mode()
def prompt():
    begin = time.perf_counter()
    model(ids(1, 512), logits_to_keep=1)
    return 512 / (time.perf_counter() - begin)

@torch.inference_mode()
def generate(rows, tokens=64):
    out = model(ids(rows, 32), use_cache=True)
    begin = time.perf_counter()
    for _ in range(tokens - 1):
        out = model(out.logits[:, -1:].argmax(-1), past_key_values=out.past_key_values, use_cache=True)
    return rows * (tokens - 1) / (time.perf_counter() - begin)

def weft():
    out = subprocess.run([pathlib.Path(A.build) / 'bench' / 'generate', '-t', str(A.threads), '-p', 'bf16' if A.bf16 else 'f32', '-s', '1', A.folder],
                         check=True, stdout=subprocess.PIPE).stdout
    r = json.loads(out)
    return {**r, 'prompt': r['prompt'], 'one': r['one'], 'several': r['several']}

def llama():
    out = subprocess.run(['node', here / 'generate.mjs', *A.llama, str(A.threads)], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(out.splitlines()[-1])

prompt(), generate(1, 4)
rounds = []
for _ in range(A.rounds):
    r = {'weft': weft(), 'transformers': {'prompt': prompt(), 'one': generate(1), 'several': generate(16)}}
    if A.llama:
        r['llama.cpp'] = llama()
    rounds.append(r)
    print(json.dumps(r), flush=True)
for what in ('prompt', 'one', 'several'):
    line = f'{what:8}' + ''.join(f'  {who} {statistics.median(r[who][what] for r in rounds):.1f}' for who in rounds[0] if what in rounds[0][who])
    for who in list(rounds[0])[1:]:
        if what in rounds[0][who]:
            line += f'  weft/{who} {statistics.median(r["weft"][what] / r[who][what] for r in rounds):.2f}'
    print(line)
print(f'one text reads weights at {statistics.median(r["weft"]["gb_per_s"] for r in rounds):.1f} GB/s, '
      f'{100 * statistics.median(r["weft"]["share"] for r in rounds):.0f} % of the rate at which the threads read memory')
