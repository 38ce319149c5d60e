# SPDX-License-Identifier: MIT
"""Several processes of one thread against one process of as many threads, and against PyTorch's DistributedDataParallel over gloo.

    bench/several.py [options] CASE...

Cases: the training cases of `weft bench` but those with pairs of different lengths. Each round runs every variant in new processes, one
after the other; the table has the medians of the rounds' medians, and the least, and the memory
of rank 0: Weft's while it trains, PyTorch's peak. With --mbit Weft's messages go over a network that is slow
on purpose (tests/dist/slow.c). Python with PyTorch: the one that runs this file."""
import argparse, json, os, pathlib, shutil, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('case', nargs='+')
ap.add_argument('--processes', type=int, default=2)
ap.add_argument('--rounds', type=int, default=3)
ap.add_argument('--updates', type=int, default=6)
ap.add_argument('--seconds', type=float, default=8, help="measuring time of PyTorch's variants")
ap.add_argument('--mbit', type=float, help='megabits a second of each process')
ap.add_argument('--latency', type=float, default=50, help='microseconds, with --mbit (50)')
ap.add_argument('--rows', type=int, help="rows or pairs of an update, of Weft alone (the case's)")
ap.add_argument('--no-torch', action='store_true')
ap.add_argument('--no-single', action='store_true', help='without the variants of one process')
ap.add_argument('--build', default=str(ROOT / 'build'))
A = ap.parse_args()
BUILD = pathlib.Path(A.build).resolve()
P = A.processes

def run(command, **environment):
    r = subprocess.run([str(c) for c in command], env=dict(os.environ, **{k: str(v) for k, v in environment.items()}), capture_output=True, text=True)
    lines = [l for l in r.stdout.splitlines() if l.startswith('{')]
    if r.returncode or not lines:
        sys.exit(f'{" ".join(map(str, command))}: {(r.stderr or r.stdout).strip()[-400:]}')
    return json.loads(lines[-1])

def weft(case, *options, processes=1, threads=1, slow=False):
    if A.rows:
        options = [*options, '-b', A.rows]
    with tempfile.TemporaryDirectory() as folder:
        environment = {'OMP_NUM_THREADS': threads, 'WEFT_PLUGINS': BUILD, 'OMPI_ALLOW_RUN_AS_ROOT': 1, 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': 1}
        if slow:
            plugins = pathlib.Path(folder) / 'plugins'
            plugins.mkdir()
            for name in 'openmpi', 'mpich':
                shutil.copy(BUILD / 'tests' / 'dist' / 'weft-slow.so', plugins / f'weft-mpi-{name}.so')
            environment |= {'WEFT_PLUGINS': plugins, 'WEFT_SLOW_OVER': BUILD, 'WEFT_SLOW_MBIT': A.mbit, 'WEFT_SLOW_LATENCY': A.latency}
        launcher = ['mpirun.openmpi', '--oversubscribe', '--bind-to', 'none', '-n', processes] if processes > 1 else []
        return run([*launcher, BUILD / 'bench' / 'several', '-t', threads, '-a', P, '-n', A.updates, *options, case, pathlib.Path(folder) / 'run'],
                   **environment)

def torch(case, *options, processes=1, threads=1):
    options = [case, '--seconds', A.seconds, *options]
    if processes == 1:
        return run([sys.executable, '-B', ROOT / 'bench' / 'torch_models.py', *options, '--threads', threads])
    return run([sys.executable, '-B', '-m', 'torch.distributed.run', f'--nproc-per-node={processes}', ROOT / 'bench' / 'torch_ddp.py', *options],
               OMP_NUM_THREADS=threads)

VARIANTS = {}
if not A.no_single:
    VARIANTS[f'Weft, 1 process, {P} threads'] = lambda case: weft(case, threads=P)
VARIANTS[f'Weft, {P} processes'] = lambda case: weft(case, processes=P)
VARIANTS[f'Weft, {P} processes, --no-overlap'] = lambda case: weft(case, '-o', processes=P)
if A.mbit:
    VARIANTS[f'Weft, {P} processes, {A.mbit:g} Mbit/s'] = lambda case: weft(case, processes=P, slow=True)
    VARIANTS[f'Weft, {P} processes, {A.mbit:g} Mbit/s, --no-overlap'] = lambda case: weft(case, '-o', processes=P, slow=True)
if not A.no_torch:
    if not A.no_single:
        VARIANTS[f'PyTorch, 1 process, {P} threads'] = lambda case: torch(case, '--fused', '--sdpa', threads=P)
    VARIANTS[f'PyTorch DDP, {P} processes'] = lambda case: torch(case, '--fused', '--sdpa', processes=P)
for case in A.case:
    results = {name: [] for name in VARIANTS}
    for _ in range(A.rounds):
        for name, variant in VARIANTS.items():
            results[name].append(variant(case))
    print(f'{case}, milliseconds of an update: median, least; MiB of rank 0')
    for name, r in results.items():
        print(f"  {name:45} {statistics.median(x['ms'] for x in r):9.1f} {min(x['least'] for x in r):9.1f} {max(x['rss'] for x in r):9.0f}", flush=True)
