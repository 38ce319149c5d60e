/* SPDX-License-Identifier: MIT */
/* The table of known chat templates. The marks are in the canonical form that chat_jinja.c makes of a text in Jinja: no white space outside
 * of strings, '...' for strings, message['role'] for message.role, |trim for .strip(), and all that is written without a tag between as one
 * sum. A new template is a row here, and a text in tests/golden/make_chat.py. */
#include "chat_form.h"

#define TEXT "message['content']"
#define GENERATION "{%ifadd_generation_prompt%}"

/* All messages of ChatML, and of templates with other words in the same places. */
#define HEADED(head, between, tail)                                                                                                        \
    .before = {head "system" between, head "user" between, head "assistant" between}, .after = {tail, tail, tail}
/* Llama 2 and Mistral write the user's message between words, and the answer behind it. */
#define INST(open, close, answer_open, answer_close)                                                                                       \
    .before = {"", open, answer_open}, .after = {"\n\n", close, answer_close}, .end = EOS, .bos = "<s>", .eos = "</s>"
#define CHATML                                                                                                                             \
    HEADED("<|im_start|>", "\n", "<|im_end|>\n"), .prompt = "<|im_start|>assistant\n", .end = "<|im_end|>",                                \
                                                  .tokens = {"<|im_start|>", "<|im_end|>"}
#define LLAMA3                                                                                                                             \
    HEADED("<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"),                                                                  \
        .prompt = "<|start_header_id|>assistant<|end_header_id|>\n\n", .begins = true, .trim = {true, true, true}, .end = "<|eot_id|>",    \
        .bos = "<|begin_of_text|>", .eos = "<|eot_id|>", .tokens = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
#define LLAMA3_MARK "'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+" TEXT "~+'<|eot_id|>'"
#define GEMMA                                                                                                                              \
    .place = FIRST, .before = {"", "<start_of_turn>user\n", "<start_of_turn>model\n"},                                                     \
    .after = {"\n\n", "<end_of_turn>\n", "<end_of_turn>\n"}, .prompt = "<start_of_turn>model\n", .begins = true,                           \
    .trim = {false, true, true}, .end = "<end_of_turn>", .bos = "<bos>", .eos = "<eos>", .tokens = {"<start_of_turn>", "<end_of_turn>"}
#define PHI3                                                                                                                               \
    HEADED("<|", "|>\n", "<|end|>\n"), .prompt = "<|assistant|>\n", .end = "<|end|>", .eos = "<|endoftext|>",                              \
                                       .tokens = {"<|user|>", "<|assistant|>", "<|end|>"}

const struct chat_form chat_forms[] = {
    {.name = "chatml",
     .user = "'<|im_start|>'+message['role']+'\n'+" TEXT "+'<|im_end|>\n'",
     .marks = {GENERATION "{{'<|im_start|>assistant\n'}}"},
     .lacks = {"system_message", "strftime_now"},
     CHATML},
    {.name = "chatml",
     .user = "'<|im_start|>'+message['role']+'\n'+content+'<|im_end|>\n'",
     .marks = {GENERATION "{{'<|im_start|>assistant\n'}}", "{%if" TEXT "isstring%}{%setcontent=" TEXT "%}"},
     .lacks = {"system_message", "strftime_now"},
     CHATML},
    {.name = "llama2",
     .user = "{{bos_token+'[INST] '+content~+' [/INST]'}}",
     .answer = "{{' '+content~+' '+eos_token}}",
     .marks = {"{%setcontent='<<SYS>>\n'+system_message+'\n<</SYS>>\n\n'+" TEXT "%}"},
     .place = FIRST,
     .before = {"<<SYS>>\n", BOS "[INST] ", " "},
     .after = {"\n<</SYS>>\n\n", " [/INST]", " " EOS},
     .prompt = "",
     .trim = {false, true, true},
     .joint = true,
     .end = EOS,
     .bos = "<s>",
     .eos = "</s>"},
    {.name = "llama3.1",
     .user = LLAMA3_MARK,
     .marks = {"{{'<|start_header_id|>system<|end_header_id|>\n\n'}}", "{{'Cutting Knowledge Date: ", "'+date_string+'\n\n'}}",
               "{{system_message+'<|eot_id|>'}}", "{%setsystem_message=messages[0]['content']|trim%}"},
     LLAMA3,
     .header = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"},
    {.name = "llama3",
     .user = LLAMA3_MARK,
     .marks = {"'<|start_header_id|>assistant<|end_header_id|>\n\n'"},
     .lacks = {"system_message", "date_string"},
     LLAMA3},
    {.name = "mistral-v0",
     .user = "{{'[INST] '+" TEXT "~+' [/INST]'}}",
     .answer = "{{" TEXT "~+eos_token}}",
     .lacks = {"<<SYS>>", "system_message"},
     .place = FIRST,
     .begins = true,
     .prompt = "",
     INST("[INST] ", " [/INST]", "", EOS)},
    {.name = "mistral-v0.1",
     .user = "{{'[INST] '+" TEXT "~+' [/INST]'}}",
     .answer = "{{" TEXT "~+eos_token+' '}}",
     .lacks = {"<<SYS>>", "system_message"},
     .place = FIRST,
     .begins = true,
     .prompt = "",
     INST("[INST] ", " [/INST]", "", EOS " ")},
    {.name = "mistral-v1",
     .user = "{{' [INST] '+" TEXT "~+' [/INST]'}}",
     .answer = "{{' '+" TEXT "~+eos_token}}",
     .marks = {"{{' [INST] '+system_message+'\n\n'+" TEXT "+' [/INST]'}}"},
     .place = FIRST,
     .begins = true,
     .prompt = "",
     INST(" [INST] ", " [/INST]", " ", EOS)},
    {.name = "mistral-v3",
     .user = "{{'[INST] '+" TEXT "~+'[/INST]'}}",
     .answer = "{{' '+" TEXT "~+eos_token}}",
     .marks = {"{{'[INST] '+system_message+'\n\n'+" TEXT "+'[/INST]'}}"},
     .place = LAST,
     .begins = true,
     .trim = {false, false, true},
     .prompt = "",
     INST("[INST] ", "[/INST]", " ", EOS),
     .tokens = {"[INST]", "[/INST]"}},
    {.name = "mistral-tekken",
     .user = "{{'[INST]'+" TEXT "~+'[/INST]'}}",
     .answer = "{{" TEXT "~+eos_token}}",
     .marks = {"{{'[INST]'+system_message+'\n\n'+" TEXT "+'[/INST]'}}"},
     .place = LAST,
     .begins = true,
     .prompt = "",
     INST("[INST]", "[/INST]", "", EOS),
     .tokens = {"[INST]", "[/INST]"}},
    {.name = "gemma",
     .user = "{{'<start_of_turn>'+role+'\n'+" TEXT "~+'<end_of_turn>\n'}}",
     .marks = {GENERATION "{{'<start_of_turn>model\n'}}"},
     GEMMA},
    {.name = "gemma3",
     .user = "{{'<start_of_turn>'+role+'\n'+(first_user_prefixifloop.firstelse'')}}{%if" TEXT "isstring%}{{" TEXT "~}}",
     .marks = {GENERATION "{{'<start_of_turn>model\n'}}", "{%setfirst_user_prefix=messages[0]['content']+'\n\n'%}",
               "{{'<end_of_turn>\n'}}"},
     GEMMA},
    {.name = "zephyr",
     .user = "{{'<|user|>\n'+" TEXT "~+eos_token+'\n'}}",
     .answer = "{{'<|assistant|>\n'+" TEXT "~+eos_token+'\n'}}",
     .marks = {"{{'<|system|>\n'+" TEXT "+eos_token+'\n'}}", "{%ifloop.lastandadd_generation_prompt%}{{'<|assistant|>\n'}}"},
     HEADED("<|", "|>\n", EOS "\n"),
     .prompt = "<|assistant|>\n",
     .end = EOS,
     .bos = "<s>",
     .eos = "</s>"},
    {.name = "phi3",
     .user = "{{'<|user|>\n'+" TEXT "~+'<|end|>\n'}}",
     .answer = "{{'<|assistant|>\n'+" TEXT "~+'<|end|>\n'}}",
     .marks = {"{{'<|system|>\n'+" TEXT "+'<|end|>\n'}}", GENERATION "{{'<|assistant|>\n'}}"},
     PHI3,
     .bos = "<s>"},
    {.name = "phi3",
     .user = "{{'<|user|>\n'+" TEXT "~+'<|end|>\n<|assistant|>\n'}}",
     .answer = "{{" TEXT "~+'<|end|>\n'}}",
     .lacks = {"system"},
     PHI3,
     .bos = "<s>",
     .place = NONE},
    {.name = "phi3-small",
     .user = "{{'<|'+message['role']+'|>\n'+" TEXT "~+'<|end|>\n'}}",
     .marks = {"{{'<|assistant|>\n'}}"},
     PHI3,
     .begins = true,
     .bos = "<|endoftext|>"},
    {.name = "phi4",
     .user = "{{'<|im_start|>user<|im_sep|>'+" TEXT "~+'<|im_end|>'}}",
     .answer = "{{'<|im_start|>assistant<|im_sep|>'+" TEXT "~+'<|im_end|>'}}",
     .marks = {"{{'<|im_start|>system<|im_sep|>'+" TEXT "+'<|im_end|>'}}", GENERATION "{{'<|im_start|>assistant<|im_sep|>'}}"},
     HEADED("<|im_start|>", "<|im_sep|>", "<|im_end|>"),
     .prompt = "<|im_start|>assistant<|im_sep|>",
     .end = "<|im_end|>",
     .tokens = {"<|im_start|>", "<|im_sep|>", "<|im_end|>"}},
    {.name = "phi4-mini",
     .user = "{{'<|'+message['role']+'|>'+" TEXT "~+'<|end|>'}}",
     .marks = {GENERATION "{{'<|assistant|>'}}"},
     HEADED("<|", "|>", "<|end|>"),
     .prompt = "<|assistant|>",
     .end = "<|end|>",
     .bos = "<|endoftext|>",
     .eos = "<|endoftext|>",
     .tokens = {"<|user|>", "<|assistant|>", "<|end|>"}},
    {0},
};
