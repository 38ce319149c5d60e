# SPDX-License-Identifier: MIT
"""Vocabularies and merges that the trainers of the package `tokenizers` (0.23.3) make of small texts: what Weft's must make too.
usage: python3 make_tokenizer_train.py        writes tests/golden/tokenizer_train/

The package's train() hands lines to the words with their ends, so that Metaspace keeps "\\n" in the last word of a line and learns
merges with it. Weft's lines have none; so here the trainer gets the lines from an iterator, without their ends.
NAME.txt is a text, CASE.expect a result: a line "text kind vocab_size min_frequency pre-tokenizer", a line of special tokens, the number of
types and of merges, a type a line, a merge a line (ids)."""
import json, pathlib, random
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
OUT = HERE / 'tokenizer_train'
ROOT = HERE.parent.parent
STORY = (ROOT / 'tests/golden/story.txt').read_bytes().decode()
MIXED = '\n'.join([
    'Größe, naïve; e\u0301 is not é.  Two  blanks, three   of them,\tand a tab.', '', ' a blank at both edges ', '\r', 'DOS line\r', 'and\ra lone CR',
    'Ελληνικά русский 中文字中文 日本語 עברית हिन्दी ไทย', '👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 👍🏽 \U0001f1e9\U0001f1ea 👍🏽👍🏽', 'no\u00a0break\u3000ideographic\u2028line',
    "don't we'll they've I'm it's 1,234.56 100% x_1 snake_case CamelCase", 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa aaaa aaa aa a ' * 3, '<s> </s> <unk> ▁ ▁▁ Ġ Ċ',
    'caf\u00e9 cafe\u0301 \u0001 \u007f \u0085 \ufeff \ufffd end', 'no end of line'])


def ties(seed):
    random.seed(seed)
    words = [''.join(random.choice('abc') for _ in range(random.randrange(1, 9))) for _ in range(120)]
    return '\n'.join(' '.join(random.choice(words) for _ in range(9)) for _ in range(40)) + '\n'


TEXTS = {'story': STORY, 'mixed': MIXED, 'ties': ties(1), 'once': ' '.join(sorted({w for w in STORY.split()[:300]})) + '\n'}
WORD, BPE, BYTE = ['<pad>', '<bos>', '<eos>'], ['<s>', '<pad>', '</s>', '<unk>'], ['<s>', '<pad>', '</s>']
CASES = {  # name: text, kind, vocab_size, min_frequency, pre-tokenizer, special tokens
    'metaspace': ('story', 'bpe', 600, 0, 'metaspace', BPE),
    'punctuation': ('story', 'bpe', 600, 0, 'punctuation', BPE),
    'mixed-punctuation': ('mixed', 'bpe', 400, 0, 'punctuation', BPE),
    'whitespace': ('story', 'bpe', 600, 0, 'whitespace', BPE),
    'bytes': ('story', 'byte-bpe', 700, 0, 'bytes', BYTE),
    'frequency': ('story', 'bpe', 5000, 4, 'metaspace', BPE),
    'all': ('once', 'bpe', 100000, 0, 'metaspace', BPE),
    'ties': ('ties', 'bpe', 300, 0, 'metaspace', BPE),
    'no-specials': ('ties', 'bpe', 60, 0, 'whitespace', []),
    'odd-specials': ('ties', 'bpe', 100, 0, 'whitespace', ['b', 'ab', 'cab', '[é]']),
    'mixed-metaspace': ('mixed', 'bpe', 400, 0, 'metaspace', BPE),
    'mixed-whitespace': ('mixed', 'bpe', 400, 0, 'whitespace', BPE),
    'mixed-bytes': ('mixed', 'byte-bpe', 500, 2, 'bytes', BYTE),
    'words': ('story', 'word', 0, 0, 'whitespace', WORD),
    'words-limit': ('story', 'word', 100, 0, 'whitespace', WORD),
    'words-frequency': ('story', 'word', 0, 3, 'whitespace', ['<unk>', '<pad>']),
    'words-metaspace': ('mixed', 'word', 0, 0, 'metaspace', WORD),
    'words-mixed': ('mixed', 'word', 0, 0, 'whitespace', WORD),
}
SPLIT = {'punctuation': lambda: pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]),
         'metaspace': pre_tokenizers.Metaspace, 'whitespace': pre_tokenizers.Whitespace,
         'bytes': lambda: pre_tokenizers.ByteLevel(add_prefix_space=False)}


def lines_of(text):
    lines = text.split('\n')
    return [line[:-1] if line.endswith('\r') and i + 1 < len(lines) else line for i, line in enumerate(lines)]


def train(lines, kind, size, frequency, split, specials):
    """Types by id, and merges as pairs of ids."""
    tokenizer = Tokenizer(models.WordLevel() if kind == 'word' else models.BPE())
    tokenizer.pre_tokenizer = SPLIT[split]()
    options = {'special_tokens': specials, 'min_frequency': frequency, 'show_progress': False, 'vocab_size': size or 1 << 30}
    if kind == 'byte-bpe':
        options['initial_alphabet'] = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.WordLevelTrainer if kind == 'word' else trainers.BpeTrainer
    tokenizer.train_from_iterator(lines, trainer(**options))
    model = json.loads(tokenizer.to_str())['model']
    types = [t for t, _ in sorted(model['vocab'].items(), key=lambda item: item[1])]
    assert sorted(model['vocab'].values()) == list(range(len(types)))
    return types, [(model['vocab'][a], model['vocab'][b]) for a, b in model.get('merges', [])]


def listing(types, merges):
    return ''.join(t + '\n' for t in types) + ''.join(f'{a} {b}\n' for a, b in merges)


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    OUT.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        if name != 'story':
            (OUT / f'{name}.txt').write_bytes(text.encode())
    for name, (text, kind, size, frequency, split, specials) in CASES.items():
        types, merges = train(lines_of(TEXTS[text]), kind, size, frequency, split, specials)
        head = f'{text} {kind} {size} {frequency} {split}\n{" ".join(specials)}\n{len(types)} {len(merges)}\n'
        assert not any('\n' in t for t in types)
        (OUT / f'{name}.expect').write_bytes((head + listing(types, merges)).encode())
        print(f'{name}: {len(types)} types, {len(merges)} merges')
    shared = ROOT.parent / 'shared/data/multi30k'
    if not shared.exists():
        print(shared, 'is absent: multi30k.hash stays as it is')
        return
    lines = [line for side in ('en', 'de') for line in lines_of((shared / f'train.{side}').read_bytes().decode())]
    rows = []
    for kind, split, specials in (('bpe', 'metaspace', BPE), ('bpe', 'punctuation', BPE), ('bpe', 'whitespace', BPE), ('byte-bpe', 'bytes', BYTE)):
        types, merges = train(lines, kind, 10000, 0, split, specials)
        rows.append(f'{kind} {split} {len(types)} {len(merges)} {fnv(listing(types, merges).encode()):016x}\n')
    (OUT / 'multi30k.hash').write_text(''.join(rows))
    print(''.join(rows), end='')


main()
