# SPDX-License-Identifier: MIT
"""Writes tests/golden/bert/: a tiny BERT as sentence-transformers lays out a model, of random weights, and what PyTorch computes of it in
float64 (outputs.safetensors); and tests/golden/data/vocab_txt.json: ids that `tokenizers`' BertWordPieceTokenizer finds with the same
vocab.txt. Run by hand:

    pip install torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 tokenizers==0.23.3 safetensors
    python tests/golden/make_bert.py
"""
import json, pathlib, shutil
import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers.implementations import BertWordPieceTokenizer
from transformers import BertConfig, BertModel

torch.set_num_threads(1)
HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / 'bert'
shutil.rmtree(OUT, ignore_errors=True)
(OUT / '1_Pooling').mkdir(parents=True)
WORDS = ['the', 'dog', 'sleeps', 'under', 'table', 'rain', 'cafe', 'über', 'uber', 'Dog', '##s', '##ing', '##ed', '中', '国', 'ein', '.', ',', '!', "'"]
VOCAB = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + WORDS + list('abcdefgh') + ['##' + c for c in 'abcdefgh'] + ['[unused0]']
(OUT / 'vocab.txt').write_text('\n'.join(VOCAB) + '\n', encoding='utf-8')

# --- the model
CONFIG = dict(vocab_size=len(VOCAB), hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, hidden_act='gelu',
              max_position_embeddings=24, type_vocab_size=2, layer_norm_eps=1e-12, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.2)
rng = np.random.default_rng(5)
shapes = {k: tuple(v.shape) for k, v in BertModel(BertConfig(**CONFIG)).state_dict().items() if 'position_ids' not in k}
weights = {}
for name, shape in shapes.items():
    x = rng.standard_normal(shape) * 0.6
    if name.endswith('LayerNorm.weight'):
        x = 1 + x / 2
    weights[name] = torch.tensor(x.astype(np.float32))
save_file(weights, OUT / 'model.safetensors', metadata={'format': 'pt'})
(OUT / 'config.json').write_text(json.dumps(dict(architectures=['BertModel'], model_type='bert', position_embedding_type='absolute',
                                                 pad_token_id=0, use_cache=True, gradient_checkpointing=False, **CONFIG), indent=2) + '\n')
(OUT / 'tokenizer_config.json').write_text(json.dumps(dict(
    do_lower_case=True, strip_accents=None, tokenize_chinese_chars=True, unk_token='[UNK]', cls_token={'__type': 'AddedToken', 'content': '[CLS]', 'lstrip': False, 'normalized': False, 'rstrip': False, 'single_word': False},
    sep_token='[SEP]', pad_token='[PAD]', mask_token='[MASK]', tokenizer_class='BertTokenizer', model_max_length=24)) + '\n')
(OUT / 'modules.json').write_text(json.dumps([
    dict(idx=0, name='0', path='', type='sentence_transformers.models.Transformer'),
    dict(idx=1, name='1', path='1_Pooling', type='sentence_transformers.models.Pooling'),
    dict(idx=2, name='2', path='2_Normalize', type='sentence_transformers.models.Normalize')], indent=2) + '\n')
(OUT / '1_Pooling' / 'config.json').write_text(json.dumps(dict(
    word_embedding_dimension=12, pooling_mode_cls_token=False, pooling_mode_mean_tokens=True, pooling_mode_max_tokens=False,
    pooling_mode_mean_sqrt_len_tokens=False), indent=2) + '\n')
(OUT / 'sentence_bert_config.json').write_text(json.dumps(dict(max_seq_length=20, do_lower_case=False)) + '\n')

# --- what it computes
def model(act):
    m = BertModel(BertConfig(**CONFIG | dict(hidden_act=act)), add_pooling_layer=True).double().eval()
    m.set_attn_implementation('eager')
    m.load_state_dict({k: v.double() for k, v in weights.items()}, strict=False)
    return m

B, T = 3, 9
lengths = [9, 5, 1]
ids = torch.tensor(rng.integers(0, len(VOCAB), (B, T)))
segments = torch.tensor(rng.integers(0, 2, (B, T)))
mask = torch.arange(T)[None] < torch.tensor(lengths)[:, None]
out = {'ids': ids.int(), 'segments': segments.int(), 'lengths': torch.tensor(lengths).int()}
with torch.no_grad():
    for act in ('gelu', 'gelu_new', 'relu', 'silu'):
        r = model(act)(input_ids=ids, attention_mask=mask.long(), token_type_ids=segments, output_attentions=True)
        out[f'hidden.{act}'] = r.last_hidden_state * mask[..., None]
        if act == 'gelu':
            for i, a in enumerate(r.attentions):
                out[f'weights.{i}'] = a * mask[:, None, :, None]
    bert = model('gelu')
    SENTENCES = ['The dog sleeps under the table.', 'CAFÉ', '', 'Über dogs, rained!', '中国 abc', 'x y z', "the dog's " * 12]
    t = BertWordPieceTokenizer(str(OUT / 'vocab.txt'))
    t.enable_truncation(20)
    for i, s in enumerate(SENTENCES):
        row = torch.tensor([t.encode(s).ids])
        h = bert(input_ids=row).last_hidden_state
        out[f'sentence.{i}.ids'] = row[0].int()
        out[f'sentence.{i}.mean'] = torch.nn.functional.normalize(h.mean(1), dim=1)[0]
        out[f'sentence.{i}.cls'] = h[0, 0].contiguous()
save_file({k: v.contiguous() for k, v in out.items()}, OUT / 'outputs.safetensors')
(OUT / 'sentences.txt').write_text('\n'.join(SENTENCES) + '\n', encoding='utf-8')
try:  # sentence-transformers reads the folder as it lies, and finds the same in float
    from sentence_transformers import SentenceTransformer
    found = SentenceTransformer(str(OUT), device='cpu').encode(SENTENCES)
    worst = max(np.abs(found[i] - out[f'sentence.{i}.mean'].numpy()).max() for i in range(len(SENTENCES)))
    assert worst < 1e-5, worst
    print(f'sentence-transformers agrees within {worst:.1e}')
except ImportError:
    print('sentence-transformers is not there to agree')

# --- vocab.txt
TEXTS = ['', 'the dog sleeps', 'The DOG Sleeps.', 'dogs, dogging; CAFÉ! cafe\u0301', 'Über über UBER ein', '中国的中 国', 'abcdefgh hgfedcba abcx',
         '[CLS] the [MASK] [SEP] [PAD] [UNK] [unused0]', "the dog's\ttable\u00a0rain\u3000.", 'a\u0001b\u0002c\u200bd\u00ade', 'a' * 100, 'a' * 101,
         '...!!!,,,', 'ÀÉ àé Ǆ İ ß', '😀 the', '[cls] [Sep]', ' the ', 'the\u2028dog']
OPTIONS = {'default': {}, 'cased': dict(lowercase=False), 'cased_stripped': dict(lowercase=False, strip_accents=True),
           'accents': dict(strip_accents=False), 'whole_scripts': dict(handle_chinese_chars=False),
           'tokens': dict(unk_token='[unused0]', cls_token='the', sep_token='dog', pad_token='ein', mask_token='rain')}
cases = []
for name, options in OPTIONS.items():
    t = BertWordPieceTokenizer(str(OUT / 'vocab.txt'), **options)
    cases.append(dict(options=name, texts=[dict(text=s, plain=t.encode(s, add_special_tokens=False).ids, specials=t.encode(s).ids) for s in TEXTS]))
(HERE / 'data' / 'vocab_txt.json').write_text(json.dumps(cases, separators=(',', ':')) + '\n')
print(sum(f.stat().st_size for f in OUT.rglob('*') if f.is_file()), 'bytes')
