# SPDX-License-Identifier: MIT
"""Golden files of tokenizers, made by the package `tokenizers` (0.23.3): small pipelines of every kind, and what they make of hostile texts.
usage: python3 make_tokenizers.py               writes tests/golden/tokenizers/
       python3 make_tokenizers.py FILE.json     checks a file that Weft wrote: it loads there, and comes out as the same bytes
       python3 make_tokenizers.py FILE.json TEXT...     prints how many ids the lines of each file have and their FNV-1a hash
       python3 make_tokenizers.py long          writes only shuffled.json, runs.json and long.hashes
texts.json holds the texts; NAME.json a tokenizer; NAME.cases, for each text, its ids with special tokens and what they decode to without.
long.hashes: words of 200,000 characters, in how many ids and of which hash; shuffled.json: a BPE whose merges are in an order that no trainer
gives; runs.json: a BPE whose merges are of one letter."""
import json, pathlib, random, sys
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers import decoders as D, models as M, normalizers as N, pre_tokenizers as P, processors as PP, trainers as T

OUT = pathlib.Path(__file__).parent / 'tokenizers'
PRETTY = ('bpe_metaspace', 'wordpiece', 'added')  # these as the package lays them out, the others on one line

CORPUS = '''A man in a blue shirt is standing on a ladder cleaning a window.
Two young, White males are outside near many bushes, and they don't see the camera.
Several men in hard hats are operating a giant pulley system; it's 12:45, they've started.
Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.
Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.
Mehrere Männer mit Schutzhelmen bedienen ein Antriebsradsystem für 3,50 €.
Un garçon à l'école, naïve café, Größe und Straße, Ελληνικά και русский текст.
The window is blue; the man is young, the men are standing near the ladder.'''.split('\n')

TEXTS = [
    '', ' ', '  ', '\n', '\r', '\r\n', 'a\rb', '\t', 'a', ' a', 'a ', '  a  b  ', 'The man in the window is standing.',
    "I'm you're he'll we've I'd it's can't 'S 'RE o'clock", "''", "'", "'s", " 's 't", 'Zwei Männer, naïve café NAÏVE CAFÉ; Größe Straße ẞ',
    '👨\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 👍🏽 \U0001f1e9\U0001f1ea ☃\ufe0f ❤️ 🤷🏿\u200d♀️🤷🏿\u200d♀️',
    'e\u0301 a\u0323\u0307 a\u0307\u0323 q\u0307\u0323 \u0344 \u0f73 \u212b\u2126 Å ﬁ ² ① ㋿ ｶﾞ ﾊﾟ', '한국어 한국 각 ㄱㅏ ﾡￂ \u1100\u1161\u11a8 \uac00\u11a8',
    'שלום עולם \u202eabc\u202c مرحبا بالعالم \u200f\u200e', ''.join(map(chr, range(0, 33))) + '\x7f\x80\x85\x9f\xa0\xad',
    '\ufeffBOM', 'mid\ufeffdle', 'a\xa0b\u2003c\u3000d\u1680e\u180ef\u2028g\u2029h\u202fi\u205fj\u200bk', '▁', '▁▁ ▁a ▁ a▁b', ' ▁ ', 'x ▁',
    '<s> </s> <pad><unk> x<s>y [CLS] [SEP][MASK] <mask>', '<s', '<<s>>', '</s></s>', 'special  <mask>  with spaces', 'word<mask>', 'Mask mask MASK',
    'wordy wordy, swordy wordyx \u200cwordy', 'NEW thing  new THING', 'a' * 130, 'ab' * 60, '\ue000\uf8ff\U000f0000 \U0010ffff \u0378\u0379 \U00050000',
    'İstanbul ıI ΑΣ Σίσυφος ǅ Ǆ', '中文字符 テスト 日本語 mixed中文en', '!!!???...,,,;;;--- §±¶ «» “quoted” ‘x’ … – —', "don’t ‘tis l'été",
    '1234567890 １２３ ٣٤٥ Ⅷ ½ ⅔ 3.14 1,000', '_ __ a_b _a', 'हिन्दी ไทย தமிழ் བོད', 'x\u0300\u0316\u0315' * 6, '\u0300\u0301', '\U0001d54f ᴬ ₐ ª º ŉ ǰ ﷺ \u1e9b\u0323',
    'Tab\tand\vVT\fFF', '\n\n\nnew\n\nlines\n', '$+<=>^`|~', '٪ ؟ ، ། ፨ ꓿ ⁀ ‿ ﹏ ＿', '①②③ ㊀ 🄰🅐🆎 Ⓐⓩ', '\u200c\u200dzwnj\u200cx', '\ud7ff\ue000\ufffd\ufffe\uffff',
    'Ab\u00adCd', '<0x41><0xE2>', '\u0e33 \u0eb3 \u0ddc \u09c7\u09be \u0b47\u0b3e', '\U0001109a\U00011131\U00011127', '\u0958 \u2adc \U0001d15e x\u0345\u0301',
]

GPT4 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIALS = ['<s>', '<pad>', '</s>', '<unk>']


def bpe(size=260, specials=SPECIALS, model={}, trainer={}, **parts):
    t = Tokenizer(M.BPE(**{'unk_token': '<unk>', **model}))
    for name, part in parts.items():
        setattr(t, name, part)
    t.train_from_iterator(CORPUS, T.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False, **trainer))
    return t


def byte_level(pre, size=320, specials=['<s>', '<pad>', '</s>', '<mask>'], model={}, **parts):
    return bpe(size, specials, {'unk_token': None, **model}, {'initial_alphabet': P.ByteLevel.alphabet()}, pre_tokenizer=pre,
               decoder=D.ByteLevel(), **parts)


def template(single='<s> $A </s>', pair='<s> $A </s> $B:1 </s>:1', ids=(('<s>', 0), ('</s>', 2))):
    return PP.TemplateProcessing(single=single, pair=pair, special_tokens=list(ids))


def wordpiece(lower, size=300):
    t = Tokenizer(M.WordPiece(unk_token='[UNK]', max_input_chars_per_word=100))
    t.normalizer = N.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = P.BertPreTokenizer()
    t.decoder = D.WordPiece(prefix='##', cleanup=lower)
    t.train_from_iterator(CORPUS, T.WordPieceTrainer(vocab_size=size, special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'], show_progress=False))
    t.post_processor = PP.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    return t


def word_level(pre, normalizer=None, decoder=None):
    t = Tokenizer(M.WordLevel(unk_token='<unk>'))
    t.normalizer, t.pre_tokenizer = normalizer, pre
    if decoder:
        t.decoder = decoder
    t.train_from_iterator(CORPUS, T.WordLevelTrainer(vocab_size=150, special_tokens=['<pad>', '<bos>', '<eos>', '<unk>'], show_progress=False))
    return t


def added():
    t = bpe(pre_tokenizer=P.Metaspace(), decoder=D.Metaspace(), normalizer=N.Lowercase())
    t.add_tokens([AddedToken('Mask', normalized=True), AddedToken('wordy', single_word=True), AddedToken('ab', single_word=True, normalized=False),
                  AddedToken('NEW thing', lstrip=True, rstrip=True), AddedToken('é'), AddedToken(' in '), AddedToken('man')])
    t.add_special_tokens([AddedToken('<mask>', lstrip=True, rstrip=True, special=True, normalized=False)])
    return t


def split(pattern, behavior, invert):
    letters = 'abcdefghijklmnopqrstuvwxyz ,.'
    vocab = {'<unk>': 0, **{c: i + 1 for i, c in enumerate(letters)}, 'th': 30, 'the': 31, 'in': 32, ' a': 33, 'a ': 34, 'an': 35}
    merges = [('t', 'h'), ('th', 'e'), ('i', 'n'), (' ', 'a'), ('a', ' '), ('a', 'n')]
    t = Tokenizer(M.BPE(vocab=vocab, merges=merges, unk_token='<unk>', fuse_unk=invert))
    t.pre_tokenizer = P.Split(pattern, behavior, invert)
    return t


def limited():
    t = wordpiece(True, 200)
    t.enable_truncation(12, strategy='longest_first', direction='left')
    t.enable_padding(direction='left', length=9, pad_to_multiple_of=4, pad_id=0, pad_token='[PAD]')
    return t


def legacy_llama():
    t = bpe(600, ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % i for i in range(256)], {'byte_fallback': True, 'fuse_unk': True},
            normalizer=N.Sequence([N.NFKC(), N.Replace(Regex(' {2,}'), ' '), N.Prepend('▁'), N.Replace(' ', '▁')]),
            decoder=D.Sequence([D.Replace('▁', ' '), D.ByteFallback(), D.Fuse(), D.Strip(' ', 1, 0)]))
    t.post_processor = template('<s> $A', '<s> $A <s>:1 $B:1', [('<s>', 1)])
    return t


def mixed():
    t = bpe(model={'end_of_word_suffix': '</w>'}, trainer={'end_of_word_suffix': '</w>'}, normalizer=N.NFC(),
            pre_tokenizer=P.Sequence([P.WhitespaceSplit(), P.Punctuation('merged_with_next'), P.Digits(True)]), decoder=D.BPEDecoder('</w>'))
    t.post_processor = PP.Sequence([PP.ByteLevel(trim_offsets=False), template()])
    return t


MAKERS = {
    'bpe_metaspace': lambda: bpe(pre_tokenizer=P.Metaspace(), decoder=D.Metaspace(), post_processor=template()),
    'bpe_whitespace': lambda: bpe(pre_tokenizer=P.Whitespace(), post_processor=template()),
    'bpe_fallback': legacy_llama,
    'bpe_suffix': mixed,
    'bpe_prefix': lambda: bpe(model={'continuing_subword_prefix': '##'}, trainer={'continuing_subword_prefix': '##'}, normalizer=N.NFKD(),
                              pre_tokenizer=P.Sequence([P.Split(' ', 'removed'), P.Punctuation('contiguous'), P.Digits(False)]), decoder=D.WordPiece()),
    'byte_gpt2': lambda: byte_level(P.ByteLevel(add_prefix_space=False), post_processor=PP.ByteLevel(trim_offsets=False)),
    'byte_roberta': lambda: byte_level(P.ByteLevel(add_prefix_space=True), post_processor=PP.RobertaProcessing(('</s>', 2), ('<s>', 0))),
    'byte_gpt4': lambda: byte_level(P.Sequence([P.Split(Regex(GPT4), 'isolated'), P.ByteLevel(add_prefix_space=False, use_regex=False)]),
                                    model={'ignore_merges': True}),
    'wordpiece': lambda: wordpiece(True),
    'wordpiece_cased': lambda: wordpiece(False),
    'word': lambda: word_level(P.Whitespace(), N.Sequence([N.NFD(), N.StripAccents(), N.Lowercase(), N.Strip()])),
    'word_delimiter': lambda: word_level(P.CharDelimiterSplit(' '), N.Replace(Regex(r'(?<=\w)\b\W'), ' ')),
    'added': added,
    'first': lambda: bpe(normalizer=N.Sequence([N.Strip(), N.NFKC()]), pre_tokenizer=P.Metaspace(prepend_scheme='first'),
                         decoder=D.Metaspace(prepend_scheme='first')),
    'never': lambda: bpe(pre_tokenizer=P.Metaspace(prepend_scheme='never', split=False), decoder=D.Metaspace(prepend_scheme='never')),
    'split_removed': lambda: split(Regex(r'[^\w\s]|x*'), 'removed', False),
    'split_isolated': lambda: split(Regex(r'\s'), 'isolated', True),
    'split_previous': lambda: split('a', 'merged_with_previous', False),
    'split_next': lambda: split(Regex(r'\w+'), 'merged_with_next', True),
    'split_contiguous': lambda: split(Regex(r'[\s\d]|\h'), 'contiguous', False),
    'limited': limited,
}


def make():
    OUT.mkdir(exist_ok=True)
    (OUT / 'texts.json').write_text(json.dumps(TEXTS, ensure_ascii=False), encoding='utf8')
    for name, maker in MAKERS.items():
        t = maker()
        cases = []
        for text in TEXTS:
            ids = t.encode(text).ids
            cases.append([ids, t.decode(ids)])
        (OUT / f'{name}.json').write_text(t.to_str(pretty=name in PRETTY), encoding='utf8')
        (OUT / f'{name}.cases').write_text(json.dumps(cases, ensure_ascii=False, separators=(',', ':')), encoding='utf8')
    long_words()
    print(len(MAKERS), 'tokenizers,', len(TEXTS), 'texts,', sum(f.stat().st_size for f in OUT.iterdir()), 'bytes')


def check(path):
    data = pathlib.Path(path).read_bytes()
    t = Tokenizer.from_file(path)
    assert t.to_str(pretty=True).encode() == data, 'other bytes'
    print(f'{path}: loads, {t.get_vocab_size()} tokens, the same bytes')


def fnv(ids):
    h = 0xCBF29CE484222325
    for id in ids:
        for byte in id.to_bytes(4, 'little'):
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def long_words():
    data = json.loads((OUT / 'bpe_whitespace.json').read_text(encoding='utf8'))
    random.Random(1).shuffle(data['model']['merges'])
    Tokenizer.from_str(json.dumps(data)).save(str(OUT / 'shuffled.json'), pretty=False)
    runs = Tokenizer(M.BPE(unk_token='<unk>'))
    runs.train_from_iterator(['a' * 1000, 'banana' * 100], T.BpeTrainer(vocab_size=30, special_tokens=SPECIALS, show_progress=False))
    runs.save(str(OUT / 'runs.json'), pretty=False)
    x, mixed, alphabet = 1, [], 'eeeeaaatnnirsdhlouwgQ7'
    for _ in range(200000):
        x = (x * 1103515245 + 12345) % 2**31
        mixed.append(alphabet[(x >> 16) % len(alphabet)])
    words = {'run': 'a' * 200000, 'pattern': 'standing' * 25000, 'mixed': ''.join(mixed)}
    with open(OUT / 'long.hashes', 'w') as out:
        for name in ('bpe_whitespace', 'bpe_fallback', 'bpe_suffix', 'bpe_prefix', 'byte_gpt2', 'byte_gpt4', 'never', 'wordpiece', 'shuffled',
                     'runs'):
            t = Tokenizer.from_file(str(OUT / f'{name}.json'))
            for word, text in words.items():
                ids = t.encode(text, add_special_tokens=False).ids
                print(name, word, len(ids), f'0x{fnv(ids):016X}', file=out)


def hashes(path, texts):
    t = Tokenizer.from_file(path)
    for name in texts:
        h, count = 0xCBF29CE484222325, 0
        for line in open(name, encoding='utf8', newline='\n'):
            for id in t.encode(line.rstrip('\n')).ids:
                count += 1
                for byte in id.to_bytes(4, 'little'):
                    h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        print(name, count, f'0x{h:016X}')


if __name__ == "__main__":
    make() if len(sys.argv) == 1 else long_words() if sys.argv[1] == 'long' else check(sys.argv[1]) if len(sys.argv) == 2 else hashes(sys.argv[1], sys.argv[2:])
