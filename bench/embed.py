# SPDX-License-Identifier: MIT
"""Sentence vectors of Weft against the reference, sentence-transformers: the same numbers, and how much faster.

    python bench/embed.py FOLDER [--lines FILE] [--build build] [--threads 2] [--rounds 0] [--truncate]

FOLDER is a model of sentence-transformers (config.json, model.safetensors, ...); without --lines the 200 sentences of
tests/golden/embed/sentences.txt. Allowed: cosine at least 0.999999 and each number within 1e-5 of the reference's; exit status 1 if
something is past that. Without the package sentence-transformers the reference is transformers' BertModel, pooled as the folder says.

With --rounds N the time is measured too, N times each in turn: Weft, and PyTorch in several batchings (in the given order or by length, of
1 to all sentences; scaled_dot_product_attention and eager). PyTorch's best is what counts. Tokenising is part of both."""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('TOKENIZERS_PARALLELISM', 'true')
try:
    import numpy as np, torch, transformers
except ImportError as e:
    sys.exit(f'embed: {e.name} is missing: pip install torch numpy transformers sentence-transformers')
try:
    from sentence_transformers import SentenceTransformer
except ImportError:
    SentenceTransformer = None
ROOT = pathlib.Path(__file__).resolve().parent.parent
ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('folder')
ap.add_argument('--lines', default=str(ROOT / 'tests' / 'golden' / 'embed' / 'sentences.txt'))
ap.add_argument('--build', default=str(ROOT / 'build'))
ap.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
ap.add_argument('--rounds', type=int, default=0)
A = ap.parse_args()
torch.set_num_threads(A.threads)
lines = open(A.lines, encoding='utf-8', newline='\n').read().split('\n')
lines = lines[:-1] if lines and lines[-1] == '' else lines

def weft(program='embed', times=0):
    """Its report, and the vectors."""
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run([pathlib.Path(A.build) / 'bench' / program, '-t', str(A.threads), '-n', str(times), '-o', f'{folder}/vectors', A.folder, A.lines],
                             check=True, stdout=subprocess.PIPE).stdout
        report = json.loads(out)
        return report, np.fromfile(f'{folder}/vectors', dtype=report['dtype']).reshape(report['lines'], report['width'])

class Plain:
    """transformers' BertModel and what modules.json says."""
    def __init__(self, attention, dtype=torch.float32):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(A.folder)
        self.model = transformers.BertModel.from_pretrained(A.folder, add_pooling_layer=False, attn_implementation=attention, dtype=dtype).eval()
        read = lambda name: json.load(open(pathlib.Path(A.folder) / name))
        modules = read('modules.json')
        pooling = read(modules[1]['path'] + '/config.json')
        self.cls, self.normalize = pooling.get('pooling_mode_cls_token', False), len(modules) > 2
        self.most = read('sentence_bert_config.json')['max_seq_length']

    def encode(self, texts, batch, by_length=True):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i])) if by_length else range(len(texts))
        out = [None] * len(texts)
        with torch.inference_mode():
            for at in range(0, len(texts), batch):
                chosen = order[at:at + batch]
                x = self.tokenizer([texts[i] for i in chosen], padding=True, truncation=True, max_length=self.most, return_tensors='pt')
                h = self.model(**x).last_hidden_state
                m = x['attention_mask'].unsqueeze(-1).to(h.dtype)
                v = h[:, 0] if self.cls else (h * m).sum(1) / m.sum(1).clamp(min=1e-9)
                v = torch.nn.functional.normalize(v, dim=1) if self.normalize else v
                for i, row in zip(chosen, v):
                    out[i] = row
        return torch.stack(out).numpy()

def reference():
    if SentenceTransformer is None:
        return 'transformers', Plain('eager').encode(lines, 32)
    return 'sentence-transformers', SentenceTransformer(A.folder, device='cpu').encode(lines, batch_size=32, show_progress_bar=False)

def compare(name, ours, theirs):
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    cosine = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    largest = np.abs(a - b).max()
    good = len(a) == len(b) and cosine.min() >= 0.999999 and largest <= 1e-5
    print(f'{name}: {len(a)} sentences, cosine at least {cosine.min():.9f}, largest difference {largest:.2e}: {"good" if good else "NOT GOOD"}')
    return good

name, theirs = reference()
report, ours = weft()
good = compare(f'weft and {name}', ours, theirs)
if (pathlib.Path(A.build) / 'bench' / 'embed-f64').exists():
    exact = Plain('eager', torch.float64).encode(lines, 1)
    good &= compare('weft in double and transformers in double', weft('embed-f64')[1], exact)
    compare('weft and the double', ours, exact)
    compare(f'{name} and the double', theirs, exact)

if A.rounds:
    ways = {}
    for attention in ('sdpa', 'eager'):
        model = Plain(attention)
        for batch in (1, 4, 8, 16, 32, 64, len(lines)):
            for by_length in (True, False):
                if batch > 1 or by_length:
                    ways[f'{attention}, {batch} {"by length" if by_length else "as given"}'] = lambda m=model, b=batch, s=by_length: m.encode(lines, b, s)
    if SentenceTransformer is not None:
        st = SentenceTransformer(A.folder, device='cpu')
        for batch in (8, 32):
            ways[f'sentence-transformers, {batch}'] = lambda b=batch: st.encode(lines, batch_size=b, show_progress_bar=False)
    def clock(f):
        start = time.perf_counter()
        f()
        return 1e3 * (time.perf_counter() - start)
    first = {k: (f(), clock(f))[1] for k, f in ways.items()}
    best = sorted(first, key=first.get)[:4]  # the others are out after one look
    mine, torchs = [], {k: [] for k in best}
    for _ in range(A.rounds):
        mine.append(weft(times=3)[0]['ms'])
        for k in best:
            torchs[k].append(clock(ways[k]))
    middle = {k: statistics.median(v) for k, v in torchs.items()}
    for k in sorted(first, key=first.get):
        print(f'  {k}: {middle.get(k, first[k]):.0f} ms{"" if k in middle else " (once)"}')
    k = min(middle, key=middle.get)
    m = statistics.median(mine)
    print(f'weft {m:.0f} ms, PyTorch at its best ({k}) {middle[k]:.0f} ms: {middle[k] / m:.2f} times as fast; {A.threads} threads')
sys.exit(not good)
