/* SPDX-License-Identifier: MIT */
/* The settings in a folder of Hugging Face under libFuzzer: config.json, generation_config.json and tokenizer_config.json, which the input
 * holds one after the other with a byte 0xFF between them. A refusal gives a reason in one line. An accepted configuration holds together,
 * and is declared as a model if it is small. */
#include <weft/internal/run_folder.h>

#include "fuzz_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_message(wf_status status, const wf_error *error)
{
    check((status == WF_OK) == !error->message[0] && status == error->code && !strchr(error->message, '\n'));
}

static void declare(const struct wf_config *config)
{
    wf_error error = {0};
    const struct wf_model_shape s = wf_config_shape(config);
    if (s.layers + s.encoder_layers > 8)
        return;
    wf_model *model = wf_model_new(config, &error);
    check((model != NULL) == (error.code == WF_OK) && !strchr(error.message, '\n'));
    wf_model_free(model);
}

static void read_folder(void)
{
    struct wf_run run = {0};
    struct wf_embedder_options embed;
    wf_tokenizer *tokenizer = NULL;
    wf_error error = {0};
    wf_status status = wf_config_load(&run.config, fuzz_path("config.json"), &error);
    check_message(status, &error);
    if (status != WF_OK)
        return;
    declare(&run.config);
    check_message(hf_generation_load(fuzz_folder, &run, &error), &error);
    check(run.ends >= 0 && run.ends <= WF_RUN_ENDS);
    error = (wf_error){0};
    check_message(hf_embed_options(fuzz_folder, &run.config, &embed, &error), &error);
    error = (wf_error){0};
    check_message(hf_tokenizer_load(fuzz_folder, &run.config, &tokenizer, &error), &error);
    wf_tokenizer_free(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const names[] = {"config.json", "generation_config.json", "tokenizer_config.json"};
    static const char vocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##s\n";
    if (!fuzz_folder[0])
        fuzz_write("vocab.txt", vocab, sizeof vocab - 1);
    for (int i = 0; i < 3; i++) {
        const uint8_t *end = bytes ? memchr(data, 0xff, bytes) : NULL;
        const size_t length = end && i < 2 ? (size_t)(end - data) : bytes;
        if (i == 0 || length > 0)
            fuzz_write(names[i], data, length);
        else
            remove(fuzz_path(names[i]));
        data += length < bytes ? length + 1 : length;
        bytes -= length < bytes ? length + 1 : length;
    }
    read_folder();
    return 0;
}
