# SPDX-License-Identifier: MIT
"""Greedy ids of Weft beside those of transformers in float, 64 tokens after each of 50 prompts in several scripts and in code.

    python tests/golden/check_greedy.py FOLDER [--build build]

At the first place where they differ, transformers' two largest logits must be within 1e-4; exit status 1 otherwise. The prompts are computed in
one batch, which changes nothing."""
import argparse, json, pathlib, subprocess, sys, tempfile
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('folder')
ap.add_argument('--build', default='build')
A = ap.parse_args()
PROMPTS = '''The capital of France is
Once upon a time, in a small village,
The meaning of life is
In 1969, Neil Armstrong
Dear Sir or Madam,
Q: What is 2 + 2? A:
1 2 3 4 5 6
The quick brown fox
To be, or not to be:
My favourite recipe for pancakes:
Photosynthesis is the process by which
The best way to learn a language is
Roses are red, violets are blue,
He said: "I will
BREAKING NEWS:
The stock market
Water boils at
According to the study,
In conclusion,
Alice was beginning to get very tired
def fibonacci(n):
import numpy as np
#include <stdio.h>
SELECT name FROM users WHERE
for (int i = 0; i <
class Stack:
function add(a, b) {
<html><head><title>
{"name": "Alice", "age":
git commit -m "
x = [1, 2, 3]; print(
fn main() {
public static void main(String[]
\\begin{equation}
Die Hauptstadt von Deutschland ist
Il était une fois
Había una vez
La vita è bella perché
O Brasil é
Привет, как дела?
Столица России
素数とは
今日は天気が
中国的首都是
人工智能
안녕하세요, 저는
مرحبا بالعالم
שלום עולם
Η Ελλάδα είναι
🙂🙂🙂'''.split('\n')
assert len(PROMPTS) == 50
model = AutoModelForCausalLM.from_pretrained(A.folder, dtype=torch.float32).eval()
tokenizer = Tokenizer.from_file(f'{A.folder}/tokenizer.json')
with tempfile.TemporaryDirectory() as place:
    path = pathlib.Path(place) / 'prompts'
    path.write_text('\n'.join(PROMPTS) + '\n', encoding='utf-8')
    out = subprocess.run([pathlib.Path(A.build) / 'cli' / 'weft', 'generate', A.folder, '--input', path, '--greedy', '--max-tokens', '64', '--json',
                          '--logprobs', '0'], check=True, stdout=subprocess.PIPE, text=True).stdout
same = ties = wrong = 0
for prompt, line in zip(PROMPTS, out.splitlines()):
    have = [t['id'] for t in json.loads(line)['log_probabilities']]
    ids, want, cache, x = tokenizer.encode(prompt).ids, [], None, None
    with torch.inference_mode():
        x = torch.tensor([ids])
        for i in range(len(have)):
            o = model(x, past_key_values=cache, use_cache=True)
            cache, logits = o.past_key_values, o.logits[0, -1]
            want.append(int(logits.argmax()))
            if want[-1] != have[i]:
                top = logits.topk(2).values
                gap = float(top[0] - top[1])
                print(f'{prompt!r}: token {i} is {have[i]}, not {want[-1]}; the two best logits are {gap:.2e} apart')
                ties, wrong = ties + (gap <= 1e-4), wrong + (gap > 1e-4)
                break
            x = torch.tensor([[want[-1]]])
        else:
            same += 1
print(f'{same} of {len(PROMPTS)} texts are the same; {ties} part at a tie, {wrong} at no tie')
sys.exit(wrong > 0 or same + ties + wrong != len(PROMPTS))
