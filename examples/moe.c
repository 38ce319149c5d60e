/* SPDX-License-Identifier: MIT */
/* A language model of attention and mixtures of experts (Shazeer et al. 2017; Mixtral, Jiang et al. 2024) in one file outside Weft: each
 * token goes through 2 of the 8 feed-forward networks of a block, which its router chooses. Its loss has a term that keeps the experts'
 * loads even; metrics.jsonl shows it as balance/train. The program has the whole command:
 *
 *   cc moe.c $(pkg-config --cflags --libs weft) -o moe
 *   ./moe train moe-small --train FILE --out RUN            also --resume, --set experts=4, --steps
 *   ./moe evaluate RUN --data FILE --json
 *   ./moe generate RUN --prompt 'The '
 *
 * Its 300 updates learn a story of 6.6 KB (tests/golden/story.txt) to at most 1.3 bits per character (evaluate); characters drawn by their
 * frequency alone need 4.2.
 */
#include <stdio.h>

#include <weft/weft.h>

struct moe_config {
    int64_t d_model, heads, d_ff, experts, chosen, layers, context, vocab_size;
    double balance;
};

#define NUMBER(...) WF_NUMBER_KEY(struct moe_config, __VA_ARGS__)
static const struct wf_key keys[] = {
    NUMBER(d_model, "64", 1, 65536, "model width", .role = WF_KEY_WIDTH),
    NUMBER(heads, "4", 1, 1024, "attention heads; a divisor of d_model", .role = WF_KEY_HEADS),
    NUMBER(d_ff, "128", 1, 262144, "inner width of an expert", .role = WF_KEY_FFN_WIDTH),
    NUMBER(experts, "8", 1, 1024, "experts of a block"),
    NUMBER(chosen, "2", 1, 1024, "experts that a token goes through; at most experts"),
    NUMBER(layers, "2", 1, 1024, "blocks", .role = WF_KEY_LAYERS),
    NUMBER(context, "64", 1, 1048576, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT),
    NUMBER(balance, "0.01", 0, 100, "weight of the balancing term of the loss", .resumable = true),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB),
};
static const struct wf_preset presets[] = {
    {"moe-small", "a mixture of experts for characters", "steps=300 batch=16 lr=4e-3 min_lr=4e-4 warmup=20 schedule=cosine"},
};

static wf_status check(const void *config, wf_error *error)
{
    const struct moe_config *c = config;
    if (c->chosen > c->experts)
        return wf_key_conflict("chosen", (double)c->chosen, "be at most", "experts", (double)c->experts, error);
    return WF_OK;
}

struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_moe moe;
};
struct model {
    struct wf_embedding embed;
    struct wf_rms_norm norm;
    struct wf_linear head;
    int64_t layers;
    double balance;
    struct block block[]; /* .block_size below gives the room */
};

static void init(wf_scope s, void *model, const void *config)
{
    const struct moe_config *c = config;
    struct model *m = model;
    m->layers = c->layers;
    m->balance = c->balance;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    for (int64_t i = 0; i < m->layers; i++) {
        wf_scope b = wf_sub_at(s, "blocks", i);
        wf_rms_norm_init(wf_sub(b, "norm1"), &m->block[i].norm1, c->d_model);
        wf_mha_init(wf_sub(b, "attn"), &m->block[i].attn, c->d_model, (int)c->heads, .rope = true, .no_bias = true);
        wf_rms_norm_init(wf_sub(b, "norm2"), &m->block[i].norm2, c->d_model);
        wf_moe_init(wf_sub(b, "moe"), &m->block[i].moe, c->d_model, c->d_ff, (int)c->experts, .chosen = (int)c->chosen,
                    .activation = WF_SWIGLU, .no_bias = true);
    }
    wf_rms_norm_init(wf_sub(s, "norm"), &m->norm, c->d_model);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size, .no_bias = true);
}

static bool balances(const struct model *m, wf_tensor *x)
{
    return m->balance > 0 && wf_loss_term_wanted(wf_tape_of(x));
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    const struct model *m = call->ctx;
    const bool balance = balances(m, x);
    struct wf_moe_routing routing;
    x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm1, x), .causal = true, .cache = call->cache, .weights = call->weights,
                       .residual = x);
    x = wf_moe_forward(&b->moe, wf_rms_norm_forward(&b->norm2, x), .residual = x, .routing = balance ? &routing : NULL);
    if (balance)
        wf_loss_term_add(wf_tape_of(x), wf_scale(wf_moe_balance(&routing, 1), m->balance / (double)m->layers));
    return x;
}

static wf_tensor *forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct model *m = model;
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    /* keep: the terms of the loss outlive their block */
    x = wf_blocks_forward(m->block, m->layers, block_forward, x, .cache = cache, .weights = weights, .ctx = m, .keep = balances(m, x));
    return wf_rms_norm_forward(&m->norm, x);
}

static const struct wf_family family = {
    .abi = WF_FAMILY_ABI,
    .name = "moe",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct moe_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .check = check,
    .size = sizeof(struct model),
    .block_size = sizeof(struct block),
    .init = init,
    .forward = forward,
    .head = WF_HEAD_AT(struct model, head),
    .loss_term = "balance",
};

int main(int argc, char **argv)
{
    wf_error error = {0};
    if (wf_family_register(&family, &error) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    return wf_main(argc, argv);
}
