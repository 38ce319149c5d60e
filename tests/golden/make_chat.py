# SPDX-License-Identifier: MIT
"""Writes tests/golden/chat/: chat templates in Jinja, conversations, and the text and ids that transformers makes of them (cases.json), with
the tokenizers of these ids; and model/, a tiny Llama with random weights whose folder has one of the templates. The templates describe the formats of published models in wording and layout of our own; the formats are those
of the models' documentation. Run by hand:

    pip install torch==2.13.0 transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6
    python tests/golden/make_chat.py
"""
import json, pathlib, shutil
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / 'chat'
shutil.rmtree(OUT, ignore_errors=True)
OUT.mkdir()

# --- tokenizers: one of bytes, with the tokens of templates; one as Llama 2's, in which [INST] is text; and one in which it is a token
SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = ['<|im_start|>', '<|im_end|>', '<|im_sep|>', '<|begin_of_text|>', '<|end_of_text|>', '<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>',
         '<|endoftext|>', '<bos>', '<eos>', '<start_of_turn>', '<end_of_turn>', '<s>', '</s>']
SPACED = ['<|system|>', '<|user|>', '<|assistant|>', '<|end|>'] # Phi's tokens take the white space behind them

def of_bytes():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLIT), 'isolated'), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train([str(HERE / 'story.txt')], trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([AddedToken(w, normalized=False, special=True) for w in WORDS] +
                         [AddedToken(w, rstrip=True, normalized=False, special=True) for w in SPACED])
    t.add_tokens([AddedToken('<think>', normalized=False, special=False), AddedToken('</think>', normalized=False, special=False)])
    return t

def of_pieces(more):
    t = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token='<unk>'))
    t.normalizer = normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])
    t.decoder = decoders.Sequence([decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(' ', 1, 0)])
    lines = [line for text in (HERE / 'story.txt').read_text().split('\n') for line in text.split('. ')]
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=500, show_progress=False, max_token_length=8,
                          special_tokens=['<unk>', '<s>', '</s>'] + [f'<0x{i:02X}>' for i in range(256)]))
    t = json.loads(t.to_str())
    t['added_tokens'] = [a | dict(special=True, normalized=False) for a in t['added_tokens'][:3]]
    t = Tokenizer.from_str(json.dumps(t))
    t.add_special_tokens([AddedToken(w, normalized=False, special=True) for w in more])
    return t

TOKENIZERS = {'bytes': of_bytes(), 'pieces': of_pieces([]), 'inst': of_pieces(['[INST]', '[/INST]'])}
for name, t in TOKENIZERS.items():
    t.save(str(OUT / f'{name}.json'))

# --- templates: name in Weft, tokenizer, BOS, EOS, Jinja
TURN = "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('user and assistant speak in turn') }}{% endif %}".replace('m[', 'message[')
TEMPLATES = {
'plain': ('chatml', 'bytes', None, '<|im_end|>', """
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + "\\n" }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""),
'with-bos': ('chatml', 'bytes', '<s>', '<|im_end|>',
    "{{ bos_token }}{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"),
# the words of SmolLM2 and Qwen2.5 are others
'default-first': ('chatml', 'bytes', '<|im_start|>', '<|im_end|>', """{% for message in messages %}
{% if loop.first and message['role'] != 'system' %}
{{ '<|im_start|>system\\nYou\\'re the model\\'s \\"default\\" \\\\ voice.<|im_end|>\\n' -}}
{% endif %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' }}
{% endfor %}
{% if add_generation_prompt -%}
{{ '<|im_start|>assistant' }}
{% endif %}
"""),
'default-else': ('chatml', 'bytes', None, '<|im_end|>', """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- endif %}
    {{- 'You can call functions: ' + (tools | tojson) + '<|im_end|>\\n' }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou answer in one sentence.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) or message.role == "assistant" %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""),
'thoughts': ('chatml', 'bytes', None, '<|im_end|>', """{#- thoughts of earlier answers are left out #}
{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\\n' + content }}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""),
'llama2': ('llama2', 'pieces', '<s>', '</s>',
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system_message = messages[0]['content'] %}"
    "{% else %}{% set rest = messages %}{% set system_message = false %}{% endif %}{% for message in rest %}" + TURN +
    "{% if loop.first and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"),
'llama2-default': ('llama2', 'pieces', '<s>', '</s>', """{% if messages[0].role == 'system' -%}
  {% set rest = messages[1:] %}{% set system_message = messages[0].content -%}
{% else -%}
  {% set rest = messages %}{% set system_message = "Be kind.\\nDon't lie." -%}
{% endif -%}
{% for message in rest -%}
  {% if loop.first %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message.content %}{% else %}{% set content = message.content %}{% endif -%}
  {% if message.role == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif -%}
{% endfor -%}
"""),
'llama2-off': ('llama2', 'pieces', '<s>', '</s>',
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system_message = messages[0]['content'] %}"
    "{% elif false == true and not '<<SYS>>' in messages[0]['content'] %}{% set rest = messages %}{% set system_message = 'Never written.' %}"
    "{% else %}{% set rest = messages %}{% set system_message = false %}{% endif %}{% for message in rest %}"
    "{% if loop.first and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"),
'llama3': ('llama3', 'bytes', '<|begin_of_text|>', '<|end_of_text|>',
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.first %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"),
'llama3.1': ('llama3.1', 'bytes', '<|begin_of_text|>', '<|eot_id|>', """{{- bos_token }}
{%- if date_string is not defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none and tools is defined %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none and tools is defined %}
    {{- tools | tojson }}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""),
'mistral-v0': ('mistral-v0', 'pieces', '<s>', '</s>',
    "{{ bos_token }}{% for message in messages %}" + TURN + "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}"),
'mistral-v0.1': ('mistral-v0.1', 'pieces', '<s>', '</s>',
    "{{ bos_token }}{% for message in messages %}" + TURN + "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% else %}{{ message['content'] + eos_token + ' ' }}{% endif %}{% endfor %}"),
}
INST = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}{%- set rest = messages[1:] %}
{%- else %}
    {%- set rest = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in rest %}
    {%- if message["role"] == "user" %}
        {%- if loop.WHERE and system_message is defined %}
            {{- "OPEN" + system_message + "\\n\\n" + message["content"] + "CLOSE" }}
        {%- else %}
            {{- "OPEN" + message["content"] + "CLOSE" }}
        {%- endif %}
    {%- else %}
        {{- ANSWER + eos_token}}
    {%- endif %}
{%- endfor %}
"""
def inst(where, begin, end, answer):
    return INST.replace('WHERE', where).replace('OPEN', begin).replace('CLOSE', end).replace('ANSWER', answer)
TEMPLATES |= {
'mistral-v1': ('mistral-v1', 'pieces', '<s>', '</s>', inst('first', ' [INST] ', ' [/INST]', "' ' + message['content']")),
'mistral-v3': ('mistral-v3', 'inst', '<s>', '</s>', inst('last', '[INST] ', '[/INST]', "' ' + message['content']|trim")),
'mistral-v3-first': ('mistral-v3', 'inst', '<s>', '</s>', inst('first', '[INST] ', '[/INST]', "' ' + message['content']")),
'mistral-tekken': ('mistral-tekken', 'inst', '<s>', '</s>', inst('last', '[INST]', '[/INST]', "message['content']")),
'gemma': ('gemma', 'bytes', '<bos>', '<eos>',
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}{% for message in messages %}" + TURN +
    "{% set role = 'model' if message['role'] == 'assistant' else 'user' %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"),
'gemma3': ('gemma3', 'bytes', '<bos>', '<end_of_turn>', """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set rest = messages -%}
{%- endif -%}
{%- for message in rest -%}
    {%- set role = "model" if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- else -%}
        {{ raise_exception("no text") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""),
'zephyr': ('zephyr', 'pieces', '<s>', '</s>', """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n' + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""),
'phi3': ('phi3', 'bytes', '<s>', '<|endoftext|>',
    "{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
    "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}"
    "{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"),
'phi3-first': ('phi3', 'bytes', '<s>', '<|endoftext|>',
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') %}{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + '<|assistant|>' + '\n'}}"
    "{% elif (message['role'] == 'assistant') %}{{message['content'] + '<|end|>' + '\n'}}{% endif %}{% endfor %}"),
'phi3-small': ('phi3-small', 'bytes', '<|endoftext|>', '<|endoftext|>',
    "{{ bos_token }}{% for message in messages %}{{'<|' + message['role'] + '|>' + '\n' + message['content'] + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"),
'phi4': ('phi4', 'bytes', '<|endoftext|>', '<|endoftext|>',
    "{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}"
    "{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}"
    "{% elif (message['role'] == 'assistant') %}{{'<|im_start|>assistant<|im_sep|>' + message['content'] + '<|im_end|>'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"),
'phi4-mini': ('phi4-mini', 'bytes', '<|endoftext|>', '<|endoftext|>',
    "{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + message['tools'] + '<|end|>' }}"
    "{% else %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"),
}

# --- conversations
def turns(*texts, system=None):
    return ([] if system is None else [dict(role='system', content=system)]) + [dict(role='assistant' if i % 2 else 'user', content=t) for i, t in enumerate(texts)]
CONVERSATIONS = [
    turns('What is the capital of France?'),
    turns('Hi', system='Be brief.'),
    turns('one', 'two', 'three', 'four', 'five'),
    turns('one', 'two', 'three', system='You count.\nOnly count.'),
    turns('\n\n  spaces \t', ' and \n lines\n', '\n', '\u00a0x\u3000', ' end '),
    turns('  a  ', ' b ', ' c ', system='\n padded \n'),
    turns('Grüße, 世界! 👋🏽 don\'t', 'ça va — naïve\u200b', "it's 12345 o'clock\r\nok"),
    turns('user\nassistant\n', '[INS {{ message }} <<SYS>> {% if %}', 'a < b > c | d'),
    turns('Why?', '<think>\nBecause...\n</think>\n\nSo.', 'And?', '<think></think>x</think>\ny', 'Then?'),
    turns('x', system=''),
]

cases = []
for name, (form, tokenizer, bos, eos, jinja) in TEMPLATES.items():
    fast = PreTrainedTokenizerFast(tokenizer_object=TOKENIZERS[tokenizer], bos_token=bos, eos_token=eos, chat_template=jinja)
    results = []
    for conversation in CONVERSATIONS:
        try:
            text = fast.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
            ids = fast.apply_chat_template(conversation, add_generation_prompt=True, return_dict=False)
            results.append([text, ids])
        except Exception as problem: # the template takes no system message
            assert conversation[0]['role'] == 'system', problem
            results.append(None)
    if name == 'phi3-first': # it leaves a system message out, which Weft refuses
        results = [None if c[0]['role'] == 'system' else r for c, r in zip(CONVERSATIONS, results)]
    cases.append(dict(name=name, form=form, tokenizer=tokenizer, bos=bos, eos=eos, jinja=jinja, results=results))
    print(name, sum(r is not None for r in results))
with open(OUT / 'cases.json', 'w') as f:
    json.dump(dict(conversations=CONVERSATIONS, cases=cases), f, ensure_ascii=False, indent=0)
    f.write('\n')

# --- a model
torch.manual_seed(5)
t = TOKENIZERS['bytes']
config = LlamaConfig(vocab_size=t.get_vocab_size(), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                     intermediate_size=24, max_position_embeddings=128, tie_word_embeddings=True, bos_token_id=None,
                     eos_token_id=t.token_to_id('<|im_end|>'), rope_parameters=dict(rope_type='default', rope_theta=10000.0))
model = AutoModelForCausalLM.from_config(config)
with torch.no_grad():
    for key, p in model.named_parameters():
        if p.ndim == 2:
            p.copy_(torch.randn_like(p) * 0.5)
model.save_pretrained(OUT / 'model')
t.save(str(OUT / 'model' / 'tokenizer.json'))
(OUT / 'model' / 'tokenizer_config.json').write_text(json.dumps(dict(
    eos_token='<|im_end|>', chat_template=[dict(name='tools', template='{{ tools }}'), dict(name='default', template=TEMPLATES['default-first'][4])]), indent=1) + '\n')
for file in [*OUT.iterdir(), *(OUT / 'model').iterdir()]:
    if file.is_file():
        file.chmod(0o644)
