/* SPDX-License-Identifier: MIT */
/* GPT-2 (Radford et al. 2019): a decoder with the norm before each sublayer, learned positions, a last norm, and by default
 * the embedding as output matrix. With biases and GELU by tanh it is GPT-2 itself; the nanogpt presets have neither.
 *
 * Parameters: embed.weight [V,d], positions.weight [context,d], blocks.N.{norm1,attn.qkv,attn.out,norm2,ffn.up,ffn.down},
 * norm, and head.weight [V,d] unless it is tied. */
#include <math.h>

#include <weft/nn.h>

#include <weft/internal/families.h>

struct block {
    struct wf_layer_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
    struct wf_dropout drop;
};

static void block_init(wf_scope s, struct block *b, const struct wf_config *c)
{
    wf_layer_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .no_bias = !c->bias);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .kv_heads = (int)c->kv_heads, .no_bias = !c->bias,
                .dropout = c->dropout);
    wf_layer_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .no_bias = !c->bias);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = c->activation, .no_bias = !c->bias);
    wf_dropout_init(s, &b->drop, c->dropout);
}

static wf_tensor *block_forward(const struct block *b, wf_tensor *x, struct wf_kv *cache, wf_tensor **weights)
{
    wf_tensor *a = wf_mha_forward(&b->attn, wf_layer_norm_forward(&b->norm1, x), .causal = true, .cache = cache, .weights = weights);
    x = wf_add(x, wf_dropout_forward(&b->drop, a)); /* [B,T,d] */
    return wf_add(x, wf_dropout_forward(&b->drop, wf_ffn_forward(&b->ffn, wf_layer_norm_forward(&b->norm2, x))));
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

static void gpt_init(wf_scope s, void *model, const struct wf_config *c)
{
    struct gpt *m = model;
    /* Each of the 2 L residual branches adds to the same stream: smaller, so that its variance does not grow with L. */
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
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    x = wf_positions_forward(&m->positions, x, cache);
    x = wf_dropout_forward(&m->drop, x);
    for (int64_t i = 0; i < m->layers; i++)
        x = block_forward(&m->block[i], x, cache ? &cache->layer[i] : NULL, weights ? &weights[i] : NULL);
    return wf_layer_norm_forward(&m->norm, x);
}

static const struct wf_linear *gpt_head(const void *model)
{
    return &((const struct gpt *)model)->head;
}

const struct family family_gpt = {
    .name = "gpt",
    .kind = WF_MODEL_LANGUAGE,
    .users = WF_CONFIG_LANGUAGE,
    .size = sizeof(struct gpt),
    .block_size = sizeof(struct block),
    .init = gpt_init,
    .forward = gpt_forward,
    .head = gpt_head,
};
