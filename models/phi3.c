/* SPDX-License-Identifier: MIT */
/* Phi-3 (Abdin et al. 2024): the decoder of Llama, with dropout of the embedding, of attention weights and of residuals apart. Its files
 * have one matrix for queries, keys and values, and one for the gate and the inner layer of SwiGLU.
 *
 * Parameters: embed.weight [V,d], blocks.N.{norm1,attn.qkv,attn.out,norm2,ffn.gate,ffn.up,ffn.down}, norm, and head.weight [V,d] unless it
 * is tied. `rules` below maps Hugging Face's names to these. */
#include <math.h>

#include <weft/nn.h>

#include "foreign.h"

struct phi3_config {
    int64_t d_model, heads, kv_heads, d_ff, layers, context, vocab_size, window;
    double dropout, embedding_dropout, attention_dropout, norm_eps, rope_base;
    bool tied;
};

#define NUMBER(...) WF_NUMBER_KEY(struct phi3_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct phi3_config, __VA_ARGS__)
/* clang-format off */
static const struct wf_key keys[] = {
    NUMBER(d_model, "128", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(kv_heads, "0", 0, 1024, "key and value heads; a divisor of heads; 0: as many as heads", .role = WF_KEY_KV_HEADS),
    NUMBER(d_ff, "384", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(layers, "4", 1, 1024, "blocks", .role = WF_KEY_LAYERS, .also = "encoder_layers decoder_layers"),
    NUMBER(context, "256", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT, .also = "max_length positions"),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB, .also = "source_vocab_size"),
    NUMBER(window, "0", 0, 1048576, "sliding window: a token attends to this many last tokens, itself included; 0: to all", .also = "sliding_window"),
    NUMBER(dropout, "0", 0, 1, "dropout of the results of sublayers", .below = true, .resumable = true, .also = "inner_dropout dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop resid_dropout residual_dropout activation_dropout relu_dropout"),
    NUMBER(embedding_dropout, "0", 0, 1, "dropout of the embedding", .below = true, .resumable = true, .also = "embd_pdrop"),
    NUMBER(attention_dropout, "0", 0, 1, "dropout of attention weights", .below = true, .resumable = true, .also = "attn_pdrop attn_dropout attention_probs_dropout_prob"),
    NUMBER(norm_eps, "1e-5", 0, 1, "epsilon of the norms", .above = true, .also = "layer_norm_eps layer_norm_epsilon rms_norm_eps layernorm_epsilon norm_epsilon"),
    NUMBER(rope_base, "10000", 0, 1e12, "base of the rotary frequencies", .above = true, .also = "rope_theta"),
    BOOL(tied, "false", "the output layer shares the embedding", .also = "shared tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
};
/* clang-format on */

struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

static void block_init(wf_scope s, struct block *b, const struct phi3_config *c)
{
    wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .eps = c->norm_eps);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .kv_heads = (int)c->kv_heads, .no_bias = true,
                .dropout = c->attention_dropout, .residual_dropout = c->dropout, .rope = true, .rotary = {.base = c->rope_base},
                .window = c->window);
    wf_rms_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .eps = c->norm_eps);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = WF_SWIGLU, .no_bias = true, .residual_dropout = c->dropout);
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    wf_tensor *h1 = wf_rms_norm_forward(&b->norm1, x), *h2;
    x = wf_mha_forward(&b->attn, h1, .causal = true, .cache = call->cache, .weights = call->weights, .residual = x); /* [B,T,d] */
    x = wf_ffn_forward(&b->ffn, h2 = wf_rms_norm_forward(&b->norm2, x), .residual = x);                              /* [B,T,d] */
    wf_release(h1), wf_release(h2);
    return x;
}

struct phi3 {
    struct wf_embedding embed;
    struct wf_dropout drop;
    struct wf_rms_norm norm;
    struct wf_linear head;
    int64_t layers;
    struct block block[];
};

static void phi3_init(wf_scope s, void *model, const void *config)
{
    const struct phi3_config *c = config;
    struct phi3 *m = model;
    s = wf_with_init(s, &(struct wf_init_rules){.weight = {WF_INIT_NORMAL, 0.02},
                                                .embedding = {WF_INIT_NORMAL, 0.02},
                                                .residual = {WF_INIT_NORMAL, 0.02 / sqrt(2.0 * (double)c->layers)},
                                                .bias = {WF_INIT_CONSTANT, 0}});
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    wf_dropout_init(s, &m->drop, c->embedding_dropout);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model, .eps = c->norm_eps);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = true, .tied = c->tied ? m->embed.weight : NULL);
}

static wf_tensor *phi3_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct phi3 *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *x = wf_dropout_forward(&m->drop, wf_embedding_forward(&m->embed, ids)); /* [B,T] -> [B,T,d] */
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights, .since = start);
    return wf_rms_norm_forward(&m->norm, x);
}

static wf_status phi3_check(const void *config, wf_error *error)
{
    const struct phi3_config *c = config;
    if (c->d_model / c->heads % 2 != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "rotary positions need heads of even width, and d_model / heads is %lld",
                            (long long)(c->d_model / c->heads));
    return WF_OK;
}

/* --- folders of Hugging Face --------------------------------------------------------------------------------------- */

#define LAYER "layers.*."
static const struct wf_load_rule rules[] = {
    {"embed.weight", {"embed_tokens.weight"}},
    {"blocks.*.norm1.weight", {LAYER "input_layernorm.weight"}},
    {"blocks.*.attn.qkv.weight", {LAYER "self_attn.qkv_proj.weight"}},
    {"blocks.*.attn.out.weight", {LAYER "self_attn.o_proj.weight"}},
    {"blocks.*.norm2.weight", {LAYER "post_attention_layernorm.weight"}},
    {"blocks.*.ffn.gate.weight", {LAYER "mlp.gate_up_proj.weight"}, .part = 0, .parts = 2},
    {"blocks.*.ffn.up.weight", {LAYER "mlp.gate_up_proj.weight"}, .part = 1, .parts = 2},
    {"blocks.*.ffn.down.weight", {LAYER "mlp.down_proj.weight"}},
    {"norm.weight", {"norm.weight"}},
    {"head.weight", {"/lm_head.weight"}},
};
static const struct foreign_weights weights = {"model.", "embed_tokens.weight", rules, sizeof rules / sizeof *rules, NULL};

static wf_status phi3_load(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error)
{
    if (wf_safetensors_find(file, "embed.weight")) /* the file has Weft's names */
        return wf_registry_load_with(registry, file, options, error);
    return foreign_load(registry, file, options, &weights, error);
}

static wf_status phi3_read(const json_t *object, const char *path, void *config, wf_error *error)
{
    struct phi3_config *c = config;
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    struct foreign_rotary rotary;
    enum wf_activation activation = WF_SILU;
    c->tied = false; /* what transformers takes if a key is absent, here and in the defaults of `keys` */
    c->kv_heads = c->window = 0;
    c->dropout = c->embedding_dropout = c->attention_dropout = 0;
    foreign_expect_floats(&r);
    wf_json_read_int(&r, "vocab_size", WF_JSON_REQUIRED, 1, 16777216, &c->vocab_size);
    wf_json_read_int(&r, "hidden_size", WF_JSON_REQUIRED, 1, 65536, &c->d_model);
    wf_json_read_int(&r, "num_hidden_layers", WF_JSON_REQUIRED, 1, 1024, &c->layers);
    wf_json_read_int(&r, "num_attention_heads", WF_JSON_REQUIRED, 1, 1024, &c->heads);
    wf_json_read_int(&r, "num_key_value_heads", WF_JSON_OPTIONAL, 1, 1024, &c->kv_heads);
    wf_json_read_int(&r, "intermediate_size", WF_JSON_REQUIRED, 1, 262144, &c->d_ff);
    wf_json_read_int(&r, "max_position_embeddings", WF_JSON_REQUIRED, 1, 1048576, &c->context);
    wf_json_read_int(&r, "sliding_window", WF_JSON_OPTIONAL, 1, 1048576, &c->window);
    wf_json_read_double(&r, "rms_norm_eps", WF_JSON_OPTIONAL, 1e-300, 1, &c->norm_eps);
    wf_json_read_double(&r, "resid_pdrop", WF_JSON_OPTIONAL, 0, 0.999999, &c->dropout);
    wf_json_read_double(&r, "embd_pdrop", WF_JSON_OPTIONAL, 0, 0.999999, &c->embedding_dropout);
    wf_json_read_double(&r, "attention_dropout", WF_JSON_OPTIONAL, 0, 0.999999, &c->attention_dropout);
    wf_json_read_bool(&r, "tie_word_embeddings", WF_JSON_OPTIONAL, &c->tied);
    foreign_read_activation(&r, "hidden_act", &activation);
    if (activation != WF_SILU)
        foreign_refuse(&r, "hidden_act", NULL, "only silu is supported in this architecture");
    foreign_read_rotary(&r, &rotary);
    if (rotary.scaling != WF_ROPE_UNSCALED)
        foreign_refuse(&r, json_object_get(object, "rope_parameters") ? "rope_parameters" : "rope_scaling", NULL,
                       "only the rope type default is supported in this architecture");
    c->rope_base = rotary.base;
    return r.status;
}

static wf_status phi3_write(void *config, json_t *o, wf_error *error)
{
    const struct phi3_config *c = config;
    const struct foreign_rotary rotary = {.base = c->rope_base, .scaling = WF_ROPE_UNSCALED, .factor = 1};
    foreign_put_architecture(o, "Phi3ForCausalLM", "phi3");
    foreign_put(o, "vocab_size", json_integer(c->vocab_size));
    foreign_put(o, "hidden_size", json_integer(c->d_model));
    foreign_put(o, "intermediate_size", json_integer(c->d_ff));
    foreign_put(o, "num_hidden_layers", json_integer(c->layers));
    foreign_put(o, "num_attention_heads", json_integer(c->heads));
    foreign_put(o, "num_key_value_heads", json_integer(c->kv_heads > 0 ? c->kv_heads : c->heads));
    foreign_put(o, "max_position_embeddings", json_integer(c->context));
    foreign_put(o, "original_max_position_embeddings", json_integer(c->context));
    foreign_put(o, "sliding_window", c->window > 0 ? json_integer(c->window) : json_null());
    foreign_put(o, "hidden_act", json_string("silu"));
    foreign_put(o, "rms_norm_eps", json_real(c->norm_eps));
    foreign_put(o, "resid_pdrop", json_real(c->dropout));
    foreign_put(o, "embd_pdrop", json_real(c->embedding_dropout));
    foreign_put(o, "attention_dropout", json_real(c->attention_dropout));
    foreign_put(o, "initializer_range", json_real(0.02));
    foreign_put(o, "tie_word_embeddings", json_boolean(c->tied));
    return foreign_put_rotary(o, &rotary, error);
}

static const struct wf_counterpart counterpart = {.write = phi3_write, .weights = &weights};

/* clang-format off */
static const struct wf_preset presets[] = {
    {"phi3-mini", "the smallest Phi-3, from scratch",
     "d_model=3072 heads=32 d_ff=8192 layers=32 context=4096 vocab_size=32064 window=2047 tokenizer=byte-bpe "
     "steps=600000 batch=480 accumulate=40 lr=1e-3 min_lr=1e-4 warmup=2000 schedule=cosine weight_decay=0.1 beta2=0.95 "
     "save_every=100 valid_every=1000 temperature=0.8 top_k=200"},
};
/* clang-format on */

const struct wf_family family_phi3 = {
    .abi = WF_FAMILY_ABI,
    .name = "phi3",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct phi3_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .check = phi3_check,
    .model_type = "phi3",
    .read = phi3_read,
    .size = sizeof(struct phi3),
    .block_size = sizeof(struct block),
    .init = phi3_init,
    .load = phi3_load,
    .forward = phi3_forward,
    .head = WF_HEAD_AT(struct phi3, head),
    .counterpart = &counterpart,
};
