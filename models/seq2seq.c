/* SPDX-License-Identifier: MIT */
/* The encoder-decoder of Vaswani et al. 2017. Norms come after the residual sums or before the sublayers, and optionally after the last
 * block of encoder and decoder. Source and target have an embedding each or share one, and the output layer can be tied to the target
 * embedding. Positions are sinusoidal.
 *
 * Parameters: embed.weight [V,d] when shared, else source_embed.weight [V_source,d] and target_embed.weight [V,d];
 * encoder.N.{attn.qkv,attn.out,norm1,ffn.up,ffn.down,norm2}, encoder_norm,
 * decoder.N.{self.qkv,self.out,norm1,cross.q,cross.kv,cross.out,norm2,ffn.up,ffn.down,norm3}, decoder_norm,
 * and head.{weight [V,d],bias [V]} unless it is tied. */
#include <math.h>

#include <weft/nn.h>

#include <weft/family.h>

struct seq2seq_config {
    int64_t d_model, heads, d_ff, encoder_layers, decoder_layers;
    int64_t max_length, positions, vocab_size, source_vocab_size;
    double dropout;
    bool inner_dropout;
    enum wf_activation activation;
    enum wf_norm_place norm;
    bool final_norm, shared, tied, bias, scale_embeddings, xavier, source_bos, source_eos;
};

#define NUMBER(...) WF_NUMBER_KEY(struct seq2seq_config, __VA_ARGS__)
#define BOOL(...) WF_BOOL_KEY(struct seq2seq_config, __VA_ARGS__)
#define WORD(...) WF_WORD_KEY(struct seq2seq_config, __VA_ARGS__)
/* clang-format off */
static const struct wf_key keys[] = {
    NUMBER(d_model, "128", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(d_ff, "512", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(encoder_layers, "2", 1, 1024, "blocks of the encoder", .role = WF_KEY_ENCODER_LAYERS, .also = "layers"),
    NUMBER(decoder_layers, "2", 1, 1024, "blocks of the decoder", .role = WF_KEY_LAYERS, .also = "layers"),
    NUMBER(max_length, "512", 2, 1048576, "maximum length of a sentence in tokens, special tokens included; longer pairs are skipped", .role = WF_KEY_CONTEXT, .also = "context"),
    NUMBER(positions, "0", 0, 1048576, "number of positions in the table of position encodings; 0: max_length"),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained, the target's with shared=false; 0: no limit", .role = WF_KEY_VOCAB),
    NUMBER(source_vocab_size, "0", 0, 16777216, "the same for the source tokenizer with shared=false; 0: vocab_size", .role = WF_KEY_SOURCE_VOCAB),
    NUMBER(dropout, "0.1", 0, 1, "dropout probability", .below = true, .resumable = true, .also = "dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop embd_pdrop attn_pdrop resid_dropout residual_dropout"),
    BOOL(inner_dropout, "true", "dropout also on attention weights and inside the feed-forward", .resumable = true, .also = "attention_dropout attn_dropout attention_probs_dropout_prob activation_dropout relu_dropout"),
    WORD(activation, "relu", wf_activation_words, "activation of the feed-forward", .role = WF_KEY_ACTIVATION),
    WORD(norm, "pre", wf_norm_words, "position of the norms: after the residual sum, or before the sublayer", .also = "encoder_normalize_before decoder_normalize_before normalize_before norm_first pre_norm layer_norm_first"),
    BOOL(final_norm, "true", "a norm after each stack"),
    BOOL(shared, "false", "one tokenizer and embedding for source and target", .role = WF_KEY_SHARED),
    BOOL(tied, "false", "the output layer shares the embedding", .also = "tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
    BOOL(bias, "true", "linear layers and norms have a bias", .also = "use_bias attention_bias mlp_bias add_bias_linear"),
    BOOL(scale_embeddings, "false", "embeddings are multiplied by sqrt(d_model)", .also = "scale_embedding no_scale_embedding"),
    BOOL(xavier, "false", "Xavier-uniform matrices, zero biases, embeddings N(0, 1/d_model); false: PyTorch's defaults"),
    BOOL(source_bos, "false", "the source begins with the start token", .role = WF_KEY_SOURCE_BOS),
    BOOL(source_eos, "false", "the source ends with the end token", .role = WF_KEY_SOURCE_EOS),
};
/* clang-format on */

struct block {
    struct wf_mha self, cross;
    struct wf_ffn ffn;
    struct wf_layer_norm norm1, norm2, norm3;
    bool pre;
};

static void norm_init(wf_scope s, const char *name, struct wf_layer_norm *norm, const struct seq2seq_config *c)
{
    wf_layer_norm_init(wf_sub(s, name), norm, c->d_model, .no_bias = !c->bias);
}

static void mha_init(wf_scope s, const char *name, struct wf_mha *m, const struct seq2seq_config *c, bool cross)
{
    wf_mha_init(wf_sub(s, name), m, c->d_model, (int)c->heads, .cross = cross, .no_bias = !c->bias,
                .dropout = c->inner_dropout ? c->dropout : 0, .residual_dropout = c->dropout);
}

static void block_init(wf_scope s, struct block *b, const struct seq2seq_config *c, bool decoder)
{
    mha_init(s, decoder ? "self" : "attn", &b->self, c, false);
    norm_init(s, "norm1", &b->norm1, c);
    if (decoder) {
        mha_init(s, "cross", &b->cross, c, true);
        norm_init(s, "norm2", &b->norm2, c);
    }
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = c->activation, .no_bias = !c->bias,
                .dropout = c->inner_dropout ? c->dropout : 0, .residual_dropout = c->dropout);
    norm_init(s, decoder ? "norm3" : "norm2", decoder ? &b->norm3 : &b->norm2, c);
    b->pre = c->norm == WF_NORM_PRE;
}

/* A sublayer f computes x + drop(f(norm(x))) if b->pre, else norm(x + drop(f(x))). enter() returns the input h of f, entered() releases it
 * after f unless it is x itself, and leave() turns the residual sum into the result. */
static wf_tensor *enter(const struct block *b, const struct wf_layer_norm *norm, wf_tensor *x)
{
    return b->pre ? wf_layer_norm_forward(norm, x) : x;
}

static void entered(wf_tensor *h, const wf_tensor *x)
{
    if (h != x)
        wf_release(h);
}

static wf_tensor *leave(const struct block *b, const struct wf_layer_norm *norm, wf_tensor *sum)
{
    return b->pre ? sum : wf_layer_norm_forward(norm, sum);
}

static wf_tensor *feed_forward(const struct block *b, const struct wf_layer_norm *norm, wf_tensor *x)
{
    wf_tensor *h = enter(b, norm, x), *sum = wf_ffn_forward(&b->ffn, h, .residual = x);
    entered(h, x);
    return leave(b, norm, sum);
}

static wf_tensor *encoder_block(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    const struct wf_packed *source = call->ctx;
    wf_tensor *h = enter(b, &b->norm1, x);
    wf_tensor *sum = wf_mha_forward(&b->self, h, .packed = *source, .weights = call->weights, .residual = x); /* [M,d] */
    entered(h, x);
    x = leave(b, &b->norm1, sum);
    wf_tensor *y = feed_forward(b, &b->norm2, x);
    wf_release(x);
    return y;
}

/* x [N,d] -> x + self-attention [N,d]. Without a cache x holds packed targets. With a cache x holds T new tokens for each of its R rows,
 * N = R T, and each row attends to its own tokens in the cache. */
static wf_tensor *decoder_self(const struct block *b, wf_tensor *x, const struct wf_packed *target, struct wf_kv *cache,
                               wf_tensor **weights)
{
    wf_tensor *h = enter(b, &b->norm1, x), *y;
    if (!cache) {
        y = wf_mha_forward(&b->self, h, .causal = true, .packed = *target, .weights = weights, .residual = x);
        entered(h, x);
        return y;
    }
    const int64_t rows = cache->cache->rows, d = wf_dim(x, -1);
    y = wf_mha_forward(&b->self, wf_reshape(h, rows, -1, d), .causal = true, .cache = cache, .residual = wf_reshape(x, rows, -1, d));
    return wf_reshape(y, wf_dim(x, 0), d);
}

static wf_tensor *decoder_block(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    const struct wf_decoding *d = call->ctx;
    const int64_t i = call->index;
    x = leave(b, &b->norm1, decoder_self(b, x, &d->target, call->cache, call->weights)); /* [N,d] */
    wf_tensor *h = enter(b, &b->norm2, x);
    wf_tensor *sum =
        wf_mha_forward(&b->cross, h, .memory = d->kv ? NULL : d->memory, .memory_kv = d->kv ? d->kv[i] : NULL, .packed = d->target,
                       .k_packed = d->source, .weights = d->cross_weights ? &d->cross_weights[i] : NULL, .residual = x);
    entered(h, x);
    wf_tensor *y = leave(b, &b->norm2, sum), *z = feed_forward(b, &b->norm3, y); /* [N,d] */
    wf_release(x);
    wf_release(y);
    return z;
}

struct seq2seq {
    struct wf_embedding source, target;
    struct wf_positions positions;
    struct wf_dropout drop;
    struct wf_layer_norm encoder_norm, decoder_norm;
    struct wf_linear head;
    bool final_norm;
    int64_t encoder_layers, decoder_layers;
    struct block block[]; /* the blocks of the encoder, then those of the decoder */
};

static void seq2seq_init(wf_scope s, void *model, const void *config)
{
    const struct seq2seq_config *c = config;
    struct seq2seq *m = model;
    int64_t source_vocab = c->source_vocab_size > 0 ? c->source_vocab_size : c->vocab_size;
    double scale = c->scale_embeddings ? sqrt((double)c->d_model) : 1;
    if (c->xavier)
        s = wf_with_init(s, &(struct wf_init_rules){.weight = {WF_INIT_XAVIER_UNIFORM},
                                                    .bias = {WF_INIT_CONSTANT, 0},
                                                    .embedding = {WF_INIT_NORMAL, 1 / sqrt((double)c->d_model)}});
    m->encoder_layers = c->encoder_layers;
    m->decoder_layers = c->decoder_layers;
    m->final_norm = c->final_norm;
    wf_embedding_init(wf_sub(s, c->shared ? "embed" : "source_embed"), &m->source, source_vocab, c->d_model, .scale = scale);
    wf_embedding_init(wf_sub(s, "target_embed"), &m->target, c->vocab_size, c->d_model, .scale = scale,
                      .tied = c->shared ? m->source.weight : NULL);
    wf_positions_init(wf_sub(s, "positions"), &m->positions, c->positions > 0 ? c->positions : c->max_length, c->d_model);
    wf_dropout_init(s, &m->drop, c->dropout);
    for (int64_t i = 0; i < m->encoder_layers; i++)
        block_init(wf_sub_at(s, "encoder", i), &m->block[i], c, false);
    if (m->final_norm)
        norm_init(s, "encoder_norm", &m->encoder_norm, c);
    for (int64_t i = 0; i < m->decoder_layers; i++)
        block_init(wf_sub_at(s, "decoder", i), &m->block[m->encoder_layers + i], c, true);
    if (m->final_norm)
        norm_init(s, "decoder_norm", &m->decoder_norm, c);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = c->tied || !c->bias,
                   .tied = c->tied ? m->target.weight : NULL);
}

static wf_tensor *embed(const struct seq2seq *m, const struct wf_embedding *embedding, wf_tensor *ids, const struct wf_packed *at,
                        const struct wf_cache *cache)
{
    wf_tensor *tokens = wf_embedding_forward(embedding, ids); /* [N] -> [N,d]; with a cache [R,T] -> [R,T,d] */
    wf_tensor *x =
        at->offsets && !cache ? wf_positions_packed(&m->positions, tokens, *at) : wf_positions_forward(&m->positions, tokens, cache);
    wf_release(tokens);
    return wf_dropout_forward(&m->drop, x);
}

static wf_tensor *seq2seq_encode(const void *model, wf_tensor *ids, const struct wf_packed *source, wf_tensor **weights)
{
    const struct seq2seq *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *x = embed(m, &m->source, ids, source, NULL); /* [M] -> [M,d] */
    x = wf_blocks_forward(m->block, m->encoder_layers, encoder_block, x, .weights = weights, .ctx = source, .since = start);
    return m->final_norm ? wf_layer_norm_forward(&m->encoder_norm, x) : x;
}

static wf_tensor *seq2seq_memory(const void *model, int64_t layer, wf_tensor *memory)
{
    const struct seq2seq *m = model;
    return wf_mha_memory(&m->block[m->encoder_layers + layer].cross, memory); /* [M,d] -> [M,2d] */
}

static wf_tensor *seq2seq_decode(const void *model, wf_tensor *ids, const struct wf_decoding *d)
{
    const struct seq2seq *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *x = embed(m, &m->target, ids, &d->target, d->cache); /* [N] -> [N,d]; with a cache [R,T] -> [R,T,d] */
    if (d->cache)
        x = wf_reshape(x, -1, wf_dim(x, -1)); /* [R,T,d] -> [R T,d] */
    x = wf_blocks_forward(m->block + m->encoder_layers, m->decoder_layers, decoder_block, x, .cache = d->cache, .weights = d->weights,
                          .ctx = d, .keep = d->cross_weights, .since = start);
    return m->final_norm ? wf_layer_norm_forward(&m->decoder_norm, x) : x;
}

static wf_status seq2seq_check(const void *config, wf_error *error)
{
    const struct seq2seq_config *c = config;
    if (c->positions > 0 && c->positions < c->max_length)
        return wf_key_conflict("max_length", (double)c->max_length, "be at most", "positions", (double)c->positions, error);
    if (c->shared && c->source_vocab_size > 0 && c->source_vocab_size != c->vocab_size)
        return wf_key_conflict("source_vocab_size", (double)c->source_vocab_size, "be 0 with shared=true, or equal", "vocab_size",
                               (double)c->vocab_size, error);
    return WF_OK;
}

/* The settings that the base and the big model of Vaswani et al. 2017 have in common. */
#define VASWANI_2017                                                                                                                       \
    "encoder_layers=6 decoder_layers=6 vocab_size=37000 norm=post shared=true tied=true scale_embeddings=true xavier=true "                \
    "source_bos=true source_eos=true min_frequency=2 batch_tokens=24000 batch_tolerance=512 batch_window=4096 warmup=4000 "                \
    "schedule=inverse_sqrt beta2=0.98 eps=1e-9 label_smoothing=0.1 save_every=100 valid_every=200 keep=10 beam=4 extra_tokens=50 "

/* clang-format off */
static const struct wf_preset presets[] = {
    {"seq2seq-tiny", "an encoder-decoder over words for a handful of sentence pairs; trains in a second",
     "d_model=32 d_ff=128 positions=5000 tokenizer=word steps=200 batch_tokens=0 clip=0 save_every=100 valid_every=100 max_tokens=20"},
    {"seq2seq-postnorm", "a small encoder-decoder with the norm after each sublayer and one embedding for both sides",
     "heads=8 vocab_size=1000 positions=5000 dropout=0 inner_dropout=false norm=post final_norm=false shared=true "
     "batch_window=4096 lr=1e-4 clip=0 save_every=100 valid_every=200 extra_tokens=50"},
    {"transformer-base", "the base model of Vaswani et al. 2017, for millions of sentence pairs",
     VASWANI_2017 "d_model=512 heads=8 d_ff=2048 steps=100000 accumulate=8 lr=6.98771e-4 keep_every=10000"},
    {"transformer-big", "the big model of Vaswani et al. 2017",
     VASWANI_2017 "d_model=1024 heads=16 d_ff=4096 dropout=0.3 steps=300000 accumulate=16 lr=4.94106e-4 keep_every=100000"},
    {"multi30k", "an encoder-decoder sized for one CPU and tens of thousands of sentence pairs, such as Multi30k",
     "d_ff=256 encoder_layers=4 decoder_layers=4 vocab_size=10000 dropout=0.2 inner_dropout=false shared=true tied=true "
     "scale_embeddings=true xavier=true source_eos=true steps=3000 batch_cost=side lr=2e-3 warmup=400 schedule=inverse_sqrt "
     "beta2=0.98 eps=1e-9 label_smoothing=0.1 save_every=100 keep=10 beam=5 extra_tokens=50"},
};
/* clang-format on */

const struct wf_family family_seq2seq = {
    .abi = WF_FAMILY_ABI,
    .name = "seq2seq",
    .kind = WF_MODEL_PAIRS,
    .config_size = sizeof(struct seq2seq_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .check = seq2seq_check,
    .size = sizeof(struct seq2seq),
    .block_size = sizeof(struct block),
    .init = seq2seq_init,
    .head = WF_HEAD_AT(struct seq2seq, head),
    .encode = seq2seq_encode,
    .memory = seq2seq_memory,
    .decode = seq2seq_decode,
};
