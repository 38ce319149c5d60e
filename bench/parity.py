# SPDX-License-Identifier: MIT
"""Every element of logits and gradients, and the losses of 20 updates, of Weft against PyTorch, live: same weights, same batches.
libweft-f64 against torch.float64, libweft against torch.float32; and for scale torch.float32 against torch.float64 on the float weights.

    python bench/parity.py [--build build] [--threads 2] [--updates 20] [CASE...]     default: the small ones

Allowed: double 1e-9 of the norm for loss, logits and each gradient; float: norm of the difference of each gradient at most
1e-5 x max(norm of that gradient, 1e-3 x norm of all), losses within 1e-4. Exit status 1 if something is past that. Float gradients are
compared with torch.float64 too, and the nearer counts: over thousands of rows PyTorch's own float sums are 1e-5 off. A ReLU whose input
lies within rounding of 0 may be on in one float computation and off in another, and among millions some are: with ReLU twice the distance
of torch.float32 from torch.float64 is allowed as well. --activation gelu compares the same models without kinks."""
import argparse, math, pathlib, subprocess, sys, tempfile
try:
    import numpy, torch
    import torch.nn.functional as F
    from safetensors import safe_open
except ImportError as e:
    sys.exit(f'parity: {e.name} is missing: pip install torch==2.13.0 safetensors numpy --index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple')
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'tests' / 'golden'))
sys.dont_write_bytecode = True
import torch_reference as R

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('case', nargs='*', default=['nanogpt-char-small', 'char-rms', 'seq2seq-tiny', 'seq2seq-postnorm', 'multi30k', 'encoder-attention'])
ap.add_argument('--build', default=str(ROOT / 'build'))
ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--updates', type=int, default=20)
ap.add_argument('--activation', help='relu, gelu or gelu_tanh instead of the preset\'s')
A = ap.parse_args()
torch.set_num_threads(A.threads)

def dump(case, precision):
    """The tensors and the metadata that bench/parity writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/parity.safetensors'
        program = pathlib.Path(A.build) / 'bench' / ('parity' if precision == 'f32' else 'parity-f64')
        subprocess.run([program, '-t', str(A.threads), '-n', str(A.updates), *(['-a', A.activation] if A.activation else []), case, path], check=True, stdout=subprocess.DEVNULL)
        with safe_open(path, 'pt') as f:
            return {k: f.get_tensor(k) for k in f.keys()}, f.metadata()

def packed(ids, offsets):
    """Rows that stand end to end, padded: [B, longest], lengths."""
    rows = [ids[a:b] for a, b in zip(offsets.tolist(), offsets.tolist()[1:])]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([len(r) for r in rows])

def batches_of(t, meta):
    """Pairs (input of the model, targets), one an update."""
    if meta['family'] != 'seq2seq':
        return list(zip(t['batches'].long(), t['targets'].long().flatten(1)))
    flat = lambda k: t[k].long().flatten(1)
    out = []
    for source, given, target, so, to in zip(*map(flat, ('batches', 'inputs', 'targets', 'offsets.source', 'offsets.target'))):
        out.append(((*packed(source, so), *packed(given, to)), target[:int(to[-1])]))
    return out

def model_of(meta):
    """(parameters, input) -> logits of all positions that count, [N,V]."""
    if meta['family'] == 'encoder':
        c = {k: int(meta[k]) for k in ('heads', 'layers')} | {k: meta[k] == 'true' for k in ('final_norm', 'scale_embeddings')}
        c |= {k: meta[k] for k in ('norm', 'activation')}
        return lambda p, x: F.linear(R.encoder(p, c, x, torch.ones(1, 1, 1, x.shape[1], dtype=torch.bool)), p['head.weight'], p['head.bias']).flatten(0, 1)
    if meta['family'] != 'seq2seq':
        return lambda p, x: R.MODELS[meta['family']](p, x, int(meta['heads']), int(meta['layers']), meta['activation']).flatten(0, 1)
    c = {k: int(meta[k]) for k in ('heads', 'encoder_layers', 'decoder_layers')} | {k: meta[k] == 'true' for k in ('final_norm', 'scale_embeddings')}
    c |= {k: meta[k] for k in ('norm', 'activation')}
    def run(p, x):
        y = R.seq2seq(p, c, *x)
        return torch.cat([row[:n] for row, n in zip(y, x[3].tolist())])
    return run

def compute(weights, meta, batch):
    p = {k: v.detach().clone().requires_grad_() for k, v in weights.items()}
    logits = model_of(meta)(p, batch[0])
    loss = F.cross_entropy(logits, batch[1], label_smoothing=float(meta['smoothing']))
    loss.backward()
    return logits.detach(), loss.item(), {k: v.grad for k, v in p.items()}

norm = lambda t: float(t.double().norm())

def gradients(have, want):
    """Largest ratio of |difference| to max(|gradient|, 1e-3 |all|), and whose."""
    whole = math.sqrt(sum(norm(v) ** 2 for v in want.values()))
    return max((norm(have[k].double() - v.double()) / max(norm(v), 1e-3 * whole), k) for k, v in want.items())

bad = False
def line(what, value, allowed, note=''):
    global bad
    wrong = allowed is not None and not value <= allowed
    bad |= wrong
    print(f'  {what:<44} {value:9.2e}{"" if allowed is None else f"  of {allowed:.0e}"}{"  TOO FAR" if wrong else ""}  {note}', flush=True)

for case in A.case:
    for precision, dtype, far in ('f64', torch.float64, 1e-9), ('f32', torch.float32, 1e-5):
        t, meta = dump(case, precision)
        weights = {k[8:]: v for k, v in t.items() if k.startswith('weights.')}
        grads = {k[5:]: v for k, v in t.items() if k.startswith('grad.')}
        assert grads.keys() == weights.keys() and all(v.dtype == dtype for v in weights.values())
        batches = batches_of(t, meta)
        logits, loss, want = compute(weights, meta, batches[0])
        t['logits'] = t['logits'].flatten(0, -2)
        print(f'{case}, {meta["precision"]}, {meta["isa"]}, {A.threads} threads: {sum(v.numel() for v in weights.values())} parameters, loss {loss:.6f}')
        line('loss, relative', abs(float(t['loss'][0]) - loss) / loss, 1e-9 if precision == 'f64' else 1e-6)
        line('logits, |difference| / |logits|', norm(t['logits'].double() - logits.double()) / norm(logits), far)
        line('logits, largest difference / largest logit', float((t['logits'].double() - logits.double()).abs().max() / logits.abs().max()), None)
        if precision == 'f64':
            line('gradients, worst |difference| / |gradient|', gradients(grads, want)[0], far, gradients(grads, want)[1])
        else:
            truth = compute({k: v.double() for k, v in weights.items()}, meta, batches[0])[2]
            both = {'torch float32': gradients(grads, want), 'torch float64': gradients(grads, truth)}
            other = gradients(want, truth)
            for name, (value, where) in both.items():
                line(f'gradients, Weft float32 against {name}', value, None, where)
            line('gradients, torch float32 against torch float64', other[0], None, other[1])
            line('gradients, the nearer of Weft\'s two', min(v for v, _ in both.values()), max(far, 2 * other[0] if meta['activation'] == 'relu' else 0))
        number = lambda k: float(meta[k])
        if meta['schedule'] == 'cosine':
            rate = lambda s: R.cosine(number('lr'), number('min_lr'), int(meta['warmup']), int(meta['steps']), s)
        elif meta['schedule'] == 'inverse_sqrt':
            rate = lambda s: R.inverse_sqrt(number('lr'), int(meta['warmup']), s)
        else:
            assert meta['schedule'] == 'constant' and int(meta['warmup']) == 0
            rate = lambda s: number('lr')
        losses = R.train(model_of(meta), weights, batches, rate, number('weight_decay'), (number('beta1'), number('beta2')), number('clip') or math.inf,
                         number('eps'), number('smoothing'))[0]
        line(f'losses of {A.updates} updates, worst relative', max(abs(a - b) / b for a, b in zip(t['losses'].tolist(), losses)),
             1e-9 if precision == 'f64' else 1e-4, f'{losses[0]:.4f} -> {losses[-1]:.4f}')
sys.exit(bad)
