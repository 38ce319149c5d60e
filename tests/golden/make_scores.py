# SPDX-License-Identifier: MIT
"""Golden files of BLEU, chrF and detokenising, made by others' code. usage: python3 make_scores.py      writes tests/golden/scores/
Run with sacrebleu 2.6.0, regex 2026.11.15 (Python 3.11), sacremoses 0.2.0.

scores.json        texts, and cases: what sacreBLEU's classes give for a text with these options
*.txt              texts as files; commands.txt: options of sacreBLEU's command, and what it prints (tests/cli/bleu.sh)
detokenized.txt    language, tokens, text
"""
import itertools, json, pathlib, random, subprocess, sys
import sacremoses
from sacrebleu.metrics import BLEU, CHRF

OUT = pathlib.Path(__file__).parent / 'scores'
draw = random.Random(2017)

# --- texts -------------------------------------------------------------------------------------------------------------
WHO = ['Ein Mann', 'Eine Frau in einem roten Kleid', 'Zwei Kinder', 'Der alte Fischer', 'Drei Hunde', 'Ein Mädchen mit 2,5 kg Äpfeln']
DOES = ['läuft', 'sitzt', 'schläft', 'spielt "Schach"', 'wartet (seit 10:30 Uhr)', "isst 'was Süßes'", 'zählt 1.000 Münzen']
WHERE = ['auf der Straße', 'am Fluss', 'im U-Bahn-Schacht', 'vor dem Café', 'neben einem 3-jährigen Pony', 'unter 100 % Baumwolle']
END = ['.', '!', ' ...', '?', ', und es regnet.', ' - nicht wahr?', '.']


def sentence():
    return f'{draw.choice(WHO)} {draw.choice(DOES)} {draw.choice(WHERE)}{draw.choice(END)}'


def degraded(text):
    """As a poor translation would have it: words lost, moved, doubled, changed."""
    words = text.split(' ')
    for _ in range(draw.choice([0, 1, 1, 2, 3, 6])):
        if len(words) < 2:
            break
        i, j = draw.randrange(len(words)), draw.randrange(len(words))
        kind = draw.randrange(5)
        if kind == 0:
            del words[i]
        elif kind == 1:
            words[i], words[j] = words[j], words[i]
        elif kind == 2:
            words.insert(i, words[j])
        elif kind == 3:
            words[i] = words[i].upper() if draw.random() < 0.5 else words[i].lower()
        else:
            words[i] = draw.choice(['der', 'und', 'Baum', 'blau,', 'x-y'])
    return ' '.join(words)


HOSTILE = [
    '', '.', '...', '., .,', 'Wort', "''", '-', '😀', '👨\u200d👩\u200d👧 👍🏽! 🏳\ufe0f\u200d🌈', '&quot;so&quot; &amp; &lt;b&gt; &amp;lt; &apos;', '&', '&amp',
    '1,000.5 and 3.14, 5-6 -7 8- 9.', 'tab\there  two  spaces', 'no\u00a0break 1\u202f000 m\u2009s', '– — ‐ ‑ ― −', '東京は大きい。とても、大きい！', '한국어 문장입니다.',
    'e\u0301te\u0301 is not été', 'ΣΑΣ ΟΔΥΣΣΕΥΣ Σ. ΑΣ\u0301 ΑΣ:Α', 'İstanbul ǅ ẞ ﬁ', '<skipped> a<skipped>b <skip', 'U.S.A. e.g. 12. v1.2.3', '$5 €6 £7.50 5°C ±3',
    '①②½ ٣٬٤٫٥ Ⅻ', '«q» “q” „q“ ‚q‘ ‹q›', 'a\x1cb\x85c\u2028d\u3000e\u200bf', '  before and behind  ', '((a)) [b] {c} !?', "don't it's 'tis rock'n'roll", 'x_y __z__ ~`^ a@b.c #tag',
    '\ufeffmark', 'עברית, русский; हिन्दी।', 'a\r', 'repeat repeat repeat repeat repeat', 'ends in a stop .',
]


def other(text):
    """Something near a hostile line: a reference that it shares a part with."""
    return text if draw.random() < 0.4 else degraded(text) if draw.random() < 0.7 else draw.choice(HOSTILE)


plain = [sentence() for _ in range(100)]
TEXTS = {
    'plain': ([degraded(t) for t in plain], [plain, [degraded(t) for t in plain]]),
    'one': ([degraded(t) for t in plain[:40]], [plain[:40]]),
    'hostile': (HOSTILE, [[other(t) for t in HOSTILE], [other(t) for t in HOSTILE]]),
    # references that are missing; line ends within a text, which only callers of the library can have
    'missing': (['a b c d e', 'x-\ny\nz .', '', 'A b'], [['a b c d', 'xy z.', 'some', 'a b'], [None, 'x y z', None, ''], ['a c d e f g', None, '', 'a b c']]),
    'empty': (['', '', ''], [['a b', 'c', 'd e f']]),
    'both empty': ([''], [['']]),
    'signs': (['...', '!?', '-- --'], [['...', '?!', '--']]),
    'word': (['Wort'], [['Wort']]),
    'no reference words': (['a b c d'], [['']]),
}
# The examples of sacreBLEU's own tests (test_bleu.py, test_sentence_bleu.py, test_chrf.py), with the scores that they state.
DOG = (['The dog bit the man.', "It wasn't surprising.", 'The man had just bitten him.'],
       [['The dog bit the man.', 'It was not unexpected.', 'The man bit him first.'], ['The dog had bit the man.', 'No one was surprised.', 'The man had bitten the dog.']])
SUGAR = (['Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;'], [['producţia de zahăr brut se exprimă în zahăr alb;']])
RISK = (['risk assessment must be made of those who are qualified and expertise in the sector - these are the scientists .'],
        [['risk assessment has to be undertaken by those who are qualified and expert in that area - that is the scientists .']])
RAW = {'tokenize': 'none', 'smooth_method': 'floor', 'smooth_value': 0.01, 'effective_order': True}
KNOWN_BLEU = [
    (DOG, {}, 48.530827), (DOG, {'tokenize': 'none'}, 49.1919566), (DOG, {'tokenize': 'intl'}, 43.91623493), (DOG, {'smooth_method': 'none'}, 48.530827),
    ((['', '', ''], DOG[1]), {}, 0.0),
    ((['this is a test', 'another test'], [['ref1', 'ref2']]), RAW, 0.0),
    ((['this is a test'], [['this is a test']]), RAW, 100.0), ((['this is a fest'], [['this is a test']]), RAW, 22.3606797749979),
    ((['test'], [['a test']]), RAW, 36.78794411714425), ((['a test'], [['a test']]), RAW, 100.0), ((['a little test'], [['a test']]), RAW, 3.218297948685433),
    ((['okay thanks'], [['this is a cat']]), {'effective_order': True}, 0.0),
] + [(SUGAR, {'smooth_method': s, 'smooth_value': v, 'lowercase': lc, 'tokenize': t, 'effective_order': True}, score) for s, v, lc, t, score in [
    ('exp', None, False, '13a', 8.493), ('none', None, False, '13a', 0.0), ('floor', None, False, '13a', 4.51688), ('floor', 0.5, False, '13a', 10.10),
    ('add-k', None, False, '13a', 14.882), ('add-k', 2, False, '13a', 21.389), ('exp', None, False, 'none', 7.347), ('exp', None, False, 'intl', 8.493),
    ('exp', None, False, 'char', 40.8759), ('exp', None, True, 'char', 42.0267)]]
EPS = {'beta': 3, 'eps_smoothing': True}
EFFECTIVE = {'beta': 3}
KNOWN_CHRF = [((h, [r]), o, score) for h, r, o, score in [
    (['abcdefg'], ['hijklmnop'], EPS, 0.0), (['a'], ['b'], EPS, 0.0), ([''], ['b'], EPS, 0.0), ([''], ['reference'], EPS, 0.0), (['aa'], ['ab'], EPS, 8.3333),
    (['a', 'b'], ['a', 'c'], EPS, 8.3333), (['a'], ['a'], EPS, 16.6667), (['a b c'], ['a b c'], EPS, 50.0), (['a b c'], ['abc'], EPS, 50.0),
    (RISK[0], RISK[1][0], EPS, 63.361730), ([' Die    Beziehung zwischen  Obama und Netanjahu ist nicht gerade  freundlich. '],
     ['Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich.'], EPS, 64.1302698),
    (['Niemand hat die Absicht, eine Mauer zu errichten'], ['Niemand hat die Absicht, eine Mauer zu errichten'], EPS, 100.0),
    (['a'], ['a'], EFFECTIVE, 100.0), ([''], ['reference'], EFFECTIVE, 0.0), (['a b c'], ['abc'], EFFECTIVE, 100.0), (['a', 'b'], ['a', 'c'], EFFECTIVE, 50.0),
    (['aa'], ['ab'], EFFECTIVE, 25.0), (RISK[0], RISK[1][0], {'beta': 3, 'whitespace': True}, 65.2414427),
    (['Lapali po dechu, jejich životy skončily dřív, než skutečně začaly.'],
     ['Lapali po dechu a pak jejich život skončil - dřív, než skutečně mohl začít, připomněli.'], {'eps_smoothing': True}, 57.15704367)]]

# --- scores ------------------------------------------------------------------------------------------------------------
cases = []


def bleu(name, **options):
    metric = BLEU(**options)
    score = metric.corpus_score(*TEXTS[name])
    raw = BLEU(tokenize=options.get('tokenize', '13a'), lowercase=options.get('lowercase', False)).corpus_score(*TEXTS[name])  # counts before add-k
    cases.append({'metric': 'bleu', 'text': name, **options, 'score': score.score, 'precisions': score.precisions, 'bp': score.bp, 'matches': raw.counts,
                  'totals': raw.totals, 'line': score.format(2, False, str(metric.get_signature()))})
    return score.score


def chrf(name, **options):
    metric = CHRF(**options)
    score = metric.corpus_score(*TEXTS[name])
    cases.append({'metric': 'chrf', 'text': name, **options, 'score': score.score, 'line': score.format(2, False, str(metric.get_signature()))})
    return score.score


def known(list_of, compute, what, margin):
    for i, (text, options, score) in enumerate(list_of):
        TEXTS[f'{what} {i}'] = text
        got = compute(f'{what} {i}', **options)
        assert abs(got - score) < margin, (text, options, score, got)


def make_cases():
    for name, (_, references) in list(TEXTS.items()):
        small = name not in ('plain', 'hostile')
        for tokenize, smooth, lowercase, effective in itertools.product(['13a', 'intl', 'none', 'char'], ['exp', 'floor', 'add-k', 'none'], [False, True], [False, True]):
            if not small or (tokenize in ('13a', 'intl') and not lowercase):
                bleu(name, tokenize=tokenize, smooth_method=smooth, lowercase=lowercase, effective_order=effective)
        for smooth, value in [('floor', 0.5), ('floor', 1e-3), ('add-k', 2.25)]:
            bleu(name, smooth_method=smooth, smooth_value=value)
        for (char_order, word_order, beta), lowercase, whitespace, eps in itertools.product(
                [(6, 0, 2), (6, 2, 2), (1, 0, 1), (9, 3, 3)], [False, True], [False, True], [False, True]):
            if not small or char_order == 6:
                chrf(name, char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase, whitespace=whitespace, eps_smoothing=eps)
    known(KNOWN_BLEU, bleu, 'test_bleu', 1e-2)
    known(KNOWN_CHRF, chrf, 'test_chrf', 1e-4)
    with open(OUT / 'scores.json', 'w', encoding='utf8') as f:
        f.write('{"texts": {\n')
        f.write(',\n'.join(f'{json.dumps(k)}: {json.dumps({"hypotheses": h, "references": r}, ensure_ascii=False)}' for k, (h, r) in TEXTS.items()))
        f.write('},\n"cases": [\n' + ',\n'.join(json.dumps(c) for c in cases) + ']}\n')


# --- the command -------------------------------------------------------------------------------------------------------
COMMANDS = [
    ('plain', 2, [], []), ('plain', 1, ['-w', '2'], ['--width', '2']), ('plain', 2, ['-w', '4', '-tok', 'intl', '-lc'], ['--width', '4', '--tokenize', 'intl', '--lowercase']),
    ('plain', 1, ['-s', 'floor', '-sv', '0.5'], ['--smooth', 'floor', '--smooth-value', '0.5']), ('plain', 2, ['-tok', 'none', '-s', 'add-k'], ['--tokenize', 'none', '--smooth', 'add-k']),
    ('plain', 2, ['-m', 'chrf', '-w', '3'], ['--metric', 'chrf', '--width', '3']), ('plain', 1, ['-m', 'bleu', 'chrf', '--chrf-word-order', '2'], ['--metric', 'bleu,chrf', '--chrf-word-order', '2']),
    ('plain', 1, ['-m', 'chrf', '-cc', '4', '--chrf-beta', '3', '--chrf-whitespace', '--chrf-lowercase', '--chrf-eps-smoothing'],
     ['--metric', 'chrf', '--chrf-char-order', '4', '--chrf-beta', '3', '--chrf-whitespace', '--lowercase', '--chrf-eps-smoothing']),
    ('plain', 2, ['-b', '-w', '6'], ['--score-only', '--width', '6']),
    ('hostile', 2, ['-w', '6'], ['--width', '6']), ('hostile', 1, ['-tok', 'char', '-lc', '-w', '3'], ['--tokenize', 'char', '--lowercase', '--width', '3']),
    ('hostile', 2, ['-m', 'bleu', 'chrf', '-tok', 'intl', '--chrf-word-order', '2', '-w', '5'], ['--metric', 'bleu', '--metric', 'chrf', '--tokenize', 'intl', '--chrf-word-order', '2', '--width', '5']),
]


def make_commands():
    ends = ['\n', '\r\n', '  \n', '\u00a0\n']  # sacreBLEU takes all of these off
    for name in ('plain', 'hostile'):
        for i, lines in enumerate([TEXTS[name][0]] + TEXTS[name][1]):
            with open(OUT / (f'{name}.hypotheses.txt' if i == 0 else f'{name}.reference{i}.txt'), 'w', encoding='utf8', newline='') as f:
                f.write(''.join(line + ends[(n + i) % 4 if n % 5 == 0 else 0] for n, line in enumerate(lines)))
    with open(OUT / 'commands.txt', 'w', encoding='utf8') as f:
        for name, references, theirs, ours in COMMANDS:
            files = [str(OUT / f'{name}.reference{i + 1}.txt') for i in range(references)]
            out = subprocess.run([sys.executable, '-m', 'sacrebleu', *files, '-i', str(OUT / f'{name}.hypotheses.txt'), '-f', 'text', *theirs],
                                 check=True, capture_output=True, encoding='utf8').stdout
            f.write(f'{name} {references} {" ".join(ours)}\n{out}\n')


# --- detokenising ------------------------------------------------------------------------------------------------------
TOKENIZED = [
    '" Hello , " she said , " it \'s the boys \' house . "', 'They cost $ 5 or € 7 ( about 10 % ) [ maybe ] { yes } .', '\' single \' and " double " and `` old \'\' quotes',
    '„ Guten Tag “ , sagte er .', "« Bonjour » : l' eau d' Évian , qu' il aime ! Vraiment ? oui ; 5 % ( ? )", "c' è l' amico dell' uomo", '東京 は 大きい 。 Tokyo は city です',
    'a &quot; b &amp; c &lt; d &gt; e &#91; f &#93; g &#124; h &apos;s i &amp;lt; &bra; x &ket; &bar; &', 'state @-@ of @-@ the @-@ art', 'x @-@ @-@ y @-@', "don 't can 't they 're I 'm",
    "the Jones ' house", '¿ Qué ? ¡ Hola !', ':-) ;-) ... ?! !!', '" " " "', '( ? ) % . ,', '. at the start', '', '   wide   spaces   ', '1,000.50 $5 £3', "rock 'n' roll ''tis", '$$ ( [ x', 'ende',
]


def make_detokenized():
    lines = []
    for language in ('en', 'de'):
        back, forth = sacremoses.MosesDetokenizer(lang=language), sacremoses.MosesTokenizer(lang=language)
        more = [' '.join(forth.tokenize(t, aggressive_dash_splits=True)) for t in plain[:12] + ['"I don\'t," said the girl\'s aunt (53), "care for state-of-the-art e-mail."']]
        lines += [f'{language}\t{t}\t{back.detokenize(t.split())}\n' for t in TOKENIZED + more]
    (OUT / 'detokenized.txt').write_text(''.join(lines), encoding='utf8')


OUT.mkdir(exist_ok=True)
make_cases()
make_commands()
make_detokenized()
