/* SPDX-License-Identifier: MIT */
/* Modules: plain structs, each with an _init function, which declares its parameters in a scope, and a _forward function.
 *
 *   struct block { struct wf_rms_norm norm1, norm2; struct wf_mha attn; struct wf_ffn ffn; };
 *
 *   wf_rms_norm_init(wf_sub(s, "norm1"), &b->norm1, d_model);                                              in the model's init
 *   wf_mha_init(wf_sub(s, "attn"), &b->attn, d_model, heads);
 *   ...
 *   x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm1, x), .causal = true, .residual = x);        in its forward
 *   x = wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm2, x), .residual = x);
 *
 * An option that is 0, false or NULL has its default. Errors of an init go to the registry, errors of a forward to the tape. Modules own no
 * memory: parameters belong to the registry, values to the tape. A forward releases the inner tensors that it makes (wf_release), never its
 * operands.
 *
 * This header has linear maps, embeddings, convolutions, norms, dropout, feed-forward networks, positions and attention; then adapters,
 * packed sequences, and the two halves of attention as separate functions. */
#ifndef WEFT_NN_H
#define WEFT_NN_H

#include <weft/cache.h>
#include <weft/ops.h>
#include <weft/registry.h>

WF_BEGIN_DECLS

/* --- linear map: x [..., in] -> [..., out]; weight [out, in], bias [out] ------------------------------------------- */
struct wf_linear {
    wf_tensor *weight;   /* [out, in] */
    wf_tensor *bias;     /* [out]; NULL: no bias */
    wf_tensor *lora_a;   /* [rank, in], the adapter's first matrix; NULL: no adapter */
    wf_tensor *lora_b;   /* [out, rank], the adapter's second matrix; NULL: no adapter */
    double lora_scale;   /* alpha / rank */
    double lora_dropout; /* dropout of the adapter's input */
};
/* A low-rank adapter, LoRA (Hu et al. 2021): y = x W' + b + alpha / rank * (dropout(x) A') B', where ' transposes. A [rank, in] starts from
 * U(+-1/sqrt(in)) and B [out, rank] from 0, so y is at first the same as without the adapter. The parameters A and B are named "lora_a" and
 * "lora_b", beside "weight". */
struct wf_lora {
    int64_t rank;   /* at least 1; 0 in options: no adapter */
    double alpha;   /* 0: the same as rank, so that alpha / rank is 1 */
    double dropout; /* probability of dropout of the adapter's input, at least 0 and below 1 */
};
struct wf_linear_options {
    bool no_bias;
    bool residual;              /* the map ends a residual branch, so the scope's rule `residual`, not `weight`, initialises the weight */
    wf_tensor *tied;            /* a tensor [out, in], such as an embedding, that serves as weight; then no weight is declared */
    struct wf_initializer init; /* initialiser of the weight, in place of the scope's rule */
    int64_t parts; /* number of matrices stacked in the weight; fan_out of Xavier's initialiser counts the rows of one of them; 0 means 1 */
    struct wf_lora lora; /* adapter; takes precedence over wf_registry_lora */
};
WF_API void wf_linear_init_with(wf_scope scope, struct wf_linear *m, int64_t in, int64_t out, const struct wf_linear_options *options);
WF_API wf_tensor *wf_linear_forward(const struct wf_linear *m, wf_tensor *x);

/* --- embedding: ids [...] -> [..., d]; weight [count, d] ----------------------------------------------------------- */
struct wf_embedding {
    wf_tensor *weight;
    double scale;
};
struct wf_embedding_options {
    double scale;    /* factor of the embedding vectors; 0 means 1 */
    wf_tensor *tied; /* a tensor [count, d] that serves as weight; then no weight is declared */
    struct wf_initializer init;
    bool real_only; /* ops other than wf_embedding and products read the weight too, so it is never stored as bf16 */
};
WF_API void wf_embedding_init_with(wf_scope scope, struct wf_embedding *m, int64_t count, int64_t d,
                                   const struct wf_embedding_options *options);
WF_API wf_tensor *wf_embedding_forward(const struct wf_embedding *m, wf_tensor *ids);

/* --- convolution: sequences x [B,C,T] -> [B,F,T'], or pictures x [B,C,H,W] -> [B,F,H',W'] -------------------------- */
struct wf_convolution {
    wf_tensor *weight; /* [F,C/groups,K] or [F,C/groups,Kh,Kw]; of a transposed convolution [C,F/groups,...], as in PyTorch */
    wf_tensor *bias;   /* [F]; NULL: no bias */
    struct wf_conv_axis axis[2];
    int64_t groups;
    bool transposed;
};
struct wf_convolution_options {
    int64_t stride, padding, dilation, groups; /* as in struct wf_conv_options: of all axes; 0 means 1, for the padding none */
    int64_t output_padding;                    /* of a transposed convolution (struct wf_conv_transpose_options) */
    const struct wf_conv_axis *axes;           /* [1 or 2], instead: numbers for each axis (weft/ops.h) */
    const int64_t *kernel;                     /* [1 or 2], in place of the argument: Kh and Kw */
    bool no_bias;
    struct wf_initializer init; /* initialiser of the weight, in place of the scope's rule `weight` and of PyTorch's U(+-1/sqrt(fan_in)) */
};
/* wf_conv and wf_conv_transpose (weft/ops.h) with `filters` filters over `channels` channels; groups divide both. */
WF_API void wf_conv1d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                                const struct wf_convolution_options *options);
WF_API void wf_conv2d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                                const struct wf_convolution_options *options);
WF_API void wf_conv_transpose1d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                                          const struct wf_convolution_options *options);
WF_API void wf_conv_transpose2d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                                          const struct wf_convolution_options *options);
WF_API wf_tensor *wf_convolution_forward(const struct wf_convolution *m, wf_tensor *x);

/* --- norms over the last dimension --------------------------------------------------------------------------------- */
struct wf_layer_norm {
    wf_tensor *weight, *bias;
    double eps;
};
struct wf_rms_norm {
    wf_tensor *weight;
    double eps;
    bool from_one;
};
struct wf_norm_options {
    double eps;    /* 0: 1e-5 for LayerNorm; for RMSNorm 1.1920929e-7, float's epsilon, which is PyTorch's default */
    bool no_bias;  /* for LayerNorm; RMSNorm never has a bias */
    bool from_one; /* for RMSNorm: the gain is 1 + weight, and the weight starts from 0, as in Gemma. So weight decay moves the gain to 1 */
};
WF_API void wf_layer_norm_init_with(wf_scope scope, struct wf_layer_norm *m, int64_t d, const struct wf_norm_options *options);
WF_API wf_tensor *wf_layer_norm_forward(const struct wf_layer_norm *m, wf_tensor *x);
WF_API void wf_rms_norm_init_with(wf_scope scope, struct wf_rms_norm *m, int64_t d, const struct wf_norm_options *options);
WF_API wf_tensor *wf_rms_norm_forward(const struct wf_rms_norm *m, wf_tensor *x);

/* --- norm over groups of channels: x [N,C], [B,C,T] or [B,C,H,W] ------------------------------------------------------ */
/* Wu and He 2018: all elements of a group of channels of one picture are normalised together; then each channel is multiplied by its weight
 * and its bias is added. */
struct wf_group_norm {
    wf_tensor *weight, *bias; /* [C]; bias may be NULL */
    int64_t groups;
    double eps;
};
/* `groups` divides `channels`. Of the options only eps (0: 1e-5) and no_bias may be set. */
WF_API void wf_group_norm_init_with(wf_scope scope, struct wf_group_norm *m, int64_t groups, int64_t channels,
                                    const struct wf_norm_options *options);
WF_API wf_tensor *wf_group_norm_forward(const struct wf_group_norm *m, wf_tensor *x);

/* --- batch normalisation: x [N,C], [B,C,T] or [B,C,H,W] --------------------------------------------------------------- */
/* Each channel is normalised over the batch (Ioffe and Szegedy 2015), as nn.BatchNorm1d and nn.BatchNorm2d do.
 *
 * In WF_TRAIN: with mean and variance of the micro-batch, the variance divided by the number n of values of a channel. Each forward
 * also changes the running statistics once, running = (1 - momentum) running + momentum * batch, where the variance is divided by n - 1.
 * One value for each channel (n = 1) is WF_ERR_SHAPE on the tape. In WF_INFER and WF_GRADIENTS: with the running statistics, so that a row
 * does not depend on the others.
 *
 * The running statistics are persistent buffers (weft/registry.h), which a pass only asks to change (wf_running_average, weft/op.h, says
 * when nothing changes): the update makes the changes of all its micro-batches, in their order, when the optimiser steps. With several
 * processes (weft/fit.h) each micro-batch is normalised with its own statistics too; the changes of all processes' micro-batches are made
 * in the order of the micro-batches on every process. So the running statistics are the same on all processes, and have the bytes of one
 * process with the same .accumulate and .leaves. */
struct wf_batch_norm {
    wf_tensor *weight, *bias;              /* [C]; NULL with .no_affine */
    wf_tensor *running_mean, *running_var; /* [C]; at first 0 and 1 */
    double eps, momentum;
    bool evaluation; /* uses the running statistics in all modes, and never changes them; may be set at any time, as bn.eval() */
};
struct wf_batch_norm_options {
    double eps;      /* 0: 1e-5 */
    double momentum; /* up to 1; 0: 0.1 */
    bool no_affine;  /* without weight and bias */
    bool evaluation;
};
WF_API void wf_batch_norm_init_with(wf_scope scope, struct wf_batch_norm *m, int64_t channels, const struct wf_batch_norm_options *options);
WF_API wf_tensor *wf_batch_norm_forward(const struct wf_batch_norm *m, wf_tensor *x);

/* --- dropout ------------------------------------------------------------------------------------------------------- */
struct wf_dropout {
    double p;
};
WF_API void wf_dropout_init(wf_scope scope, struct wf_dropout *m, double p); /* 0 <= p <= 1; 1: all zeros */
WF_API wf_tensor *wf_dropout_forward(const struct wf_dropout *m, wf_tensor *x);

/* --- feed-forward: x [..., d] -> down(activation(up x)) [..., d] ---------------------------------------------------- */
/* With .residual = r in a call the result is r + dropout(down(activation(up x))), the end of a residual branch. */
enum wf_activation {
    WF_RELU,
    WF_GELU,
    WF_GELU_TANH,
    WF_SILU,
    WF_SWIGLU,    /* silu(gate x) * up x (Shazeer 2020) */
    WF_GEGLU_TANH /* gelu_tanh(gate x) * up x (Shazeer 2020), as in Gemma */
};
struct wf_ffn {
    struct wf_linear up, gate, down;
    enum wf_activation activation;
    double dropout, residual_dropout;
};
struct wf_ffn_options {
    enum wf_activation activation;
    bool no_bias;
    double dropout;          /* dropout after the activation */
    double residual_dropout; /* dropout of the result, before .residual is added */
};
WF_API void wf_ffn_init_with(wf_scope scope, struct wf_ffn *m, int64_t d, int64_t d_ff, const struct wf_ffn_options *options);
struct wf_ffn_call {
    wf_tensor *residual; /* added to the result, as by wf_add(residual, result); NULL: nothing is added */
};
WF_API wf_tensor *wf_ffn_forward_with(const struct wf_ffn *m, wf_tensor *x, const struct wf_ffn_call *call);

/* --- positions: x [B,T,d] -> x + position[start .. start+T-1] ------------------------------------------------------ */
struct wf_positions {
    wf_tensor *weight; /* [length, d]: learned positions, or the sinusoidal table */
    int64_t length;
};
struct wf_positions_options {
    bool learned; /* positions are trained; default: sinusoidal (Vaswani et al. 2017), sines at even and cosines at odd indices */
    struct wf_initializer init; /* initialiser of learned positions */
};
WF_API void wf_positions_init_with(wf_scope scope, struct wf_positions *m, int64_t length, int64_t d,
                                   const struct wf_positions_options *options);
/* Row b starts at position 0; with a cache, at the number of tokens that row b of the cache holds. A position at or above `length` is an
 * error of the tape. */
WF_API wf_tensor *wf_positions_forward(const struct wf_positions *m, wf_tensor *x, const struct wf_cache *cache);

/* --- multi-head attention (Vaswani et al. 2017) ------------------------------------------------------------ */
/* x [B,T,d] -> [B,T,d]. There are H heads of queries and G heads of keys and values; a head has width E in queries and keys, F in values.
 * Self-attention computes q, k and v with one matrix `qkv` [H E + G (E + F), d]. With .cross, queries come from x through `q` [H E, d], and
 * keys and values come from a memory [B,S,d_memory] through `kv` [G (E + F), d_memory]. */
struct wf_mha {
    struct wf_linear qkv, q, kv, k, v, out;
    int heads;       /* H */
    int kv_heads;    /* G */
    int64_t d_key;   /* E */
    int64_t d_value; /* F */
    double dropout, residual_dropout;
    bool cross, apart, no_output, rope;
    struct wf_rotary rotary;
    int64_t window;
    bool qk_norm;
    struct wf_rms_norm q_norm, k_norm;
    double softcap, scale;
};
struct wf_mha_options {
    int kv_heads;     /* G, the number of heads of keys and values, a divisor of heads; 0: heads */
    int64_t d_key;    /* E, the width of a head of queries and keys; 0: d / heads */
    int64_t d_value;  /* F, the width of a head of values; 0: d_key */
    bool cross;       /* keys and values come from a memory */
    int64_t d_memory; /* width of the memory; 0: d */
    bool no_bias;
    double dropout;          /* dropout of the attention weights */
    double residual_dropout; /* dropout of the result, before .residual is added */
    bool rope;               /* rotary positions of queries and keys, as in wf_rope; not with .cross */
    struct wf_rotary rotary; /* settings of .rope; frequencies that it points to must live as long as the module */
    int64_t window;        /* sliding window, as in wf_attention_options: if causal, a query sees the last `window` keys; 0: none; not with
                              .cross */
    bool qk_norm;          /* RMSNorm of each head of queries and keys, before positions. The heads share the gains q_norm and k_norm
                              [d_key] (Dehghani et al. 2023; as in Qwen 3) */
    double qk_norm_eps;    /* eps of these norms; 0: RMSNorm's default */
    bool qk_norm_from_one; /* .from_one of these norms */
    double softcap;        /* soft bound of the scores, as in wf_attention_options; 0: none */
    double scale;          /* factor of the scores; 0: 1 / sqrt(d_key); T5 has 1 */

    /* Rarely needed. With .no_output and one head, the module is the attention head of papers, without an output projection. With .apart it
     * is PyTorch's MultiheadAttention(query, key, value) with kdim and vdim: keys come from the memory [B,S,d_memory] through `k` [G E,
     * d_memory], and values from .value of the call [B,S,d_values] through `v` [G F, d_values]. The map `kv` is then unused. */
    bool no_output;   /* the result is the concatenated heads [B,T,H F], without the output projection */
    bool apart;       /* keys and values have different sources. Set .cross too, and in each call that has .memory also give .value */
    int64_t d_values; /* width of .value, with .apart; 0: d_memory */
    bool no_out_bias; /* the output projection alone has no bias, as in Qwen 2 */
};
WF_API void wf_mha_init_with(wf_scope scope, struct wf_mha *m, int64_t d, int heads, const struct wf_mha_options *options);
struct wf_mha_call {
    bool causal;                /* a query attends to no key after its own position */
    wf_tensor *memory;          /* the source of keys and values; a module with .cross needs either this or memory_kv */
    const int32_t *key_lengths; /* [B]: row b has only the keys s < key_lengths[b]. NULL: every row has all keys */
    wf_tensor *mask;            /* bools, true where a query may attend to a key; shapes as in wf_attention_options */
    struct wf_packed packed;    /* the sequences of x, as in wf_attention_options */
    struct wf_packed k_packed;  /* the sequences of the memory, as in wf_attention_options */
    struct wf_kv *cache;  /* WF_INFER only: new keys and values are appended, and queries attend to the earlier keys of their row, too. S is
                             then the length of the longest row */
    wf_tensor **weights;  /* receives the attention weights [B,H,T,S]; may be NULL */
    wf_tensor *memory_kv; /* the result of wf_mha_memory, which computes keys and values of a memory once for many calls */
    wf_tensor *residual;  /* added to the result, as by wf_add(residual, result); NULL: nothing is added */
    wf_tensor *positions; /* with .rope, the position of each row: WF_I32 [B,T] or [T], for packed rows [N]. NULL: row t of a sequence is at
                             position t; with a cache, positions continue after the tokens that the cache holds */
    wf_tensor *bias;      /* added to the scores; shapes as in wf_attention_options */

    wf_tensor *value; /* rarely needed: the source of the values, with .apart and .memory; it has the rows of the memory */
};
WF_API wf_tensor *wf_mha_forward_with(const struct wf_mha *m, wf_tensor *x, const struct wf_mha_call *call);
/* The keys and values of a memory [..., d_memory] -> [..., G (E + F)], for .memory_kv. The module needs .cross. */
WF_API wf_tensor *wf_mha_memory(const struct wf_mha *m, wf_tensor *memory);

/* --- low-rank adapters (LoRA) for many maps --------------------------------------------------------------------------- */
/* Gives an adapter to every linear map that a module declares in the registry after this call, under a path that matches the pattern. Each
 * '*' stands for any characters: "*" matches all maps, "blocks.*.attn.*" those of attention. If several patterns match a path, the first
 * one counts. If a pattern matches no map, wf_registry_build and wf_registry_load fail. WF_ERR_ARGUMENT: a rank below 1, or an alpha or
 * dropout out of range.
 *
 * To train the adapters alone, call wf_registry_freeze_matching(registry, "*", true, &error) and then wf_registry_freeze_matching(registry,
 * "*.lora_*", false, &error) before wf_registry_build. To load weights from a file without adapters, set .allow_missing of
 * wf_registry_load_with. */
WF_API wf_status wf_registry_lora_with(wf_registry *registry, const char *pattern, const struct wf_lora *lora, wf_error *error) WF_CHECKED;
/* Adds the adapter to the weight, W += alpha / rank * B A, and sets B to 0, so that a new training of the adapter can begin. Except for
 * rounding, the map computes the same as before. The function replaces the values of W and B as wf_parameter_set does, and both together:
 * after an error both are unchanged, and the call may be repeated. It resets `tape`, on which it computes the product. A map without an
 * adapter stays as it is. */
WF_API wf_status wf_linear_merge(const struct wf_linear *m, wf_tape *tape, wf_error *error) WF_CHECKED;

/* --- packed sequences ---------------------------------------------------------------------------------------------- */
/* wf_positions_forward for packed rows x [N,d]: each sequence starts at position 0. (For attention, set .packed of its call.) */
WF_API wf_tensor *wf_positions_packed(const struct wf_positions *m, wf_tensor *x, struct wf_packed packed);

/* --- attention in two halves, and values from another input ---------------------------------------------------------- */
/* The two halves of wf_mha_forward, for uses that its options do not offer. wf_mha_attend(m, wf_mha_project(m, x, ...), ...) with the same
 * options in both gives the same bits as wf_mha_forward. Between the two calls the program may change q, k and v, or replace them, for
 * example by values from another input or by keys with other positions.
 *
 * wf_mha_project computes projections, norms and positions: q [B,T,H*E], k [B,S,G*E] and v [B,S,G*F], or for packed rows [N, ...]; poison
 * on an error. Of `call` it reads .cache (for the rows' lengths), .memory, .value, .memory_kv, .positions, .packed and .k_packed.
 * wf_mha_attend appends k and v to the cache, if there is one, computes the attention, applies the output projection and dropout, and adds
 * the residual. Of `call` it reads .cache, .packed, .k_packed, and the members that wf_mha_project does not read. It does not release q, k
 * and v. */
struct wf_mha_parts {
    wf_tensor *q, *k, *v;
};
WF_API struct wf_mha_parts wf_mha_project_with(const struct wf_mha *m, wf_tensor *x, const struct wf_mha_call *call);
WF_API wf_tensor *wf_mha_attend_with(const struct wf_mha *m, struct wf_mha_parts parts, const struct wf_mha_call *call);
/* wf_mha_memory for a module with .apart: the values come from `value` [..., d_values]. */
WF_API wf_tensor *wf_mha_memory_apart(const struct wf_mha *m, wf_tensor *memory, wf_tensor *value);

#ifndef __cplusplus
#define wf_linear_init(scope, m, in, out, ...) wf_linear_init_with(scope, m, in, out, &(struct wf_linear_options){__VA_ARGS__})
#define wf_registry_lora(registry, pattern, error, ...) wf_registry_lora_with(registry, pattern, &(struct wf_lora){__VA_ARGS__}, error)
#define wf_embedding_init(scope, m, count, d, ...) wf_embedding_init_with(scope, m, count, d, &(struct wf_embedding_options){__VA_ARGS__})
#define wf_conv1d_init(scope, m, channels, filters, kernel, ...)                                                                           \
    wf_conv1d_init_with(scope, m, channels, filters, kernel, &(struct wf_convolution_options){__VA_ARGS__})
#define wf_conv2d_init(scope, m, channels, filters, kernel, ...)                                                                           \
    wf_conv2d_init_with(scope, m, channels, filters, kernel, &(struct wf_convolution_options){__VA_ARGS__})
#define wf_conv_transpose1d_init(scope, m, channels, filters, kernel, ...)                                                                 \
    wf_conv_transpose1d_init_with(scope, m, channels, filters, kernel, &(struct wf_convolution_options){__VA_ARGS__})
#define wf_conv_transpose2d_init(scope, m, channels, filters, kernel, ...)                                                                 \
    wf_conv_transpose2d_init_with(scope, m, channels, filters, kernel, &(struct wf_convolution_options){__VA_ARGS__})
#define wf_layer_norm_init(scope, m, d, ...) wf_layer_norm_init_with(scope, m, d, &(struct wf_norm_options){__VA_ARGS__})
#define wf_batch_norm_init(scope, m, channels, ...)                                                                                        \
    wf_batch_norm_init_with(scope, m, channels, &(struct wf_batch_norm_options){__VA_ARGS__})
#define wf_group_norm_init(scope, m, groups, channels, ...)                                                                                \
    wf_group_norm_init_with(scope, m, groups, channels, &(struct wf_norm_options){__VA_ARGS__})
#define wf_rms_norm_init(scope, m, d, ...) wf_rms_norm_init_with(scope, m, d, &(struct wf_norm_options){__VA_ARGS__})
#define wf_ffn_init(scope, m, d, d_ff, ...) wf_ffn_init_with(scope, m, d, d_ff, &(struct wf_ffn_options){__VA_ARGS__})
#define wf_positions_init(scope, m, length, d, ...) wf_positions_init_with(scope, m, length, d, &(struct wf_positions_options){__VA_ARGS__})
#define wf_mha_init(scope, m, d, heads, ...) wf_mha_init_with(scope, m, d, heads, &(struct wf_mha_options){__VA_ARGS__})
#define wf_ffn_forward(m, x, ...) wf_ffn_forward_with(m, x, &(struct wf_ffn_call){__VA_ARGS__})
#define wf_mha_forward(m, x, ...) wf_mha_forward_with(m, x, &(struct wf_mha_call){__VA_ARGS__})
#define wf_mha_project(m, x, ...) wf_mha_project_with(m, x, &(struct wf_mha_call){__VA_ARGS__})
#define wf_mha_attend(m, parts, ...) wf_mha_attend_with(m, parts, &(struct wf_mha_call){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
