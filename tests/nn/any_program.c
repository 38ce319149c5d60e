/* SPDX-License-Identifier: MIT */
/* Random programs in memory: registries, modules, caches, optimisers and the values of core with random, often wrong arguments, sometimes
 * without memory. Every call returns, with a message if it fails; a right pass afterwards computes as ever; and the memory of
 * a program that runs again and again does not grow. WF_FUZZ_CALLS=N makes about N calls. */
#include "any.h"

#include <unistd.h>

#include <weft/lstm.h>
#include <weft/moe.h>
#include <weft/optim.h>
#include <weft/ssm.h>

enum { POOL = 32, GIVEN = 10, PARAMETERS = 6 };

static wf_tape *tape;
static wf_tensor *pool[POOL], *known;

/* --- models: a registry, and what is declared in it ------------------------------------------------------------------ */

static struct model {
    wf_registry *registry;
    wf_tensor *parameter[PARAMETERS];
    struct wf_linear linear, tied;
    struct wf_embedding embedding;
    struct wf_layer_norm layer_norm;
    struct wf_rms_norm rms_norm;
    struct wf_batch_norm batch_norm;
    struct wf_dropout dropout;
    struct wf_ffn ffn;
    struct wf_moe moe;
    struct wf_recurrent recurrent;
    struct wf_ssm ssm;
    struct wf_positions positions;
    struct wf_mha self, cross;
    wf_grads *grads;
    struct wf_optimizer optimizer;
    bool built, optimised;
} models[2];
static struct wf_cache cache;
static int64_t calls, failures, built, backwards;

static struct model *any_model(void)
{
    return &models[below(2)];
}

static bool outcome(wf_status status, wf_error *e, const char *what)
{
    bool good = check_outcome(status, e, what);
    calls++;
    failures += !good;
    wf_error_clear(e);
    return good;
}

/* Widths that are right, that a declaration refuses, or (rarely) that fit nothing else. */
static int64_t width(int64_t usual)
{
    static const int64_t rare[] = {0, -1, 7, (int64_t)1 << 41, INT64_MAX, INT64_MIN};
    return below(150) ? usual : rare[below(6)];
}

static int small_count(int usual)
{
    static const int rare[] = {0, -1, 3, 255, INT32_MAX, INT32_MIN};
    return below(150) ? usual : rare[below(6)];
}

static void fill(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    for (int64_t i = 0; i < wf_shape_count(shape); i++)
        value[i] = (wf_real)(*(const double *)ctx + (double)(seed % 2) + (double)(name[0] % 3));
}

static struct wf_initializer any_init(void)
{
    static double constant = 0.25;
    return (struct wf_initializer){.kind = (enum wf_init_kind)small_count((int)below(7)),
                                   .a = any_number(0.5),
                                   .fan_in = width(0),
                                   .parts = width(1),
                                   .fill = seldom(50) ? NULL : fill,
                                   .ctx = &constant};
}

static bool sometimes(void *ctx)
{
    (void)ctx;
    return seldom(30);
}

static wf_scope any_scope(wf_scope s)
{
    static const char *const names[] = {"a", "b", "blocks", "a.b", "c"};
    if (seldom(200))
        return wf_sub(s, NULL);
    if (seldom(4)) {
        struct wf_init_rules rules = {.weight = any_init(), .residual = any_init(), .bias = any_init(), .embedding = any_init()};
        s = wf_with_init(s, seldom(3) ? NULL : &rules);
    }
    return below(2) ? wf_sub(s, names[below(5)]) : wf_sub_at(s, names[below(5)], any_size());
}

static void declare(struct model *m)
{
    wf_scope s = any_scope(wf_root(m->registry));
    static const char *const names[PARAMETERS] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    const wf_shape shapes[PARAMETERS] = {{1, {4}}, {2, {width(4), 4}}, {2, {6, width(4)}}, {0}, {1, {width(6)}}, {3, {2, 1, 4}}};
    for (int i = 0; i < PARAMETERS; i++)
        m->parameter[i] = wf_parameter_with(
            s, seldom(300) ? NULL : names[seldom(300) ? 0 : i], seldom(300) ? NULL : &shapes[i],
            seldom(9)
                ? NULL
                : &(struct wf_parameter_options){.init = any_init(), .frozen = below(2), .buffer = seldom(4), .persistent = seldom(20)});
    wf_linear_init(wf_sub(s, "linear"), &m->linear, width(4), width(4), .no_bias = below(2), .residual = below(2), .init = any_init(),
                   .parts = width(1));
    wf_linear_init(wf_sub(s, "tied"), &m->tied, width(4), 6, .tied = seldom(30) ? m->parameter[0] : m->parameter[2]);
    wf_embedding_init(wf_sub(s, "embedding"), &m->embedding, width(5), 4, .scale = any_number(0), .init = any_init());
    wf_layer_norm_init(wf_sub(s, "layer_norm"), &m->layer_norm, width(4), .eps = any_number(0), .no_bias = below(2));
    wf_rms_norm_init(wf_sub(s, "rms_norm"), &m->rms_norm, width(4), .eps = any_number(0));
    wf_batch_norm_init(wf_sub(s, "batch_norm"), &m->batch_norm, width(4), .eps = any_number(0), .momentum = any_number(0.5),
                       .no_affine = below(2), .evaluation = seldom(9));
    wf_dropout_init(s, &m->dropout, any_number(0.2));
    const int experts = seldom(200) ? (int)below(9) - 2 : 1 + (int)below(4);
    wf_moe_init(wf_sub(s, "moe"), &m->moe, width(4), width(6), experts, .chosen = seldom(200) ? (int)below(9) - 2 : (int)below(2),
                .activation = (enum wf_activation)small_count((int)below(5)), .raw_weights = below(2));
    (below(2) ? wf_lstm_init_with : wf_gru_init_with)(wf_sub(s, "recurrent"), &m->recurrent, width(4), width(3),
                                                      seldom(9) ? NULL
                                                                : &(struct wf_recurrent_module_options){.layers = small_count(2),
                                                                                                        .bidirectional = below(2),
                                                                                                        .no_bias = below(2),
                                                                                                        .dropout = any_number(0.1),
                                                                                                        .init = any_init()});
    wf_ssm_init(wf_sub(s, "ssm"), &m->ssm, width(4), .states = width(0), .taps = small_count(2), .expand = width(0), .rank = width(0),
                .bias = below(2), .no_conv_bias = below(2));
    wf_ffn_init(wf_sub(s, "ffn"), &m->ffn, width(4), width(6), .activation = (enum wf_activation)small_count((int)below(5)),
                .no_bias = below(2), .dropout = any_number(0.1), .residual_dropout = any_number(0.1));
    wf_positions_init(wf_sub(s, "positions"), &m->positions, width(7), width(4), .learned = below(2), .init = any_init());
    wf_mha_init(wf_sub(s, "self"), &m->self, width(4), small_count(2), .kv_heads = small_count((int)below(3)), .d_key = width(0),
                .d_value = width(0), .no_bias = below(2), .no_output = seldom(9), .dropout = any_number(0.1),
                .residual_dropout = any_number(0.1));
    wf_mha_init(wf_sub(s, "cross"), &m->cross, width(4), small_count(2), .cross = true, .d_memory = width(6));
    if (seldom(50))
        wf_scope_fail(s, WF_ERR_ARGUMENT, "no number %d", 3);
}

static void end_model(struct model *m)
{
    wf_optimizer_free(&m->optimizer);
    wf_grads_free(m->grads);
    wf_registry_free(m->registry);
    *m = (struct model){0};
}

static void begin_model(struct model *m)
{
    wf_error e = {0};
    end_model(m);
    for (; !m->registry; wf_alloc_fail_after(-1)) {
        wf_alloc_fail_after(seldom(20) ? below(5) : -1);
        m->registry = wf_registry_new(&e);
        outcome(m->registry ? WF_OK : WF_ERR_MEMORY, &e, "wf_registry_new");
    }
    wf_alloc_fail_after(seldom(20) ? below(60) : -1);
    wf_registry_cancel(m->registry, seldom(30) ? sometimes : NULL, NULL);
    declare(m);
    if (wf_registry_error(m->registry)->code != WF_OK)
        check_message(wf_registry_error(m->registry), "declaring");
    if (below(9))
        m->built = outcome(wf_registry_build(m->registry, 7, &e), &e, "wf_registry_build");
    else if (below(2))
        m->built = outcome(wf_registry_gradients(m->registry, &e), &e, "wf_registry_gradients");
    if (m->built && below(2)) {
        m->grads = wf_grads_new(m->registry, &e);
        outcome(m->grads ? WF_OK : e.code, &e, "wf_grads_new");
    }
    wf_alloc_fail_after(-1);
    built += m->built;
    ck_assert(!m->built || wf_registry_error(m->registry)->code == WF_OK);
}

/* --- uses of a model ---------------------------------------------------------------------------------------------------- */

static void save_and_load(struct model *m, struct model *into)
{
    char path[64];
    wf_error e = {0};
    strcpy(path, "/tmp/weft-any-XXXXXX.safetensors");
    int made = mkstemps(path, 12);
    ck_assert_int_ge(made, 0);
    close(made);
    const char *prefix[] = {"", "m.", NULL, "a.b."};
    wf_safetensors_writer *writer = wf_safetensors_writer_new();
    wf_registry_save(m->registry, writer, prefix[below(4)]);
    if (m->optimised)
        wf_optimizer_save(&m->optimizer, writer, below(9) ? "adam." : NULL);
    bool written = outcome(wf_safetensors_commit(writer, path, &e), &e, "wf_safetensors_commit");
    wf_safetensors *file = written ? wf_safetensors_open(path, &e) : NULL;
    wf_error_clear(&e);
    const struct wf_load_rule rules[] = {
        {"a.linear.weight", {"a.linear.weight"}}, {"*", {"x.*", "y.*"}}, {seldom(9) ? NULL : "b.0.p1", {NULL}}};
    const char *const ignored[] = {"adam.*", NULL};
    struct wf_load_options o = {
        .prefix = prefix[below(4)], .rule = seldom(9) ? NULL : rules, .rules = any_count(3), .ignored = below(4) ? ignored : NULL};
    if (o.rules > 3 && o.rule)
        o.rules = 3;
    if (below(2))
        outcome(wf_registry_load_with(into->registry, file, below(4) ? &o : NULL, &e), &e, "wf_registry_load_with");
    else
        outcome(wf_registry_load(into->registry, file, prefix[below(4)], &e), &e, "wf_registry_load");
    if (file && into->optimised)
        outcome(wf_optimizer_load(&into->optimizer, seldom(9) ? NULL : file,
                                  below(3)    ? "adam."
                                  : seldom(3) ? NULL
                                              : "m.",
                                  &e),
                &e, "wf_optimizer_load");
    wf_safetensors_close(file);
    unlink(path);
}

/* Norms over both registries, and the schedule: neither has a state. */
static void norms_and_schedules(void)
{
    wf_error e = {0};
    double norm = 0;
    wf_grads *grads[2] = {wf_registry_grads(models[0].registry), models[1].registry ? wf_registry_grads(models[1].registry) : NULL};
    int count = (int)below(3);
    outcome(wf_clip_norm_of(grads, count, any_number(1), below(2) ? &norm : NULL, &e), &e, "wf_clip_norm_of");
    wf_grad_norm_of(grads, count);
    const struct wf_schedule s = {
        .kind = (enum wf_schedule_kind)any_count(3), .peak = any_number(1), .min = any_number(0), .warmup = width(3), .steps = width(9)};
    wf_schedule_lr(&s, width(below(20)));
}

static bool match(void *ctx, const char *name, const wf_tensor *parameter)
{
    return ctx && name[0] == 'a' && wf_ndim(parameter) == 2;
}

static void use_registry(struct model *m)
{
    wf_error e = {0};
    wf_registry *r = m->registry;
    bool good = wf_registry_error(r)->code == WF_OK;
    int i = any_count(20);
    wf_tensor *x = wf_registry_at(r, i);
    switch (below(seldom(40) ? 7 : 6)) {
    case 0:
        ck_assert((x != NULL) == (i >= 0 && i < wf_registry_count(r)));
        ck_assert(!x || wf_registry_find(r, wf_parameter_info(x)->name) == x);
        ck_assert(!wf_registry_find(r, seldom(2) ? NULL : "no such name"));
        wf_registry_is_buffer(r, i);
        wf_registry_is_saved(r, i);
        if (seldom(9))
            outcome(wf_registry_update_buffers(r, &e), &e, "wf_registry_update_buffers");
        ck_assert(wf_registry_parameters(r) >= 0 && wf_registry_slab(r) >= 0);
        break;
    case 1: /* one of the other registry is an error, after which this one is not built */
        wf_registry_freeze(r, seldom(100) ? known : x ? x : wf_registry_at(r, 0), below(2));
        break;
    case 2:
        if (seldom(9))
            outcome(wf_registry_build(r, 3, &e), &e, "wf_registry_build again");
        break;
    case 3:
        if (wf_registry_grads(r))
            wf_grads_zero(wf_registry_grads(r));
        break;
    case 4:
        if (!m->optimised && m->built) {
            wf_optimizer_free(&m->optimizer);
            int kind = (int)below(3);
            m->optimised = outcome(kind == 0 ? wf_adamw_init(&m->optimizer, r, &e, .lr = any_number(1e-3), .weight_decay = any_number(0.1))
                                   : kind == 1 ? wf_adam_init(&m->optimizer, r, &e, .beta1 = any_number(0.9), .eps = any_number(1e-8))
                                               : wf_sgd_init(&m->optimizer, r, &e, .momentum = any_number(0.9), .nesterov = below(2)),
                                   &e, "an optimiser's init");
        }
        break;
    case 5:
        if (m->optimised) {
            static const char *const pattern[] = {"*", "a.*", "*.weight", "*a*i*", "", "no such name", NULL};
            const struct wf_group_options group = {any_number(0.1), below(2) ? WF_UNCHANGED : any_number(1)};
            if (below(3) == 0)
                outcome(wf_optimizer_group_where(&m->optimizer, match, below(2) ? m : NULL, &group, &e), &e, "wf_optimizer_group_where");
            else if (below(2))
                outcome(wf_optimizer_group_with(&m->optimizer, pattern[below(7)], seldom(9) ? NULL : &group, &e), &e, "wf_optimizer_group");
            else
                wf_optimizer_decay_matrices_only(&m->optimizer);
            if (seldom(9))
                outcome(wf_optimizer_add(&m->optimizer, below(2) ? r : NULL, "again.", &e), &e, "wf_optimizer_add");
            if (below(2))
                outcome(wf_registry_gradients(r, &e), &e, "wf_registry_gradients");
            if (below(2))
                outcome(wf_clip_norm(wf_registry_grads(r), any_number(1), NULL, &e), &e, "wf_clip_norm");
            if (below(2) && x)
                wf_grads_at(wf_registry_grads(r), x);
            outcome(wf_optimizer_step(&m->optimizer, &e), &e, "wf_optimizer_step");
        }
        break;
    default:
        save_and_load(m, any_model());
        break;
    }
    if (wf_registry_error(r)->code != WF_OK)
        check_message(wf_registry_error(r), good ? "a registry" : "a registry that had one");
}

/* --- caches ----------------------------------------------------------------------------------------------------------- */

static void use_cache(void)
{
    wf_error e = {0};
    int32_t from[16];
    for (int i = 0; i < 16; i++)
        from[i] = small_count((int)below(2));
    switch (cache.layer ? below(6) : 0) {
    case 0: {
        wf_cache_free(&cache);
        int layers = small_count(2);
        outcome(wf_cache_init(&cache, layers == INT32_MAX ? 1 : layers, width(2), width(6), width(4), width(4), &e), &e, "wf_cache_init");
        break;
    }
    case 1:
    case 2:
        wf_cache_advance(&cache, below(9) ? 1 : any_size());
        break;
    case 3:
        wf_cache_rewind(&cache, below(2) ? any_size() - 1 : below(2), small_count((int)below(4)));
        break;
    default:
        outcome(wf_cache_select(&cache, seldom(99) ? NULL : from, below(20) ? 1 + below(2) : any_size() % 17, &e), &e, "wf_cache_select");
        break;
    }
    if (cache.error.code != WF_OK) {
        check_message(&cache.error, "a cache");
        if (below(2))
            wf_cache_free(&cache);
    }
}

/* --- forward ---------------------------------------------------------------------------------------------------------- */

static wf_tensor *any(void)
{
    return seldom(500) ? NULL : pool[below(POOL)];
}

/* Mostly one of these dims. */
static wf_tensor *suited(int ndim, int64_t last)
{
    for (int i = 0; i < 40; i++) {
        wf_tensor *x = any();
        if (x && wf_ndim(x) == ndim && wf_dim(x, -1) == last && wf_dtype_of(x) == WF_REAL)
            return x;
    }
    return any();
}

static wf_tensor *attend(struct model *m)
{
    wf_tensor *x = suited(3, 4), *weights = NULL;
    const int32_t lengths[] = {1, 2, 3, 1, 2, 0}, offsets[] = {0, 2, (int32_t)wf_dim(x, 0)};
    bool cross = !below(3);
    struct wf_mha_call c = {.causal = below(2),
                            .residual = below(3) ? NULL : suited(3, 4),
                            .weights = seldom(9) ? &weights : NULL,
                            .mask = seldom(9)    ? pool[GIVEN - 1]
                                    : seldom(50) ? any()
                                                 : NULL};
    if (seldom(9) && x && wf_dim(x, 0) <= 6)
        c.key_lengths = lengths;
    if (cross != seldom(50)) {
        if (below(9))
            c.memory = suited(3, 6);
        if (!c.memory || seldom(20))
            c.memory_kv = wf_mha_memory(&m->cross, suited(3, 6));
    }
    if (seldom(9)) {
        x = suited(2, 4);
        c.packed = (struct wf_packed){seldom(20) ? NULL : offsets, seldom(9) ? (int)below(4) - 1 : 2};
    }
    if (cache.layer && below(2) && (!cross || seldom(20)))
        c.cache = &cache.layer[below(cache.layers)];
    wf_tensor *y = wf_mha_forward_with(cross ? &m->cross : &m->self, x, seldom(30) ? NULL : &c);
    if (weights)
        pool[GIVEN + below(POOL - GIVEN)] = weights;
    return y;
}

static wf_tensor *recurrent(struct model *m, wf_tensor *x)
{
    static const int32_t lengths[] = {1, 3, 0, 2, 1, 1, 2, 3}, offsets[] = {0, 2, 5};
    wf_tensor *last[2] = {NULL};
    struct wf_recurrent_call call = {.lengths = x && wf_dim(x, 0) <= 8 && below(2) ? lengths : NULL,
                                     .h = seldom(9) ? any() : NULL,
                                     .c = seldom(9) ? any() : NULL,
                                     .last_h = below(2) ? &last[0] : NULL,
                                     .last_c = seldom(4) ? &last[1] : NULL,
                                     .cache = cache.layer && seldom(4) ? &cache.layer[below(2)] : NULL};
    if (seldom(4))
        call.packed = (struct wf_packed){seldom(50) ? NULL : offsets, seldom(20) ? (int)below(3) : 2};
    wf_tensor *y = wf_recurrent_forward_with(&m->recurrent, x, seldom(9) ? NULL : &call);
    return last[0] && below(2) ? last[0] : last[1] && below(2) ? last[1] : y;
}

static wf_tensor *forward(struct model *m)
{
    const int32_t offsets[] = {0, 2, 5};
    wf_tensor *x = below(2) ? suited(3, 4) : suited(2, 4), *y;
    struct wf_moe_routing routing;
    switch (below(15)) {
    case 12:
        return recurrent(m, x);
    case 14:
        return wf_ssm_forward(&m->ssm, x,
                              .residual = below(2)    ? x
                                          : seldom(9) ? any()
                                                      : NULL,
                              .cache = cache.layer && seldom(4) ? &cache.layer[below(2)] : NULL);
    case 0:
        return wf_linear_forward(below(2) ? &m->linear : &m->tied, x);
    case 1:
        return wf_embedding_forward(&m->embedding, below(9) ? pool[GIVEN - 2] : any());
    case 2:
        return wf_layer_norm_forward(&m->layer_norm, x);
    case 3:
        return below(2) ? wf_rms_norm_forward(&m->rms_norm, x) : wf_batch_norm_forward(&m->batch_norm, suited(2, 4));
    case 4:
        return wf_dropout_forward(&m->dropout, x);
    case 5:
        return wf_ffn_forward(&m->ffn, x, .residual = below(2) ? x : seldom(9) ? any() : NULL);
    case 6:
        return wf_positions_forward(&m->positions, x, cache.layer && below(2) ? &cache : NULL);
    case 7:
        return wf_positions_packed(&m->positions, suited(2, 4),
                                   (struct wf_packed){seldom(50) ? NULL : offsets, seldom(20) ? (int)below(3) : 2});
    case 8: /* parameters alone, or with others */
        y = m->parameter[below(PARAMETERS)];
        return below(2) ? wf_mul(y, y) : wf_add(x, y);
    case 9:
        y = any();
        wf_release(seldom(50) ? x : NULL);
        return y ? wf_scale(y, 0.5) : any();
    case 10:
        y = wf_moe_forward(&m->moe, x, .residual = below(2) ? x : seldom(9) ? any() : NULL, .routing = &routing);
        return below(2) ? y : wf_moe_balance(&routing, 1);
    default:
        return attend(m);
    }
}

static void begin_pass(void)
{
    static const int32_t ids[] = {0, 1, 4, 2, 3, 0};
    static const bool may[] = {true, false, true, true, true, true, false, true, true};
    struct model *m = any_model();
    wf_tape_reset(tape, below(2) ? WF_INFER : (wf_mode)below(3), .seed = 3, .step = (uint64_t)below(4), .first_row = (uint64_t)below(9),
                  .grads = seldom(4) ? m->grads : NULL, .exact = below(2));
    const wf_shape shapes[] = {{3, {2, 3, 4}}, {3, {2, 1, 4}}, {3, {2, 3, 6}}, {3, {1, 2, 4}},
                               {2, {5, 4}},    {2, {5, 4}},    {3, {2, 2, 4}}, {3, {2, 0, 4}}};
    for (int i = 0; i < POOL; i++)
        if (i < 8 || i >= GIVEN)
            pool[i] = wf_input(tape, any_data, &shapes[i % 8], i % 2);
    pool[GIVEN - 2] = wf_ids(tape, ids, 2, 3);
    pool[GIVEN - 1] = wf_bools(tape, may, WF_SHAPE(3, 3));
}

static void one_pass(void)
{
    for (int i = 0; i < 2; i++)
        if (!models[i].registry || seldom(30))
            begin_model(&models[i]);
    if (seldom(4))
        use_cache();
    begin_pass();
    if (seldom(40))
        wf_alloc_fail_after(below(12));
    for (int64_t k = below(8); k >= 0 && wf_tape_error(tape)->code == WF_OK; k--) {
        wf_tensor *y = forward(any_model());
        calls++;
        if (wf_tape_error(tape)->code != WF_OK) {
            check_message(wf_tape_error(tape), "a tape");
            failures++;
        } else if (y) {
            ck_assert_msg(!wf_is_poison(y), "poison without a message");
            pool[GIVEN + below(POOL - GIVEN)] = y;
        }
    }
    wf_tensor *loss = wf_sum(suited(3, 4));
    if (wf_tape_mode(tape) != WF_INFER || seldom(9)) {
        wf_status status = wf_backward(loss);
        ck_assert_int_eq(status, wf_tape_error(tape)->code);
        ck_assert(status == WF_OK || *wf_tape_error(tape)->message);
        backwards += status == WF_OK;
    }
    if (seldom(4))
        norms_and_schedules();
    for (int64_t k = below(4); k > 0; k--)
        use_registry(any_model());
    wf_alloc_fail_after(-1);
}

/* A program, the same for the same seed; only the tape is left of it. */
static void program(uint64_t seed, int64_t passes)
{
    any_rng = wf_rng_new(seed, 8);
    for (int64_t i = 0; i < passes; i++) {
        one_pass();
        if (i % 8 == 0)
            check_right_pass(tape, known);
    }
    wf_cache_free(&cache);
    end_model(&models[0]);
    end_model(&models[1]);
}

START_TEST(any_program)
{
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    known = wf_parameter(wf_root(registry), "w", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 2});
    ck_ok(wf_registry_build(registry, 1, error));
    ck_ok(wf_set_threads(1, error));
    tape = wf_tape_new(&e);
    ck_assert_msg(tape != NULL, "%s", e.message);
    int64_t passes = getenv("WF_FUZZ_CALLS") ? atoll(getenv("WF_FUZZ_CALLS")) / 8 : sampled() ? 6000 : 15000, live[3];
    size_t reserved[3];
    for (int run = 0; run < 3; run++) { /* the same program again takes no more memory */
        program(1, run == 0 ? passes : passes / 8);
        live[run] = wf_alloc_live();
        reserved[run] = wf_tape_stats(tape).reserved;
    }
    ck_assert_msg(live[1] == live[2] && reserved[1] == reserved[2], "blocks: %lld, then %lld; of the tape: %zu bytes, then %zu",
                  (long long)live[1], (long long)live[2], reserved[1], reserved[2]);
    if (getenv("VERBOSE"))
        printf("%lld calls, %lld failed; %lld models, %lld backward\n", (long long)calls, (long long)failures, (long long)built,
               (long long)backwards);
    ck_assert_msg(failures * 50 > calls && failures * 2 < calls && backwards * 40 > passes, "%lld of %lld calls failed, %lld backwards",
                  (long long)failures, (long long)calls, (long long)backwards);
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("any_program", any_program)
