/* SPDX-License-Identifier: MIT */
/* BERT (Devlin et al. 2019), as Hugging Face's BertModel computes it, but without the pooler: the sum of word, segment and position
 * embeddings, a norm, then blocks with a norm after each residual sum. MiniLM (Wang et al. 2020) is a small BERT.
 *
 * Parameters: embed.weight [V,d], segments.weight [S,d], positions.weight [context,d], norm,
 * blocks.N.{attn.qkv,attn.out,norm1,ffn.up,ffn.down,norm2}. With an output layer for masked tokens (BertForMaskedLM) also transform.dense,
 * transform.norm and head.{weight [V,d],bias [V]}; a tied head has only the bias. `rules` below maps Hugging Face's names to these. */
#include <string.h>

#include <weft/nn.h>

#include "foreign.h"

struct bert_config {
    int64_t d_model, heads, d_ff, layers, context, vocab_size, segments;
    double dropout, attention_dropout, norm_eps;
    enum wf_activation activation;
    bool masked_head, tied;
};

#define NUMBER(...) WF_NUMBER_KEY(struct bert_config, __VA_ARGS__)
/* clang-format off */
static const struct wf_key keys[] = { /* the defaults are Hugging Face's */
    NUMBER(d_model, "768", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "12", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(d_ff, "3072", 1, 262144, "inner width of the feed-forward", .role = WF_KEY_FFN_WIDTH),
    NUMBER(layers, "12", 1, 1024, "blocks", .role = WF_KEY_LAYERS, .also = "encoder_layers num_encoder_layers"),
    NUMBER(context, "512", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT, .also = "max_length positions"),
    NUMBER(vocab_size, "30522", 1, 16777216, "vocabulary size", .role = WF_KEY_VOCAB),
    NUMBER(segments, "2", 1, 1024, "number of segment types", .role = WF_KEY_SEGMENTS),
    NUMBER(dropout, "0.1", 0, 1, "dropout probability", .below = true, .resumable = true, .also = "dropout_rate hidden_dropout hidden_dropout_prob classifier_dropout resid_pdrop embd_pdrop attn_pdrop resid_dropout residual_dropout"),
    NUMBER(attention_dropout, "0.1", 0, 1, "dropout probability of attention weights", .below = true, .resumable = true, .also = "attn_dropout attention_probs_dropout_prob"),
    NUMBER(norm_eps, "1e-12", 0, 1, "epsilon of the norms", .above = true, .also = "layer_norm_eps layer_norm_epsilon rms_norm_eps layernorm_epsilon norm_epsilon"),
    WF_WORD_KEY(struct bert_config, activation, "gelu", wf_activation_words, "activation of the feed-forward", .role = WF_KEY_ACTIVATION),
    WF_BOOL_KEY(struct bert_config, masked_head, "false", "an output layer for masked tokens; every training has it", .role = WF_KEY_HEAD),
    WF_BOOL_KEY(struct bert_config, tied, "true", "the output layer shares the embedding", .also = "tie_word_embeddings tie_embeddings tie_weights weight_tying share_decoder_input_output_embed share_input_output_embed"),
};
/* clang-format on */

struct block {
    struct wf_mha attn;
    struct wf_ffn ffn;
    struct wf_layer_norm norm1, norm2;
};

static void block_init(wf_scope s, struct block *b, const struct bert_config *c)
{
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .dropout = c->attention_dropout, .residual_dropout = c->dropout);
    wf_layer_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .eps = c->norm_eps);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = c->activation, .residual_dropout = c->dropout);
    wf_layer_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .eps = c->norm_eps);
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    const struct wf_encoder_call *e = call->ctx;
    x = wf_mha_forward(&b->attn, x, .causal = e->causal, .key_lengths = e->lengths, .mask = e->mask, .packed = e->packed,
                       .weights = call->weights, .residual = x); /* [B,T,d] */
    x = wf_layer_norm_forward(&b->norm1, x);
    wf_tensor *sum = wf_ffn_forward(&b->ffn, x, .residual = x);
    wf_release(x);
    return wf_layer_norm_forward(&b->norm2, sum); /* [B,T,d] */
}

struct bert {
    struct wf_embedding embed, segments;
    struct wf_positions positions;
    struct wf_layer_norm norm;
    struct wf_dropout drop;
    struct wf_linear transform; /* first linear layer after the blocks, before transform_norm; without masked_head it has no weight */
    struct wf_linear head;      /* linear layer that gives the logits; without masked_head it has no weight */
    struct wf_layer_norm transform_norm;
    enum wf_activation activation;
    int64_t layers;
    struct block block[];
};

static void bert_init(wf_scope s, void *model, const void *config)
{
    const struct bert_config *c = config;
    struct bert *m = model;
    s = wf_with_init(
        s, &(struct wf_init_rules){.weight = {WF_INIT_NORMAL, 0.02}, .embedding = {WF_INIT_NORMAL, 0.02}, .bias = {WF_INIT_CONSTANT, 0}});
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    wf_embedding_init(wf_sub(s, "segments"), &m->segments, c->segments, c->d_model, .real_only = true); /* segment_vectors */
    wf_positions_init(wf_sub(s, "positions"), &m->positions, c->context, c->d_model, .learned = true);
    wf_layer_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model, .eps = c->norm_eps);
    wf_dropout_init(s, &m->drop, c->dropout);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
    m->activation = c->activation;
    if (!c->masked_head)
        return;
    wf_linear_init(wf_sub(wf_sub(s, "transform"), "dense"), &m->transform, c->d_model, c->d_model);
    wf_layer_norm_init(wf_sub(wf_sub(s, "transform"), "norm"), &m->transform_norm, c->d_model, .eps = c->norm_eps);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .tied = c->tied ? m->embed.weight : NULL);
}

/* The segment vectors to add to the token vectors: one for each id. If segments is NULL, all ids have segment 0, and the result is a single
 * vector [1,d]. */
static wf_tensor *segment_vectors(const struct bert *m, wf_tensor *ids, const int32_t *segments)
{
    wf_tape *tape = wf_tape_of(ids);
    wf_shape shape = wf_shape_of(ids);
    wf_tape_use(tape); /* the wf_slice below uses this tape, because its operand is a parameter, which is on no tape */
    if (!segments)
        return wf_slice(m->segments.weight, 0, 0, 1); /* [1,d] */
    return wf_embedding_forward(&m->segments, wf_ids_of(tape, segments, &shape));
}

static wf_tensor *bert_hidden(const void *model, wf_tensor *ids, const struct wf_encoder_call *call)
{
    const struct bert *m = model;
    const wf_tape_mark start = wf_tape_here(wf_tape_of(ids));
    wf_tensor *tokens = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d], or [N] -> [N,d] */
    wf_tensor *sum = wf_add(tokens, segment_vectors(m, ids, call->segments));
    wf_release(tokens);
    wf_tensor *x =
        call->packed.offsets ? wf_positions_packed(&m->positions, sum, call->packed) : wf_positions_forward(&m->positions, sum, NULL);
    wf_release(sum);
    x = wf_dropout_forward(&m->drop, wf_layer_norm_forward(&m->norm, x));
    return wf_blocks_forward(m->block, m->layers, block_forward, x, .weights = call->weights, .ctx = call, .since = start);
}

/* norm(act(x W' + b)); [..,d] -> [..,d] */
static wf_tensor *bert_before_head(const void *model, wf_tensor *x)
{
    const struct bert *m = model;
    wf_tensor *up = wf_linear_forward(&m->transform, x), *active;
    active = m->activation == WF_GELU        ? wf_gelu(up)
             : m->activation == WF_GELU_TANH ? wf_gelu_tanh(up)
             : m->activation == WF_RELU      ? wf_relu(up)
                                             : wf_silu(up);
    wf_release(up);
    x = wf_layer_norm_forward(&m->transform_norm, active);
    wf_release(active);
    return x;
}

/* --- weights of Hugging Face --------------------------------------------------------------------------------------- */

/* The names of norms and linear layers, Weft's first. Files from before a renaming in 2019 call a norm's weight gamma and its bias beta. */
/* clang-format off */
#define NORM(ours, theirs) \
    {ours ".weight", {theirs ".weight"}}, {ours ".weight", {theirs ".gamma"}}, \
    {ours ".bias", {theirs ".bias"}}, {ours ".bias", {theirs ".beta"}}
#define LINEAR(ours, theirs) {ours ".weight", {theirs ".weight"}}, {ours ".bias", {theirs ".bias"}}
/* clang-format on */
#define LAYER "encoder.layer.*."
#define SELF LAYER "attention.self."

static const struct wf_load_rule rules[] = {
    {"embed.weight", {"embeddings.word_embeddings.weight"}},
    {"segments.weight", {"embeddings.token_type_embeddings.weight"}},
    {"positions.weight", {"embeddings.position_embeddings.weight"}},
    NORM("norm", "embeddings.LayerNorm"),
    {"blocks.*.attn.qkv.weight", {SELF "query.weight", SELF "key.weight", SELF "value.weight"}},
    {"blocks.*.attn.qkv.bias", {SELF "query.bias", SELF "key.bias", SELF "value.bias"}},
    LINEAR("blocks.*.attn.out", LAYER "attention.output.dense"),
    NORM("blocks.*.norm1", LAYER "attention.output.LayerNorm"),
    LINEAR("blocks.*.ffn.up", LAYER "intermediate.dense"),
    LINEAR("blocks.*.ffn.down", LAYER "output.dense"),
    NORM("blocks.*.norm2", LAYER "output.LayerNorm"),
    LINEAR("transform.dense", "/cls.predictions.transform.dense"),
    NORM("transform.norm", "/cls.predictions.transform.LayerNorm"),
    {"head.weight", {"/cls.predictions.decoder.weight"}},
    {"head.bias", {"/cls.predictions.bias"}},
    {"head.bias", {"/cls.predictions.decoder.bias"}},
};

/* Tensors of the file that are not loaded: the pooler, other output layers, tensors that the file holds twice, and a table of the positions
 * 0, 1, 2, ... */
static const char *const ignored[] = {"pooler.*", "cls.*", "embeddings.position_ids", NULL};

static const struct foreign_weights weights = {"bert.", "embeddings.word_embeddings.weight", rules, sizeof rules / sizeof *rules, ignored};

static wf_status bert_load(wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options, wf_error *error)
{
    if (wf_safetensors_find(file, "embed.weight")) /* the file has Weft's names */
        return wf_registry_load_with(registry, file, options, error);
    return foreign_load(registry, file, options, &weights, error);
}

/* --- Hugging Face's config.json ------------------------------------------------------------------------------------ */

static void refuse_others(struct wf_json_reader *r)
{
    static const char *const truths[] = {"is_decoder", "add_cross_attention", "is_encoder_decoder"};
    const char *positions = "absolute";
    json_t *pruned = NULL;
    wf_json_read_string(r, "position_embedding_type", WF_JSON_OPTIONAL, &positions);
    if (strcmp(positions, "absolute") != 0)
        foreign_refuse(r, "position_embedding_type", positions, "only \"absolute\"");
    wf_json_read_object(r, "pruned_heads", WF_JSON_OPTIONAL, &pruned);
    if (pruned && json_object_size(pruned) > 0)
        foreign_refuse(r, "pruned_heads", NULL, "models with pruned heads are not supported");
    foreign_expect_floats(r);
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++)
        foreign_expect_bool(r, truths[i], false, "only a BERT encoder is supported");
}

static wf_status bert_read(const json_t *object, const char *path, void *config, wf_error *error)
{
    struct bert_config *c = config;
    struct wf_json_reader r = {.object = object, .where = path, .error = error};
    refuse_others(&r);
    wf_json_read_int(&r, "vocab_size", WF_JSON_REQUIRED, 1, 16777216, &c->vocab_size);
    wf_json_read_int(&r, "hidden_size", WF_JSON_REQUIRED, 1, 65536, &c->d_model);
    wf_json_read_int(&r, "num_hidden_layers", WF_JSON_REQUIRED, 1, 1024, &c->layers);
    wf_json_read_int(&r, "num_attention_heads", WF_JSON_REQUIRED, 1, 1024, &c->heads);
    wf_json_read_int(&r, "intermediate_size", WF_JSON_REQUIRED, 1, 262144, &c->d_ff);
    wf_json_read_int(&r, "max_position_embeddings", WF_JSON_OPTIONAL, 1, 1048576, &c->context);
    wf_json_read_int(&r, "type_vocab_size", WF_JSON_OPTIONAL, 1, 1024, &c->segments);
    wf_json_read_double(&r, "layer_norm_eps", WF_JSON_OPTIONAL, 1e-300, 1, &c->norm_eps);
    wf_json_read_double(&r, "hidden_dropout_prob", WF_JSON_OPTIONAL, 0, 0.999999, &c->dropout);
    wf_json_read_double(&r, "attention_probs_dropout_prob", WF_JSON_OPTIONAL, 0, 0.999999, &c->attention_dropout);
    wf_json_read_bool(&r, "tie_word_embeddings", WF_JSON_OPTIONAL, &c->tied);
    c->activation = WF_GELU;
    foreign_read_activation(&r, "hidden_act", &c->activation);
    c->masked_head = false; /* vectors of sentences need no output layer, and few folders contain one */
    if (r.status == WF_OK && c->d_model % c->heads != 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: hidden_size %lld is not a multiple of num_attention_heads %lld", path,
                            (long long)c->d_model, (long long)c->heads);
    return r.status;
}

static wf_status bert_write(void *config, json_t *o, wf_error *error)
{
    const struct bert_config *c = config;
    foreign_put_architecture(o, c->masked_head ? "BertForMaskedLM" : "BertModel", "bert");
    foreign_put(o, "vocab_size", json_integer(c->vocab_size));
    foreign_put(o, "hidden_size", json_integer(c->d_model));
    foreign_put(o, "num_hidden_layers", json_integer(c->layers));
    foreign_put(o, "num_attention_heads", json_integer(c->heads));
    foreign_put(o, "intermediate_size", json_integer(c->d_ff));
    foreign_put(o, "max_position_embeddings", json_integer(c->context));
    foreign_put(o, "type_vocab_size", json_integer(c->segments));
    foreign_put(o, "layer_norm_eps", json_real(c->norm_eps));
    foreign_put(o, "hidden_dropout_prob", json_real(c->dropout));
    foreign_put(o, "attention_probs_dropout_prob", json_real(c->attention_dropout));
    foreign_put(o, "initializer_range", json_real(0.02));
    foreign_put(o, "position_embedding_type", json_string("absolute"));
    foreign_put(o, "tie_word_embeddings", json_boolean(c->tied));
    return foreign_put_activation(o, "hidden_act", c->activation, error);
}

static bool is_bare(const void *config) /* BertModel itself */
{
    return !((const struct bert_config *)config)->masked_head;
}

static const struct wf_counterpart counterpart = {.write = bert_write, .weights = &weights, .bare = is_bare};

/* clang-format off */
static const struct wf_preset presets[] = {
    {"bert", "BERT base; trains BERT folders further on masked tokens (--from FOLDER)",
     "masked_head=true batch=32 crop=128 frame=true lr=5e-5 warmup=100 schedule=cosine weight_decay=0.01"},
};
/* clang-format on */

const struct wf_family family_bert = {
    .abi = WF_FAMILY_ABI,
    .name = "bert",
    .kind = WF_MODEL_ENCODER,
    .config_size = sizeof(struct bert_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .model_type = "bert",
    .read = bert_read,
    .size = sizeof(struct bert),
    .block_size = sizeof(struct block),
    .init = bert_init,
    .load = bert_load,
    .head = WF_HEAD_AT(struct bert, head),
    .before_head = bert_before_head,
    .hidden = bert_hidden,
    .counterpart = &counterpart,
};
