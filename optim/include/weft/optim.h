/* SPDX-License-Identifier: MIT */
/* Optimisers, gradient clipping and learning-rate schedules. To write another optimiser, see weft/optimizer_rule.h.
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

/* Returns the Euclidean norm of all gradients, summed in double in a fixed order. Returns NaN if `grads` is NULL; wf_registry_grads returns
 * NULL for a registry without gradients. */
WF_API double wf_grad_norm(wf_grads *grads);
/* Returns the norm of the gradients of several registries taken together, grads[count]. */
WF_API double wf_grad_norm_of(wf_grads *const *grads, int count);
/* Scales the gradients by min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. *norm (`norm` may be NULL) becomes the
 * norm before the scaling. With max_norm = 0 nothing is scaled, but *norm is still set.
 *
 * This function only stores the factor. The next call that uses the gradients multiplies them by it: an optimiser's step does so in its own
 * pass over the gradients; wf_grad, wf_grads_at and wf_backward do so before anything else. The results have the same bits in all cases.
 *
 * After an error nothing has changed. WF_ERR_ARGUMENT: max_norm is negative or NaN. WF_ERR_STATE: `grads` is NULL, or the last backward
 * pass failed. WF_ERR_NUMERIC: the norm is not finite; *norm is set. */
WF_API wf_status wf_clip_norm(wf_grads *grads, double max_norm, double *norm, wf_error *error) WF_CHECKED;
/* The same for the norm of the gradients of several registries taken together, grads[count]. WF_ERR_ARGUMENT also if two elements of
 * `grads` are the same. */
WF_API wf_status wf_clip_norm_of(wf_grads *const *grads, int count, double max_norm, double *norm, wf_error *error) WF_CHECKED;

/* Sets each element g of the gradients to min(max(g, -max_value), max_value), as torch.nn.utils.clip_grad_value_ does, in one pass. An
 * infinite element becomes finite, and a NaN stays, so call wf_clip_norm with a maximum of 0 before to refuse both. If both kinds of
 * clipping are used, clip by value first. With max_value = 0 nothing is clipped. After an error nothing has changed. WF_ERR_ARGUMENT:
 * max_value is negative or NaN. WF_ERR_STATE: `grads` is NULL, or the last backward pass failed. */
WF_API wf_status wf_clip_value(wf_grads *grads, double max_value, wf_error *error) WF_CHECKED;

/* --- optimisers ----------------------------------------------------------------------------------------------------- */

/* Adam (Kingma and Ba 2015) and, with decoupled weight decay, AdamW (Loshchilov and Hutter 2019), as PyTorch computes them:
 *   m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  p -= lr / (1-b1^t) m / (sqrt(v / (1-b2^t)) + eps)
 * Here p is a value of a parameter, g its gradient, b1 and b2 are beta1 and beta2, and t counts the updates of the parameter. For weight
 * decay AdamW first subtracts lr * weight_decay * p from p, whereas Adam adds weight_decay * p to g. */
struct wf_adam_options {
    double lr;           /* 1e-3 unless given */
    double beta1;        /* 0.9 unless given */
    double beta2;        /* 0.999 unless given */
    double eps;          /* 1e-8 unless given; if it is 0, a value whose gradients were all 0 becomes NaN, as in PyTorch */
    double weight_decay; /* 0 unless given */
    bool decoupled;      /* true: AdamW; false: Adam */
};
/* Gradient descent with momentum (Sutskever et al. 2013), as PyTorch computes it:
 *   g += weight_decay * p;  b = momentum * b + g;  p -= lr * b;  with nesterov p -= lr * (g + momentum * b)
 * Here p is a value of a parameter, and g its gradient. If momentum is 0, there is no b, and no memory for it. */
struct wf_sgd_options {
    double lr;           /* 1e-3 unless given */
    double momentum;     /* 0 unless given */
    double weight_decay; /* 0 unless given */
    bool nesterov;       /* needs a momentum above 0 */
};

/* Lion (Chen et al. 2023, algorithm 2):
 *   p -= lr * (sign(beta1 m + (1 - beta1) g) + weight_decay p);  m = beta2 m + (1 - beta2) g
 * Each update moves every value by lr, so lr is 3 to 10 times smaller than Adam's, and weight_decay larger by the same factor. */
struct wf_lion_options {
    double lr;           /* 1e-4 unless given */
    double beta1;        /* 0.9 unless given */
    double beta2;        /* 0.99 unless given */
    double weight_decay; /* 0 unless given */
};
/* Adafactor (Shazeer and Stern 2018) without momentum, as torch.optim.Adafactor computes it. Instead of Adam's v it keeps, for a parameter
 * [..,n,m], the means of g^2 over rows and over columns, n + m numbers; for a vector it keeps v. With t the updates of the parameter and
 * RMS(x) the square root of the mean of x^2:
 *   r += t^beta2_decay (mean over columns of g^2 - r);  c += t^beta2_decay (mean over rows of g^2 - c);  v = r c / max(mean(r), eps1)
 *   u = g / sqrt(max(v, eps1^2));  p -= lr weight_decay p;  p -= max(eps2, RMS(p)) min(lr, 1 / sqrt(t)) u / max(1, RMS(u) / threshold)
 * RMS(p) is that before the weight decay. So lr is relative to the size of the parameter. */
struct wf_adafactor_options {
    double lr;           /* 1e-2 unless given */
    double beta2_decay;  /* at most 0; -0.8 unless given */
    double eps1;         /* 0 unless given: the machine epsilon of wf_real */
    double eps2;         /* smallest RMS(p) that counts; 1e-3 unless given */
    double threshold;    /* largest RMS(u), at least 1: PyTorch's d; 1 unless given */
    double weight_decay; /* 0 unless given */
};
/* How Muon multiplies lr for a matrix [n,m]; PyTorch's adjust_lr_fn. */
enum wf_muon_adjust {
    WF_MUON_MATCH_RMS_ADAMW, /* 0.2 sqrt(max(n, m)) (Liu et al. 2025): the update has the size of AdamW's, so lr and weight decay are too */
    WF_MUON_ORIGINAL,        /* sqrt(max(1, n / m)) (Jordan 2024): lr is about 0.02 */
    WF_MUON_PLAIN            /* 1 */
};
/* Muon (Jordan 2024), as torch.optim.Muon computes it, but in wf_real where PyTorch rounds to bf16. Matrices, the parameters with two
 * dimensions that are no tables (struct wf_parameter_options), are updated as a whole:
 *   b += (1 - momentum) (g - b);  u = b, with nesterov g + momentum (b - g);  X = u / max(|u|, eps)
 *   `iterations` times: A = X X^T;  X = coefficient[0] X + (coefficient[1] A + coefficient[2] A A) X         (Newton-Schulz)
 *   p -= lr weight_decay p;  p -= lr adjust X
 * |u| is the root of the sum of all squares. For a matrix with more rows than columns A = X^T X and X = X (coefficient[0] I +
 * coefficient[1] A + coefficient[2] A A), which is the same and less work. AdamW with beta1, beta2, adam_eps and the learning rate
 * lr * adam_lr_scale updates all other parameters: embeddings, output layers, vectors, and arrays with more dimensions. */
struct wf_muon_options {
    double lr;                  /* 1e-3 unless given */
    double momentum;            /* 0.95 unless given */
    bool nesterov;              /* true unless given */
    double weight_decay;        /* 0 unless given; PyTorch's default is 0.1 */
    enum wf_muon_adjust adjust; /* WF_MUON_MATCH_RMS_ADAMW unless given; PyTorch's default is WF_MUON_ORIGINAL */
    int64_t iterations;         /* 5 unless given, at most 99 */
    double coefficient[3];      /* 3.4445, -4.7750 and 2.0315 unless given */
    double eps;                 /* 1e-7 unless given */
    double beta1;               /* 0.9 unless given */
    double beta2;               /* 0.999 unless given */
    double adam_eps;            /* 1e-8 unless given */
    double adam_lr_scale;       /* 1 unless given */
};

enum {
    WF_RULE_SLABS = 4,  /* a rule has at most this number of slabs, arrays with one number for each element (weft/optimizer_rule.h) */
    WF_RULE_FACTORS = 2 /* the number of factors that a rule may compute for each parameter */
};
/* The data that an optimiser stores for one parameter, besides the moments. */
struct wf_optimizer_parameter {
    double weight_decay;              /* from the last group that sets it (wf_optimizer_group); else that of the optimiser */
    double lr_scale;                  /* from the last group that sets it (wf_optimizer_group); else 1 */
    int64_t updates;                  /* updates of this parameter */
    int64_t place[WF_RULE_SLABS + 1]; /* first element of its moments in each slab; -1: it has none there */
    int group;                        /* 1 + the index of its settings in wf_optimizer.group; 0: those of the optimiser */
    int chosen;                       /* while a group is made its next group, or -1; in wf_optimizer_only the former `skipped` */
    bool placed;                      /* it has moments */
    bool wanted;                      /* it has moments, or must get them even if it is frozen, because a loaded state has some */
    bool whole;                       /* the rule updates it as a whole */
    double factor[WF_RULE_FACTORS];   /* set by .factors of the rule */
    bool averaged;                    /* it has a moving average: see `ema` of wf_optimizer */
    bool skipped;                     /* another optimiser updates it: see wf_optimizer_only */
};
/* The data that an optimiser stores for one registry. */
struct wf_optimizer_part {
    wf_registry *registry;
    char *prefix;                             /* goes before the names of its parameters */
    struct wf_optimizer_parameter *parameter; /* [parameters of the registry] */
    wf_real *moment[WF_RULE_SLABS + 1]; /* slabs of the rule, such as Adam's m and v; the last slab has the averages. NULL: not in use */
    int64_t size[WF_RULE_SLABS + 1];    /* elements of each slab */
};
/* An optimiser of any kind. It updates the parameters of its registries. A parameter that is frozen, or has no gradient since the last
 * step, keeps its value and its moments. Parameters that are not frozen get their moments when the optimiser is initialised; a parameter
 * that is no longer frozen gets its moments in the next step. */
struct wf_optimizer {
    double lr; /* the learning rate; may be set before each step, and so may the members of the rule: adam, sgd, ... */
    struct {
        double beta1, beta2, eps;
        bool decoupled;
    } adam;
    struct {
        double momentum;
        bool nesterov;
    } sgd;
    struct {
        double beta1, beta2;
    } lion;
    struct {
        double beta2_decay, eps1, eps2, threshold;
    } adafactor;
    struct {
        double momentum, coefficient[3], eps, beta1, beta2, adam_eps, adam_lr_scale;
        int64_t iterations;
        enum wf_muon_adjust adjust;
        bool nesterov;
    } muon;
    /* Decay of an exponential moving average e of each value p: 0 <= ema < 1. At first e = p, and each step then sets e = ema * e + (1 -
     * ema) * p. If `ema` is 0, the default, there are no averages. The averages are part of the optimiser's state, and wf_fit writes them
     * into ema.safetensors. */
    double ema;
    int64_t step; /* updates done */
    const struct wf_optimizer_rule *rule;
    void *ctx;                        /* argument of the rule's functions */
    double weight_decay;              /* weight decay of parameters for which no group sets one */
    struct wf_optimizer_part *part;   /* [parts] */
    int64_t parts;                    /* number of registries */
    int64_t room;                     /* parts for which memory is allocated */
    struct wf_optimizer_group *group; /* [groups]: settings of parameters in groups; private */
    int64_t groups;
    int64_t group_room;
    wf_real *workspace;     /* for whole parameters (.workspace of the rule) */
    int64_t workspace_size; /* elements of it */
};

/* Returns the default options, for direct calls of wf_adam_init_with, wf_sgd_init_with and so on. */
WF_API struct wf_adam_options wf_adam_defaults(void);
WF_API struct wf_sgd_options wf_sgd_defaults(void);
WF_API struct wf_lion_options wf_lion_defaults(void);
WF_API struct wf_adafactor_options wf_adafactor_defaults(void);
WF_API struct wf_muon_options wf_muon_defaults(void);
/* Initialises an optimiser for the parameters of a registry, which must have gradients. The optimiser owns its moments: free it with
 * wf_optimizer_free, also after an error. An option of 0 means 0, not the default. WF_ERR_ARGUMENT: a setting is not in the
 * range that its struct states; lr, eps or weight_decay is negative or not finite, a beta or the momentum is not in 0 <= value < 1, or
 * nesterov of SGD is set without momentum. WF_ERR_STATE: the registry has no gradients. */
WF_API wf_status wf_adam_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_adam_options *options,
                                   wf_error *error) WF_CHECKED;
WF_API wf_status wf_sgd_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_sgd_options *options,
                                  wf_error *error) WF_CHECKED;
WF_API wf_status wf_lion_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_lion_options *options,
                                   wf_error *error) WF_CHECKED;
WF_API wf_status wf_adafactor_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_adafactor_options *options,
                                        wf_error *error) WF_CHECKED;
WF_API wf_status wf_muon_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_muon_options *options,
                                   wf_error *error) WF_CHECKED;
#ifndef __cplusplus
/* The same with options as arguments: wf_adam_init(&opt, registry, &error, .lr = 1e-4). Options that are not given have their defaults; an
 * option of 0 means 0. */
#define wf_adam_init(opt, registry, error, ...)                                                                                            \
    wf_adam_init_with(opt, registry, WF_GIVEN(struct wf_adam_options, .decoupled = false, WF_ADAM_DEFAULTS, __VA_ARGS__), error)
#define wf_adamw_init(opt, registry, error, ...)                                                                                           \
    wf_adam_init_with(opt, registry, WF_GIVEN(struct wf_adam_options, .decoupled = true, WF_ADAM_DEFAULTS, __VA_ARGS__), error)
#define wf_sgd_init(opt, registry, error, ...)                                                                                             \
    wf_sgd_init_with(opt, registry, WF_GIVEN(struct wf_sgd_options, WF_SGD_DEFAULTS, __VA_ARGS__), error)
#define wf_lion_init(opt, registry, error, ...)                                                                                            \
    wf_lion_init_with(opt, registry, WF_GIVEN(struct wf_lion_options, WF_LION_DEFAULTS, __VA_ARGS__), error)
#define wf_adafactor_init(opt, registry, error, ...)                                                                                       \
    wf_adafactor_init_with(opt, registry, WF_GIVEN(struct wf_adafactor_options, WF_ADAFACTOR_DEFAULTS, __VA_ARGS__), error)
#define wf_muon_init(opt, registry, error, ...)                                                                                            \
    wf_muon_init_with(opt, registry, WF_GIVEN(struct wf_muon_options, WF_MUON_DEFAULTS, __VA_ARGS__), error)
#define WF_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
#define WF_SGD_DEFAULTS .lr = 1e-3
#define WF_LION_DEFAULTS .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99
#define WF_ADAFACTOR_DEFAULTS .lr = 1e-2, .beta2_decay = -0.8, .eps2 = 1e-3, .threshold = 1
#define WF_MUON_DEFAULTS                                                                                                                   \
    .iterations = 5, .coefficient = {3.4445, -4.7750, 2.0315}, .eps = 1e-7, .beta1 = 0.9, .beta2 = 0.999, .adam_eps = 1e-8,                \
    .adam_lr_scale = 1, .lr = 1e-3, .momentum = 0.95, .nesterov = true
/* The last default of each stands before a member that is 0 by default, so that wf_muon_init(opt, registry, error, 0) of strict C11 is one
 * with defaults. A given option replaces the default before it, of which the compiler warns. The pragmas that switch this warning off are
 * only possible in statements, so this is a statement expression. */
#define WF_GIVEN(type, ...)                                                                                                                \
    ((const type[]){__extension__({                                                                                                        \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"") const type wf_given = {__VA_ARGS__};          \
        _Pragma("GCC diagnostic pop") wf_given;                                                                                            \
    })})
#endif
/* Adds another registry, which must have gradients. From then on the steps update the parameters of this registry too. `prefix` (NULL:
 * none) goes before the names of its parameters in patterns and in the state. WF_ERR_ARGUMENT: the registry was added before, or two
 * parameters have the same name. WF_ERR_STATE: the registry has no gradients. */
WF_API wf_status wf_optimizer_add(struct wf_optimizer *opt, wf_registry *registry, const char *prefix, wf_error *error) WF_CHECKED;
/* Frees the moments. `opt` may be NULL or zeroed. */
WF_API void wf_optimizer_free(struct wf_optimizer *opt);

/* A group is a set of parameters with settings of its own. Each call makes a group of the parameters whose names match `pattern`, in which
 * a '*' stands for any characters: wf_optimizer_group(&opt, "*.bias", &error, .weight_decay = 0). Only the settings that are given change.
 * If a parameter is in several groups, each setting comes from the last of these groups in which that setting is given. Settings that are
 * not given follow those of the optimiser, also when a program changes these between updates. WF_ERR_ARGUMENT, with nothing changed: no
 * name matches, a setting is out of range, or the optimiser has no such setting. */
#define WF_UNCHANGED (-1e300)
struct wf_group_options {
    double weight_decay; /* WF_UNCHANGED unless given */
    double lr_scale;     /* factor by which the learning rate is multiplied, 1 before any group; WF_UNCHANGED unless given */
    /* The settings of the same names in the options of the optimisers; WF_UNCHANGED unless given. */
    double beta1, beta2;                       /* Adam, Lion; Muon: of its AdamW */
    double eps;                                /* Adam, Muon */
    double momentum;                           /* SGD, Muon */
    double nesterov;                           /* SGD, Muon: 0 or 1 */
    double beta2_decay, eps1, eps2, threshold; /* Adafactor */
    double iterations, adam_eps;               /* Muon */
    /* For a rule of the program: the argument of its functions .check, .factors and .step for these parameters, in place of that of
     * wf_optimizer_init. Like that it stays the caller's. Other functions of the rule still get the optimiser's. NULL: unchanged. */
    void *ctx;
};
/* Returns options that change nothing. */
WF_API struct wf_group_options wf_group_defaults(void);
WF_API wf_status wf_optimizer_group_with(struct wf_optimizer *opt, const char *pattern, const struct wf_group_options *options,
                                         wf_error *error) WF_CHECKED;
/* Makes a group of all parameters for which match(ctx, name, parameter) returns true. */
typedef bool (*wf_parameter_match)(void *ctx, const char *name, const wf_tensor *parameter);
WF_API wf_status wf_optimizer_group_where(struct wf_optimizer *opt, wf_parameter_match match, void *ctx,
                                          const struct wf_group_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_optimizer_group(opt, pattern, error, ...)                                                                                       \
    wf_optimizer_group_with(opt, pattern, WF_GIVEN(struct wf_group_options, WF_GROUP_DEFAULTS, __VA_ARGS__), error)
#define WF_GROUP_DEFAULTS                                                                                                                  \
    .weight_decay = WF_UNCHANGED, .lr_scale = WF_UNCHANGED, .beta1 = WF_UNCHANGED, .beta2 = WF_UNCHANGED, .eps = WF_UNCHANGED,             \
    .momentum = WF_UNCHANGED, .nesterov = WF_UNCHANGED, .beta2_decay = WF_UNCHANGED, .eps1 = WF_UNCHANGED, .eps2 = WF_UNCHANGED,           \
    .threshold = WF_UNCHANGED, .iterations = WF_UNCHANGED, .adam_eps = WF_UNCHANGED
#endif
/* Restricts the optimiser to some parameters, so that other optimisers can update the others. From now on the optimiser updates only those
 * parameters of its present registries for which match(ctx, name, parameter) returns true, and its step leaves the gradients of all other
 * parameters as they are.
 *
 * For example, one optimiser updates the matrices and a second one all other parameters. Both have all registries; `match` returns
 * wf_ndim(parameter) >= 2 for the first optimiser and wf_ndim(parameter) < 2 for the second. Clip the gradients before the first of the two
 * steps.
 *
 * Call this right after the init. After an error nothing has changed. WF_ERR_STATE: the optimiser has done an update, or has loaded a state
 * with updates. WF_ERR_ARGUMENT: no parameter matches. */
WF_API wf_status wf_optimizer_only(struct wf_optimizer *opt, wf_parameter_match match, void *ctx, wf_error *error) WF_CHECKED;
/* Sets the weight decay of all parameters with fewer than two dimensions, such as biases and gains, to 0. The other settings of these
 * parameters stay. */
WF_API void wf_optimizer_decay_matrices_only(struct wf_optimizer *opt);

/* Does one update, in one parallel pass over each registry. Afterwards the gradients count as zero. If there was no backward pass since the
 * last step, the call succeeds too, and counts as an update although no value changes. After an error nothing has changed. WF_ERR_ARGUMENT:
 * a setting is out of its range. WF_ERR_STATE: the last backward pass failed. WF_ERR_NUMERIC: a gradient is not finite. WF_ERR_MEMORY: no
 * memory for the moments of parameters that are no longer frozen, or, for Muon, for the products of a matrix: only then something has
 * changed. The parameters before this matrix and those of its registry that are no matrices are updated, and the momentum of the matrix has
 * taken its gradient; the others are not updated. All gradients count as zero. */
WF_API wf_status wf_optimizer_step(struct wf_optimizer *opt, wf_error *error) WF_CHECKED;
/* The same function under the names of the optimisers. */
#define wf_adam_step wf_optimizer_step
#define wf_adamw_step wf_optimizer_step
#define wf_sgd_step wf_optimizer_step
#define wf_lion_step wf_optimizer_step
#define wf_adafactor_step wf_optimizer_step
#define wf_muon_step wf_optimizer_step

/* Adds the state to a file. It consists of the tensors
 *
 *   prefix + "step"                I64 of shape [1]: updates done
 *   prefix + "updates." + name     I64 of shape [1]: updates of the parameter `name`
 *   prefix + "m." + name           moments of the parameter: "m." and "v." of Adam, "momentum." of SGD, "m." of Lion, "row.", "column." or
 *                                  "v." of Adafactor, "momentum." of Muon's matrices and "m." and "v." of its other parameters
 *   prefix + "ema." + name         moving average of the parameter, if there is one
 *
 * and of the metadata prefix + "optimizer", the name of the rule. Settings and groups are not part of the state, because the program sets
 * them. The state is read only when the writer commits. */
WF_API void wf_optimizer_save(const struct wf_optimizer *opt, wf_safetensors_writer *writer, const char *prefix);
/* Restores a state that wf_optimizer_save wrote. An older form of the state is read too: it is of one registry, and has one tensor prefix +
 * "steps" instead of those that begin with prefix + "updates.". WF_ERR_FORMAT, with nothing changed: the state is that of another kind of
 * optimiser, a number of updates is missing or impossible, the state lacks the moments of a parameter that is not frozen, a tensor whose
 * name begins with `prefix` is not known to the optimiser, or a shape differs. The message has the names. The moments of a parameter that
 * is frozen now are loaded too, for later. After a read error the moments are undefined. */
WF_API wf_status wf_optimizer_load(struct wf_optimizer *opt, const wf_safetensors *file, const char *prefix, wf_error *error) WF_CHECKED;

/* --- schedules: the learning rate of step 0, 1, 2, ... ------------------------------------------------------------- */
enum wf_schedule_kind {
    WF_SCHEDULE_CONSTANT, /* peak * (step + 1) / (warmup + 1) during the warm-up, then `peak` */
    WF_SCHEDULE_COSINE,   /* the same warm-up, then half a cosine from `peak` to `min`, which it reaches at `steps` */
    /* peak * min(t / w, sqrt(w / t)) with t = step + 1 and w = warmup. With peak = 1 / sqrt(d * w) this is the schedule of Vaswani et al.
     * 2017 for a model of width d. Without a warm-up: peak / sqrt(t) */
    WF_SCHEDULE_INVERSE_SQRT,
    WF_SCHEDULE_LINEAR, /* the warm-up of WF_SCHEDULE_CONSTANT, then a straight line from `peak` to `min`, which it reaches at `steps` */
    /* Warm-up, stable, decay (Hu et al. 2024): the same warm-up, then `peak`, and in the last `decay` updates down to `min`, which it
     * reaches at `steps`. A training that goes on with more steps repeats only the decay. */
    WF_SCHEDULE_WSD,
    /* The 1cycle policy (Smith and Topin 2018), as torch.optim.lr_scheduler.OneCycleLR computes it: from `start` to `peak`, which it
     * reaches in the last update of the warm-up, then down to `min`, which it reaches in the last update, steps - 1. PyTorch's defaults are
     * start = peak / 25, warmup = 0.3 * steps and min = start / 10,000. */
    WF_SCHEDULE_ONE_CYCLE,
    WF_SCHEDULE_FUNCTION /* function(ctx, step); the other members count for nothing */
};
/* The curve from `peak` down to `min` as a function of x, which rises from 0 to 1. WF_SCHEDULE_ONE_CYCLE also rises by this curve. */
enum wf_schedule_curve {
    WF_CURVE_DEFAULT, /* WF_CURVE_COSINE for WF_SCHEDULE_ONE_CYCLE, otherwise WF_CURVE_LINEAR */
    WF_CURVE_LINEAR,  /* min + (peak - min) * (1 - x) */
    WF_CURVE_COSINE,  /* min + (peak - min) * (1 + cos(pi x)) / 2 */
    WF_CURVE_SQRT     /* min + (peak - min) * (1 - sqrt(x)) (Haegele et al. 2024) */
};
struct wf_schedule {
    enum wf_schedule_kind kind;
    double peak;                  /* the learning rate at the end of the warm-up */
    double min;                   /* the learning rate at the end, for kinds that decay; WF_SCHEDULE_INVERSE_SQRT ignores it */
    int64_t warmup;               /* updates of the warm-up; WF_SCHEDULE_ONE_CYCLE: 0 means 0.3 * steps */
    int64_t steps;                /* updates in total, at least 1, for kinds that decay. wf_fit replaces 0 by its own .steps */
    int64_t decay;                /* WF_SCHEDULE_WSD: updates of the decay; 0 means a tenth of `steps`, at least 1 */
    double start;                 /* WF_SCHEDULE_ONE_CYCLE: the learning rate of step 0; 0 means peak / 25 */
    enum wf_schedule_curve curve; /* for WF_SCHEDULE_WSD and WF_SCHEDULE_ONE_CYCLE */
    /* WF_SCHEDULE_FUNCTION: returns the learning rate of a step. The same step must give the same rate, also after a resume. */
    double (*function)(void *ctx, int64_t step);
    void *ctx; /* the first argument of `function` */
};
/* Returns the learning rate of update `step`, which counts from 0. After the last step the rate stays as it is. NaN, which an
 * optimiser refuses: `schedule` is NULL, its function is, or a kind that decays has no `steps`. */
WF_API double wf_schedule_lr(const struct wf_schedule *schedule, int64_t step);

WF_END_DECLS

#endif
