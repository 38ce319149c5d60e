# SPDX-License-Identifier: MIT
"""Writes tests/golden/decoders/NAME/ for each architecture of decoders that Weft reads: a tiny folder of Hugging Face with random weights
(config.json in the layout of transformers 4 or 5, model.safetensors, a tokenizer.json of single characters), and what transformers computes
of it in float64: logits and the mean cross-entropy (outputs.safetensors), and the gradients of the weights under the names of the weights
(gradients.safetensors). other_layout.json is config.json in the other of the two layouts. Run by hand:

    pip install torch==2.13.0 transformers==5.24.0 tokenizers==0.23.3 safetensors
    python tests/golden/make_decoders.py

transformers computes norms, rotary angles, the scale of Gemma's embedding and, without SDPA, softmax in float32 whatever the dtype of the
model, so these are replaced by the same formulas in float64.
"""
import json, math, pathlib, shutil
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models
from transformers import (AutoModelForCausalLM, Gemma2Config, Gemma3TextConfig, GPT2Config, LlamaConfig, MistralConfig, Phi3Config,
                          Qwen2Config, Qwen3Config)
from transformers.models.gemma2 import modeling_gemma2

torch.set_num_threads(1)
OUT = pathlib.Path(__file__).resolve().parent / 'decoders'
shutil.rmtree(OUT, ignore_errors=True)
V, B, T = 26, 2, 11
SIZES = dict(vocab_size=V, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24,
             max_position_embeddings=32, bos_token_id=0, eos_token_id=1)
GEMMA = SIZES | dict(hidden_size=20, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, head_dim=8, sliding_window=4,
                     query_pre_attn_scalar=10)
LLAMA3 = dict(rope_type='llama3', factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)

def rope(theta, **more):
    return dict(rope_theta=theta, **(more or dict(rope_type='default')))

# name: class, its arguments, and whether config.json has the layout of transformers 4
MODELS = {
    'gpt2': (GPT2Config, dict(vocab_size=V, n_positions=32, n_embd=16, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=1), True),
    'llama': (LlamaConfig, SIZES | dict(rms_norm_eps=1e-5, rope_parameters=rope(500.0, **LLAMA3)), True),
    'llama-linear': (LlamaConfig, SIZES | dict(num_key_value_heads=4, tie_word_embeddings=True, rope_parameters=rope(10000.0, rope_type='linear', factor=2.0)), False),
    'mistral': (MistralConfig, SIZES | dict(sliding_window=5, head_dim=8, rope_parameters=rope(10000.0)), False),
    'qwen2': (Qwen2Config, SIZES | dict(tie_word_embeddings=True, use_sliding_window=False, rope_parameters=rope(1000000.0)), True),
    'qwen3': (Qwen3Config, SIZES | dict(head_dim=6, rope_parameters=rope(1000000.0)), False),
    'phi3': (Phi3Config, SIZES | dict(sliding_window=6, pad_token_id=None, rope_parameters=rope(10000.0)), True),
    'gemma2': (Gemma2Config, GEMMA | dict(attn_logit_softcapping=2.0, final_logit_softcapping=3.0, rope_parameters=rope(10000.0)), True),
    'gemma3': (Gemma3TextConfig, GEMMA | dict(sliding_window_pattern=2, rope_parameters=dict(
        full_attention=rope(1000000.0, rope_type='linear', factor=8.0), sliding_attention=rope(10000.0))), False),
    'qwen2-window': (Qwen2Config, SIZES | dict(num_hidden_layers=3, use_sliding_window=True, sliding_window=4, max_window_layers=1, rope_parameters=rope(1000000.0)), True),
    'llama-bias': (LlamaConfig, SIZES | dict(attention_bias=True, mlp_bias=True, rope_parameters=rope(10000.0)), False),
}

def frequencies(config, p):
    """RoPE's frequencies in float64: Su et al. 2021; linear: Chen et al. 2023; llama3: Llama 3.1's modelling code."""
    width = getattr(config, 'head_dim', None) or config.hidden_size // config.num_attention_heads
    f = [p['rope_theta'] ** (-2 * i / width) for i in range(width // 2)]
    if p['rope_type'] == 'linear':
        f = [x / p['factor'] for x in f]
    if p['rope_type'] == 'llama3':
        low, high, context = p['low_freq_factor'], p['high_freq_factor'], p['original_max_position_embeddings']
        def scaled(x):
            turns = context * x / (2 * math.pi)
            s = min(max((turns - low) / (high - low), 0), 1)
            return s * x + (1 - s) * x / p['factor']
        f = [scaled(x) for x in f]
    return torch.tensor(f, dtype=torch.float64)

def eager(module, query, key, value, attention_mask, dropout=0.0, scaling=None, softcap=None, **kwargs):
    """Gemma 2's attention, which SDPA does not compute."""
    groups = module.num_key_value_groups
    scores = query @ key.repeat_interleave(groups, 1).transpose(2, 3) * scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    weights = torch.softmax(scores + attention_mask, -1)
    return (weights @ value.repeat_interleave(groups, 1)).transpose(1, 2).contiguous(), weights

modeling_gemma2.eager_attention_forward = eager

def in_double(model):
    for module in model.modules():
        kind = type(module).__name__
        if kind.endswith('RMSNorm'):
            gemma = kind.startswith('Gemma')
            eps = module.eps if gemma else module.variance_epsilon
            def norm(x, m=module, eps=eps, gemma=gemma):
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (1 + m.weight if gemma else m.weight)
            module.forward = norm
        if kind.endswith('ScaledWordEmbedding'):
            module.embed_scale = torch.tensor(module.scalar_embed_scale, dtype=torch.float64)
        if kind.endswith('RotaryEmbedding'):
            p = model.config.rope_parameters
            f = frequencies(model.config, p) if 'rope_theta' in p else {key: frequencies(model.config, p[key]) for key in p}
            def angles(x, position_ids, layer_type=None, f=f):
                a = position_ids[..., None].double() * (f[layer_type] if layer_type else f)
                a = torch.cat([a, a], -1)
                return a.cos(), a.sin()
            module.forward = angles

def old_layout(config):
    """config.json as transformers 4 wrote it."""
    p = config.pop('rope_parameters', None)
    if p and 'full_attention' in p:
        config['rope_local_base_freq'] = p['sliding_attention']['rope_theta']
        config['sliding_window_pattern'] = config.pop('layer_types').index('full_attention') + 1
        p = p['full_attention']
    elif config['model_type'] in ('gemma2', 'qwen2'):
        config.pop('layer_types')
    if p:
        config['rope_theta'] = p.pop('rope_theta')
        p.pop('partial_rotary_factor', None)
        config['rope_scaling'] = None if p['rope_type'] == 'default' else p
    config['torch_dtype'] = config.pop('dtype', None) or 'float32'
    config['transformers_version'] = '4.46.0'
    return config

letters = ['<s>', '</s>'] + [chr(ord('a') + i) for i in range(V - 3)] + [' ']
tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
tokenizer.add_special_tokens(['<s>', '</s>'])
tokenizer.decoder = decoders.Fuse()

for number, (name, (kind, arguments, old)) in enumerate(MODELS.items()):
    torch.manual_seed(number)
    folder = OUT / name
    folder.mkdir(parents=True)
    config = kind(**arguments)
    model = AutoModelForCausalLM.from_config(config, attn_implementation='eager' if name == 'gemma2' else 'sdpa').eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * (0.1 if p.ndim == 1 else 0.4) + (1 if not name.startswith('gemma') and ('norm' in key and 'weight' in key or 'ln_' in key and 'weight' in key) else 0))
    model.save_pretrained(folder)
    (folder / 'generation_config.json').unlink(missing_ok=True)
    path = folder / 'config.json'
    written = path.read_text()
    converted = json.dumps(old_layout(json.loads(written)), indent=2) + '\n'
    path.write_text(converted if old else written)
    (folder / 'other_layout.json').write_text(written if old else converted)
    tokenizer.save(str(folder / 'tokenizer.json'))
    in_double(model.double())
    ids = torch.randint(2, V, (B, T + 1))
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, V), ids[:, 1:].reshape(-1))
    loss.backward()
    save_file({'ids': ids.int(), 'logits': logits.detach(), 'loss': loss.detach()[None]}, folder / 'outputs.safetensors')
    save_file({key: p.grad.contiguous() for key, p in model.named_parameters()}, folder / 'gradients.safetensors')
    for file in folder.iterdir():
        file.chmod(0o644)
    print(name, loss.item(), sum(p.numel() for p in model.parameters()))
