/* SPDX-License-Identifier: MIT */
/* Optimisers and learning-rate schedules.
 *
 *   struct wf_adam opt;
 *   wf_adamw_init(&opt, registry, &error, .lr = 1e-3, .weight_decay = 0.1);
 *   wf_adam_decay_matrices_only(&opt);
 *   for (step...) {
 *       ... wf_backward(loss) ...
 *       opt.lr = wf_schedule_lr(&schedule, step);
 *       if (wf_adam_step(&opt, 1.0, &error) != WF_OK) ...         clips the global norm at 1.0, updates, zeroes the gradients
 *   }                                                                                                                   */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include <weft/registry.h>

WF_BEGIN_DECLS

/* Adam (Kingma and Ba 2015) and, with decoupled weight decay, AdamW (Loshchilov and Hutter 2019), as PyTorch computes them:
 *   m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  p -= lr / (1-b1^t) m / (sqrt(v / (1-b2^t)) + eps)
 * AdamW first subtracts lr * weight_decay * p from p; Adam adds weight_decay * p to g. A parameter without a gradient since
 * the last step keeps its value and its moments. */
struct wf_adam_options {
    double lr;           /* 1e-3 unless given */
    double beta1, beta2; /* 0.9, 0.999 */
    double eps;          /* 1e-8; with 0 a value whose gradients were all 0 becomes NaN, as in PyTorch */
    double weight_decay; /* 0 */
    bool decoupled;      /* AdamW */
};
struct wf_adam {
    double lr; /* may be set before each step, as the three below */
    double beta1, beta2, eps;
    bool decoupled;
    int64_t step;     /* updates done */
    int64_t *steps;   /* [parameters]: updates of each parameter */
    double grad_norm; /* of the last step's gradients, before clipping */
    wf_registry *registry;
    wf_grads *grads;
    wf_real *m, *v; /* [moments], of parameters that are or were trained */
    int64_t moments;
    int64_t *place;                      /* [parameters]: in m and v; -1: none */
    struct wf_adam_parameter *parameter; /* [parameters] */
};
/* The options of a call that gives none: to change members of, where wf_adam_init_with is called directly. */
WF_API struct wf_adam_options wf_adam_defaults(void);
/* The registry must have gradients. Owns its moments: free with wf_adam_free. Each option counts as it is, 0 too; WF_ERR_ARGUMENT: lr,
 * eps or weight_decay negative or not finite, a beta outside 0 <= beta < 1. */
WF_API wf_status wf_adam_init_with(struct wf_adam *opt, wf_registry *registry, const struct wf_adam_options *options,
                                   wf_error *error) WF_CHECKED;
#ifndef __cplusplus
/* Options that are given take the place of the defaults before them: an option of 0 is 0. */
#define wf_adam_init(opt, registry, error, ...)                                                                                            \
    wf_adam_init_with(opt, registry, (const struct wf_adam_options[]){WF_ADAM_GIVEN(.decoupled = false, __VA_ARGS__)}, error)
#define wf_adamw_init(opt, registry, error, ...)                                                                                           \
    wf_adam_init_with(opt, registry, (const struct wf_adam_options[]){WF_ADAM_GIVEN(.decoupled = true, __VA_ARGS__)}, error)
#define WF_ADAM_DEFAULTS .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
/* A statement expression, in which compilers can be told not to warn of the defaults that are replaced. */
#define WF_ADAM_GIVEN(form, ...)                                                                                                           \
    __extension__({                                                                                                                        \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")                                               \
            const struct wf_adam_options wf_adam_given = {form, WF_ADAM_DEFAULTS, __VA_ARGS__};                                            \
        _Pragma("GCC diagnostic pop") wf_adam_given;                                                                                       \
    })
#endif
WF_API void wf_adam_free(struct wf_adam *opt); /* a zeroed struct is allowed */

/* Groups: sets weight decay and learning-rate factor of every parameter for which match(ctx, name, parameter) is true. */
typedef bool (*wf_parameter_match)(void *ctx, const char *name, const wf_tensor *parameter);
WF_API void wf_adam_group(struct wf_adam *opt, wf_parameter_match match, void *ctx, double weight_decay, double lr_scale);
/* No weight decay for biases, gains and other vectors, whose learning-rate factors stay as they are. */
WF_API void wf_adam_decay_matrices_only(struct wf_adam *opt);

/* One update in one parallel pass. With clip > 0 gradients are scaled by min(1, clip / (norm + 1e-6)); 0 disables clipping. Afterwards
 * the gradients count as zero. Refused, with nothing changed: a setting out of its range, of a group too, or a negative clip
 * (WF_ERR_ARGUMENT), gradients of a backward that failed (WF_ERR_STATE), and a norm that is not finite (WF_ERR_NUMERIC). */
WF_API wf_status wf_adam_step(struct wf_adam *opt, double clip, wf_error *error) WF_CHECKED;
/* The same under the name of the decoupled form. */
#define wf_adamw_step wf_adam_step

/* The moments under prefix + "m." / "v." + name, and prefix + "step" [1] and "steps" [parameters] I64. Values are read at the writer's
 * commit. */
WF_API void wf_adam_save(const struct wf_adam *opt, wf_safetensors_writer *writer, const char *prefix);
/* Restores what wf_adam_save has written. WF_ERR_FORMAT: missing or invalid numbers of updates, missing moments; WF_ERR_SHAPE: moments of
 * another size. After an error the moments are undefined. */
WF_API wf_status wf_adam_load(struct wf_adam *opt, const wf_safetensors *file, const char *prefix, wf_error *error) WF_CHECKED;

/* Euclidean norm of all gradients, summed in double in a fixed order. */
WF_API double wf_grad_norm(const struct wf_adam *opt);

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
