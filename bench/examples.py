# SPDX-License-Identifier: MIT
"""The programs of examples/ against the same programs in PyTorch: the time of a step of their training.

    ./bench/compare examples [options] [lstm|vit|llama|moe]...       without a name: all

A step is all of it: batch, forward, loss, backward, clipping, AdamW with a schedule, and the loss as a number; start, validation and saving
are not part of it. Language models learn tests/golden/story.txt in their preset's batches of 64 characters, vit.c draws its pictures.
First both train from the same weights on the same batches: losses and gradient norms must agree to 1e-3. Then rounds: Weft and each
variant of the PyTorch program (fused: the optimiser; cell: nn.LSTM; compile: torch.compile) in turn, each in a new process. Printed
are medians of the rounds' medians, the least of ten steps in brackets, ratios to the fastest variant, and the peak of multiply-adds
before and after. torch_examples.py has the PyTorch programs.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORY = ROOT / 'tests' / 'golden' / 'story.txt'
TORCH = ROOT / 'bench' / 'torch_examples.py'
NAMES = ['lstm', 'vit', 'llama', 'moe']
STEPS = {'lstm': 80, 'vit': 100, 'llama': 50, 'moe': 80}

def fail(message):
    sys.exit(f'compare: {message}')

ap = argparse.ArgumentParser(prog='compare examples', usage='./bench/compare examples [options] [NAME...]', description=__doc__.split('\n\n', 2)[2],
                             formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('name', nargs='*', default=NAMES, help=', '.join(NAMES))
ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--rounds', type=int, default=7)
ap.add_argument('--compile', action='store_true', help='torch.compile too, which compiles for minutes')
ap.add_argument('--build', default=str(ROOT / 'build'), help='build folder (build); created if it is missing')
A = ap.parse_args()
BENCH = pathlib.Path(A.build) / 'bench'
WEFT_ENV = dict(os.environ, OMP_NUM_THREADS=str(A.threads))
TORCH_ENV = dict(os.environ, OMP_NUM_THREADS=str(A.threads), MALLOC_MMAP_MAX_='0', MALLOC_TRIM_THRESHOLD_='68719476736',
                 GLIBC_TUNABLES='glibc.malloc.hugetlb=1')

def call(*command, env=None, cwd=None, allow=False):
    r = subprocess.run([str(c) for c in command], env=env, cwd=cwd, capture_output=True, text=True)
    if r.returncode and not allow:
        fail(f'{" ".join(map(str, command))}: {(r.stderr or r.stdout).strip().splitlines()[-1:] or r.returncode}')
    return None if r.returncode else r.stdout

def weft(name, folder, steps, text=STORY, options=()):
    """Trains; the lines of metrics.jsonl."""
    program = (BENCH / f'example-{name}').resolve()
    if name == 'vit':
        call(program, '--steps', steps, *options, env=WEFT_ENV, cwd=folder)
        run = pathlib.Path(folder) / 'vit-run'
    else:
        run = pathlib.Path(folder) / 'run'
        call(program, 'train', f'{name}-small', '--train', text, '--valid', text, '--out', run, '--steps', steps, '--threads', A.threads,
             '--set', 'valid_every=0', '--set', 'save_every=0', *options, env=WEFT_ENV)
    return run, [line for line in map(json.loads, (run / 'metrics.jsonl').read_text().splitlines()) if line['event'] == 'step']

def torch(name, *options, allow=False):
    text = call(sys.executable, '-B', TORCH, name, '--text', STORY, '--threads', A.threads, *options, env=TORCH_ENV, allow=allow)
    return text and json.loads(text.splitlines()[-1])

def agree(name):
    """Losses and gradient norms of both from the same weights on the same batches. PyTorch on one thread: with more its roundings differ
    from run to run, and a tie in a mixture's router then goes to another expert. Weft's bits do not depend on the threads."""
    with tempfile.TemporaryDirectory() as folder:
        one = pathlib.Path(folder) / 'one.txt'  # a text of one window: all batches are this
        one.write_text(STORY.read_text(encoding='utf-8')[:65], encoding='utf-8')
        if name == 'vit':  # its batch is a function of the step
            run, _ = weft(name, folder, 10)
            start = pathlib.Path(folder) / 'start'
            start.write_bytes((run / 'model.safetensors').read_bytes())
            lines = weft(name, folder, 11, options=['--resume'])[1][-1:]
            options = ['--first', 10, '--steps', 1]
        else:
            os.mkdir(f'{folder}/still')
            run, _ = weft(name, f'{folder}/still', 1, one, ['--set', 'lr=1e-30', '--set', 'min_lr=0', '--set', 'weight_decay=0'])
            start = run / 'model.safetensors'
            lines = weft(name, folder, 30, one)[1]
            options = ['--steps', 30, '--text', one]
        worst = 0
        for cell in [(), ('--cell',)] if name == 'lstm' else [()]:
            other = torch(name, '--check', start, *options, *cell, '--threads', 1)
            for line in lines:
                for key, theirs in ('loss/train', other['losses']), ('grad_norm', other['norms']):
                    off = abs(line[key] - theirs[str(line['step'])]) / abs(theirs[str(line['step'])])
                    worst = max(worst, off)
                    if not off <= 1e-3:
                        fail(f'{name}, step {line["step"]}: {key} of Weft is {line[key]}, of PyTorch {theirs[str(line["step"])]}')
    print(f'  losses and gradient norms of the same training, steps {", ".join(str(l["step"]) for l in lines)}: equal to {worst:.0e}')

def weft_times(name):
    """Milliseconds of a step, each the mean of ten, without the first ten; and the last loss."""
    with tempfile.TemporaryDirectory() as folder:
        _, lines = weft(name, folder, STEPS[name])
    lines = [l for l in lines if l['step'] % 10 == 0]
    return {'ms': [1e3 * (b['seconds'] - a['seconds']) / (b['step'] - a['step']) for a, b in zip(lines, lines[1:])], 'loss': lines[-1]['loss/train']}

def torch_times(name, variant, allow=False):
    r = torch(name, '--steps', STEPS[name] + 1, *(f'--{v}' for v in variant), allow=allow)
    return r and {'ms': r['ms'], 'loss': r['losses'][str(STEPS[name])]}

def peak():
    return json.loads(call(BENCH / 'peak', '-t', A.threads))['gflops']

def compare(name):
    print(f'{name}, {A.threads} threads', flush=True)
    agree(name)
    variants = [(), ('fused',)] + ([('cell', 'fused')] if name == 'lstm' else [])
    if A.compile:
        variants += [(*v, 'compile') for v in variants[1:]]
    before, rounds = peak(), []
    for v in list(variants):
        if 'compile' in v and not torch_times(name, v, allow=True):
            print(f'  PyTorch {" ".join(v)} failed')
            variants.remove(v)
    for _ in range(A.rounds):
        rounds.append({'weft': weft_times(name)} | {v: torch_times(name, v) for v in variants})
    median = lambda who: statistics.median(statistics.median(r[who]['ms']) for r in rounds)
    least = lambda who: min(min(r[who]['ms']) for r in rounds)
    show = lambda who: f'{median(who):8.2f} ms ({least(who):.2f})  loss {rounds[0][who]["loss"]:.3f}'
    print(f'  Weft                   {show("weft")}')
    for v in variants:
        print(f'  PyTorch {" ".join(v) or "as it is":<15}{show(v)}')
    for title, these in ('', [v for v in variants if 'cell' not in v]), (' nn.LSTM', [v for v in variants if 'cell' in v]):
        if these:
            best, low = min(these, key=median), min(these, key=least)
            print(f'  ratio{title}: {median(best) / median("weft"):.2f} ({least(low) / least("weft"):.2f} of the least)')
    print(f'  peak: {before:.0f} GFLOP/s before, {peak():.0f} after; load average {os.getloadavg()[0]:.1f}', flush=True)

if not (pathlib.Path(A.build) / 'build.ninja').exists():
    call('meson', 'setup', A.build, ROOT)
call('ninja', '-C', A.build, 'bench/peak', *(f'bench/example-{n}' for n in NAMES))
for name in A.name:
    if name not in NAMES:
        fail(f'there is no example {name}: {" ".join(NAMES)}')
for name in A.name:
    compare(name)
