/* SPDX-License-Identifier: MIT */
/* Llama (Touvron et al. 2023, Dubey et al. 2024) and the decoders with its block: RMS norms before each sublayer and after the last block,
 * rotary positions, fewer heads of keys than of queries, and SwiGLU. Mistral (Jiang et al. 2023) adds a sliding window, Qwen 2 (Yang et al.
 * 2024) biases of queries, keys and values, and in large models a window in the later blocks, Qwen 3 (2025) norms of queries and keys and a
 * head width of its own.
 *
 * Parameters: embed.weight [V,d], blocks.N.{norm1,attn.qkv,attn.out,norm2,ffn.gate,ffn.up,ffn.down}, with qk_norm also
 * blocks.N.attn.{q_norm,k_norm}, norm, and head.weight [V,d] unless it is tied. `rules` below maps Hugging Face's names to these. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/nn.h>

#include "foreign.h"

struct llama_config {
    int64_t d_model, heads, kv_heads, d_key, d_ff, layers, context, vocab_size, window, window_from;
    double dropout, norm_eps, rope_base, rope_factor, rope_low, rope_high, rope_context;
    enum wf_rope_scaling rope_scaling;
    bool tied, qkv_bias, out_bias, ffn_bias, qk_norm;
};

#define NUMBER(...) WF_NUMBER_KEY(struct llama_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct llama_config, __VA_ARGS__)
static const char *const scaling_words[] = {"none", "linear", "ntk", "llama3", NULL}; /* of enum wf_rope_scaling */
/* clang-format off */
static const struct wf_key keys[] = {
    NUMBER(d_model, "128", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads", .role = WF_KEY_HEADS),
    NUMBER(kv_heads, "0", 0, 1024, "key and value heads; a divisor of heads; 0: as many as heads", .role = WF_KEY_KV_HEADS),
    NUMBER(d_key, "0", 0, 65536, "width of a head, even; 0: d_model / heads", .role = WF_KEY_HEAD_WIDTH, .also = "head_dim"),
    NUMBER(d_ff, "384", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(layers, "4", 1, 1024, "blocks", .role = WF_KEY_LAYERS, .also = "encoder_layers decoder_layers"),
    NUMBER(context, "256", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT, .also = "max_length positions"),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB, .also = "source_vocab_size"),
    NUMBER(window, "0", 0, 1048576, "sliding window: a token attends to this many last tokens, itself included; 0: to all", .also = "sliding_window"),
    NUMBER(window_from, "0", 0, 1024, "number of the first block with the window, counted from 0; those before it attend to all tokens", .also = "max_window_layers"),
    NUMBER(dropout, "0", 0, 1, "dropout probability", .below = true, .resumable = true, .also = "inner_dropout dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop embd_pdrop attn_pdrop resid_dropout residual_dropout attention_dropout attn_dropout attention_probs_dropout_prob activation_dropout relu_dropout"),
    NUMBER(norm_eps, "1e-5", 0, 1, "epsilon of the norms", .above = true, .also = "layer_norm_eps layer_norm_epsilon rms_norm_eps layernorm_epsilon norm_epsilon"),
    NUMBER(rope_base, "10000", 0, 1e12, "base of the rotary frequencies", .above = true, .also = "rope_theta"),
    WF_WORD_KEY(struct llama_config, rope_scaling, "none", scaling_words, "scaling of the rotary frequencies for longer texts", .also = "rope_type"),
    NUMBER(rope_factor, "1", 0, 1e6, "factor of rope_scaling", .above = true),
    NUMBER(rope_low, "1", 0, 1e6, "llama3: turns in rope_context below which a frequency is divided by the factor", .above = true),
    NUMBER(rope_high, "4", 0, 1e6, "llama3: turns in rope_context above which a frequency stays", .above = true),
    NUMBER(rope_context, "8192", 1, 1e9, "llama3: the context before the scaling"),
    BOOL(tied, "true", "the output layer shares the embedding", .also = "shared tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
    BOOL(qkv_bias, "false", "queries, keys and values have a bias", .also = "use_bias attention_bias add_bias_linear"),
    BOOL(out_bias, "false", "the output projection of attention has a bias; needs qkv_bias"),
    BOOL(ffn_bias, "false", "the linear layers of the feed-forward have a bias", .also = "mlp_bias"),
    BOOL(qk_norm, "false", "norms of queries and keys"),
};
/* clang-format on */

struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

static struct wf_rotary rotary_of(const struct llama_config *c)
{
    struct wf_rotary r = {.base = c->rope_base, .scaling = c->rope_scaling};
    if (r.scaling != WF_ROPE_UNSCALED)
        r.factor = c->rope_factor;
    if (r.scaling == WF_ROPE_LLAMA3) {
        r.low_frequency = c->rope_low;
        r.high_frequency = c->rope_high;
        r.original_context = c->rope_context;
    }
    return r;
}

static void block_init(wf_scope s, struct block *b, const struct llama_config *c, int64_t index)
{
    wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .eps = c->norm_eps);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .kv_heads = (int)c->kv_heads, .d_key = c->d_key,
                .no_bias = !c->qkv_bias, .no_out_bias = !c->out_bias, .dropout = c->dropout, .residual_dropout = c->dropout, .rope = true,
                .rotary = rotary_of(c), .window = index >= c->window_from ? c->window : 0, .qk_norm = c->qk_norm,
                .qk_norm_eps = c->qk_norm ? c->norm_eps : 0);
    wf_rms_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .eps = c->norm_eps);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = WF_SWIGLU, .no_bias = !c->ffn_bias,
                .residual_dropout = c->dropout);
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

struct llama {
    struct wf_embedding embed;
    struct wf_dropout drop;
    struct wf_rms_norm norm;
    struct wf_linear head;
    int64_t layers;
    struct block block[];
};

static void llama_init(wf_scope s, void *model, const void *config)
{
    const struct llama_config *c = config;
    struct llama *m = model;
    s = wf_with_init(s, &(struct wf_init_rules){.weight = {WF_INIT_NORMAL, 0.02},
                                                .embedding = {WF_INIT_NORMAL, 0.02},
                                                .residual = {WF_INIT_NORMAL, 0.02 / sqrt(2.0 * (double)c->layers)},
                                                .bias = {WF_INIT_CONSTANT, 0}});
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    wf_dropout_init(s, &m->drop, c->dropout);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c, i);
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model, .eps = c->norm_eps);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = true, .tied = c->tied ? m->embed.weight : NULL);
}

static wf_tensor *llama_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct llama *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *x = wf_dropout_forward(&m->drop, wf_embedding_forward(&m->embed, ids)); /* [B,T] -> [B,T,d] */
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights, .since = start);
    return wf_rms_norm_forward(&m->norm, x);
}

static wf_status llama_check(const void *config, wf_error *error)
{
    const struct llama_config *c = config;
    const int64_t width = c->d_key > 0 ? c->d_key : c->d_model / c->heads;
    if (width % 2 != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "rotary positions need heads of even width, and d_key, or d_model / heads, is %lld",
                            (long long)width);
    if (c->out_bias && !c->qkv_bias)
        return wf_error_set(error, WF_ERR_ARGUMENT, "out_bias=true needs qkv_bias=true");
    if (c->rope_scaling == WF_ROPE_LLAMA3 && c->rope_low >= c->rope_high)
        return wf_key_conflict("rope_high", c->rope_high, "be greater than", "rope_low", c->rope_low, error);
    return WF_OK;
}

/* --- folders of Hugging Face --------------------------------------------------------------------------------------- */

#define LAYER "layers.*."
#define SELF LAYER "self_attn."
static const struct wf_load_rule rules[] = {
    {"embed.weight", {"embed_tokens.weight"}},
    {"blocks.*.norm1.weight", {LAYER "input_layernorm.weight"}},
    {"blocks.*.attn.qkv.weight", {SELF "q_proj.weight", SELF "k_proj.weight", SELF "v_proj.weight"}, .uneven = true},
    {"blocks.*.attn.qkv.bias", {SELF "q_proj.bias", SELF "k_proj.bias", SELF "v_proj.bias"}, .uneven = true},
    {"blocks.*.attn.q_norm.weight", {SELF "q_norm.weight"}},
    {"blocks.*.attn.k_norm.weight", {SELF "k_norm.weight"}},
    {"blocks.*.attn.out.weight", {SELF "o_proj.weight"}},
    {"blocks.*.attn.out.bias", {SELF "o_proj.bias"}},
    {"blocks.*.norm2.weight", {LAYER "post_attention_layernorm.weight"}},
    {"blocks.*.ffn.gate.weight", {LAYER "mlp.gate_proj.weight"}},
    {"blocks.*.ffn.gate.bias", {LAYER "mlp.gate_proj.bias"}},
    {"blocks.*.ffn.up.weight", {LAYER "mlp.up_proj.weight"}},
    {"blocks.*.ffn.up.bias", {LAYER "mlp.up_proj.bias"}},
    {"blocks.*.ffn.down.weight", {LAYER "mlp.down_proj.weight"}},
    {"blocks.*.ffn.down.bias", {LAYER "mlp.down_proj.bias"}},
    {"norm.weight", {"norm.weight"}},
    {"head.weight", {"/lm_head.weight"}},
};
static const char *const ignored[] = {SELF "rotary_emb.inv_freq", NULL}; /* frequencies, in files until 2023 */

static const struct foreign_weights weights = {"model.", "embed_tokens.weight", rules, sizeof rules / sizeof *rules, ignored};

static wf_status llama_load(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error)
{
    if (wf_safetensors_find(file, "embed.weight")) /* the file has Weft's names */
        return wf_registry_load_with(registry, file, options, error);
    return foreign_load(registry, file, options, &weights, error);
}

/* Reads from which block on there is a window: from layer_types, or in files without it from `from`. */
static void read_window_from(struct wf_json_reader *r, int64_t from, struct llama_config *c)
{
    json_t *types = NULL;
    wf_json_read_array(r, "layer_types", WF_JSON_OPTIONAL, &types);
    const int64_t count = (int64_t)json_array_size(types);
    if (types)
        from = c->layers;
    for (int64_t i = 0; r->status == WF_OK && i < count; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        const bool sliding = type && c->window > 0 && strcmp(type, "sliding_attention") == 0;
        if (!type || (!sliding && strcmp(type, "full_attention") != 0))
            foreign_refuse(r, "layer_types", type ? type : "", "only full_attention, and with a window sliding_attention");
        else if (!sliding && from < i)
            foreign_refuse(r, "layer_types", NULL, "no layer with full attention may come after one with sliding attention");
        from = sliding && from > i ? i : from;
    }
    if (r->status == WF_OK && types && count != c->layers)
        foreign_refuse(r, "layer_types", NULL, "its length is not num_hidden_layers");
    if (from >= c->layers)
        c->window = 0;
    c->window_from = c->window > 0 ? from : 0;
}

/* Reads the keys that mean something in only some of the architectures, and sets what differs between them. */
static void read_variant(struct wf_json_reader *r, struct llama_config *c)
{
    const char *type = "";
    int64_t from = 0;
    bool sliding = false;
    wf_json_read_string(r, "model_type", WF_JSON_REQUIRED, &type);
    const bool llama = strcmp(type, "llama") == 0, qwen2 = strcmp(type, "qwen2") == 0, qwen3 = strcmp(type, "qwen3") == 0;
    c->qk_norm = qwen3;
    c->qkv_bias = c->out_bias = c->ffn_bias = false;
    c->window = 0;
    if (qwen2 || qwen3)
        wf_json_read_bool(r, "use_sliding_window", WF_JSON_OPTIONAL, &sliding);
    if (sliding) {
        c->window = json_is_null(json_object_get(r->object, "sliding_window")) ? 0 : 4096; /* the default of transformers, as below */
        from = 28;
        wf_json_read_int(r, "max_window_layers", WF_JSON_OPTIONAL, 0, 1048576, &from);
    }
    if (sliding || strcmp(type, "mistral") == 0)
        wf_json_read_int(r, "sliding_window", WF_JSON_OPTIONAL, 1, 1048576, &c->window);
    read_window_from(r, from, c);
    if (llama || qwen3)
        wf_json_read_bool(r, "attention_bias", WF_JSON_OPTIONAL, &c->qkv_bias);
    else
        foreign_expect_bool(r, "attention_bias", false, "in this architecture the biases of attention are fixed");
    c->out_bias = c->qkv_bias;
    c->qkv_bias |= qwen2;
    if (llama)
        wf_json_read_bool(r, "mlp_bias", WF_JSON_OPTIONAL, &c->ffn_bias);
    else
        foreign_expect_bool(r, "mlp_bias", false, "this architecture has no biases in the feed-forward");
}

static wf_status llama_read(const json_t *object, const char *path, void *config, wf_error *error)
{
    struct llama_config *c = config;
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    struct foreign_rotary rotary;
    enum wf_activation activation = WF_SILU;
    c->norm_eps = 1e-6; /* what transformers takes if a key is absent, here and below */
    c->tied = false;
    c->kv_heads = c->d_key = 0;
    foreign_expect_floats(&r);
    wf_json_read_int(&r, "vocab_size", WF_JSON_REQUIRED, 1, 16777216, &c->vocab_size);
    wf_json_read_int(&r, "hidden_size", WF_JSON_REQUIRED, 1, 65536, &c->d_model);
    wf_json_read_int(&r, "num_hidden_layers", WF_JSON_REQUIRED, 1, 1024, &c->layers);
    wf_json_read_int(&r, "num_attention_heads", WF_JSON_REQUIRED, 1, 1024, &c->heads);
    wf_json_read_int(&r, "num_key_value_heads", WF_JSON_OPTIONAL, 1, 1024, &c->kv_heads);
    wf_json_read_int(&r, "head_dim", WF_JSON_OPTIONAL, 1, 65536, &c->d_key);
    wf_json_read_int(&r, "intermediate_size", WF_JSON_REQUIRED, 1, 262144, &c->d_ff);
    wf_json_read_int(&r, "max_position_embeddings", WF_JSON_REQUIRED, 1, 1048576, &c->context);
    wf_json_read_double(&r, "rms_norm_eps", WF_JSON_OPTIONAL, 1e-300, 1, &c->norm_eps);
    wf_json_read_double(&r, "attention_dropout", WF_JSON_OPTIONAL, 0, 0.999999, &c->dropout);
    wf_json_read_bool(&r, "tie_word_embeddings", WF_JSON_OPTIONAL, &c->tied);
    foreign_read_activation(&r, "hidden_act", &activation);
    if (activation != WF_SILU)
        foreign_refuse(&r, "hidden_act", NULL, "only silu is supported in this architecture");
    foreign_read_rotary(&r, &rotary);
    c->rope_base = rotary.base;
    c->rope_scaling = rotary.scaling;
    c->rope_factor = rotary.factor;
    if (rotary.scaling == WF_ROPE_LLAMA3) {
        c->rope_low = rotary.low;
        c->rope_high = rotary.high;
        c->rope_context = rotary.context;
    }
    read_variant(&r, c);
    return r.status;
}

static bool windowed(const void *config, int64_t i)
{
    const struct llama_config *c = config;
    return c->window > 0 && i >= c->window_from;
}

/* Refuses settings that no architecture has together. `qwen`: they ask for Qwen 2 or 3, the only ones with a window in later layers. */
static wf_status check_variant(const struct llama_config *c, bool qwen, bool window, wf_error *error)
{
    char later[64] = "";
    if (qwen ? !c->ffn_bias && (!c->qk_norm || c->qkv_bias == c->out_bias)
             : !window || (c->window_from == 0 && !c->out_bias && !c->ffn_bias))
        return WF_OK;
    if (window)
        snprintf(later, sizeof later, " window=%lld window_from=%lld", (long long)c->window, (long long)c->window_from);
    return wf_error_set(error, WF_ERR_ARGUMENT, "no architecture of transformers has these settings together:%s%s%s%s", later,
                        !c->qkv_bias   ? ""
                        : !c->out_bias ? " qkv_bias=true out_bias=false"
                                       : " qkv_bias=true out_bias=true",
                        c->ffn_bias ? " ffn_bias=true" : "", c->qk_norm ? " qk_norm=true" : "");
}

/* Llama has biases of all linear layers of attention or none, and of the feed-forward; Mistral the window; Qwen 2 biases of queries, keys
 * and values only; Qwen 3 norms of queries and keys; and both of these a window from some layer on. */
static wf_status write_variant(const struct llama_config *c, json_t *o, wf_error *error)
{
    const bool window = windowed(c, c->layers - 1), qwen = c->qk_norm || (c->qkv_bias && !c->out_bias);
    if (check_variant(c, qwen, window, error) != WF_OK)
        return error->code;
    if (!qwen && !window && c->d_model % c->heads != 0) /* although head_dim would say the width */
        return wf_error_set(error, WF_ERR_ARGUMENT, "heads=%lld: Llama of transformers needs a divisor of d_model", (long long)c->heads);
    if (qwen) {
        foreign_put_architecture(o, c->qk_norm ? "Qwen3ForCausalLM" : "Qwen2ForCausalLM", c->qk_norm ? "qwen3" : "qwen2");
        foreign_put(o, "use_sliding_window", json_boolean(window));
    } else if (window) {
        foreign_put_architecture(o, "MistralForCausalLM", "mistral");
    } else {
        foreign_put_architecture(o, "LlamaForCausalLM", "llama");
        foreign_put(o, "mlp_bias", json_boolean(c->ffn_bias));
    }
    if (window)
        foreign_put(o, "sliding_window", json_integer(c->window));
    if (qwen && window) {
        foreign_put(o, "max_window_layers", json_integer(c->window_from));
        foreign_put_layer_types(o, c->layers, windowed, c);
    }
    if (!qwen || c->qk_norm)
        foreign_put(o, "attention_bias", json_boolean(c->out_bias));
    return WF_OK;
}

static wf_status llama_write(void *config, json_t *o, wf_error *error)
{
    const struct llama_config *c = config;
    if (write_variant(c, o, error) != WF_OK)
        return error->code;
    foreign_put(o, "vocab_size", json_integer(c->vocab_size));
    foreign_put(o, "hidden_size", json_integer(c->d_model));
    foreign_put(o, "intermediate_size", json_integer(c->d_ff));
    foreign_put(o, "num_hidden_layers", json_integer(c->layers));
    foreign_put(o, "num_attention_heads", json_integer(c->heads));
    foreign_put(o, "num_key_value_heads", json_integer(c->kv_heads > 0 ? c->kv_heads : c->heads));
    foreign_put(o, "head_dim", json_integer(c->d_key > 0 ? c->d_key : c->d_model / c->heads));
    foreign_put(o, "max_position_embeddings", json_integer(c->context));
    foreign_put(o, "hidden_act", json_string("silu"));
    foreign_put(o, "rms_norm_eps", json_real(c->norm_eps));
    foreign_put(o, "attention_dropout", json_real(c->dropout));
    foreign_put(o, "initializer_range", json_real(0.02));
    foreign_put(o, "tie_word_embeddings", json_boolean(c->tied));
    const struct foreign_rotary rotary = {.base = c->rope_base,
                                          .scaling = c->rope_scaling,
                                          .factor = c->rope_factor,
                                          .low = c->rope_low,
                                          .high = c->rope_high,
                                          .context = c->rope_context};
    return foreign_put_rotary(o, &rotary, error);
}

static const struct wf_counterpart counterpart = {.write = llama_write, .weights = &weights};

/* clang-format off */
static const struct wf_preset presets[] = {
    {"smollm2-135m", "the smallest SmolLM2, a Llama, from scratch",
     "d_model=576 heads=9 kv_heads=3 d_ff=1536 layers=30 context=2048 vocab_size=49152 rope_base=1e4 tokenizer=byte-bpe "
     "steps=600000 batch=480 accumulate=40 lr=3e-3 min_lr=3e-4 warmup=2000 schedule=cosine weight_decay=0.1 beta2=0.95 "
     "save_every=100 valid_every=1000 temperature=0.8 top_k=200"},
};
/* clang-format on */

const struct wf_family family_llama = {
    .abi = WF_FAMILY_ABI,
    .name = "llama",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct llama_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .check = llama_check,
    .model_type = "llama mistral qwen2 qwen3",
    .read = llama_read,
    .size = sizeof(struct llama),
    .block_size = sizeof(struct block),
    .init = llama_init,
    .load = llama_load,
    .forward = llama_forward,
    .head = WF_HEAD_AT(struct llama, head),
    .counterpart = &counterpart,
};
