/* SPDX-License-Identifier: MIT */
/* GPT-2 (Radford et al. 2019): a decoder with a norm before each sublayer and after the last block, learned positions, and by default
 * the embedding as output matrix. GPT-2 itself has biases and the tanh approximation of GELU; the nanogpt presets have neither.
 *
 * Parameters: embed.weight [V,d], positions.weight [context,d], blocks.N.{norm1,attn.qkv,attn.out,norm2,ffn.up,ffn.down},
 * norm, and head.weight [V,d] unless it is tied. `rules` below maps the names of Hugging Face's GPT-2 to these. */
#include <math.h>

#include <weft/nn.h>

#include "foreign.h"

struct gpt_config {
    int64_t d_model, heads, kv_heads, d_ff, layers, context, vocab_size;
    double dropout;
    enum wf_activation activation;
    bool tied, bias;
};

#define NUMBER(...) WF_NUMBER_KEY(struct gpt_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct gpt_config, __VA_ARGS__)
/* clang-format off */
static const struct wf_key keys[] = {
    NUMBER(d_model, "128", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(kv_heads, "0", 0, 1024, "key and value heads; a divisor of heads; 0: as many as heads", .role = WF_KEY_KV_HEADS),
    NUMBER(d_ff, "512", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(layers, "4", 1, 1024, "blocks", .role = WF_KEY_LAYERS, .also = "encoder_layers decoder_layers"),
    NUMBER(context, "256", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT, .also = "max_length positions"),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB, .also = "source_vocab_size"),
    NUMBER(dropout, "0", 0, 1, "dropout probability", .below = true, .resumable = true, .also = "inner_dropout dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop embd_pdrop attn_pdrop resid_dropout residual_dropout attention_dropout attn_dropout attention_probs_dropout_prob activation_dropout relu_dropout"),
    WF_WORD_KEY(struct gpt_config, activation, "gelu", wf_activation_words, "activation of the feed-forward", .role = WF_KEY_ACTIVATION),
    BOOL(tied, "true", "the output layer shares the embedding", .also = "shared tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
    BOOL(bias, "false", "linear layers and norms have a bias", .also = "use_bias attention_bias mlp_bias add_bias_linear"),
};
/* clang-format on */

struct block {
    struct wf_layer_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

static void block_init(wf_scope s, struct block *b, const struct gpt_config *c)
{
    wf_layer_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .no_bias = !c->bias);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .kv_heads = (int)c->kv_heads, .no_bias = !c->bias,
                .dropout = c->dropout, .residual_dropout = c->dropout);
    wf_layer_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .no_bias = !c->bias);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = c->activation, .no_bias = !c->bias,
                .residual_dropout = c->dropout);
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    wf_tensor *h1 = wf_layer_norm_forward(&b->norm1, x), *h2;
    x = wf_mha_forward(&b->attn, h1, .causal = true, .cache = call->cache, .weights = call->weights, .residual = x); /* [B,T,d] */
    x = wf_ffn_forward(&b->ffn, h2 = wf_layer_norm_forward(&b->norm2, x), .residual = x);                            /* [B,T,d] */
    wf_release(h1), wf_release(h2);
    return x;
}

struct gpt {
    struct wf_embedding embed;
    struct wf_positions positions;
    struct wf_dropout drop;
    struct wf_layer_norm norm;
    struct wf_linear head;
    int64_t layers;
    struct block block[];
};

static void gpt_init(wf_scope s, void *model, const void *config)
{
    const struct gpt_config *c = config;
    struct gpt *m = model;
    /* The results of 2 L sublayers (of L blocks) are all added to one stream. The last weights of each sublayer start with a standard
     * deviation divided by sqrt(2 L), so that the variance of the stream does not grow with L. */
    s = wf_with_init(s, &(struct wf_init_rules){.weight = {WF_INIT_NORMAL, 0.02},
                                                .embedding = {WF_INIT_NORMAL, 0.02},
                                                .residual = {WF_INIT_NORMAL, 0.02 / sqrt(2.0 * (double)c->layers)},
                                                .bias = {WF_INIT_CONSTANT, 0}});
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    wf_positions_init(wf_sub(s, "positions"), &m->positions, c->context, c->d_model, .learned = true);
    wf_dropout_init(s, &m->drop, c->dropout);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    wf_layer_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model, .no_bias = !c->bias);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = true, .tied = c->tied ? m->embed.weight : NULL);
}

static wf_tensor *gpt_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct gpt *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *tokens = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    wf_tensor *x = wf_dropout_forward(&m->drop, wf_positions_forward(&m->positions, tokens, cache));
    wf_release(tokens);
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights, .since = start);
    return wf_layer_norm_forward(&m->norm, x);
}

/* --- folders of Hugging Face --------------------------------------------------------------------------------------- */

/* GPT-2's files hold the matrices of linear maps transposed. */
/* clang-format off */
#define NORM(ours, theirs) {ours ".weight", {theirs ".weight"}}, {ours ".bias", {theirs ".bias"}}
#define LINEAR(ours, theirs) {ours ".weight", {theirs ".weight"}, .transposed = true}, {ours ".bias", {theirs ".bias"}}
/* clang-format on */
static const struct wf_load_rule rules[] = {
    {"embed.weight", {"wte.weight"}},
    {"positions.weight", {"wpe.weight"}},
    NORM("blocks.*.norm1", "h.*.ln_1"),
    LINEAR("blocks.*.attn.qkv", "h.*.attn.c_attn"),
    LINEAR("blocks.*.attn.out", "h.*.attn.c_proj"),
    NORM("blocks.*.norm2", "h.*.ln_2"),
    LINEAR("blocks.*.ffn.up", "h.*.mlp.c_fc"),
    LINEAR("blocks.*.ffn.down", "h.*.mlp.c_proj"),
    NORM("norm", "ln_f"),
    {"head.weight", {"/lm_head.weight"}},
};
static const char *const ignored[] = {"h.*.attn.bias", "h.*.attn.masked_bias", "lm_head.weight", NULL}; /* masks; the tied output layer */

static const struct foreign_weights weights = {"transformer.", "wte.weight", rules, sizeof rules / sizeof *rules, ignored};

static wf_status gpt_load(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error)
{
    if (!wf_safetensors_find(file, "transformer.wte.weight") && !wf_safetensors_find(file, "wte.weight")) /* it has Weft's names */
        return wf_registry_load_with(registry, file, options, error);
    return foreign_load(registry, file, options, &weights, error);
}

static wf_status gpt_read(const json_t *object, const char *path, void *config, wf_error *error)
{
    struct gpt_config *c = config;
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    double eps = 1e-5, embedding = 0.1, attention = 0.1;
    int64_t inner = 0;
    c->bias = c->tied = true;
    c->kv_heads = 0;
    c->activation = WF_GELU_TANH;
    c->dropout = 0.1; /* what transformers takes if a key is absent, as above */
    foreign_expect_floats(&r);
    wf_json_read_int(&r, "vocab_size", WF_JSON_REQUIRED, 1, 16777216, &c->vocab_size);
    wf_json_read_int(&r, "n_embd", WF_JSON_REQUIRED, 1, 65536, &c->d_model);
    wf_json_read_int(&r, "n_layer", WF_JSON_REQUIRED, 1, 1024, &c->layers);
    wf_json_read_int(&r, "n_head", WF_JSON_REQUIRED, 1, 1024, &c->heads);
    wf_json_read_int(&r, "n_positions", WF_JSON_REQUIRED, 1, 1048576, &c->context);
    wf_json_read_int(&r, "n_inner", WF_JSON_OPTIONAL, 1, 262144, &inner);
    c->d_ff = inner > 0 ? inner : 4 * c->d_model;
    wf_json_read_double(&r, "layer_norm_epsilon", WF_JSON_OPTIONAL, 0, 1, &eps);
    wf_json_read_double(&r, "resid_pdrop", WF_JSON_OPTIONAL, 0, 0.999999, &c->dropout);
    wf_json_read_double(&r, "embd_pdrop", WF_JSON_OPTIONAL, 0, 0.999999, &embedding);
    wf_json_read_double(&r, "attn_pdrop", WF_JSON_OPTIONAL, 0, 0.999999, &attention);
    wf_json_read_bool(&r, "tie_word_embeddings", WF_JSON_OPTIONAL, &c->tied);
    foreign_read_activation(&r, "activation_function", &c->activation);
    if (eps != 1e-5)
        foreign_refuse(&r, "layer_norm_epsilon", NULL, "only 1e-5 is supported");
    if (embedding != c->dropout || attention != c->dropout)
        foreign_refuse(&r, "resid_pdrop", NULL, "it must equal embd_pdrop and attn_pdrop: other dropout is not supported");
    foreign_expect_bool(&r, "scale_attn_weights", true, "scores that are not divided by the root of the width are not supported");
    foreign_expect_bool(&r, "scale_attn_by_inverse_layer_idx", false,
                        "scores that are divided by the number of the layer are not supported");
    foreign_expect_bool(&r, "add_cross_attention", false, "cross-attention is not supported");
    return r.status;
}

/* GPT-2 always has biases. A model without any is one whose biases are 0. */
static wf_status gpt_write(void *config, json_t *o, wf_error *error)
{
    struct gpt_config *c = config;
    if (c->kv_heads > 0 && c->kv_heads != c->heads)
        return wf_error_set(error, WF_ERR_ARGUMENT, "kv_heads=%lld: GPT-2 of transformers has as many heads of keys as of queries",
                            (long long)c->kv_heads);
    c->bias = true;
    foreign_put_architecture(o, "GPT2LMHeadModel", "gpt2");
    foreign_put(o, "vocab_size", json_integer(c->vocab_size));
    foreign_put(o, "n_positions", json_integer(c->context));
    foreign_put(o, "n_embd", json_integer(c->d_model));
    foreign_put(o, "n_layer", json_integer(c->layers));
    foreign_put(o, "n_head", json_integer(c->heads));
    foreign_put(o, "n_inner", json_integer(c->d_ff));
    foreign_put(o, "resid_pdrop", json_real(c->dropout));
    foreign_put(o, "embd_pdrop", json_real(c->dropout));
    foreign_put(o, "attn_pdrop", json_real(c->dropout));
    foreign_put(o, "layer_norm_epsilon", json_real(1e-5));
    foreign_put(o, "initializer_range", json_real(0.02));
    foreign_put(o, "tie_word_embeddings", json_boolean(c->tied));
    return foreign_put_activation(o, "activation_function", c->activation, error);
}

static const struct wf_counterpart counterpart = {.write = gpt_write, .weights = &weights};

/* clang-format off */
static const struct wf_preset presets[] = {
    {"nanogpt-char", "a character model for a book or two, such as the works of Shakespeare",
     "d_model=384 heads=6 d_ff=1536 layers=6 context=256 dropout=0.2 steps=5000 batch=64 min_lr=1e-4 warmup=100 schedule=cosine "
     "weight_decay=0.1 beta2=0.99 save_every=100 temperature=0.8 top_k=200"},
    {"nanogpt-char-small", "a smaller model that trains in a minute on two cores",
     "d_model=128 d_ff=512 layers=4 context=64 steps=2000 batch=12 min_lr=1e-4 warmup=100 schedule=cosine "
     "weight_decay=0.1 beta2=0.99 valid_every=500 temperature=0.8 top_k=200"},
    {"nanogpt-char-small-muon", "the same with the optimiser Muon, which learns as much in half the steps",
     "d_model=128 d_ff=512 layers=4 context=64 steps=1000 batch=12 optimizer=muon lr=6e-3 min_lr=6e-4 warmup=100 schedule=cosine "
     "weight_decay=0.1 beta2=0.99 valid_every=250 temperature=0.8 top_k=200"},
    {"gpt2", "the smallest GPT-2, from scratch",
     "d_model=768 heads=12 d_ff=3072 layers=12 context=1024 vocab_size=50257 activation=gelu_tanh bias=true tokenizer=byte-bpe "
     "steps=600000 batch=480 accumulate=40 lr=6e-4 min_lr=6e-5 warmup=2000 schedule=cosine weight_decay=0.1 beta2=0.95 "
     "save_every=100 valid_every=1000 temperature=0.8 top_k=200"},
};
/* clang-format on */

const struct wf_family family_gpt = {
    .abi = WF_FAMILY_ABI,
    .name = "gpt",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct gpt_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .model_type = "gpt2",
    .read = gpt_read,
    .size = sizeof(struct gpt),
    .block_size = sizeof(struct block),
    .init = gpt_init,
    .load = gpt_load,
    .forward = gpt_forward,
    .head = WF_HEAD_AT(struct gpt, head),
    .counterpart = &counterpart,
};
