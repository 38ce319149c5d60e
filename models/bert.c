/* SPDX-License-Identifier: MIT */
/* BERT (Devlin et al. 2019), as Hugging Face's BertModel computes it, without its pooler: word, segment and position embeddings, a norm
 * of their sum, then blocks with a norm after each residual sum. MiniLM (Wang et al. 2020) is a small one.
 *
 * Parameters: embed.weight [V,d], segments.weight [S,d], positions.weight [context,d], norm,
 * blocks.N.{attn.qkv,attn.out,norm1,ffn.up,ffn.down,norm2}. In files they have Hugging Face's names: the table below. */
#include <string.h>

#include <weft/nn.h>

#include <weft/internal/families.h>

struct block {
    struct wf_mha attn;
    struct wf_ffn ffn;
    struct wf_layer_norm norm1, norm2;
    struct wf_dropout drop;
};

static void block_init(wf_scope s, struct block *b, const struct wf_config *c)
{
    wf_mha_init(wf_sub(s, "attn"), &b->attn, c->d_model, (int)c->heads, .dropout = c->attention_dropout);
    wf_layer_norm_init(wf_sub(s, "norm1"), &b->norm1, c->d_model, .eps = c->norm_eps);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, c->d_model, c->d_ff, .activation = c->activation);
    wf_layer_norm_init(wf_sub(s, "norm2"), &b->norm2, c->d_model, .eps = c->norm_eps);
    wf_dropout_init(s, &b->drop, c->dropout);
}

static wf_tensor *block_forward(const struct block *b, wf_tensor *x, const struct wf_encoder_call *call, wf_tensor **weights)
{
    wf_tensor *y = wf_mha_forward(&b->attn, x, .causal = call->causal, .key_lengths = call->lengths, .mask = call->mask,
                                  .q_offsets = call->offsets, .sequences = call->sentences, .weights = weights);
    x = wf_layer_norm_forward(&b->norm1, wf_add(x, wf_dropout_forward(&b->drop, y))); /* [B,T,d] */
    y = wf_ffn_forward(&b->ffn, x);
    return wf_layer_norm_forward(&b->norm2, wf_add(x, wf_dropout_forward(&b->drop, y)));
}

struct bert {
    struct wf_embedding embed, segments;
    struct wf_positions positions;
    struct wf_layer_norm norm;
    struct wf_dropout drop;
    int64_t layers;
    struct block block[];
};

static void bert_init(wf_scope s, void *model, const struct wf_config *c)
{
    struct bert *m = model;
    s = wf_with_init(
        s, &(struct wf_init_rules){.weight = {WF_INIT_NORMAL, 0.02}, .embedding = {WF_INIT_NORMAL, 0.02}, .bias = {WF_INIT_CONSTANT, 0}});
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    wf_embedding_init(wf_sub(s, "segments"), &m->segments, c->segments, c->d_model);
    wf_positions_init(wf_sub(s, "positions"), &m->positions, c->context, c->d_model, .learned = true);
    wf_layer_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model, .eps = c->norm_eps);
    wf_dropout_init(s, &m->drop, c->dropout);
    for (int64_t i = 0; i < m->layers; i++)
        block_init(wf_sub_at(s, "blocks", i), &m->block[i], c);
}

/* What is added for the segments: a vector for each id, or one for all where all are of segment 0. */
static wf_tensor *segment_vectors(const struct bert *m, wf_tensor *ids, const int32_t *segments)
{
    wf_tape *tape = wf_tape_of(ids);
    wf_shape shape = wf_shape_of(ids);
    if (!segments)
        return wf_slice(wf_on(tape, m->segments.weight), 0, 0, 1); /* [1,d] */
    return wf_embedding_forward(&m->segments, wf_ids_of(tape, segments, &shape));
}

static wf_tensor *bert_hidden(const void *model, wf_tensor *ids, const struct wf_encoder_call *call)
{
    const struct bert *m = model;
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d], or [N] -> [N,d] */
    x = wf_add(x, segment_vectors(m, ids, call->segments));
    x = call->offsets ? wf_positions_packed(&m->positions, x, call->offsets, call->sentences)
                      : wf_positions_forward(&m->positions, x, NULL);
    x = wf_dropout_forward(&m->drop, wf_layer_norm_forward(&m->norm, x));
    /* Without gradients one block's memory serves all: what it made on the way stays near the processor. */
    bool reuse = wf_tape_mode(wf_tape_of(ids)) == WF_INFER && !call->weights;
    for (int64_t i = 0; i < m->layers; i++) {
        wf_tape_mark mark = wf_tape_here(wf_tape_of(ids));
        x = block_forward(&m->block[i], x, call, call->weights ? &call->weights[i] : NULL);
        x = reuse ? wf_tape_rewind(wf_tape_of(ids), mark, x) : x;
    }
    return x;
}

/* --- weights of Hugging Face --------------------------------------------------------------------------------------- */

/* Files from before 2019's renaming call a norm's weight and bias gamma and beta. */
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
};

/* Heads of the trainings, and a table of 0, 1, 2, ... */
static const char *const ignored[] = {"pooler.*", "cls.*", "embeddings.position_ids", NULL};

static wf_status bert_load(wf_registry *registry, const wf_safetensors *file, wf_error *error)
{
    /* A model with a head keeps the rest under "bert.". */
    bool within = wf_safetensors_find(file, "bert.embeddings.word_embeddings.weight") != NULL;
    struct wf_load_options o = {.prefix = within ? "bert." : "", .rule = rules, .rules = sizeof rules / sizeof *rules, .ignored = ignored};
    return wf_registry_load_with(registry, file, &o, error);
}

const struct family family_bert = {
    .name = "bert",
    .kind = WF_MODEL_ENCODER,
    .users = WF_CONFIG_READ,
    .size = sizeof(struct bert),
    .block_size = sizeof(struct block),
    .init = bert_init,
    .hidden = bert_hidden,
    .load = bert_load,
};
