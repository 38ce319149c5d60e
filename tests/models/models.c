/* SPDX-License-Identifier: MIT */
/* The families of language models: parameters, values, loss, evaluation, errors. */
#include "memory_test.h"
#include "reference.h"

#ifdef WF_DOUBLE
static const double tolerance = 1e-12;
#else
static const double tolerance = 2e-5;
#endif

static const char *const names[] = {"nanogpt-char-small", "char-rms"};

/* Counted in PyTorch on models of the same shapes. */
START_TEST(parameter_counts)
{
    static const struct {
        const char *name;
        int64_t vocab, count;
        bool bias;
    } cases[] = {{"nanogpt-char", 65, 10745088, false},
                 {"nanogpt-char-small", 65, 804096, false},
                 {"nanogpt-char-small", 65, 809856, true},
                 {"char-rms", 70, 58886, true},
                 {"gpt2", 50257, 124439808, true}};
    static const struct {
        const char *name;
        int64_t count; /* as published */
    } others[] = {{"smollm2-135m", 134515008}, {"phi3-mini", 3821079552}, {"gemma3-270m", 268098176}, {"gemma2-2b", 2614341888}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct wf_config c = preset(others[i].name);
        wf_model *m = bare_model(&c);
        ck_assert_int_eq(wf_registry_parameters(wf_model_registry(m)), others[i].count);
        wf_model_free(m);
    }
    for (int i = 0; i < 5; i++) {
        struct wf_config c = preset(cases[i].name);
        set_key(&c, "vocab_size", cases[i].vocab);
        set_key(&c, "bias", cases[i].bias);
        wf_model *m = bare_model(&c);
        ck_assert_int_eq(wf_registry_parameters(wf_model_registry(m)), cases[i].count);
        ck_assert_ptr_null(wf_registry_values(wf_model_registry(m))); /* declared, without memory */
        wf_model_free(m);
    }
    wf_model_free(NULL);
}
END_TEST

START_TEST(names_and_shapes)
{
    struct wf_config c = small_config("nanogpt-char-small", 16, 11);
    wf_model *m = model_of(&c, 1);
    has(m, "embed.weight", 11, 24);
    has(m, "positions.weight", 16, 24);
    has(m, "blocks.1.norm1.weight", 24, 0);
    has(m, "blocks.1.attn.qkv.weight", 72, 24);
    has(m, "blocks.1.attn.out.weight", 24, 24);
    has(m, "blocks.1.norm2.weight", 24, 0);
    has(m, "blocks.1.ffn.up.weight", 40, 24);
    has(m, "blocks.1.ffn.down.weight", 24, 40);
    has(m, "norm.weight", 24, 0);
    ck_assert_int_eq(wf_registry_count(wf_model_registry(m)), 2 + 2 * 6 + 1); /* nothing else: tied, without biases */
    wf_model_free(m);

    set_keys(&c, "tied=false bias=true kv_heads=2");
    m = model_of(&c, 1);
    has(m, "head.weight", 11, 24);
    has(m, "blocks.0.attn.qkv.weight", 48, 24);
    has(m, "blocks.0.attn.qkv.bias", 48, 0);
    has(m, "blocks.0.norm1.bias", 24, 0);
    has(m, "norm.bias", 24, 0);
    ck_assert_ptr_null(wf_registry_find(wf_model_registry(m), "head.bias"));
    ck_assert_int_eq(wf_registry_count(wf_model_registry(m)), 2 + 2 * 12 + 2 + 1);
    wf_model_free(m);

    c = small_config("char-rms", 16, 11);
    m = model_of(&c, 1);
    has(m, "embed.weight", 11, 24);
    has(m, "positions.table", 2048, 24); /* a buffer, not saved */
    has(m, "blocks.0.attn.qkv.weight", 72, 24);
    has(m, "blocks.0.attn.qkv.bias", 72, 0);
    has(m, "blocks.1.norm2.weight", 24, 0);
    has(m, "blocks.0.ffn.down.bias", 24, 0);
    has(m, "head.weight", 11, 24);
    has(m, "head.bias", 11, 0);
    ck_assert_int_eq(wf_registry_count(wf_model_registry(m)), 2 + 2 * 10 + 2);
    wf_model_free(m);
}
END_TEST

static void constant(const wf_model *m, const char *name, double wanted)
{
    const wf_array *a = value_of(m, name);
    for (int64_t i = 0; i < wf_array_count(a); i++)
        ck_assert_msg(((const wf_real *)a->data)[i] == (wf_real)wanted, "%s is not all %g", name, wanted);
}

START_TEST(initialisation)
{
    struct wf_config c = preset("nanogpt-char-small");
    set_keys(&c, "vocab_size=65 bias=true");
    wf_model *m = model_of(&c, 3);
    ck_deviation(m, "embed.weight", 0.02);
    ck_deviation(m, "positions.weight", 0.02);
    ck_deviation(m, "blocks.0.attn.qkv.weight", 0.02);
    ck_deviation(m, "blocks.3.ffn.up.weight", 0.02);
    ck_deviation(m, "blocks.0.attn.out.weight", 0.02 / sqrt(8));
    ck_deviation(m, "blocks.3.ffn.down.weight", 0.02 / sqrt(8));
    constant(m, "blocks.0.attn.qkv.bias", 0);
    constant(m, "blocks.2.ffn.down.bias", 0);
    constant(m, "blocks.2.norm1.weight", 1);
    constant(m, "norm.bias", 0);
    wf_model_free(m);

    c = preset("char-rms");
    set_key(&c, "vocab_size", 65);
    m = model_of(&c, 3);
    ck_deviation(m, "embed.weight", 1);
    ck_deviation(m, "blocks.0.attn.qkv.weight", 1 / sqrt(64) / sqrt(3)); /* U(-a, a) with a = 1/sqrt(fan_in) */
    ck_deviation(m, "blocks.0.attn.out.weight", 1 / sqrt(64) / sqrt(3));
    ck_deviation(m, "blocks.0.ffn.down.weight", 1 / sqrt(256) / sqrt(3));
    ck_deviation(m, "blocks.0.ffn.up.bias", 1 / sqrt(64) / sqrt(3));
    ck_deviation(m, "head.weight", 1 / sqrt(64) / sqrt(3));
    constant(m, "blocks.0.norm2.weight", 1);
    wf_model_free(m);
}
END_TEST

/* Changes all parameters, so that norms and biases are not 1 and 0 and a wrong one shows. */
static void stir(const wf_model *m)
{
    wf_registry *r = wf_model_registry(m);
    for (int i = 0; i < wf_registry_count(r); i++) {
        const wf_array *a = &wf_parameter_info(wf_registry_at(r, i))->value;
        if (wf_registry_is_buffer(r, i))
            continue;
        wf_real *x = a->data, noise[4096];
        ck_assert_int_le(wf_array_count(a), 4096);
        wf_fill_normal(noise, wf_array_count(a), 0, 0.2, 5, (uint64_t)i);
        for (int64_t j = 0; j < wf_array_count(a); j++)
            x[j] += noise[j];
    }
}

static void like_reference(const struct wf_config *c)
{
    enum { T = 12, V = 13 };
    wf_model *m = model_of(c, 2);
    wf_tape *tape = new_tape();
    int32_t ids[2 * T];
    double want[T * V];
    wf_real got[2 * T * V], next[2 * V];
    stir(m);
    random_ids(ids, 2 * T, V, 1);
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *logits = wf_model_logits(m, wf_ids(tape, ids, 2, T), NULL);
    read_values(logits, got, 2 * T * V);
    ck_assert_int_eq(wf_ndim(logits), 3);
    for (int row = 0; row < 2; row++) {
        double off = 0, largest = 0;
        reference_logits(m, ids + row * T, T, want);
        for (int i = 0; i < T * V; i++) {
            off = fmax(off, fabs(got[row * T * V + i] - want[i]));
            largest = fmax(largest, fabs(want[i]));
        }
        ck_assert_msg(off < tolerance * largest, "%s: off by %g of %g", c->model, off, largest);
        ck_assert(largest > 0.1);
    }
    /* The last position alone: the same bits. */
    read_values(wf_model_next(m, wf_ids(tape, ids, 2, T), NULL), next, 2 * V);
    for (int row = 0; row < 2; row++)
        ck_assert_int_eq(memcmp(next + row * V, got + (row * T + T - 1) * V, V * sizeof *next), 0);
    /* The loss is the mean of -log softmax; with gradients the model computes the same. */
    double loss, trained, sum = 0;
    int32_t targets[2 * T];
    random_ids(targets, 2 * T, V, 2);
    for (int i = 0; i < 2 * T; i++)
        sum += loss_of_id(got + i * V, V, targets[i]);
    loss = item_of(wf_model_loss(m, wf_ids(tape, ids, 2, T), wf_ids(tape, targets, 2, T)));
    ck_assert_msg(fabs(loss - sum / (2 * T)) < tolerance * loss, "loss %.12g instead of %.12g", loss, sum / (2 * T));
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_tensor *l = wf_model_loss(m, wf_ids(tape, ids, 2, T), wf_ids(tape, targets, 2, T));
    trained = item_of(l);
    ck_assert(fabs(trained - loss) < tolerance * loss);
    backward(l);
    wf_grads *grads = wf_registry_grads(wf_model_registry(m));
    for (int i = 0; i < grads->parameters; i++)
        ck_assert_msg(grads->valid[i] || wf_registry_is_buffer(wf_model_registry(m), i), "parameter %d has no gradient", i);
    wf_tape_free(tape);
    wf_model_free(m);
}

START_TEST(forward_is_the_reference)
{
    struct wf_config c = small_config("nanogpt-char-small", 16, 13);
    like_reference(&c);
    set_keys(&c, "bias=true activation=gelu_tanh kv_heads=2");
    like_reference(&c);
    set_keys(&c, "tied=false kv_heads=1 activation=relu");
    like_reference(&c);
    c = small_config("char-rms", 12, 13);
    like_reference(&c);
    set_keys(&c, "bias=false tied=true kv_heads=2 layers=1");
    like_reference(&c);
}
END_TEST

/* The future does not leak, and a row's bits don't depend on the batch. */
START_TEST(causal_and_alone)
{
    enum { T = 16, V = 19 };
    for (int which = 0; which < 2; which++) {
        struct wf_config c = small_config(names[which], T, V);
        wf_model *m = model_of(&c, 2);
        wf_tape *tape = new_tape();
        int32_t ids[3 * T];
        wf_real whole[3 * T * V], part[3 * T * V];
        random_ids(ids, 3 * T, V, 8);
        wf_tape_reset(tape, WF_INFER);
        read_values(wf_model_logits(m, wf_ids(tape, ids, 3, T), NULL), whole, 3 * T * V);
        for (int row = 0; row < 3; row++)
            for (int n = 1; n <= T; n += 5) {
                read_values(wf_model_logits(m, wf_ids(tape, ids + row * T, 1, n), NULL), part, n * V);
                ck_assert_int_eq(memcmp(part, whole + row * T * V, (size_t)(n * V) * sizeof *part), 0);
            }
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

/* A random number that depends on the number of calls of this pass that drew before it. */
static wf_real next_draw(wf_tape *tape)
{
    wf_real x;
    read_values(wf_normal(tape, WF_SHAPE(1), 0, 1), &x, 1);
    return x;
}

/* GPT drops attention weights, after the embedding and after both sublayers; rms also inside the feed-forward. */
START_TEST(dropout)
{
    for (int which = 0; which < 2; which++) {
        struct wf_config c = small_config(names[which], 16, 13);
        double loss[2][3];
        wf_real draw = 0;
        int32_t ids[32], targets[32];
        wf_tape *tape = new_tape();
        random_ids(ids, 32, 13, 1);
        random_ids(targets, 32, 13, 2);
        for (int on = 0; on < 2; on++) {
            set_key(&c, "dropout", on * 0.3);
            wf_model *m = model_of(&c, 2);
            for (int mode = 0; mode < 3; mode++) {
                wf_tape_reset(tape, mode == 0 ? WF_GRADIENTS : WF_TRAIN, .step = (uint64_t)mode, .exact = true);
                wf_tensor *l = wf_model_loss(m, wf_ids(tape, ids, 2, 16), wf_ids(tape, targets, 2, 16));
                loss[on][mode] = item_of(l);
                draw = next_draw(tape); /* the last time with dropout, in step 2 */
            }
            wf_model_free(m);
        }
        ck_assert(loss[0][0] == loss[1][0] && loss[0][1] == loss[0][0] && loss[0][2] == loss[0][0]);
        ck_assert(loss[1][1] != loss[1][0] && loss[1][2] != loss[1][1]);
        wf_tape_reset(tape, WF_TRAIN, .step = 2, .exact = true);
        for (int64_t calls = 1 + key_of(&c, "layers") * (which ? 4 : 3); calls > 0; calls--)
            wf_dropout(wf_input(tape, &(wf_real){1}, WF_SHAPE(1), true), 0.5);
        ck_assert(next_draw(tape) == draw);
        wf_tape_free(tape);
    }
}
END_TEST

START_TEST(errors)
{
    struct wf_config c = small_config("char-rms", 16, 13);
    wf_tape *tape = new_tape();
    wf_model *m = model_of(&c, 1);
    int32_t ids[17] = {0};
    wf_real out[13];
    poisoned(tape, wf_model_next(m, wf_ids(tape, ids, 1, 17), NULL), WF_ERR_SHAPE, /* the table would hold it */
             "a row has 17 ids, but the context is 16");
    ids[3] = 13;
    poisoned(tape, wf_model_next(m, wf_ids(tape, ids, 1, 5), NULL), WF_ERR_ARGUMENT, "embedding");
    poisoned(tape, wf_model_logits(m, wf_ids_of(tape, ids, &(wf_shape){1, {3}}), NULL), WF_ERR_SHAPE, "[B,T]");
    ids[3] = 0;
    /* a cache of another model, one that is full, one while training */
    struct wf_cache cache;
    ck_ok(wf_cache_init(&cache, 1, 1, 16, 24, 24, error));
    poisoned(tape, wf_model_next(m, wf_ids(tape, ids, 1, 5), &cache), WF_ERR_SHAPE, "wf_model_cache");
    wf_cache_free(&cache);
    ck_ok(wf_model_cache(m, &cache, 1, error));
    read_values(wf_model_next(m, wf_ids(tape, ids, 1, 10), &cache), out, 13);
    ck_assert_int_eq(cache.length[0], 10);
    poisoned(tape, wf_model_next(m, wf_ids(tape, ids, 1, 7), &cache), WF_ERR_STATE, "full");
    ck_assert_int_eq(cache.length[0], 10); /* the failed call did not count */
    wf_tape_reset(tape, WF_TRAIN);
    poisoned(tape, wf_model_next(m, wf_ids(tape, ids, 1, 2), &cache), WF_ERR_STATE, "");
    wf_cache_free(&cache);
    wf_model_free(m);
    wf_tape_free(tape);

    set_key(&c, "vocab_size", 0);
    ck_fails_null(wf_model_new(&c, error), WF_ERR_ARGUMENT, "vocabulary size");
    set_keys(&c, "vocab_size=13 heads=5");
    ck_fails_null(wf_model_new(&c, error), WF_ERR_ARGUMENT, "heads");
}
END_TEST

START_TEST(evaluation)
{
    enum { N = 16 * 7 + 6, V = 13, T = 16 };
    for (int which = 0; which < 2; which++) {
        struct wf_config c = small_config(names[which], T, V);
        wf_model *m = model_of(&c, 2);
        wf_tape *tape = new_tape();
        int32_t ids[N];
        wf_real logits[T * V];
        double want = 0;
        struct wf_evaluation e;
        random_ids(ids, N, V, 1);
        for (int at = 0; at < N - 1; at += T) { /* one window after the other */
            int n = N - 1 - at < T ? N - 1 - at : T;
            wf_tape_reset(tape, WF_INFER);
            read_values(wf_model_logits(m, wf_ids(tape, ids + at, 1, n), NULL), logits, n * V);
            for (int t = 0; t < n; t++)
                want += loss_of_id(logits + t * V, V, ids[at + t + 1]);
        }
        ck_ok(wf_model_evaluate(m, tape, wf_id_view_of(ids, N), 0, &e, error));
        ck_assert_int_eq(e.tokens, N - 1);
        ck_assert_msg(fabs(e.loss - want / (N - 1)) < tolerance * e.loss, "%.12g instead of %.12g", e.loss, want / (N - 1));
        ck_ok(wf_model_evaluate(m, tape, wf_id_view_of(ids, 2), 0, &e, error));
        ck_assert_int_eq(e.tokens, 1);
        ck_fails(wf_model_evaluate(m, tape, wf_id_view_of(ids, 1), 0, &e, error), WF_ERR_ARGUMENT, "");
        ck_assert(isnan(e.loss) && e.tokens == 0);
        ids[20] = V;
        ck_assert_int_ne(wf_model_evaluate(m, tape, wf_id_view_of(ids, N), 0, &e, &(wf_error){0}), WF_OK);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

START_TEST(training_learns)
{
    for (int which = 0; which < 2; which++) {
        struct wf_config c = small_config(names[which], 16, 13);
        wf_model *m = model_of(&c, 2);
        wf_tape *tape = new_tape();
        double first = train_a_little(m, tape, 1), last = train_a_little(m, tape, 80);
        ck_assert_msg(last < 0.5 * first, "%s: %g after 80 steps, %g before", names[which], last, first);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

/* The API must make blocks short: struct block, block_init and block_forward, blank lines included. */
START_TEST(a_block_takes_25_lines)
{
    static const char *const files[] = {"gpt", "rms"};
    const char *root = getenv("WEFT_SOURCE_ROOT");
    for (int i = 0; i < 2; i++) {
        char path[4096], line[512];
        snprintf(path, sizeof path, "%s/models/%s.c", root ? root : ".", files[i]);
        FILE *f = fopen(path, "r");
        ck_assert_msg(f != NULL, "%s can't be opened", path);
        int lines = 0, parts = 0;
        bool inside = false;
        while (fgets(line, sizeof line, f) && parts < 3) {
            inside |= strcmp(line, "struct block {\n") == 0;
            lines += inside;
            parts += inside && line[0] == '}';
        }
        fclose(f);
        ck_assert_int_eq(parts, 3);
        ck_assert_msg(lines <= 25, "%s: a block takes %d lines", path, lines);
    }
}
END_TEST

static wf_status evaluate(const wf_model *m, wf_tape *tape, wf_error *error)
{
    int32_t ids[100];
    struct wf_evaluation e;
    random_ids(ids, 100, 13, 1);
    return wf_model_evaluate(m, tape, wf_id_view_of(ids, 100), 0, &e, error);
}

START_TEST(out_of_memory)
{
    struct wf_config c = small_config("nanogpt-char-small", 16, 13);
    ck_assert_int_gt(sweep_memory(build_model, &c), 4);
    wf_model *m = model_of(&c, 1);
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){m, evaluate}), 4);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("models/models", parameter_counts, names_and_shapes, initialisation, forward_is_the_reference, causal_and_alone, dropout,
             errors, evaluation, training_learns, a_block_takes_25_lines, out_of_memory)
