/* SPDX-License-Identifier: MIT */
/* The keys of a configuration: their kinds, ranges, users and meanings, once, for `--set`, its help, config.json and the check. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/text.h>

#include <weft/internal/families.h>

#define AT(field, text) .name = #field, .offset = offsetof(struct wf_config, field), .meaning = text
#define INT(field, least, most, text, ...)                                                                                                 \
    {                                                                                                                                      \
        AT(field, text), .kind = KEY_INT, .low = least, .high = most, __VA_ARGS__                                                          \
    }
#define REAL(field, least, most, text, ...)                                                                                                \
    {                                                                                                                                      \
        AT(field, text), .kind = KEY_REAL, .low = least, .high = most, __VA_ARGS__                                                         \
    }
#define BOOL(field, text, ...)                                                                                                             \
    {                                                                                                                                      \
        AT(field, text), .kind = KEY_BOOL, .high = 1, __VA_ARGS__                                                                          \
    }
#define WORD(field, list, text, ...)                                                                                                       \
    {                                                                                                                                      \
        AT(field, text), .kind = KEY_WORD, .words = list, .high = sizeof list / sizeof *list - 1, __VA_ARGS__                              \
    }
#define IN(part, field, text) .name = #field, .offset = offsetof(struct wf_config, part.field), .meaning = text
#define INT_OF(part, field, least, most, text, ...)                                                                                        \
    {                                                                                                                                      \
        IN(part, field, text), .kind = KEY_INT, .low = least, .high = most, __VA_ARGS__                                                    \
    }
#define REAL_OF(part, field, least, most, text, ...)                                                                                       \
    {                                                                                                                                      \
        IN(part, field, text), .kind = KEY_REAL, .low = least, .high = most, __VA_ARGS__                                                   \
    }
#define WORD_OF(part, field, list, text, ...)                                                                                              \
    {                                                                                                                                      \
        IN(part, field, text), .kind = KEY_WORD, .words = list, .high = sizeof list / sizeof *list - 1, __VA_ARGS__                        \
    }
#define MANY 1e12 /* steps, and what counts in steps */
#define ABOVE .above = true
#define BELOW .below = true
/* Keys that one kind of model has no use for, and what is meant there. */
#define LANGUAGE(instead) .users = WF_CONFIG_LANGUAGE, .instead_key = instead
#define PAIRS(instead) .users = WF_CONFIG_PAIRS, .instead_key = instead
#define NOT_PAIRS(instead) .users = WF_CONFIG_LANGUAGE | WF_CONFIG_ENCODER, .instead_key = instead
#define NOT_LANGUAGE(instead) .users = WF_CONFIG_PAIRS | WF_CONFIG_ENCODER, .instead_key = instead
#define NOT_ENCODERS .users = WF_CONFIG_LANGUAGE | WF_CONFIG_PAIRS
#define EVERY .users = WF_CONFIG_ALL

/* The enums that the words count. Those of other rooms: wf_schedule_kind of optim, which models don't need otherwise, and
 * wf_tokenizer_kind, of which the last can't be trained but given; tests compare them. */
static const char *const activations[] = {"relu", "gelu", "gelu_tanh", "silu", "swiglu"};
static const char *const schedules[] = {"constant", "cosine", "inverse_sqrt"};
static const char *const norms[] = {"post", "pre"};
static const char *const tokenizers[] = {"char", "word", "bpe", "byte-bpe", "wordpiece"};
static const char *const costs[] = {"both", "side"};

/* clang-format off */
static const struct key keys[] = {
    INT(d_model, 1, 65536, "width of the model", EVERY),
    INT(heads, 1, 1024, "attention heads; they divide d_model", EVERY),
    INT(kv_heads, 0, 1024, "heads of keys and values; they divide heads; 0: as heads", LANGUAGE(NULL)),
    INT(d_ff, 1, 262144, "width inside the feed-forward", EVERY),
    INT(layers, 1, 1024, "blocks", .users = WF_CONFIG_ALL & ~WF_CONFIG_PAIRS, .instead_key = "encoder_layers and decoder_layers"),
    INT(encoder_layers, 1, 1024, "blocks of the encoder", PAIRS("layers")),
    INT(decoder_layers, 1, 1024, "blocks of the decoder", PAIRS("layers")),
    INT(context, 1, 1048576, "tokens that the model sees at once", .users = WF_CONFIG_ALL & ~WF_CONFIG_PAIRS, .instead_key = "max_length"),
    INT(max_length, 2, 1048576, "most ids of a sentence, marks included; longer pairs are left out", PAIRS("context")),
    INT(positions, 0, 1048576, "rows of the table of positions; 0: max_length", PAIRS("context")),
    INT(vocab_size, 0, 16777216, "most types of the tokenizer that is made; of pairs: the target; 0: no limit", EVERY),
    INT(segments, 1, 1024, "kinds of segments", .users = WF_CONFIG_READ),
    REAL(attention_dropout, 0, 1, "share of the attention weights that is dropped in training", BELOW, .users = WF_CONFIG_READ),
    REAL(norm_eps, 0, 1, "beside the root of the norms", ABOVE, .users = WF_CONFIG_READ),
    INT(source_vocab_size, 0, 16777216, "the same for the source, if it has its own; 0: vocab_size", PAIRS("vocab_size")),
    REAL(dropout, 0, 1, "share that is dropped in training", BELOW, EVERY),
    BOOL(inner_dropout, "dropout on attention weights and inside the feed-forward too", PAIRS("dropout")),
    WORD(activation, activations, "function inside the feed-forward", EVERY),
    WORD(norm, norms, "where a sublayer has its norm: after the sum, or before", NOT_LANGUAGE(NULL)),
    BOOL(final_norm, "a norm after each stack", NOT_LANGUAGE(NULL)),
    BOOL(shared, "one tokenizer and embedding for source and target", PAIRS("tied")),
    BOOL(tied, "the output layer uses the embedding"),
    BOOL(bias, "linear layers have a bias"),
    BOOL(scale_embeddings, "embeddings count times the root of d_model", NOT_LANGUAGE(NULL)),
    BOOL(xavier, "Xavier-uniform weights; false: as PyTorch starts them", PAIRS(NULL)),
    BOOL(source_bos, "the source begins with the mark of its start", PAIRS(NULL)),
    BOOL(source_eos, "the source ends with the mark of its end", PAIRS(NULL)),
    {.name = "tokenizer", .offset = offsetof(struct wf_config, tokenizer.kind), .meaning = "the kind that is made when none is given", .kind = KEY_WORD, .words = tokenizers, .high = 4, NOT_LANGUAGE(NULL)},
    INT_OF(tokenizer, min_frequency, 0, MANY, "a word or merge seen less often is left out of the tokenizer", NOT_LANGUAGE(NULL)),
    REAL_OF(training, mask_rate, 0, 1, "share of the words that are masked, to be found again", ABOVE, BELOW, .users = WF_CONFIG_ENCODER),
    INT_OF(training, steps, 1, MANY, "updates in all; --steps says the same"),
    INT_OF(training, batch, 1, 1048576, "crops of `context` tokens an update", NOT_PAIRS("batch_tokens")),
    INT_OF(training, batch_tokens, 0, 1073741824, "padded positions an update; 0: all pairs at once", PAIRS("batch")),
    WORD_OF(training, batch_cost, costs, "positions of a pair: source + target, or the longer one", PAIRS("batch")),
    INT_OF(training, batch_window, 0, MANY, "pairs that are sorted by length together; 0: all", PAIRS("batch")),
    INT_OF(training, accumulate, 1, 1048576, "parts that an update is computed in, one after another: saves memory"),
    REAL_OF(training, lr, 0, INFINITY, "learning rate, at its peak", ABOVE),
    REAL_OF(training, min_lr, 0, INFINITY, "where schedule=cosine ends"),
    INT_OF(training, warmup, 0, MANY, "updates until lr is reached"),
    WORD_OF(training, schedule, schedules, "how lr goes on after the warmup"),
    REAL_OF(training, weight_decay, 0, INFINITY, "of matrices, decoupled (AdamW)"),
    REAL_OF(training, beta1, 0, 1, "Adam's, of the mean", ABOVE, BELOW),
    REAL_OF(training, beta2, 0, 1, "Adam's, of the square", ABOVE, BELOW),
    REAL_OF(training, eps, 0, 1, "Adam's, beside the root", ABOVE),
    REAL_OF(training, clip, 0, INFINITY, "most that the gradients' norm may be; 0: any"),
    REAL_OF(training, label_smoothing, 0, 1, "share of the target that is spread over all types", BELOW),
    INT_OF(training, save_every, 0, MANY, "updates from save to save; 0: only at the end"),
    INT_OF(training, valid_every, 0, MANY, "updates from validation to validation; 0: only at the end"),
    INT_OF(training, keep, 0, 1000000, "checkpoints that are kept, the last ones; 0: none"),
    INT_OF(training, keep_every, 0, MANY, "checkpoints at multiples of this step stay for good; 0: none", PAIRS("keep")),
    INT_OF(training, patience, 0, MANY, "validations without a better loss until training stops; 0: never"),
    REAL_OF(generation, temperature, 0, 1000, "generate: above 1 more varied, below 1 less", ABOVE, LANGUAGE("beam")),
    INT_OF(generation, top_k, 0, 16777216, "generate: from the k likeliest tokens; 0: all", LANGUAGE("beam")),
    REAL_OF(generation, top_p, 0, 1, "generate: from the likeliest tokens that sum to p", ABOVE, LANGUAGE("beam")),
    INT_OF(generation, max_tokens, 1, MANY, "generate, translate: most tokens of a text; of pairs 0: max_length", NOT_ENCODERS, .low_of_pairs = -1),
    INT_OF(generation, beam, 1, 1024, "translate: hypotheses that are followed; 1: greedy", PAIRS("top_k")),
    REAL_OF(generation, length_penalty, 0, INFINITY, "translate: A in ((5 + length) / 6)^A; higher: longer", PAIRS(NULL)),
    INT_OF(generation, extra_tokens, 0, MANY, "translate: ids beyond those of the source; 0: no limit", PAIRS("max_tokens")),
};
/* clang-format on */
enum { KEYS = sizeof keys / sizeof *keys };
_Static_assert((int)KEYS <= MOST_KEYS, "the reader of config.json has room for every key");

int wf_config_key_count(void)
{
    return KEYS;
}

const char *wf_config_key_at(int index)
{
    return index >= 0 && index < KEYS ? keys[index].name : NULL;
}

const struct key *key_at(int index)
{
    return &keys[index];
}

const struct key *key_find(const char *name)
{
    for (int i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

int key_users(const struct key *key)
{
    return key->users ? key->users : WF_CONFIG_TRAINED;
}

bool key_used(const struct key *key, const struct wf_config *config)
{
    const struct family *family = family_find(config->family, NULL);
    return !family || (key_users(key) & family->users);
}

/* --- values -------------------------------------------------------------------------------------------------------- */

int64_t key_int(const struct key *key, const struct wf_config *config)
{
    const char *at = (const char *)config + key->offset;
    return key->kind == KEY_WORD ? *(const int *)at : *(const int64_t *)at;
}

double key_real(const struct key *key, const struct wf_config *config)
{
    return *(const double *)((const char *)config + key->offset);
}

bool key_bool(const struct key *key, const struct wf_config *config)
{
    return *(const bool *)((const char *)config + key->offset);
}

/* Between what a value lies: "1 to 64", "above 0 and below 1". */
static void range_text(const struct key *key, double least, char *text, size_t size)
{
    if (key->kind != KEY_REAL)
        snprintf(text, size, "%lld to %lld", (long long)least, (long long)key->high);
    else if (isinf(key->high))
        snprintf(text, size, "%s %lld", key->above ? "above" : "at least", (long long)least);
    else
        snprintf(text, size, "%s %lld and %s %lld", key->above ? "above" : "at least", (long long)least, key->below ? "below" : "at most",
                 (long long)key->high);
}

/* "post or pre". */
static void words_text(const struct key *key, char *text, size_t size)
{
    int count = (int)key->high + 1;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", key->words[i]);
    }
}

bool wf_config_key_help(int index, struct wf_config_key *out)
{
    if (index < 0 || index >= KEYS)
        return false;
    const struct key *key = &keys[index];
    *out = (struct wf_config_key){.name = key->name, .meaning = key->meaning, .users = key_users(key)};
    if (key->kind == KEY_WORD)
        words_text(key, out->values, sizeof out->values);
    else if (key->kind == KEY_BOOL)
        snprintf(out->values, sizeof out->values, "true or false");
    else if (key->kind == KEY_INT && key->high >= MANY) /* a bound that nobody means */
        snprintf(out->values, sizeof out->values, "at least %lld", (long long)key->low);
    else
        range_text(key, key->low, out->values, sizeof out->values);
    return true;
}

static wf_status out_of_range(const struct key *key, const char *value, double least, wf_error *error)
{
    char range[64];
    range_text(key, least, range, sizeof range);
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: %s", key->name, value, range);
}

/* The least value is another one for encoder-decoders where the key says so. */
static double least_of(const struct key *key, const struct wf_config *config)
{
    const struct family *family = key->low_of_pairs ? family_find(config->family, NULL) : NULL;
    return family && family->kind == WF_MODEL_PAIRS ? key->low + key->low_of_pairs : key->low;
}

wf_status key_too_large(const struct key *key, const struct wf_config *config, const char *text, wf_error *error)
{
    return key->kind == KEY_REAL ? wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is out of range: too large a number", key->name, text)
                                 : out_of_range(key, text, least_of(key, config), error);
}

static wf_status check_int(const struct key *key, const struct wf_config *config, int64_t value, wf_error *error)
{
    double low = least_of(key, config);
    char text[WF_NUMBER_SIZE];
    if ((double)value >= low && (double)value <= key->high)
        return WF_OK;
    snprintf(text, sizeof text, "%lld", (long long)value);
    return out_of_range(key, text, low, error);
}

static wf_status check_real(const struct key *key, double value, wf_error *error)
{
    char text[WF_NUMBER_SIZE];
    bool low = key->above ? value > key->low : value >= key->low, high = key->below ? value < key->high : value <= key->high;
    if (isfinite(value) && low && high)
        return WF_OK;
    return out_of_range(key, isfinite(value) ? wf_text_double(value, text) : isnan(value) ? "NaN" : "an infinity", key->low, error);
}

wf_status key_check(const struct key *key, const struct wf_config *config, wf_error *error)
{
    switch (key->kind) {
    case KEY_INT:
    case KEY_WORD:
        return check_int(key, config, key_int(key, config), error);
    case KEY_REAL:
        return check_real(key, key_real(key, config), error);
    case KEY_BOOL:
        break;
    }
    return WF_OK;
}

bool key_is_zero(const struct key *key, const struct wf_config *config)
{
    return key->kind == KEY_REAL ? key_real(key, config) == 0 : key->kind == KEY_BOOL ? !key_bool(key, config) : key_int(key, config) == 0;
}

wf_status key_set_int(const struct key *key, struct wf_config *config, int64_t value, wf_error *error)
{
    wf_status status = check_int(key, config, value, error);
    if (status == WF_OK)
        *(int64_t *)((char *)config + key->offset) = value;
    return status;
}

wf_status key_set_real(const struct key *key, struct wf_config *config, double value, wf_error *error)
{
    wf_status status = check_real(key, value, error);
    if (status == WF_OK)
        *(double *)((char *)config + key->offset) = value;
    return status;
}

void key_set_bool(const struct key *key, struct wf_config *config, bool value)
{
    *(bool *)((char *)config + key->offset) = value;
}

wf_status key_set_word(const struct key *key, struct wf_config *config, const char *word, wf_error *error)
{
    char text[WF_QUOTE_SIZE], list[128];
    for (int i = 0; i <= (int)key->high; i++)
        if (strcmp(key->words[i], word) == 0) {
            *(int *)((char *)config + key->offset) = i;
            return WF_OK;
        }
    words_text(key, list, sizeof list);
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s is none of %s", key->name, wf_text_quote(word, text), list);
}
