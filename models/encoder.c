/* SPDX-License-Identifier: MIT */
/* The encoder of Vaswani et al. 2017 without a decoder, with an output layer for training on masked tokens (Devlin et al. 2019). Norms come
 * after the residual sums or before the sublayers, and optionally after the last block. Positions are sinusoidal. Dropout is applied after
 * the attention, inside the feed-forward and after the feed-forward. Parameters are initialised by PyTorch's defaults, except that scaled
 * embeddings have the distribution N(0, 1/d).
 *
 * Parameters: embed.weight [V,d], blocks.N.{attn.qkv,attn.out,norm1,ffn.up,ffn.down,norm2}, norm, and head.{weight [V,d],bias [V]};
 * a tied head has only the bias. */
#include <math.h>

#include <weft/nn.h>

#include <weft/family.h>

struct encoder_config {
    int64_t d_model, heads, d_ff, layers, context, vocab_size;
    double dropout;
    enum wf_activation activation;
    enum wf_norm_place norm;
    bool final_norm, tied, bias, scale_embeddings;
};

#define NUMBER(...) WF_NUMBER_KEY(struct encoder_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct encoder_config, __VA_ARGS__)
#define WORD(...) WF_WORD_KEY(struct encoder_config, __VA_ARGS__)
/* clang-format off */
static const struct wf_key keys[] = {
    NUMBER(d_model, "64", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "8", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(d_ff, "256", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(layers, "6", 1, 1024, "blocks", .role = WF_KEY_LAYERS, .also = "encoder_layers decoder_layers num_encoder_layers"),
    NUMBER(context, "128", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT, .also = "max_length positions"),
    NUMBER(vocab_size, "1000", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB, .also = "source_vocab_size"),
    NUMBER(dropout, "0.1", 0, 1, "dropout probability", .below = true, .resumable = true, .also = "inner_dropout dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop embd_pdrop attn_pdrop resid_dropout residual_dropout attention_dropout attn_dropout attention_probs_dropout_prob activation_dropout relu_dropout"),
    WORD(activation, "relu", wf_activation_words, "activation of the feed-forward", .role = WF_KEY_ACTIVATION),
    WORD(norm, "post", wf_norm_words, "position of the norms: after the residual sum, or before the sublayer", .also = "encoder_normalize_before decoder_normalize_before normalize_before norm_first pre_norm layer_norm_first"),
    BOOL(final_norm, "true", "a norm after the last block"),
    BOOL(tied, "false", "the output layer shares the embedding", .also = "shared tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
    BOOL(bias, "true", "linear layers and norms have a bias", .also = "use_bias attention_bias mlp_bias add_bias_linear"),
    BOOL(scale_embeddings, "true", "embeddings are multiplied by sqrt(d_model)", .also = "scale_embedding no_scale_embedding"),
};
/* clang-format on */

struct block {
    struct wf_mha attn;
    struct wf_ffn ffn;
    struct wf_layer_norm norm1, norm2;
    bool pre;
};

static void block_init(wf_scope s, struct block *b, const struct encoder_config *c)
{
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .no_bias = !c->bias, .residual_dropout = c->dropout);
    wf_layer_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .no_bias = !c->bias);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = c->activation, .no_bias = !c->bias, .dropout = c->dropout,
                .residual_dropout = c->dropout);
    wf_layer_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .no_bias = !c->bias);
    b->pre = c->norm == WF_NORM_PRE;
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    const struct wf_encoder_call *e = call->ctx;
    /* for each sublayer f: x + drop(f(norm(x))) if pre, else norm(x + drop(f(x))); all tensors are [B,T,d] */
    wf_tensor *h = b->pre ? wf_layer_norm_forward(&b->norm1, x) : x;
    wf_tensor *sum = wf_mha_forward(&b->attn, h, .causal = e->causal, .key_lengths = e->lengths, .mask = e->mask, .packed = e->packed,
                                    .weights = call->weights, .residual = x);
    if (b->pre)
        wf_release(h);
    x = b->pre ? sum : wf_layer_norm_forward(&b->norm1, sum);
    h = b->pre ? wf_layer_norm_forward(&b->norm2, x) : x;
    sum = wf_ffn_forward(&b->ffn, h, .residual = x);
    wf_release(h);
    return b->pre ? sum : wf_layer_norm_forward(&b->norm2, sum);
}

struct encoder {
    struct wf_embedding embed;
    struct wf_positions positions;
    struct wf_layer_norm norm;
    struct wf_linear head;
    bool final_norm;
    int64_t layers;
    struct block block[];
};

static void encoder_init(wf_scope s, void *model, const void *config)
{
    const struct encoder_config *c = config;
    struct encoder *m = model;
    m->layers = c->layers;
    m->final_norm = c->final_norm;
    /* Embeddings that are multiplied by sqrt(d) start at N(0, 1/d), so the product is about as large as the position encodings. With
     * PyTorch's default N(0, 1) and d = 64 it would be eight times as large. Then the softmax of the first layer saturates, its gradients
     * vanish, and the tokens never learn to attend to each other. */
    double scale = c->scale_embeddings ? sqrt((double)c->d_model) : 1;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model, .scale = scale, .init = {WF_INIT_NORMAL, 1 / scale});
    wf_positions_init(wf_sub(s, "positions"), &m->positions, c->context, c->d_model);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    if (m->final_norm)
        wf_layer_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model, .no_bias = !c->bias);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = !c->bias, .tied = c->tied ? m->embed.weight : NULL);
}

static wf_tensor *encoder_hidden(const void *model, wf_tensor *ids, const struct wf_encoder_call *call)
{
    const struct encoder *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *tokens = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d], or [N] -> [N,d] */
    wf_tensor *x =
        call->packed.offsets ? wf_positions_packed(&m->positions, tokens, call->packed) : wf_positions_forward(&m->positions, tokens, NULL);
    wf_release(tokens);
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .weights = call->weights, .ctx = call, .since = start);
    return m->final_norm ? wf_layer_norm_forward(&m->norm, x) : x;
}

/* clang-format off */
static const struct wf_preset presets[] = {
    {"encoder-attention", "an encoder over words, trained by masked-language modelling, for visualising attention",
     "tokenizer=word steps=6000 batch=32 min_lr=1e-4 warmup=100 schedule=cosine weight_decay=0.01 save_every=500 valid_every=500"},
};
/* clang-format on */

const struct wf_family family_encoder = {
    .abi = WF_FAMILY_ABI,
    .name = "encoder",
    .kind = WF_MODEL_ENCODER,
    .config_size = sizeof(struct encoder_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .size = sizeof(struct encoder),
    .block_size = sizeof(struct block),
    .init = encoder_init,
    .head = WF_HEAD_AT(struct encoder, head),
    .hidden = encoder_hidden,
};
