# SPDX-License-Identifier: MIT
"""Writes a BERT folder with an output layer for masked tokens, of random weights, as transformers saves BertForMaskedLM, and 20 updates
of training it further as PyTorch computes them: tests/golden/bert_train/, in float64. tests/train/bert_from.c trains the folder with
Weft and compares. Run by hand:

    pip install torch==2.13.0 transformers==5.23.0 tokenizers==0.23.3 safetensors
    python tests/golden/make_bert_train.py
    python tests/golden/make_bert_train.py --minilm TEXT FOLDER    (MiniLM's size, in float64 and float32)
    WEFT_BERT_TRAIN=FOLDER build/tests/test_train_bert_from_f32

Which tokens a batch has, and which of them are masked, follows from the seed as data/include/weft/batches.h and masking.h say; it is
drawn here anew, and tokens, loss, gradients, clipping, schedule and AdamW are transformers' and PyTorch's.
"""
import argparse, collections, json, math, pathlib, re, shutil
import torch
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument('--minilm', nargs=2, metavar=('TEXT', 'FOLDER'))
args = parser.parse_args()
TEXT = pathlib.Path(args.minilm[0]) if args.minilm else HERE / 'story.txt'
OUT = pathlib.Path(args.minilm[1]) if args.minilm else HERE / 'bert_train'
S = dict(seed=7, steps=20, lr=5e-4, min_lr=1e-4, warmup=4, weight_decay=0.01, clip=1.0, beta1=0.9, beta2=0.999, eps=1e-8, mask_rate=0.15)
if args.minilm:
    SIZES = dict(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, max_position_embeddings=512)
    S |= dict(batch=8, crop=128, frame='true')
else:
    SIZES = dict(vocab_size=197, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, max_position_embeddings=40,
                 initializer_range=0.3)
    S |= dict(batch=6, crop=24, frame='true', lr=5e-3, min_lr=1e-3)

# --- the folder
shutil.rmtree(OUT, ignore_errors=True)
OUT.mkdir(parents=True)
text = TEXT.read_text(encoding='utf-8')
words = collections.Counter(re.findall(r'[^\W_]+|[^\w\s]|_', text.lower()))
letters = sorted(set(''.join(words)))
vocab = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'] + letters + ['##' + c for c in letters]
vocab += [w for w, n in sorted(words.items(), key=lambda x: (-x[1], x[0])) if len(w) > 1][:SIZES['vocab_size'] - len(vocab)]
if args.minilm:  # as BERT fills its vocabulary up
    vocab += [f'[unused{i}]' for i in range(SIZES['vocab_size'] - len(vocab))]
(OUT / 'vocab.txt').write_text('\n'.join(vocab) + '\n', encoding='utf-8')
tokenizer = BertTokenizerFast(str(OUT / 'vocab.txt'))
if not args.minilm:
    SIZES['vocab_size'] = -(-len(tokenizer) // 8) * 8  # padded, as many are
assert SIZES['vocab_size'] >= len(tokenizer)
torch.manual_seed(3)
config = BertConfig(**SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
start = BertForMaskedLM(config)
with torch.no_grad():  # transformers leaves them at 0 and 1, which would hide what they do
    for name, p in start.named_parameters():
        if p.ndim == 1:
            p.add_(0.1 * torch.randn_like(p))
start.save_pretrained(OUT)
(OUT / 'generation_config.json').unlink(missing_ok=True)

# --- what is drawn
def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c

tokens = tokenizer(text, add_special_tokens=False, verbose=False)['input_ids']
special = set(tokenizer.all_special_ids)
ordinary = [i for i in range(len(tokenizer)) if i not in special]
KEY = (S['seed'], 0)
MASK_KEY = philox((0x6B73616D, 0, 0, 0), KEY)[:2]
THRESHOLD = int(S['mask_rate'] * 2.0**32)

def batch(step):
    ids, targets = [], []
    for row in range(S['batch']):
        w = philox((step, 0, row, 0x706F7263), KEY)
        count = S['crop'] - 2
        begin = (w[1] << 32 | w[0]) * (len(tokens) - count) >> 64
        x = [tokenizer.cls_token_id] + tokens[begin:begin + count] + [tokenizer.sep_token_id]
        y = [-100] * S['crop']
        for col in range(S['crop']):
            if x[col] in special:
                continue
            w = philox((step, 0, row, col), MASK_KEY)
            if w[0] >= THRESHOLD:
                continue
            y[col] = x[col]
            if w[1] < 0xCCCCCCCD:
                x[col] = tokenizer.mask_token_id
            elif w[1] < 0xE6666667:
                x[col] = ordinary[(w[3] << 32 | w[2]) * len(ordinary) >> 64]
        ids.append(x)
        targets.append(y)
    return torch.tensor(ids), torch.tensor(targets)

def rate(step):
    if step < S['warmup']:
        return S['lr'] * (step + 1) / (S['warmup'] + 1)
    done = (step - S['warmup']) / (S['steps'] - S['warmup'])
    return S['min_lr'] + 0.5 * (1 + math.cos(math.pi * done)) * (S['lr'] - S['min_lr'])

# --- the training
def train(dtype):
    model = BertForMaskedLM.from_pretrained(OUT, dtype=dtype).train()
    assert model.config.tie_word_embeddings
    groups = [dict(params=[p for p in model.parameters() if p.ndim >= 2], weight_decay=S['weight_decay']),
              dict(params=[p for p in model.parameters() if p.ndim < 2], weight_decay=0.0)]
    opt = torch.optim.AdamW(groups, lr=S['lr'], betas=(S['beta1'], S['beta2']), eps=S['eps'])
    losses, norms = [], []
    for step in range(S['steps']):
        ids, targets = batch(step)
        for g in opt.param_groups:
            g['lr'] = rate(step)
        opt.zero_grad()
        loss = model(input_ids=ids, labels=targets).loss
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), S['clip'])))
        opt.step()
        losses.append(loss.item())
    return model, losses, norms

model, losses, norms = train(torch.float64)
golden = dict(text=str(TEXT.resolve()) if args.minilm else '../story.txt', tokens=len(tokens),
              settings=' '.join(f'{k}={v}' for k, v in S.items() if k not in ('seed', 'steps')) + ' schedule=cosine', seed=S['seed'],
              steps=S['steps'], loss=losses, grad_norm=norms)
if args.minilm:
    _, golden['loss_float32'], _ = train(torch.float32)
(OUT / 'losses.json').write_text(json.dumps(golden, indent=1) + '\n')
print('loss', losses[0], '...', losses[-1], 'gradient norm', norms[0], '...', norms[-1])
print(sum(f.stat().st_size for f in OUT.rglob('*') if f.is_file()), 'bytes')
