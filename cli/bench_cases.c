/* SPDX-License-Identifier: MIT */
/* The cases that `weft bench` times: their sizes, and the configuration of their models. */
#include <string.h>

#include "cli.h"

#include <weft/internal/minmax.h>
#include <weft/internal/stopwatch.h>
#include <weft/internal/text.h>

static const struct wf_bench_case cases[] = {
    {"char-rms", "char-rms", "16 x 256, vocabulary 70, 1 layer of 64", 16, 256, 70, false, false},
    {"nanogpt-char-small", "nanogpt-char-small", "12 x 64, vocabulary 65, 4 layers of 128", 12, 64, 65, false, true},
    {"nanogpt-char-8", "nanogpt-char", "8 x 256, vocabulary 65, 6 layers of 384", 8, 256, 65, false, true},
    {"nanogpt-char", "nanogpt-char", "64 x 256, vocabulary 65, 6 layers of 384", 64, 256, 65, false, true},
    {"gpt2-4x64", "gpt2", "4 x 64, vocabulary 50257, 12 layers of 768", 4, 64, 50257, false, true},
    {"gpt2-1x1024", "gpt2", "1 x 1024, vocabulary 50257, 12 layers of 768", 1, 1024, 50257, false, true},
    {"encoder-attention", "encoder-attention", "2 x 10, vocabulary 1000, 6 layers of 64, a target for every token", 2, 10, 1000, false,
     true},
    {"encoder-attention-32x128", "encoder-attention", "32 x 128, vocabulary 1000, 6 layers of 64, a target for every token", 32, 128, 1000,
     false, true},
    {"seq2seq-tiny", "seq2seq-tiny", "6 pairs of 6 + 6, vocabulary 30, 2 + 2 layers of 32", 6, 6, 30, false, false, .pairs = true},
    {"seq2seq-postnorm", "seq2seq-postnorm", "2 pairs of 5 + 5, vocabulary 1000, 2 + 2 layers of 128", 2, 5, 1000, false, false,
     .pairs = true},
    {"multi30k", "multi30k", "200 pairs of 8 to 20 a side, vocabulary 10000, 4 + 4 layers of 128; as the preset with --dropout 0.2", 200,
     20, 10000, false, false, .pairs = true, .shortest = 8, .label_smoothing = 0.1},
    {"transformer-base", "transformer-base", "32 pairs of 32 + 32, vocabulary 37000, 6 + 6 layers of 512", 32, 32, 37000, false, false,
     .pairs = true, .label_smoothing = 0.1},
    {"generate-nanogpt-char-small", "nanogpt-char-small", "256 tokens, one after another", 1, 256, 65, true, false},
    {"generate-nanogpt-char", "nanogpt-char", "100 tokens, one after another", 1, 100, 65, true, false},
};
enum { CASES = sizeof cases / sizeof *cases };

int wf_bench_count(void)
{
    return CASES;
}

const struct wf_bench_case *wf_bench_at(int index)
{
    return index >= 0 && index < CASES ? &cases[index] : NULL;
}

static wf_status unknown_case(const char *name, wf_error *error)
{
    enum { MOST = 256 };
    const char *names[MOST];
    char text[WF_QUOTE_SIZE];
    const struct wf_preset *p;
    int count = 0;
    for (; count < CASES; count++)
        names[count] = cases[count].name;
    for (int i = 0; count < MOST && (p = wf_preset_at(i)); i++)
        names[count++] = p->name;
    const char *near = wf_nearest(name, names, count);
    if (near)
        return wf_error_set(error, WF_ERR_ARGUMENT, "unknown case %s: did you mean %s?", wf_text_quote(name, text), near);
    return wf_error_set(error, WF_ERR_ARGUMENT, "unknown case %s: `%s bench --help` lists the cases", wf_text_quote(name, text), program());
}

wf_status wf_bench_find(const char *name, struct wf_bench_case *out, wf_error *error)
{
    enum { TYPES = 65, PAIRS = 32, GENERATED = 256 };
    const bool generate = strncmp(name, "generate-", 9) == 0;
    const struct wf_preset *preset = NULL;
    struct wf_config config;
    for (int i = 0; i < CASES; i++)
        if (strcmp(cases[i].name, name) == 0) {
            *out = cases[i];
            return WF_OK;
        }
    for (int i = 0; !preset && wf_preset_at(i); i++)
        preset = strcmp(wf_preset_at(i)->name, name + (generate ? 9 : 0)) == 0 ? wf_preset_at(i) : NULL;
    if (!preset || wf_config_preset(&config, preset->name, NULL) != WF_OK)
        return unknown_case(name, error);
    const struct wf_model_shape shape = wf_config_shape(&config);
    const bool pairs = wf_config_kind(&config) == WF_MODEL_PAIRS;
    const int64_t batch = config.training.batch / config.training.accumulate,
                  context = config.training.crop > 0 ? config.training.crop : shape.context;
    if (generate && wf_config_kind(&config) != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is not a language model: it generates no text", preset->name);
    *out = (struct wf_bench_case){.name = name,
                                  .preset = preset->name,
                                  .purpose = preset->purpose,
                                  .batch = generate    ? 1
                                           : pairs     ? PAIRS
                                           : batch > 0 ? batch
                                                       : 1,
                                  .length = generate && context > GENERATED ? GENERATED
                                            : pairs && context > PAIRS      ? PAIRS
                                                                            : context,
                                  .vocab_size = shape.vocab_size > 0 ? shape.vocab_size : TYPES,
                                  .generate = generate,
                                  .decoupled = true,
                                  .pairs = pairs,
                                  .of_preset = true};
    return WF_OK;
}

wf_status wf_bench_config(const struct wf_bench_case *c, double dropout, struct wf_config *config, wf_error *error)
{
    if (wf_config_preset(config, c->preset, error) != WF_OK)
        return error ? error->code : WF_ERR_ARGUMENT;
    char rate[32], activation[16];
    wf_status status = WF_OK;
    /* if a family has no key `dropout`, only a rate above 0 is an error */
    if (dropout > 0 || wf_config_get(config, "dropout", rate, sizeof rate))
        status = wf_config_set(config, "dropout", wf_text_double(dropout, rate), error);
    wf_config_set_vocab(config, c->vocab_size, c->pairs && !wf_config_shape(config).shared_tokenizer ? c->vocab_size : 0);
    if (!c->pairs)
        config->training.batch = c->batch;
    config->training.accumulate = 1;
    /* the other libraries' benchmarks that have the same names as the cases use the exact GELU */
    if (status == WF_OK && wf_config_get(config, "activation", activation, sizeof activation) && strcmp(activation, "gelu_tanh") == 0)
        status = wf_config_set(config, "activation", "gelu", error);
    return status == WF_OK ? wf_config_check(config, error) : status;
}

/* Refuses keys that do not change the measured step. A training step uses the keys of the model's family and of the optimiser, and `batch`
 * unless it takes pairs. Generation uses only the keys of the family. Neither uses the schedule of a training, such as `warmup`. */
static wf_status check_used(const struct wf_bench_case *c, const struct wf_config *config, const char *name, wf_error *error)
{
    struct wf_config_key key;
    const bool rows = !c->pairs && !c->generate, batch = strcmp(name, "batch") == 0;
    bool unused = batch && !rows;
    for (int i = 0; !unused && wf_config_key_at(config, i, &key); i++)
        unused = strcmp(key.name, name) == 0 && strcmp(key.section, wf_config_family(config)) != 0 && !batch &&
                 (c->generate || strcmp(key.section, "optimizer") != 0);
    if (!unused)
        return WF_OK;
    if (strcmp(name, "precision") == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the precision of a case is set by --precision");
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s changes nothing here: %s takes the keys of %s%s (%s models %s)%s", name,
                        c->generate ? "generation" : "a training step", wf_config_family(config),
                        rows          ? ", batch and optimizer"
                        : c->generate ? ""
                                      : ", and optimizer",
                        program(), c->preset, c->pairs ? "; the pairs of a step are those of the case" : "");
}

/* Takes the sizes of a step from the configuration. `context` is true if a setting has changed the key `context`. */
static wf_status take_sizes(struct wf_bench_case *c, const struct wf_config *config, bool context, wf_error *error)
{
    const struct wf_model_shape shape = wf_config_shape(config);
    const bool two = c->pairs && !shape.shared_tokenizer, rows = !c->pairs && !c->generate;
    if (shape.vocab_size < 1 || (two && shape.source_vocab_size < 1))
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocab_size must be 1 at least: ids are drawn from it");
    c->vocab_size = two && shape.source_vocab_size < shape.vocab_size ? shape.source_vocab_size : shape.vocab_size;
    if (rows)
        c->batch = config->training.batch;
    if (shape.context > 0 && (context ? rows || shape.context < c->length : c->pairs && shape.context < c->length))
        c->length = shape.context; /* generation may continue beyond a context that no setting has changed */
    c->shortest = WF_MIN(c->shortest, c->length);
    if (c->batch > INT32_MAX / c->length)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a step of %lld rows of %lld tokens is too large: at most 2^31 tokens",
                            (long long)c->batch, (long long)c->length);
    return WF_OK;
}

wf_status wf_bench_set(struct wf_bench_case *c, struct wf_config *config, const char *const *settings, wf_error *error)
{
    wf_status status = WF_OK;
    bool context = false;
    int count = 0;
    while (settings && settings[count])
        count++;
    if (count == 0)
        return WF_OK; /* the case keeps its sizes, even if a registered family sets others */
    /* Two rounds: the first sets only `optimizer`, which decides what other keys exist. */
    for (int i = 0; i < 2 * count && status == WF_OK; i++) {
        char key[SETTING_KEY_SIZE];
        const char *setting = settings[i % count], *value = setting_split(setting, key, error);
        if (!value)
            return WF_ERR_ARGUMENT;
        if ((strcmp(key, "optimizer") == 0) != (i < count))
            continue;
        if ((status = check_used(c, config, key, error)) == WF_OK)
            status = wf_config_set(config, key, value, error);
        if (status != WF_OK)
            wf_error_prefix(error, "--set %s", setting);
        context |= strcmp(key, "context") == 0;
    }
    if (status == WF_OK)
        status = wf_config_check(config, error);
    return status == WF_OK ? take_sizes(c, config, context, error) : status;
}
