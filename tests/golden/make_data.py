# SPDX-License-Identifier: MIT
"""Golden files of the room data, made by others' code: tokenizer.json, ids and texts by the package `tokenizers`, places of bad bytes by
Python's UTF-8 decoder. usage: python3 make_data.py            writes tests/golden/data/
              python3 make_data.py FILE.json TEXT  checks a file that Weft wrote: loads it and compares ids, text and bytes"""
import pathlib, random, sys
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

OUT = pathlib.Path(__file__).parent / 'data'
TEXTS = {
    'ascii': 'First line.\nSecond line: "quoted", back\\slash / slash, tab\there.\n\n',
    'unix_and_dos': 'one\r\ntwo\n\rthree\r\r\n\n',
    'scripts': 'Größe, naïve, e\u0301 is not é; Ελληνικά, русский, 中文, 日本語, עברית, हिन्दी, ไทย\n',
    'emoji': '👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 👍🏽 \U0001f1e9\U0001f1ea\n',
    'controls': ''.join(chr(c) for c in range(1, 33)) + '\x7f\x80\x85\x9f\xa0\xad\u2028\u2029\ufeff\ufffd\ufffe\uffff\n',
    'planes': '\ud7ff\ue000\uf8ff\uffff\U00010000\U0001fffe\U000e0001\U000f0000\U0010ffff a\u0301\u0302b\n',
}


def character_tokenizer(text):
    t = Tokenizer(models.WordLevel({c: i for i, c in enumerate(sorted(set(text)))}, unk_token='<unk>'))
    t.pre_tokenizer = pre_tokenizers.Split(Regex(r'[\s\S]'), 'isolated')
    t.decoder = decoders.Fuse()
    return t


def bad_byte(data):
    try:
        data.decode('utf-8', 'strict')
        return -1
    except UnicodeDecodeError as e:
        return e.start


def utf8_cases():
    # Every edge of the table of well-formed sequences, cut and followed by each kind of byte; then random damage.
    edges = [0x01, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF7, 0xF8, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF]
    tails = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xED, 0xFF]
    for a in edges:
        yield bytes([a])
        for b in tails:
            yield bytes([a, b])
            if a >= 0xE0:
                for c in (0x41, 0x7F, 0x80, 0xBF, 0xC0):
                    yield bytes([a, b, c])
                    if a >= 0xF0 and 0x80 <= c < 0xC0:
                        for d in (0x7F, 0x80, 0xBF, 0xC0):
                            yield bytes([a, b, c, d])
    random.seed(1)
    for _ in range(500):
        s = bytearray(''.join(random.choice('aé€𝄞\n') for _ in range(random.randrange(1, 12))).encode())
        for _ in range(random.randrange(0, 3)):
            k = random.randrange(len(s))
            if random.random() < 0.5:
                s[k] = random.randrange(1, 256)
            elif len(s) > 1:
                del s[k]
        yield bytes(s)


def make():
    OUT.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        t = character_tokenizer(text)
        ids = t.encode(text).ids
        assert t.decode(ids) == text, name
        (OUT / f'{name}.txt').write_bytes(text.encode())
        (OUT / f'{name}.json').write_bytes(t.to_str(pretty=True).encode())
        (OUT / f'{name}.ids').write_text(' '.join(map(str, ids)) + '\n')
    cases = sorted(set(utf8_cases()))
    (OUT / 'utf8.cases').write_text(''.join(f'{c.hex()} {bad_byte(c)}\n' for c in cases))
    print(len(TEXTS), 'texts,', len(cases), 'byte sequences')


def compare(path, text_path):
    data, text = pathlib.Path(path).read_bytes(), pathlib.Path(text_path).read_bytes().decode()
    t = Tokenizer.from_file(path)
    ids = t.encode(text).ids
    order = sorted(set(text))
    rank = {c: i for i, c in enumerate(order)}
    assert ids == [rank[c] for c in text], 'other ids'
    assert t.decode(ids) == text, 'another text'
    assert t.to_str(pretty=True).encode() == data, 'other bytes'
    assert t.get_vocab_size() == len(order), 'another vocabulary'
    print(f'{path}: {len(ids)} ids, {len(order)} tokens: the same')


make() if len(sys.argv) == 1 else compare(*sys.argv[1:3])
