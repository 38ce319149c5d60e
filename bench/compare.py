# SPDX-License-Identifier: MIT
"""Weft against PyTorch, case by case: a training step (forward, loss, backward, Adam or AdamW without clipping), or generation.

    ./bench/compare [options] CASE...
    ./bench/compare examples [options]    the programs of examples/; ./bench/compare examples --help

Cases: those of `weft bench`: char-rms nanogpt-char-small nanogpt-char-8 nanogpt-char gpt2-4x64 gpt2-1x1024,
       encoder-attention encoder-attention-32x128 (a target for every token),
       seq2seq-tiny seq2seq-postnorm multi30k transformer-base (pairs of sentences; PyTorch pads them where their lengths differ),
       generate-nanogpt-char-small generate-nanogpt-char (Weft with its cache, PyTorch without, as nanoGPT samples).

First both compute a loss from the same weights on the same batch, which must agree. Then every variant of the PyTorch model
(written-out attention, sdpa, fused optimizer, torch.compile) is tried, with memory kept mapped and huge pages.
The variant with the fastest step, and a second one if it is within a tenth, alternate with Weft, each round in new processes.
The result is the median of the rounds' medians of the fastest variant. torch_models.py has the PyTorch models.
With --precision bf16 Weft computes in bf16, PyTorch in float and in bf16 (autocast), of which the faster counts; Weft in float takes
its turn too.
A mark beside it, for models that no cache holds: the time of a step's products at 88 % of the peak, which good products reach (in bf16: at
1,000 GFLOP/s a thread, which AMX reaches), and of 28 bytes a parameter (what Adam reads and writes) at the rate of reading memory.
Both with AVX2 alone: WEFT_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 ./bench/compare CASE...
"""
import argparse, datetime, json, os, pathlib, re, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ROOT / 'bench' / 'torch_models.py'
CHECKED = {'generate-nanogpt-char-small': 'nanogpt-char-small', 'generate-nanogpt-char': 'nanogpt-char-8', 'nanogpt-char': 'nanogpt-char-8'}

def fail(message):
    sys.exit(f'compare: {message}')

ap = argparse.ArgumentParser(prog='compare', usage='./bench/compare [options] CASE...', description=__doc__.split('\n\n', 2)[2],
                             formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('case', nargs='+')
ap.add_argument('--threads', type=int, default=2)
ap.add_argument('--seconds', type=float, help='measuring time of each process (4; 1 with --quick)')
ap.add_argument('--rounds', type=int, help='rounds of processes (5; 2 with --quick)')
ap.add_argument('--dropout', type=float, default=0.0)
ap.add_argument('--precision', choices=('f32', 'bf16'), default='f32', help='arithmetic of matrix products (f32)')
ap.add_argument('--quick', action='store_true', help='two rounds of one second, without torch.compile: a rough estimate')
ap.add_argument('--json', action='store_true', help='print one JSON object per case')
ap.add_argument('--save', action='store_true', help='keep the results in bench/results/, from which bench/table makes the tables of docs/speed.md and README.md')
ap.add_argument('--build', default=str(ROOT / 'build'), help='build folder (build); created if it is missing')
A = ap.parse_args()
A.seconds = (1 if A.quick else 4) if A.seconds is None else A.seconds
A.rounds = (2 if A.quick else 5) if A.rounds is None else A.rounds
if A.rounds < 1 or A.seconds <= 0:
    fail('--rounds is at least 1, and --seconds more than 0')
BENCH = pathlib.Path(A.build) / 'bench'
WEFT = pathlib.Path(A.build) / 'cli' / 'weft'
TUNED = dict(os.environ, OMP_NUM_THREADS=str(A.threads), MALLOC_MMAP_MAX_='0', MALLOC_TRIM_THRESHOLD_='68719476736',
             GLIBC_TUNABLES='glibc.malloc.hugetlb=1')
say = lambda *a: print(*a, file=sys.stderr if A.json else sys.stdout, flush=True)

def call(*command, env=None, allow=False):
    r = subprocess.run([str(c) for c in command], env=env, capture_output=True, text=True)
    if r.returncode and not allow:
        fail(f'{" ".join(map(str, command))}: {(r.stderr or r.stdout).strip().splitlines()[-1:] or r.returncode}')
    return None if r.returncode else r.stdout

def build():
    if not (pathlib.Path(A.build) / 'build.ninja').exists():
        call('meson', 'setup', A.build, ROOT)
    call('ninja', '-C', A.build, 'cli/weft', 'bench/parity', 'bench/peak')

def weft(case, seconds, precision):
    r = json.loads(call(WEFT, 'bench', case, '--json', '--threads', A.threads, '--seconds', seconds, '--dropout', A.dropout,
                        '--precision', precision))
    return {'ms': r['ms'], 'least': r['ms_min'], 'rate': r['tokens_per_second'], 'rss': r['peak_rss_mib'], 'gflop': r['gflops'] * r['ms'] / 1e3, 'isa': r['isa'],
            'parameters': r['parameters'], 'tokens': r['tokens']}

def torch(case, variant, seconds):
    """None when the variant does not run."""
    text = call(sys.executable, '-B', MODELS, case, *variant, '--threads', A.threads, '--seconds', seconds, '--dropout', A.dropout, env=TUNED, allow=True)
    return text and json.loads(text.splitlines()[-1])

def variants(case):
    in_float = float_variants(case)
    return in_float + [(*v, '--bf16') for v in in_float] if A.precision == 'bf16' else in_float

def float_variants(case):
    if case.startswith('generate-'):
        return [()]
    sdpa = () if case[:3] in ('gpt', 'nan') else ('--sdpa',)  # the GPT cases use it always
    all = [(), ('--fused',), (*sdpa, '--fused')] + ([sdpa] if sdpa else [])
    if not A.quick:
        all += [('--compile',), (*sdpa, '--fused', '--compile')]
    return list(dict.fromkeys(all))

name_of = lambda v: ' '.join(o[2:] for o in v) or 'as it is'
peaks, memory = {}, 0.0
AMX = ' amx_bf16 ' in pathlib.Path('/proc/cpuinfo').read_text() and os.environ.get('WEFT_AMX') != '0'

def processor():
    """How the file of its results begins: its maker, and of AMD's, whose vectors differ, the generation; and its name with what tells it
    from others of that name."""
    text = pathlib.Path('/proc/cpuinfo').read_text()
    of = lambda key: (re.search(f'^{key}\\s*: (.*)$', text, re.M) or [0, 'unknown'])[1]
    caches = sorted(pathlib.Path('/sys/devices/system/cpu/cpu0/cache').glob('index[23]/size'))
    maker = {'GenuineIntel': 'intel', 'AuthenticAMD': {'25': 'amd-zen4' if 'avx512f' in of('flags') else 'amd-zen3',
                                                                    '26': 'amd-zen5'}.get(of('cpu family'), 'amd')}.get(of('vendor_id'), 'other')
    return maker, f'{of("model name")} (family {of("cpu family")}, model {of("model")}; caches of {" and ".join(path.read_text().strip() for path in caches) or "unknown size"})'

def save(result):
    """A line for each case, thread count, dropout rate and precision; one of an earlier day gives way."""
    maker, name = processor()
    path = ROOT / 'bench' / 'results' / f'{maker}-{result["isa"]}.jsonl'
    same = lambda r: all(r[key] == result[key] for key in ('case', 'threads', 'dropout')) and r.get('precision', 'f32') == result['precision']
    kept = [line for line in path.read_text().splitlines() if not same(json.loads(line))] if path.exists() else []
    kept.append(json.dumps({'date': datetime.date.today().isoformat(), 'processor': name, 'pytorch': '2.13.0'} | result))
    path.write_text('\n'.join(sorted(kept, key=lambda line: [json.loads(line).get(key, 'f32') for key in ('case', 'dropout', 'precision')])) + '\n')

def compare(case):
    global memory
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/parity.safetensors'
        same = CHECKED.get(case, case)
        call(BENCH / 'parity', '-t', A.threads, '-l', same, path)
        loss = json.loads(call(sys.executable, '-B', MODELS, same, '--check', path))
    off = abs(loss['weft'] - loss['torch']) / loss['torch']
    if not off <= 1e-5:
        fail(f'{case}: from the same weights Weft computes a loss of {loss["weft"]}, PyTorch of {loss["torch"]}')
    say(f'{case}, {A.threads} threads, dropout {A.dropout:g}' + (', bf16' if A.precision == 'bf16' else ''))
    say(f'  loss from the same weights: {loss["weft"]:.6f}, PyTorch {loss["torch"]:.6f} (relative {off:.0e})')
    tried = {}
    for v in variants(case):
        r = torch(case, v, min(A.seconds, 3))
        say(f'  PyTorch {name_of(v):<24}', '    failed' if r is None else f'{r["ms"]:10.3f} ms, least {r["least"]:.3f}')
        if r:
            tried[v] = r['least']  # a trial is short: its best step tells more than its median
    if not tried:
        fail(f'{case}: PyTorch does not run it')
    order = sorted(tried, key=tried.get)
    finalists = [v for v in order[:2] if tried[v] <= 1.1 * tried[order[0]]]
    rounds = []
    for i in range(A.rounds):
        rounds.append({'weft': weft(case, A.seconds, A.precision)} |
                      ({'float': weft(case, A.seconds, 'f32')} if A.precision == 'bf16' else {}) | {v: torch(case, v, A.seconds) for v in finalists})
        isa = rounds[-1]['weft']['isa']  # neighbours take away from the peak too: the best that was seen
        reached = json.loads(call(BENCH / 'peak', '-m', '-t', A.threads, '-i', isa))
        peaks[isa] = max(peaks.get(isa, 0), reached['gflops'])
        memory = max(memory, reached['read_gb_s'])
        say(f'  round {i + 1}: Weft {rounds[-1]["weft"]["ms"]:.3f} ms' +
            (f', in float {rounds[-1]["float"]["ms"]:.3f} ms' if 'float' in rounds[-1] else '') + ''.join(f', {name_of(v)} {rounds[-1][v]["ms"]:.3f} ms' for v in finalists))
    median = lambda who, key: statistics.median(r[who][key] for r in rounds)
    best = min(finalists, key=lambda v: median(v, 'ms'))
    ratios = [r[best]['ms'] / r['weft']['ms'] for r in rounds]
    w = rounds[0]['weft']
    peak = peaks[w['isa']]
    result = {'case': case, 'threads': A.threads, 'dropout': A.dropout, 'precision': A.precision, 'amx': AMX, 'isa': w['isa'], 'parameters': w['parameters'], 'tokens': w['tokens'],
              'peak_gflops': peak, 'loss_difference': off, 'ratio': median(best, 'ms') / median('weft', 'ms'), 'ratio_least': min(ratios),
              'ratio_most': max(ratios), 'variant': name_of(best), 'rounds': A.rounds}
    titles = {'weft': 'Weft', 'float': 'Weft in float', 'torch': 'PyTorch, ' + name_of(best)}
    for key, who in ('weft', 'weft'), *((('float', 'float'),) if A.precision == 'bf16' else ()), ('torch', best):
        ms = median(who, 'ms')
        result[key] = {'ms': ms, 'tokens_per_second': median(who, 'rate'), 'gflops': w['gflop'] / ms * 1e3, 'peak_share': w['gflop'] / ms * 1e3 / peak,
                       'peak_rss_mib': median(who, 'rss')}
        say(f'  {titles[key]:<32} {ms:10.3f} ms  {result[key]["tokens_per_second"]:10.0f} tokens/s  '
            f'{result[key]["gflops"]:7.1f} GFLOP/s ({100 * result[key]["peak_share"]:.0f} % of {peak:.0f})  {result[key]["peak_rss_mib"]:6.0f} MiB')
    if not case.startswith('generate-'):
        result['read_gb_s'] = memory
        rate = 1000 * A.threads if A.precision == 'bf16' and AMX else 0.88 * peak
        result['mark_ms'] = w['gflop'] / rate * 1e3 + 28 * w['parameters'] / memory / 1e6
        say(f'  Products at {rate:.0f} GFLOP/s, and 28 bytes a parameter at {memory:.1f} GB/s: {result["mark_ms"]:.3f} ms; '
            f'Weft takes {result["weft"]["ms"] / result["mark_ms"]:.2f} times as long')
    least = {key: min(r[who]['least'] for r in rounds) for key, who in (('weft', 'weft'), ('torch', best))}
    result['ratio_of_least'] = least['torch'] / least['weft']
    result['weft']['least'], result['torch']['least'] = least['weft'], least['torch']
    say(f'  Weft is {result["ratio"]:.2f} times as fast (rounds {min(ratios):.2f} to {max(ratios):.2f}); '
        f'best steps: {least["weft"]:.3f} and {least["torch"]:.3f} ms, {result["ratio_of_least"]:.2f}')
    if A.precision == 'bf16':
        result['float_ratio'] = median('float', 'ms') / median('weft', 'ms')
        say(f'  bf16 is {result["float_ratio"]:.2f} times as fast as float' + ('' if AMX else '; this processor has no AMX'))
    load = os.getloadavg()[0]
    if load > os.cpu_count() + 1:
        say(f'  the load average is {load:.1f} on {os.cpu_count()} processors: other programs run, and these figures say little')
    if A.json:
        print(json.dumps(result), flush=True)
    if A.save:
        save(result)

build()
known = re.findall('^  ([a-z][^ ]*)', call(WEFT, 'bench', '--help').split('A case is')[1], re.M)
for case in A.case:
    if case not in known:
        fail(f'there is no case {case}: {" ".join(known)}')
for case in A.case:
    compare(case)
