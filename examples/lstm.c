/* SPDX-License-Identifier: MIT */
/* A language model of LSTM layers (Hochreiter and Schmidhuber 1997) made of ops, in one file outside Weft. It has no attention and takes no
 * cache, and the program has the whole command all the same:
 *
 *   cc lstm.c $(pkg-config --cflags --libs weft) -o lstm
 *   ./lstm train lstm-small --train FILE --out RUN          also --resume, --set layers=2, --steps
 *   ./lstm evaluate RUN --data FILE --json
 *   ./lstm generate RUN --prompt 'The '
 *
 * Its 400 updates learn a story of 6.6 KB (tests/golden/story.txt) to at most 1.3 bits per character (evaluate); characters drawn by their
 * frequency alone need 4.2.
 */
#include <stdio.h>

#include <weft/weft.h>

struct lstm_config {
    int64_t d_model, layers, context, vocab_size;
    double dropout;
};

#define NUMBER(...) WF_NUMBER_KEY(struct lstm_config, __VA_ARGS__)
static const struct wf_key keys[] = {
    NUMBER(d_model, "128", 1, 65536, "width of the state", .role = WF_KEY_WIDTH),
    NUMBER(layers, "1", 1, 1024, "LSTM layers", .role = WF_KEY_LAYERS),
    NUMBER(context, "64", 1, 4096, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT),
    NUMBER(vocab_size, "0", 0, 16777216, "maximum vocabulary size when a tokenizer is trained; 0: no limit", .role = WF_KEY_VOCAB),
    NUMBER(dropout, "0", 0, 1, "dropout probability between layers", .below = true, .resumable = true),
};
static const struct wf_preset presets[] = {
    {"lstm-small", "an LSTM for characters", "steps=400 batch=16 lr=5e-3 min_lr=5e-4 warmup=20 schedule=cosine"},
};

/* [i f g o] = input x_t + recurrent h_(t-1);  c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g);  h_t = sigmoid(o) tanh(c_t) */
struct layer {
    struct wf_linear input, recurrent;
    struct wf_dropout dropout;
};

static void layer_init(wf_scope s, struct layer *l, int64_t d, double dropout)
{
    wf_linear_init(wf_sub(s, "input"), &l->input, d, 4 * d);
    wf_linear_init(wf_sub(s, "recurrent"), &l->recurrent, d, 4 * d, .no_bias = true);
    wf_dropout_init(wf_sub(s, "dropout"), &l->dropout, dropout);
}

static wf_tensor *layer_forward(const struct layer *l, wf_tensor *x) /* [B,T,d] -> [B,T,d] */
{
    const int64_t batch = wf_dim(x, 0), length = wf_dim(x, 1), d = wf_dim(x, 2);
    wf_tensor *all = wf_linear_forward(&l->input, wf_dropout_forward(&l->dropout, x)); /* of all times at once: [B,T,4d] */
    wf_tensor *h = wf_zeros(wf_tape_of(x), WF_SHAPE(batch, d)), *c = h;
    wf_tensor *states[length], *gate[4];
    for (int64_t t = 0; t < length; t++) {
        wf_split(wf_add(wf_select(all, 1, t), wf_linear_forward(&l->recurrent, h)), 1, 4, gate);
        c = wf_add(wf_mul(wf_sigmoid(gate[1]), c), wf_mul(wf_sigmoid(gate[0]), wf_tanh(gate[2])));
        h = wf_mul(wf_sigmoid(gate[3]), wf_tanh(c));
        states[t] = h;
    }
    return wf_stack(states, (int)length, 1);
}

struct lstm {
    struct wf_embedding embed;
    struct wf_linear head;
    int64_t layers;
    struct layer layer[]; /* .block_size below gives the room */
};

static void lstm_init(wf_scope s, void *model, const void *config)
{
    const struct lstm_config *c = config;
    struct lstm *m = model;
    m->layers = c->layers;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    for (int64_t i = 0; i < m->layers; i++)
        layer_init(wf_sub_at(s, "layers", i), &m->layer[i], c->d_model, c->dropout);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size);
}

static wf_tensor *lstm_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct lstm *m = model;
    wf_tensor *x = wf_embedding_forward(&m->embed, ids); /* [B,T] -> [B,T,d] */
    (void)cache, (void)weights;                          /* .no_cache below; there are no attention weights */
    for (int64_t i = 0; i < m->layers; i++)
        x = layer_forward(&m->layer[i], x);
    return x;
}

static const struct wf_family lstm = {
    .abi = WF_FAMILY_ABI,
    .name = "lstm",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct lstm_config),
    .keys = WF_ROWS(keys),
    .presets = WF_ROWS(presets),
    .size = sizeof(struct lstm),
    .block_size = sizeof(struct layer),
    .init = lstm_init,
    .forward = lstm_forward,
    .head = WF_HEAD_AT(struct lstm, head),
    .no_cache = true,
};

int main(int argc, char **argv)
{
    wf_error error = {0};
    if (wf_family_register(&lstm, &error) != WF_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    return wf_main(argc, argv);
}
