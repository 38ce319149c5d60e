/* SPDX-License-Identifier: MIT */
/* Gemma 2 (2024) and the text models of Gemma 3 (2025): decoders with RMS norms before and after each sublayer, whose gains are 1 + weight,
 * embeddings scaled by sqrt(d), rotary positions, GeGLU, and a sliding window in most blocks. Gemma 2 bounds attention scores and logits;
 * Gemma 3 normalises queries and keys, and blocks with a window have a rotary base of their own.
 *
 * Parameters: embed.weight [V,d], blocks.N.{norm1,attn.qkv,attn.out,post1,norm2,ffn.gate,ffn.up,ffn.down,post2}, with qk_norm also
 * blocks.N.attn.{q_norm,k_norm}, norm, and head.weight [V,d] unless it is tied. `rules` below maps Hugging Face's names to these. */
#include <math.h>
#include <string.h>

#include <weft/nn.h>

#include "foreign.h"

struct gemma_config {
    int64_t d_model, heads, kv_heads, d_key, d_ff, layers, context, vocab_size, window, full_every;
    double dropout, norm_eps, score_divisor, score_softcap, logit_softcap, rope_base, rope_factor, window_rope_base;
    bool tied, qk_norm;
};

#define NUMBER(...) WF_NUMBER_KEY(struct gemma_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct gemma_config, __VA_ARGS__)
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
    NUMBER(full_every, "0", 0, 1024, "every block with a number that is a multiple of this, counted from 1, attends to all tokens, not to a window; 0: none does", .also = "sliding_window_pattern"),
    NUMBER(dropout, "0", 0, 1, "dropout probability of attention weights", .below = true, .resumable = true, .also = "inner_dropout dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop embd_pdrop attn_pdrop resid_dropout residual_dropout attention_dropout attn_dropout attention_probs_dropout_prob activation_dropout relu_dropout"),
    NUMBER(norm_eps, "1e-6", 0, 1, "epsilon of the norms", .above = true, .also = "layer_norm_eps layer_norm_epsilon rms_norm_eps layernorm_epsilon norm_epsilon"),
    NUMBER(score_divisor, "0", 0, 1e12, "attention scores are divided by the square root of this; 0: of the width of a head", .also = "query_pre_attn_scalar"),
    NUMBER(score_softcap, "0", 0, 1e12, "bound c of attention scores, which become c tanh(score / c); 0: none", .also = "attn_logit_softcapping"),
    NUMBER(logit_softcap, "0", 0, 1e12, "bound c of logits, which become c tanh(logit / c); 0: none", .also = "final_logit_softcapping"),
    NUMBER(rope_base, "10000", 0, 1e12, "base of the rotary frequencies", .above = true, .also = "rope_theta"),
    NUMBER(rope_factor, "1", 0, 1e6, "divisor of positions in blocks that attend to all tokens", .above = true),
    NUMBER(window_rope_base, "10000", 0, 1e12, "base of the rotary frequencies in blocks with a window", .above = true, .also = "rope_local_base_freq"),
    BOOL(tied, "true", "the output layer shares the embedding", .also = "shared tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
    BOOL(qk_norm, "false", "norms of queries and keys"),
};
/* clang-format on */

struct block {
    struct wf_rms_norm norm1, post1, norm2, post2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

/* Whether block i, counted from 0, attends to all tokens. */
static bool is_full(const struct gemma_config *c, int64_t i)
{
    return c->full_every > 0 && (i + 1) % c->full_every == 0;
}

static void block_init(wf_scope s, struct block *b, const struct gemma_config *c, bool full)
{
    struct wf_rotary rotary = {.base = full ? c->rope_base : c->window_rope_base};
    if (full && c->rope_factor != 1) {
        rotary.scaling = WF_ROPE_LINEAR;
        rotary.factor = c->rope_factor;
    }
    wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .eps = c->norm_eps, .from_one = true);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .kv_heads = (int)c->kv_heads, .d_key = c->d_key, .no_bias = true,
                .dropout = c->dropout, .rope = true, .rotary = rotary, .window = full ? 0 : c->window, .qk_norm = c->qk_norm,
                .qk_norm_eps = c->qk_norm ? c->norm_eps : 0, .qk_norm_from_one = c->qk_norm, .softcap = c->score_softcap,
                .scale = c->score_divisor > 0 ? 1 / sqrt(c->score_divisor) : 0);
    wf_rms_norm_init(wf_sub(s, "post1"), &b->post1, c->d_model, .eps = c->norm_eps, .from_one = true);
    wf_rms_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .eps = c->norm_eps, .from_one = true);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = WF_GEGLU_TANH, .no_bias = true);
    wf_rms_norm_init(wf_sub(s, "post2"), &b->post2, c->d_model, .eps = c->norm_eps, .from_one = true);
}

/* x + post(y) [B,T,d]. Releases y. */
static wf_tensor *add_normed(wf_tensor *x, const struct wf_rms_norm *post, wf_tensor *y)
{
    wf_tensor *normed = wf_rms_norm_forward(post, y), *sum = wf_add(x, normed);
    wf_release(y), wf_release(normed);
    return sum;
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    wf_tensor *h1 = wf_rms_norm_forward(&b->norm1, x), *y, *h2, *x1;
    y = wf_mha_forward(&b->attn, h1, .causal = true, .cache = call->cache, .weights = call->weights); /* [B,T,d] */
    x1 = add_normed(x, &b->post1, y);
    y = wf_ffn_forward(&b->ffn, h2 = wf_rms_norm_forward(&b->norm2, x1)); /* [B,T,d] */
    x = add_normed(x1, &b->post2, y);
    wf_release(h1), wf_release(h2), wf_release(x1);
    return x;
}

struct gemma {
    struct wf_embedding embed;
    struct wf_rms_norm norm;
    struct wf_linear head;
    int64_t layers;
    struct block block[];
};

static void gemma_init(wf_scope s, void *model, const void *config)
{
    const struct gemma_config *c = config;
    struct gemma *m = model;
    s = wf_with_init(s, &(struct wf_init_rules){.weight = {WF_INIT_NORMAL, 0.02}, .embedding = {WF_INIT_NORMAL, 0.02}});
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model, .scale = sqrt((double)c->d_model));
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c, is_full(c, i));
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model, .eps = c->norm_eps, .from_one = true);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = true, .tied = c->tied ? m->embed.weight : NULL);
}

static wf_tensor *gemma_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct gemma *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights, .since = start);
    return wf_rms_norm_forward(&m->norm, x);
}

static double gemma_softcap(const void *config)
{
    return ((const struct gemma_config *)config)->logit_softcap;
}

static wf_status gemma_check(const void *config, wf_error *error)
{
    const struct gemma_config *c = config;
    const int64_t width = c->d_key > 0 ? c->d_key : c->d_model / c->heads;
    if (width % 2 != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "rotary positions need heads of even width, and d_key, or d_model / heads, is %lld",
                            (long long)width);
    return WF_OK;
}

/* --- folders of Hugging Face --------------------------------------------------------------------------------------- */

#define LAYER "layers.*."
#define SELF LAYER "self_attn."
static const struct wf_load_rule rules[] = {
    {"embed.weight", {"embed_tokens.weight"}},
    {"blocks.*.norm1.weight", {LAYER "input_layernorm.weight"}},
    {"blocks.*.attn.qkv.weight", {SELF "q_proj.weight", SELF "k_proj.weight", SELF "v_proj.weight"}, .uneven = true},
    {"blocks.*.attn.q_norm.weight", {SELF "q_norm.weight"}},
    {"blocks.*.attn.k_norm.weight", {SELF "k_norm.weight"}},
    {"blocks.*.attn.out.weight", {SELF "o_proj.weight"}},
    {"blocks.*.post1.weight", {LAYER "post_attention_layernorm.weight"}},
    {"blocks.*.norm2.weight", {LAYER "pre_feedforward_layernorm.weight"}},
    {"blocks.*.ffn.gate.weight", {LAYER "mlp.gate_proj.weight"}},
    {"blocks.*.ffn.up.weight", {LAYER "mlp.up_proj.weight"}},
    {"blocks.*.ffn.down.weight", {LAYER "mlp.down_proj.weight"}},
    {"blocks.*.post2.weight", {LAYER "post_feedforward_layernorm.weight"}},
    {"norm.weight", {"norm.weight"}},
    {"head.weight", {"/lm_head.weight"}},
};
static const struct foreign_weights weights = {"model.", "embed_tokens.weight", rules, sizeof rules / sizeof *rules, NULL};

static wf_status gemma_load(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error)
{
    if (wf_safetensors_find(file, "embed.weight")) /* the file has Weft's names */
        return wf_registry_load_with(registry, file, options, error);
    return foreign_load(registry, file, options, &weights, error);
}

/* Reads which blocks have a window: from layer_types, or in files without it from a pattern, which is fixed in Gemma 2. */
static void read_windows(struct wf_json_reader *r, bool gemma3, struct gemma_config *c)
{
    json_t *types = NULL;
    c->full_every = gemma3 ? 6 : 2;
    wf_json_read_int(r, "sliding_window", WF_JSON_REQUIRED, 1, 1048576, &c->window);
    if (gemma3) {
        wf_json_read_int(r, "_sliding_window_pattern", WF_JSON_OPTIONAL, 1, 1024, &c->full_every);
        wf_json_read_int(r, "sliding_window_pattern", WF_JSON_OPTIONAL, 1, 1024, &c->full_every);
    }
    wf_json_read_array(r, "layer_types", WF_JSON_OPTIONAL, &types);
    if (r->status != WF_OK || !types) {
        c->full_every = c->full_every > c->layers ? 0 : c->full_every;
        return;
    }
    c->full_every = 0;
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool full = type && strcmp(type, "full_attention") == 0;
        if (full && c->full_every == 0)
            c->full_every = (int64_t)i + 1;
        if (!type || (!full && strcmp(type, "sliding_attention") != 0))
            foreign_refuse(r, "layer_types", type ? type : "", "only full_attention and sliding_attention");
        else if (full != (c->full_every > 0 && (int64_t)(i + 1) % c->full_every == 0))
            foreign_refuse(r, "layer_types", NULL, "layers with full attention must be at equal distances");
    }
    if (r->status == WF_OK && (int64_t)json_array_size(types) != c->layers)
        foreign_refuse(r, "layer_types", NULL, "its length is not num_hidden_layers");
}

/* A bound, of which null means that there is none. */
static void read_bound(struct wf_json_reader *r, const char *key, double absent, double *out)
{
    *out = json_is_null(json_object_get(r->object, key)) ? 0 : absent;
    wf_json_read_double(r, key, WF_JSON_OPTIONAL, 1e-30, 1e12, out);
}

static void read_positions(struct wf_json_reader *r, bool gemma3, struct gemma_config *c)
{
    struct foreign_rotary full, window;
    if (gemma3) {
        foreign_read_rotary_kinds(r, &full, &window);
    } else {
        foreign_read_rotary(r, &full);
        window = full;
    }
    if (window.scaling != WF_ROPE_UNSCALED || (full.scaling != WF_ROPE_UNSCALED && full.scaling != WF_ROPE_LINEAR))
        foreign_refuse(r, json_object_get(r->object, "rope_parameters") ? "rope_parameters" : "rope_scaling", NULL,
                       "this architecture has only the rope type default, and in Gemma 3 linear for layers with full attention");
    c->rope_base = full.base;
    c->rope_factor = full.factor;
    c->window_rope_base = window.base;
}

static wf_status gemma_read(const json_t *object, const char *path, void *config, wf_error *error)
{
    struct gemma_config *c = config;
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    enum wf_activation activation = WF_GELU_TANH;
    const char *type = "";
    wf_json_read_string(&r, "model_type", WF_JSON_REQUIRED, &type);
    const bool gemma3 = strcmp(type, "gemma3_text") == 0;
    c->tied = true; /* what transformers takes if a key is absent, here and below */
    c->d_key = c->score_divisor = 256;
    c->kv_heads = 4;
    c->dropout = 0;
    c->qk_norm = gemma3;
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
    wf_json_read_double(&r, "query_pre_attn_scalar", WF_JSON_OPTIONAL, 1e-30, 1e12, &c->score_divisor);
    wf_json_read_bool(&r, "tie_word_embeddings", WF_JSON_OPTIONAL, &c->tied);
    read_bound(&r, "attn_logit_softcapping", gemma3 ? 0 : 50, &c->score_softcap);
    read_bound(&r, "final_logit_softcapping", gemma3 ? 0 : 30, &c->logit_softcap);
    if (gemma3 && c->score_softcap != 0)
        foreign_refuse(&r, "attn_logit_softcapping", NULL, "Gemma 3 does not bound attention scores: it must be null");
    foreign_read_activation(&r, "hidden_activation", &activation);
    if (activation != WF_GELU_TANH)
        foreign_refuse(&r, "hidden_activation", NULL, "only gelu_pytorch_tanh is supported in this architecture");
    foreign_expect_bool(&r, "attention_bias", false, "biases of attention are not supported");
    foreign_expect_bool(&r, "use_bidirectional_attention", false, "attention to later tokens is not supported");
    read_windows(&r, gemma3, c);
    read_positions(&r, gemma3, c);
    return r.status;
}

static bool windowed(const void *config, int64_t i)
{
    return !is_full(config, i);
}

/* Gemma 2 has one rotary base for all layers, without a factor. Of a base that no block uses the value does not matter. */
static wf_status write_gemma2(const struct gemma_config *c, json_t *o, wf_error *error)
{
    const bool any_full = c->full_every > 0 && c->full_every <= c->layers, any_window = c->full_every != 1;
    const struct foreign_rotary rotary = {.base = any_full ? c->rope_base : c->window_rope_base, .factor = 1};
    if (any_full && c->rope_factor != 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "rope_factor=%g: in transformers only Gemma 3 has it, which needs qk_norm=true",
                            c->rope_factor);
    if (any_full && any_window && c->window_rope_base != c->rope_base)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "window_rope_base=%g rope_base=%g: in transformers only Gemma 3 has two bases, which needs qk_norm=true",
                            c->window_rope_base, c->rope_base);
    foreign_put_architecture(o, "Gemma2ForCausalLM", "gemma2");
    foreign_put(o, "attn_logit_softcapping", c->score_softcap > 0 ? json_real(c->score_softcap) : json_null());
    return foreign_put_rotary(o, &rotary, error);
}

static wf_status write_gemma3(const struct gemma_config *c, json_t *o, wf_error *error)
{
    const struct foreign_rotary window = {.base = c->window_rope_base, .factor = 1},
                                full = {.base = c->rope_base,
                                        .scaling = c->rope_factor != 1 ? WF_ROPE_LINEAR : WF_ROPE_UNSCALED,
                                        .factor = c->rope_factor};
    if (c->score_softcap > 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "score_softcap=%g qk_norm=true: no architecture of transformers has both",
                            c->score_softcap);
    foreign_put_architecture(o, "Gemma3ForCausalLM", "gemma3_text");
    foreign_put(o, "attn_logit_softcapping", json_null());
    if (c->full_every > 0) /* for files without layer_types */
        foreign_put(o, "sliding_window_pattern", json_integer(c->full_every));
    return foreign_put_rotary_kinds(o, &full, &window, error);
}

static wf_status gemma_write(void *config, json_t *o, wf_error *error)
{
    struct gemma_config *c = config;
    const int64_t width = c->d_key > 0 ? c->d_key : c->d_model / c->heads;
    const double divisor = c->score_divisor > 0 ? c->score_divisor : (double)width;
    if (c->window == 0) /* no token has more before it */
        c->window = c->context;
    if (divisor != floor(divisor))
        return wf_error_set(error, WF_ERR_ARGUMENT, "score_divisor=%g: transformers has only whole numbers", divisor);
    if (c->d_model % c->heads != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "heads=%lld: Gemma of transformers needs a divisor of d_model", (long long)c->heads);
    if ((c->qk_norm ? write_gemma3(c, o, error) : write_gemma2(c, o, error)) != WF_OK)
        return error->code;
    foreign_put(o, "vocab_size", json_integer(c->vocab_size));
    foreign_put(o, "hidden_size", json_integer(c->d_model));
    foreign_put(o, "intermediate_size", json_integer(c->d_ff));
    foreign_put(o, "num_hidden_layers", json_integer(c->layers));
    foreign_put(o, "num_attention_heads", json_integer(c->heads));
    foreign_put(o, "num_key_value_heads", json_integer(c->kv_heads > 0 ? c->kv_heads : c->heads));
    foreign_put(o, "head_dim", json_integer(width));
    foreign_put(o, "max_position_embeddings", json_integer(c->context));
    foreign_put(o, "sliding_window", json_integer(c->window));
    foreign_put_layer_types(o, c->layers, windowed, c);
    foreign_put(o, "query_pre_attn_scalar", json_integer((json_int_t)divisor));
    foreign_put(o, "final_logit_softcapping", c->logit_softcap > 0 ? json_real(c->logit_softcap) : json_null());
    foreign_put(o, "hidden_activation", json_string("gelu_pytorch_tanh"));
    foreign_put(o, "rms_norm_eps", json_real(c->norm_eps));
    foreign_put(o, "attention_bias", json_false());
    foreign_put(o, "attention_dropout", json_real(c->dropout));
    foreign_put(o, "initializer_range", json_real(0.02));
    foreign_put(o, "tie_word_embeddings", json_boolean(c->tied));
    return WF_OK;
}

static const struct wf_counterpart counterpart = {.write = gemma_write, .weights = &weights};

/* clang-format off */
static const struct wf_preset presets[] = {
    {"gemma3-270m", "the smallest Gemma 3, from scratch",
     "d_model=640 heads=4 kv_heads=1 d_key=256 d_ff=2048 layers=18 context=2048 vocab_size=262144 window=512 full_every=6 qk_norm=true "
     "rope_base=1e6 tokenizer=byte-bpe steps=600000 batch=480 accumulate=40 lr=1e-3 min_lr=1e-4 warmup=2000 schedule=cosine "
     "weight_decay=0.1 beta2=0.95 save_every=100 valid_every=1000 temperature=0.8 top_k=200"},
    {"gemma2-2b", "the smallest Gemma 2, from scratch",
     "d_model=2304 heads=8 kv_heads=4 d_key=256 d_ff=9216 layers=26 context=8192 vocab_size=256000 window=4096 full_every=2 "
     "score_softcap=50 logit_softcap=30 tokenizer=byte-bpe steps=600000 batch=480 accumulate=480 lr=5e-4 min_lr=5e-5 warmup=2000 "
     "schedule=cosine weight_decay=0.1 beta2=0.95 save_every=100 valid_every=1000 temperature=0.8 top_k=200"},
};
/* clang-format on */

const struct wf_family family_gemma = {
    .abi = WF_FAMILY_ABI,
    .name = "gemma",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct gemma_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .check = gemma_check,
    .model_type = "gemma2 gemma3_text",
    .read = gemma_read,
    .size = sizeof(struct gemma),
    .block_size = sizeof(struct block),
    .init = gemma_init,
    .load = gemma_load,
    .forward = gemma_forward,
    .head = WF_HEAD_AT(struct gemma, head),
    .softcap = gemma_softcap,
    .needs_begin = true,
    .counterpart = &counterpart,
};
