/* SPDX-License-Identifier: MIT */
/* Optimisers, clipping, and learning-rate schedules. An optimiser of your own: weft/optimizer_rule.h.
 *
 *   struct wf_optimizer opt;
 *   wf_adamw_init(&opt, registry, &error, .lr = 1e-3, .weight_decay = 0.1);
 *   wf_optimizer_decay_matrices_only(&opt);
 *   for (step...) {
 *       ... wf_backward(loss) ...
 *       opt.lr = wf_schedule_lr(&schedule, step);
 *       if (wf_clip_norm(wf_registry_grads(registry), 1.0, NULL, &error) != WF_OK || wf_adamw_step(&opt, &error) != WF_OK) ...
 *   }                                                                                                                   */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include <weft/registry.h>

WF_BEGIN_DECLS

/* --- gradients: norms and clipping ---------------------------------------------------------------------------------- */

/* Euclidean norm of all gradients, summed in double in a fixed order; NaN for NULL, a registry without gradients. */
WF_API double wf_grad_norm(wf_grads *grads);
/* The norm of several registries' gradients together. */
WF_API double wf_grad_norm_of(wf_grads *const *grads, int count);
/* Scales the gradients by min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. *norm (may be NULL) becomes their norm
 * before that. max_norm 0 disables clipping; the norm is computed all the same. The multiplication is left to the next who uses the
 * gradients: an optimiser's step does it in its own pass over them, wf_grad, wf_grads_at and wf_backward before anything else; all get
 * the same bits.
 *
 * Refused, with nothing changed: max_norm negative or NaN (WF_ERR_ARGUMENT), gradients of a backward that failed, or NULL for a registry
 * without gradients (WF_ERR_STATE), and a norm that is not finite (WF_ERR_NUMERIC; *norm is set). */
WF_API wf_status wf_clip_norm(wf_grads *grads, double max_norm, double *norm, wf_error *error) WF_CHECKED;
/* The same for the norm of several registries' gradients together. */
WF_API wf_status wf_clip_norm_of(wf_grads *const *grads, int count, double max_norm, double *norm, wf_error *error) WF_CHECKED;

/* --- optimisers ----------------------------------------------------------------------------------------------------- */

/* Adam (Kingma and Ba 2015) and, with decoupled weight decay, AdamW (Loshchilov and Hutter 2019), as PyTorch computes them:
 *   m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  p -= lr / (1-b1^t) m / (sqrt(v / (1-b2^t)) + eps)
 * AdamW first subtracts lr * weight_decay * p from p; Adam adds weight_decay * p to g. t counts the updates of the parameter. */
struct wf_adam_options {
    double lr;           /* 1e-3 unless given */
    double beta1, beta2; /* 0.9, 0.999 */
    double eps;          /* 1e-8; with 0 a value whose gradients were all 0 becomes NaN, as in PyTorch */
    double weight_decay; /* 0 */
    bool decoupled;      /* AdamW */
};
/* Gradient descent with momentum (Sutskever et al. 2013), as PyTorch computes it:
 *   g += weight_decay * p;  b = momentum * b + g;  p -= lr * b;  with nesterov p -= lr * (g + momentum * b)
 * Without momentum there is no b, and no memory for it. */
struct wf_sgd_options {
    double lr;           /* 1e-3 unless given */
    double momentum;     /* 0 */
    double weight_decay; /* 0 */
    bool nesterov;       /* needs momentum */
};

/* The state of an optimiser for a parameter, and for a registry. */
enum { WF_RULE_SLABS = 4, WF_RULE_FACTORS = 2 }; /* at most, of a rule: weft/optimizer_rule.h */
struct wf_optimizer_parameter {
    double weight_decay, lr_scale; /* of its groups */
    int64_t updates;
    int64_t place; /* of its moments, elements; -1: none */
    bool wanted;   /* has moments, or shall have some */
    double factor[WF_RULE_FACTORS];
    bool averaged; /* has an average: wf_optimizer.ema */
    bool skipped;  /* another optimiser updates it: wf_optimizer_only */
};
struct wf_optimizer_part {
    wf_registry *registry;
    char *prefix;
    struct wf_optimizer_parameter *parameter; /* [parameters of the registry] */
    wf_real *moment[WF_RULE_SLABS + 1];       /* slabs [size]: Adam's m and v, momentum; last the averages; NULL where there is none */
    int64_t size;
};
/* Any optimiser. Updates the parameters of its registries. One that has no gradient since the last step keeps its value and its moments,
 * and so does a frozen one. There are moments for parameters that are trained, from the init or else from their first update on. */
struct wf_optimizer {
    double lr; /* may be set before each step, and so may the members of adam and sgd */
    struct {
        double beta1, beta2, eps;
        bool decoupled;
    } adam;
    struct {
        double momentum;
        bool nesterov;
    } sgd;
    /* Decay of an exponential moving average of the values, which each step updates: e = ema e + (1 - ema) p, and e = p at first; 0 <= ema
     * < 1, and 0, as it is at first, means none. The averages are in the optimiser's state, and wf_fit writes them into ema.safetensors. */
    double ema;
    int64_t step; /* updates done */
    const struct wf_optimizer_rule *rule;
    void *ctx;           /* of the rule */
    double weight_decay; /* of parameters in no group */
    struct wf_optimizer_part *part;
    int64_t parts, room;
};

/* The options of a call that gives none: to change members of, where wf_adam_init_with or wf_sgd_init_with is called directly. */
WF_API struct wf_adam_options wf_adam_defaults(void);
WF_API struct wf_sgd_options wf_sgd_defaults(void);
/* An optimiser for the parameters of a registry, which must have gradients. Owns its moments: free with wf_optimizer_free, after an error
 * too. Each option counts as it is, 0 too. WF_ERR_ARGUMENT: lr, eps or weight_decay negative or not finite, a beta or the momentum outside
 * 0 <= beta < 1, nesterov without momentum. */
WF_API wf_status wf_adam_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_adam_options *options,
                                   wf_error *error) WF_CHECKED;
WF_API wf_status wf_sgd_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_sgd_options *options,
                                  wf_error *error) WF_CHECKED;
#ifndef __cplusplus
/* Options that are given replace the defaults, also by 0, which does not stand for the default. */
#define wf_adam_init(opt, registry, error, ...)                                                                                            \
    wf_adam_init_with(opt, registry, WF_GIVEN(struct wf_adam_options, .decoupled = false, WF_ADAM_DEFAULTS, __VA_ARGS__), error)
#define wf_adamw_init(opt, registry, error, ...)                                                                                           \
    wf_adam_init_with(opt, registry, WF_GIVEN(struct wf_adam_options, .decoupled = true, WF_ADAM_DEFAULTS, __VA_ARGS__), error)
#define wf_sgd_init(opt, registry, error, ...)                                                                                             \
    wf_sgd_init_with(opt, registry, WF_GIVEN(struct wf_sgd_options, WF_SGD_DEFAULTS, __VA_ARGS__), error)
#define WF_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
#define WF_SGD_DEFAULTS .lr = 1e-3
/* A statement expression, in which compilers can be told not to warn of the defaults that are replaced. */
#define WF_GIVEN(type, ...)                                                                                                                \
    ((const type[]){__extension__({                                                                                                        \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"") const type wf_given = {__VA_ARGS__};          \
        _Pragma("GCC diagnostic pop") wf_given;                                                                                            \
    })})
#endif
/* Adds the parameters of another registry, whose gradients the steps use, too. `prefix` (NULL: none) goes before their names in patterns
 * and in the state. WF_ERR_ARGUMENT: the registry was added before, or two parameters have one name. */
WF_API wf_status wf_optimizer_add(struct wf_optimizer *opt, wf_registry *registry, const char *prefix, wf_error *error) WF_CHECKED;
WF_API void wf_optimizer_free(struct wf_optimizer *opt); /* a zeroed struct is allowed */

/* Groups: other settings for some parameters. Only what is given changes; where two groups give a setting for one parameter, the later call
 * counts. A '*' in the pattern stands for any characters: wf_optimizer_group(&opt, "*.bias", &error, .weight_decay = 0).
 * WF_ERR_ARGUMENT: no parameter has such a name, or a setting is negative or not finite; nothing has changed then. */
#define WF_UNCHANGED (-1e300)
struct wf_group_options {
    double weight_decay; /* WF_UNCHANGED unless given */
    double lr_scale;     /* factor of the learning rate; WF_UNCHANGED unless given, and 1 at first */
};
WF_API struct wf_group_options wf_group_defaults(void);
WF_API wf_status wf_optimizer_group_with(struct wf_optimizer *opt, const char *pattern, const struct wf_group_options *options,
                                         wf_error *error) WF_CHECKED;
/* The same for the parameters for which match(ctx, name, parameter) is true. */
typedef bool (*wf_parameter_match)(void *ctx, const char *name, const wf_tensor *parameter);
WF_API wf_status wf_optimizer_group_where(struct wf_optimizer *opt, wf_parameter_match match, void *ctx,
                                          const struct wf_group_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_optimizer_group(opt, pattern, error, ...)                                                                                       \
    wf_optimizer_group_with(opt, pattern,                                                                                                  \
                            WF_GIVEN(struct wf_group_options, .weight_decay = WF_UNCHANGED, .lr_scale = WF_UNCHANGED, __VA_ARGS__), error)
#endif
/* Leaves parameters to other optimisers: of the registries that it has now, it updates only those for which match(ctx, name, parameter) is
 * true, and its step uses up no other gradients. For matrices with one optimiser and the rest with another: each has all registries, one
 * with a match of wf_ndim(parameter) >= 2, the other with its opposite; the gradients are clipped before the first of them steps. Called
 * right after the init. WF_ERR_STATE after an update or a load; WF_ERR_ARGUMENT where no parameter matches; nothing has changed then. */
WF_API wf_status wf_optimizer_only(struct wf_optimizer *opt, wf_parameter_match match, void *ctx, wf_error *error) WF_CHECKED;
/* No weight decay for biases, gains and other vectors, whose other settings stay as they are. */
WF_API void wf_optimizer_decay_matrices_only(struct wf_optimizer *opt);

/* One update in one parallel pass over each registry. Afterwards the gradients count as zero; a step without a backward before it
 * succeeds and counts. Refused, with nothing changed: a setting out
 * of its range (WF_ERR_ARGUMENT), gradients of a backward that failed (WF_ERR_STATE), gradients that are not finite (WF_ERR_NUMERIC), and
 * no memory for the moments of parameters that are no longer frozen (WF_ERR_MEMORY). */
WF_API wf_status wf_optimizer_step(struct wf_optimizer *opt, wf_error *error) WF_CHECKED;
/* The same under the names of the optimisers. */
#define wf_adam_step wf_optimizer_step
#define wf_adamw_step wf_optimizer_step
#define wf_sgd_step wf_optimizer_step

/* The state, by parameters' names: prefix + "ema." + name where there are averages; prefix + "m." and "v." (of SGD "momentum.") + name,
 * prefix + "updates." + name I64 [1], prefix + "step" I64 [1]; and metadata prefix + "optimizer". Settings and groups are the program's,
 * not part of it. Values are read at the writer's commit. */
WF_API void wf_optimizer_save(const struct wf_optimizer *opt, wf_safetensors_writer *writer, const char *prefix);
/* Restores what wf_optimizer_save has written, or Weft 0.1 with one registry. WF_ERR_FORMAT, with nothing changed: the state of another
 * optimiser, numbers of updates that are missing or impossible, and, by name, trained parameters that the state lacks, names under the
 * prefix that are none of the optimiser's, and other shapes. The state of a parameter that is frozen now is kept for later. After a
 * read error the moments are undefined. */
WF_API wf_status wf_optimizer_load(struct wf_optimizer *opt, const wf_safetensors *file, const char *prefix, wf_error *error) WF_CHECKED;

/* --- schedules: the learning rate of step 0, 1, 2, ... ------------------------------------------------------------- */
enum wf_schedule_kind {
    WF_SCHEDULE_CONSTANT,    /* peak (step+1)/(warmup+1) during the warm-up, then peak */
    WF_SCHEDULE_COSINE,      /* the same warm-up, then a half cosine from peak to min at `steps` */
    WF_SCHEDULE_INVERSE_SQRT /* peak min(t/w, sqrt(w/t)), t = step + 1 (Vaswani et al. 2017, peak = d^-0.5 w^-0.5) */
};
struct wf_schedule {
    enum wf_schedule_kind kind;
    double peak, min;
    int64_t warmup, steps; /* updates: of the warm-up; in total */
};
WF_API double wf_schedule_lr(const struct wf_schedule *schedule, int64_t step);

WF_END_DECLS

#endif
