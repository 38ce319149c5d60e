/* SPDX-License-Identifier: MIT */
/* A small decoder with RMSNorm (Zhang and Sennrich 2019) after each residual sum. It has sinusoidal positions, unscaled embeddings, ReLU,
 * no norm after the last block, and an output matrix with a bias. Parameters are initialised by PyTorch's defaults.
 *
 * Parameters: embed.weight [V,d], blocks.N.{attn.qkv,attn.out,norm1,ffn.up,ffn.down,norm2}, head.{weight [V,d],bias [V]}. */
#include <weft/nn.h>

#include <weft/family.h>

enum { TABLE = 2048 }; /* minimum number of rows of the table of position encodings */

struct rms_config {
    int64_t d_model, heads, kv_heads, d_ff, layers, context, vocab_size;
    double dropout;
    enum wf_activation activation;
    bool tied, bias;
};

#define NUMBER(...) WF_NUMBER_KEY(struct rms_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct rms_config, __VA_ARGS__)
/* clang-format off */
static const struct wf_key keys[] = {
    NUMBER(d_model, "64", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(kv_heads, "0", 0, 1024, "key and value heads; a divisor of heads; 0: as many as heads", .role = WF_KEY_KV_HEADS),
    NUMBER(d_ff, "256", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(layers, "1", 1, 1024, "blocks", .role = WF_KEY_LAYERS, .also = "encoder_layers decoder_layers"),
    NUMBER(context, "256", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT, .also = "max_length positions"),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB, .also = "source_vocab_size"),
    NUMBER(dropout, "0", 0, 1, "dropout probability", .below = true, .resumable = true, .also = "inner_dropout dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop embd_pdrop attn_pdrop resid_dropout residual_dropout attention_dropout attn_dropout attention_probs_dropout_prob activation_dropout relu_dropout"),
    WF_WORD_KEY(struct rms_config, activation, "relu", wf_activation_words, "activation of the feed-forward", .role = WF_KEY_ACTIVATION),
    BOOL(tied, "false", "the output layer shares the embedding", .also = "shared tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
    BOOL(bias, "true", "linear layers have a bias", .also = "use_bias attention_bias mlp_bias add_bias_linear"),
};
/* clang-format on */

struct block {
    struct wf_mha attn;
    struct wf_ffn ffn;
    struct wf_rms_norm norm1, norm2;
};

static void block_init(wf_scope s, struct block *b, const struct rms_config *c)
{
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .kv_heads = (int)c->kv_heads, .no_bias = !c->bias,
                .dropout = c->dropout, .residual_dropout = c->dropout);
    wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = c->activation, .no_bias = !c->bias, .dropout = c->dropout,
                .residual_dropout = c->dropout);
    wf_rms_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model);
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    x = wf_mha_forward(&b->attn, x, .causal = true, .cache = call->cache, .weights = call->weights, .residual = x); /* [B,T,d] */
    x = wf_rms_norm_forward(&b->norm1, x);
    wf_tensor *sum = wf_ffn_forward(&b->ffn, x, .residual = x);
    wf_release(x);
    return wf_rms_norm_forward(&b->norm2, sum); /* [B,T,d] */
}

struct rms {
    struct wf_embedding embed;
    struct wf_positions positions;
    struct wf_dropout drop;
    struct wf_linear head;
    int64_t layers;
    struct block block[];
};

static void rms_init(wf_scope s, void *model, const void *config)
{
    const struct rms_config *c = config;
    struct rms *m = model;
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    wf_positions_init(wf_sub(s, "positions"), &m->positions, c->context > TABLE ? c->context : TABLE, c->d_model);
    wf_dropout_init(s, &m->drop, c->dropout);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = !c->bias, .tied = c->tied ? m->embed.weight : NULL);
}

static wf_tensor *rms_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct rms *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *tokens = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    wf_tensor *x = wf_dropout_forward(&m->drop, wf_positions_forward(&m->positions, tokens, cache));
    wf_release(tokens);
    return wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights, .since = start);
}

/* clang-format off */
static const struct wf_preset presets[] = {
    {"char-rms", "a character model of one layer for a short text; trains in seconds",
     "valid_every=100 top_k=4 max_tokens=100"},
};
/* clang-format on */

const struct wf_family family_rms = {
    .abi = WF_FAMILY_ABI,
    .name = "rms",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct rms_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .size = sizeof(struct rms),
    .block_size = sizeof(struct block),
    .init = rms_init,
    .forward = rms_forward,
    .head = WF_HEAD_AT(struct rms, head),
};
