/* SPDX-License-Identifier: MIT */
/* A Llama-like language model (Touvron et al. 2023) in one file outside Weft: RMS norms, rotary positions, grouped queries, SwiGLU. The
 * program has the whole command:
 *
 *   cc llama.c $(pkg-config --cflags --libs weft) -o llama
 *   ./llama train llama-small --train FILE --out RUN        also --resume, --set, --steps
 *   ./llama generate RUN --prompt 'The '
 *   ./llama evaluate RUN --data FILE
 *   ./llama attention RUN --text 'a few words' --out maps.html
 *   ./llama bench llama-small
 */
#include <math.h>
#include <stdio.h>

#include <weft/weft.h>

/* --- configuration: these keys are in `--set`, config.json and `./llama models llama-small` ------------------------------------- */

struct llama_config {
    int64_t d_model, heads, kv_heads, d_ff, layers, context, vocab_size;
    double dropout, rope_base;
};

#define NUMBER(...) WF_NUMBER_KEY(struct llama_config, __VA_ARGS__)
static const struct wf_key keys[] = {
    NUMBER(d_model, "128", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(kv_heads, "2", 0, 1024, "key and value heads; a divisor of heads; 0: as many as heads", .role = WF_KEY_KV_HEADS),
    NUMBER(d_ff, "344", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(layers, "4", 1, 1024, "blocks", .role = WF_KEY_LAYERS),
    NUMBER(context, "64", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB),
    NUMBER(dropout, "0", 0, 1, "dropout probability", .below = true, .resumable = true),
    NUMBER(rope_base, "10000", 1, 1e9, "base of the rotary frequencies"),
};
static const struct wf_preset presets[] = {
    {"llama-small", "a small Llama for characters", "steps=500 batch=12 min_lr=1e-4 warmup=50 schedule=cosine weight_decay=0.1 beta2=0.99"},
};

/* --- model -------------------------------------------------------------------------------------------------------------------- */

struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

static void block_init(wf_scope s, struct block *b, const struct llama_config *c)
{
    wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .kv_heads = (int)c->kv_heads, .no_bias = true, .rope = true,
                .rotary = {.base = c->rope_base}, .residual_dropout = c->dropout);
    wf_rms_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = WF_SWIGLU, .no_bias = true, .residual_dropout = c->dropout);
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm1, x), .causal = true, .cache = call->cache, .weights = call->weights,
                       .residual = x);
    return wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm2, x), .residual = x); /* [B,T,d] */
}

struct llama {
    struct wf_embedding embed;
    struct wf_rms_norm norm;
    struct wf_linear head;
    int64_t layers;
    struct block block[]; /* .block_size below gives the room */
};

static void llama_init(wf_scope s, void *model, const void *config)
{
    const struct llama_config *c = config;
    struct llama *m = model;
    s = wf_with_init(s, &(struct wf_init_rules){.weight = {WF_INIT_NORMAL, 0.02},
                                                .embedding = {WF_INIT_NORMAL, 0.02},
                                                .residual = {WF_INIT_NORMAL, 0.02 / sqrt(2.0 * (double)c->layers)}});
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = true, .tied = m->embed.weight);
}

static wf_tensor *llama_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct llama *m = model;
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights);
    return wf_rms_norm_forward(&m->norm, x);
}

static const struct wf_family llama = {
    .abi = WF_FAMILY_ABI,
    .name = "small-llama",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct llama_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .size = sizeof(struct llama),
    .block_size = sizeof(struct block),
    .init = llama_init,
    .forward = llama_forward,
    .head = WF_HEAD_AT(struct llama, head),
};

int main(int argc, char **argv)
{
    wf_error error = {0};
    if (wf_family_register(&llama, &error) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    return wf_main(argc, argv);
}
