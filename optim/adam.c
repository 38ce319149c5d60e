/* SPDX-License-Identifier: MIT */
/* Adam and AdamW over the slabs of a registry. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/slab.h>
#include <weft/memory.h>
#include <weft/optim.h>

struct wf_adam_parameter {
    double decay, lr_scale;
    double first, inverse_second; /* what makes up for moments that start at 0, after its updates (Kingma and Ba 2015, section 3) */
};

static bool within(double value, double below)
{
    return value >= 0 && value < below; /* not NaN */
}

/* What callers may set at any time. */
static wf_status check(const struct wf_adam *opt, wf_error *error)
{
    const struct {
        const char *name;
        double value, below;
    } range[] = {{"lr", opt->lr, INFINITY}, {"beta1", opt->beta1, 1}, {"beta2", opt->beta2, 1}, {"eps", opt->eps, INFINITY}};
    for (int i = 0; i < (int)(sizeof range / sizeof *range); i++)
        if (!within(range[i].value, range[i].below))
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s = %g is not in 0 <= %s < %g", range[i].name, range[i].value, range[i].name,
                                range[i].below);
    return WF_OK;
}

static wf_status check_groups(const struct wf_adam *opt, wf_error *error)
{
    for (int i = 0; i < wf_registry_count(opt->registry); i++) {
        const struct wf_adam_parameter *p = &opt->parameter[i];
        if (!within(p->decay, INFINITY) || !within(p->lr_scale, INFINITY))
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: weight decay %g or learning-rate factor %g is negative or not finite",
                                wf_parameter_info(wf_registry_at(opt->registry, i))->name, p->decay, p->lr_scale);
    }
    return WF_OK;
}

/* Elements that a parameter's moments take: each begins on a cache line. */
static int64_t room(const wf_registry *registry, int i)
{
    return (wf_array_count(&wf_parameter_info(wf_registry_at(registry, i))->value) + 15) / 16 * 16;
}

static bool is_trained(const wf_registry *registry, int i)
{
    return !wf_parameter_info(wf_registry_at(registry, i))->frozen;
}

/* Makes room for the moments of parameters that are trained and have none: at first, and after one is no longer frozen. */
static wf_status make_moments(struct wf_adam *opt, wf_error *error)
{
    int64_t need = opt->moments;
    for (int i = 0; i < wf_registry_count(opt->registry); i++)
        need += opt->place[i] < 0 && is_trained(opt->registry, i) ? room(opt->registry, i) : 0;
    if (need == opt->moments && opt->m)
        return WF_OK;
    wf_real *m = wf_alloc_zero((size_t)need + 1, sizeof *m), *v = wf_alloc_zero((size_t)need + 1, sizeof *v);
    if (!m || !v) {
        wf_free(m);
        wf_free(v);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the moments of %lld parameters", (long long)need);
    }
    if (opt->moments > 0) {
        memcpy(m, opt->m, (size_t)opt->moments * sizeof *m);
        memcpy(v, opt->v, (size_t)opt->moments * sizeof *v);
    }
    wf_free(opt->m);
    wf_free(opt->v);
    opt->m = m;
    opt->v = v;
    for (int i = 0; i < wf_registry_count(opt->registry); i++)
        if (opt->place[i] < 0 && is_trained(opt->registry, i)) {
            opt->place[i] = opt->moments;
            opt->moments += room(opt->registry, i);
        }
    return WF_OK;
}

struct wf_adam_options wf_adam_defaults(void)
{
    return (struct wf_adam_options){WF_ADAM_DEFAULTS};
}

wf_status wf_adam_init_with(struct wf_adam *opt, wf_registry *registry, const struct wf_adam_options *o, wf_error *error)
{
    *opt = (struct wf_adam){.lr = o->lr,
                            .beta1 = o->beta1,
                            .beta2 = o->beta2,
                            .eps = o->eps,
                            .decoupled = o->decoupled,
                            .registry = registry,
                            .grads = wf_registry_grads(registry)};
    wf_status status = check(opt, error);
    if (status != WF_OK)
        return status;
    if (!within(o->weight_decay, INFINITY))
        return wf_error_set(error, WF_ERR_ARGUMENT, "weight_decay = %g is not in 0 <= weight_decay < inf", o->weight_decay);
    if (!opt->grads)
        return wf_error_set(error, WF_ERR_STATE, "the registry has no gradients: call wf_registry_build or wf_registry_gradients first");
    size_t parameters = (size_t)wf_registry_count(registry);
    opt->steps = wf_alloc_zero(parameters + 1, sizeof *opt->steps);
    opt->parameter = wf_alloc_zero(parameters + 1, sizeof *opt->parameter);
    opt->place = wf_alloc((parameters + 1) * sizeof *opt->place);
    if (!opt->steps || !opt->parameter || !opt->place) {
        wf_adam_free(opt);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the settings of %d parameters", wf_registry_count(registry));
    }
    for (size_t i = 0; i < parameters; i++) {
        opt->parameter[i] = (struct wf_adam_parameter){.decay = o->weight_decay, .lr_scale = 1};
        opt->place[i] = -1;
    }
    status = make_moments(opt, error);
    if (status != WF_OK)
        wf_adam_free(opt);
    return status;
}

void wf_adam_free(struct wf_adam *opt)
{
    wf_free(opt->m);
    wf_free(opt->v);
    wf_free(opt->steps);
    wf_free(opt->parameter);
    wf_free(opt->place);
    *opt = (struct wf_adam){0};
}

void wf_adam_group(struct wf_adam *opt, wf_parameter_match match, void *ctx, double weight_decay, double lr_scale)
{
    for (int i = 0; i < wf_registry_count(opt->registry); i++) {
        wf_tensor *p = wf_registry_at(opt->registry, i);
        if (match(ctx, wf_parameter_info(p)->name, p))
            opt->parameter[i] = (struct wf_adam_parameter){.decay = weight_decay, .lr_scale = lr_scale};
    }
}

void wf_adam_decay_matrices_only(struct wf_adam *opt)
{
    for (int i = 0; i < wf_registry_count(opt->registry); i++)
        if (wf_ndim(wf_registry_at(opt->registry, i)) < 2)
            opt->parameter[i].decay = 0;
}

/* --- a step -------------------------------------------------------------------------------------------------------- */

static void sum_block(void *ctx, int64_t i)
{
    const wf_grads *grads = ctx;
    const struct wf_grads_block *b = &grads->block[i];
    grads->partial[i] = grads->valid[b->parameter] ? wf_kernel->sum_squares(b->count, wf_grads_block_data(grads, b)) : 0;
}

double wf_grad_norm(const struct wf_adam *opt)
{
    double sum = 0;
    wf_parallel(opt->grads->blocks, 0.06 * (double)opt->grads->count, sum_block, opt->grads);
    for (int64_t i = 0; i < opt->grads->blocks; i++)
        sum += opt->grads->partial[i];
    return sqrt(sum);
}

struct update {
    const struct wf_adam *opt;
    double grad_scale;
};

static void update_block(void *ctx, int64_t i)
{
    const struct update *u = ctx;
    const struct wf_adam *opt = u->opt;
    const struct wf_grads_block *b = &opt->grads->block[i];
    const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(opt->registry, b->parameter));
    if (!opt->grads->valid[b->parameter] || info->frozen)
        return;
    const struct wf_adam_parameter *p = &opt->parameter[b->parameter];
    int64_t moments = opt->place[b->parameter] + b->at;
    double lr = opt->lr * p->lr_scale;
    wf_kernel->internal->adam(b->count, wf_registry_values(opt->registry) + info->offset + b->at, wf_grads_block_data(opt->grads, b),
                              opt->m + moments, opt->v + moments, (wf_real)u->grad_scale, opt->beta1, opt->beta2, (wf_real)opt->eps,
                              (wf_real)(lr / p->first), (wf_real)p->inverse_second, opt->decoupled ? (wf_real)(lr * p->decay) : 0,
                              opt->decoupled ? 0 : (wf_real)p->decay);
}

/* Each parameter counts its own updates: one without a gradient is not touched, as in PyTorch. */
static void count_updates(struct wf_adam *opt)
{
    int64_t known = -1;
    double first = 0, inverse_second = 0;
    for (int i = 0; i < wf_registry_count(opt->registry); i++) {
        if (!opt->grads->valid[i] || !is_trained(opt->registry, i))
            continue;
        int64_t t = ++opt->steps[i];
        if (t != known) {
            first = 1 - pow(opt->beta1, (double)t);
            inverse_second = 1 / sqrt(1 - pow(opt->beta2, (double)t));
        }
        known = t;
        opt->parameter[i].first = first;
        opt->parameter[i].inverse_second = inverse_second;
    }
}

wf_status wf_adam_step(struct wf_adam *opt, double clip, wf_error *error)
{
    wf_status status = check(opt, error);
    if (status == WF_OK)
        status = check_groups(opt, error);
    if (status != WF_OK)
        return status;
    if (!(clip >= 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "clip = %g is not a maximum norm: give 0 to disable clipping", clip);
    if (opt->grads->broken)
        return wf_error_set(error, WF_ERR_STATE, "the last backward failed, and its gradients are invalid: see wf_tape_error");
    opt->grad_norm = wf_grad_norm(opt);
    if (!isfinite(opt->grad_norm))
        return wf_error_set(error, WF_ERR_NUMERIC, "the gradient norm is %g in update %lld", opt->grad_norm, (long long)opt->step + 1);
    if ((status = make_moments(opt, error)) != WF_OK)
        return status;
    opt->step++;
    struct update u = {.opt = opt, .grad_scale = 1};
    if (clip > 0)
        u.grad_scale = fmin(1, clip / (opt->grad_norm + 1e-6));
    count_updates(opt);
    wf_parallel(opt->grads->blocks, 0.5 * (double)opt->grads->count, update_block, &u);
    wf_grads_zero(opt->grads);
    return WF_OK;
}

/* --- state --------------------------------------------------------------------------------------------------------- */

/* Names PREFIXstep, PREFIXsteps, and for a parameter PREFIXm.NAME and PREFIXv.NAME. */
enum { NAME = 1024 };
static const char *name_of(char text[NAME], const char *prefix, const char *what, const char *parameter)
{
    snprintf(text, NAME, "%s%s%s", prefix, what, parameter);
    return text;
}

void wf_adam_save(const struct wf_adam *opt, wf_safetensors_writer *writer, const char *prefix)
{
    char name[NAME];
    int count = wf_registry_count(opt->registry);
    wf_array step = wf_array_dense((void *)&opt->step, WF_I64, &(wf_shape){1, {1}});
    wf_array steps = wf_array_dense(opt->steps, WF_I64, &(wf_shape){1, {count}});
    wf_safetensors_put(writer, name_of(name, prefix, "step", ""), &step);
    wf_safetensors_put(writer, name_of(name, prefix, "steps", ""), &steps);
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < count; i++) {
            if (opt->place[i] < 0)
                continue;
            wf_array moment = wf_parameter_info(wf_registry_at(opt->registry, i))->value;
            moment.data = (side ? opt->v : opt->m) + opt->place[i];
            wf_safetensors_put(writer, name_of(name, prefix, side ? "v." : "m.", wf_name_of(wf_registry_at(opt->registry, i))), &moment);
        }
}

wf_status wf_adam_load(struct wf_adam *opt, const wf_safetensors *file, const char *prefix, wf_error *error)
{
    char name[NAME];
    int count = wf_registry_count(opt->registry);
    int64_t done = 0;
    wf_status status = wf_safetensors_read(file, name_of(name, prefix, "step", ""), WF_I64, &done, 1, error);
    if (status == WF_OK && done < 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s is %lld, which is not a number of updates", name, (long long)done);
    if (status == WF_OK)
        status = wf_safetensors_read(file, name_of(name, prefix, "steps", ""), WF_I64, opt->steps, count, error);
    for (int i = 0; status == WF_OK && i < count; i++)
        if (opt->steps[i] < 0 || opt->steps[i] > done)
            status = wf_error_set(error, WF_ERR_FORMAT, "%s: a parameter has %lld updates, more than the %lld steps", name,
                                  (long long)opt->steps[i], (long long)done);
    for (int i = 0; status == WF_OK && i < 2 * count; i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(opt->registry, i % count));
        if (opt->place[i % count] >= 0)
            status = wf_safetensors_read(file, name_of(name, prefix, i < count ? "m." : "v.", info->name), WF_REAL,
                                         (i < count ? opt->m : opt->v) + opt->place[i % count], wf_array_count(&info->value), error);
    }
    if (status == WF_OK)
        opt->step = done;
    return status;
}
