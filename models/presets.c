/* SPDX-License-Identifier: MIT */
/* The zoo's rows. What a row leaves out is zero. */
#include <string.h>

#include <weft/config.h>
#include <weft/internal/text.h>

enum { CONSTANT, COSINE }; /* wf_schedule_kind of the room optim; tests compare them */

static const struct wf_preset presets[] = {
    {
        "char-rms",
        "rms",
        "a character model of one layer for a short text; trains in seconds",
        {
            .model = "char-rms",
            .family = "rms",
            .d_model = 64,
            .heads = 4,
            .d_ff = 256,
            .layers = 1,
            .context = 256,
            .activation = WF_RELU,
            .bias = true,
            .steps = 1000,
            .batch = 16,
            .accumulate = 1,
            .lr = 1e-3,
            .schedule = CONSTANT,
            .beta1 = 0.9,
            .beta2 = 0.999,
            .eps = 1e-8,
            .clip = 1.0,
            .save_every = 250,
            .valid_every = 100,
            .keep = 2,
            .temperature = 1.0,
            .top_k = 4,
            .top_p = 1.0,
            .max_tokens = 100,
        },
    },
    {
        "nanogpt-char",
        "gpt",
        "a character model for a book or two, such as the works of Shakespeare",
        {
            .model = "nanogpt-char",
            .family = "gpt",
            .d_model = 384,
            .heads = 6,
            .d_ff = 1536,
            .layers = 6,
            .context = 256,
            .dropout = 0.2,
            .activation = WF_GELU,
            .tied = true,
            .steps = 5000,
            .batch = 64,
            .accumulate = 1,
            .lr = 1e-3,
            .min_lr = 1e-4,
            .warmup = 100,
            .schedule = COSINE,
            .weight_decay = 0.1,
            .beta1 = 0.9,
            .beta2 = 0.99,
            .eps = 1e-8,
            .clip = 1.0,
            .save_every = 100,
            .valid_every = 250,
            .keep = 2,
            .temperature = 0.8,
            .top_k = 200,
            .top_p = 1.0,
            .max_tokens = 500,
        },
    },
    {
        "nanogpt-char-small",
        "gpt",
        "the same, for a minute on two cores",
        {
            .model = "nanogpt-char-small",
            .family = "gpt",
            .d_model = 128,
            .heads = 4,
            .d_ff = 512,
            .layers = 4,
            .context = 64,
            .activation = WF_GELU,
            .tied = true,
            .steps = 2000,
            .batch = 12,
            .accumulate = 1,
            .lr = 1e-3,
            .min_lr = 1e-4,
            .warmup = 100,
            .schedule = COSINE,
            .weight_decay = 0.1,
            .beta1 = 0.9,
            .beta2 = 0.99,
            .eps = 1e-8,
            .clip = 1.0,
            .save_every = 250,
            .valid_every = 500,
            .keep = 2,
            .temperature = 0.8,
            .top_k = 200,
            .top_p = 1.0,
            .max_tokens = 500,
        },
    },
    {
        "gpt2",
        "gpt",
        "the smallest GPT-2, from scratch",
        {
            .model = "gpt2",
            .family = "gpt",
            .d_model = 768,
            .heads = 12,
            .d_ff = 3072,
            .layers = 12,
            .context = 1024,
            .vocab_size = 50257,
            .activation = WF_GELU_TANH,
            .tied = true,
            .bias = true,
            .steps = 600000,
            .batch = 480,
            .accumulate = 40,
            .lr = 6e-4,
            .min_lr = 6e-5,
            .warmup = 2000,
            .schedule = COSINE,
            .weight_decay = 0.1,
            .beta1 = 0.9,
            .beta2 = 0.95,
            .eps = 1e-8,
            .clip = 1.0,
            .save_every = 100,
            .valid_every = 1000,
            .keep = 2,
            .temperature = 0.8,
            .top_k = 200,
            .top_p = 1.0,
            .max_tokens = 500,
        },
    },
};
enum { PRESETS = sizeof presets / sizeof *presets };

int wf_preset_count(void)
{
    return PRESETS;
}

const struct wf_preset *wf_preset_at(int index)
{
    return index >= 0 && index < PRESETS ? &presets[index] : NULL;
}

wf_status wf_config_preset(struct wf_config *config, const char *name, wf_error *error)
{
    const char *names[PRESETS];
    for (int i = 0; i < PRESETS; i++) {
        names[i] = presets[i].name;
        if (strcmp(names[i], name) == 0) {
            *config = presets[i].config;
            return WF_OK;
        }
    }
    char text[WF_QUOTE_SIZE];
    const char *near = wf_nearest(name, names, PRESETS);
    if (near)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there is no model %s: did you mean %s?", wf_text_quote(name, text), near);
    return wf_error_set(error, WF_ERR_ARGUMENT, "there is no model %s: `weft models` lists those that there are",
                        wf_text_quote(name, text));
}
