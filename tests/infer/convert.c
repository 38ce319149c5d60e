/* SPDX-License-Identifier: MIT */
/* Folders of Hugging Face converted to runs and back, with the bytes of each tensor; other dtypes; what leaves nothing behind. */
#include <math.h>

#include <weft/convert.h>
#include <weft/family.h>
#include <weft/run.h>

#include "../data/data_test.h"

static const char *const decoders[] = {"decoders/gpt2",   "decoders/llama",      "decoders/llama-linear", "decoders/mistral",
                                       "decoders/qwen2",  "decoders/qwen3",      "decoders/phi3",         "decoders/gemma2",
                                       "decoders/gemma3", "decoders/llama-bias", "decoders/qwen2-window"};
enum { DECODERS = sizeof decoders / sizeof *decoders };

static const char *source_of(const char *name)
{
    static char path[4096];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/golden/%s", root ? root : ".", name);
    return path;
}

/* A file of a folder in the test's folder. */
static const char *at(const char *folder, const char *name)
{
    char joined[100];
    snprintf(joined, sizeof joined, "%s/%s", folder, name);
    return test_file(joined, NULL, 0);
}

static struct wf_converted convert(const char *from, const char *to, const struct wf_convert_options *options)
{
    struct wf_converted done;
    ck_ok(wf_run_convert(from, to, options, &done, error));
    return done;
}

static wf_safetensors *open_weights(const char *path)
{
    wf_error error = {0};
    wf_safetensors *file = wf_safetensors_open(path, &error, .map = true);
    ck_assert_msg(file != NULL, "%s", error.message);
    return file;
}

/* Each tensor of b is in a, with the same dtype, shape and bytes; and a has `more` tensors besides. */
static void ck_same_tensors(const char *a, const char *b, int64_t more)
{
    wf_safetensors *one = open_weights(a), *other = open_weights(b);
    ck_assert_int_eq(wf_safetensors_count(one), wf_safetensors_count(other) + more);
    for (int64_t i = 0; i < wf_safetensors_count(other); i++) {
        const struct wf_safetensors_entry *y = wf_safetensors_at(other, i), *x = wf_safetensors_find(one, y->name);
        ck_assert_msg(x && x->dtype == y->dtype && wf_shape_equal(&x->shape, &y->shape), "%s", y->name);
        char *p = wf_alloc((size_t)x->bytes), *q = wf_alloc((size_t)x->bytes);
        ck_ok(wf_safetensors_read(one, x->name, x->dtype, p, x->count, error));
        ck_ok(wf_safetensors_read(other, x->name, x->dtype, q, x->count, error));
        ck_assert_msg(memcmp(p, q, (size_t)x->bytes) == 0, "%s differs", x->name);
        wf_free(p);
        wf_free(q);
    }
    wf_safetensors_close(one);
    wf_safetensors_close(other);
}

/* There and back, in the dtype of the folder and in each other. */
START_TEST(the_same_bytes)
{
    static const wf_dtype dtypes[] = {WF_F32, WF_BF16, WF_F16};
    for (int i = 0; i < DECODERS; i++)
        for (int d = 0; d < 3; d++) {
            char folder[64], run[64], back[64];
            snprintf(folder, sizeof folder, "%d-%d", i, d);
            snprintf(run, sizeof run, "%d-%d.run", i, d);
            snprintf(back, sizeof back, "%d-%d.back", i, d);
            struct wf_converted done =
                convert(source_of(decoders[i]), test_file(folder, NULL, 0),
                        &(struct wf_convert_options){.to = WF_CONVERT_HF, .cast = true, .dtype = dtypes[d], .shard = d == 1 ? 4000 : 0});
            ck_assert(done.to == WF_CONVERT_HF && done.dtype == dtypes[d] && !done.several_dtypes && done.left_out == 0);
            ck_assert(d == 1 ? done.files > 1 : done.files == 1);
            done = convert(test_file(folder, NULL, 0), test_file(run, NULL, 0), NULL);
            ck_assert(done.to == WF_CONVERT_WEFT && done.dtype == dtypes[d] && done.files == 1 && done.left_out == 0);
            done = convert(test_file(run, NULL, 0), test_file(back, NULL, 0), NULL);
            ck_assert(done.to == WF_CONVERT_HF && done.dtype == dtypes[d]);
            ck_same_tensors(at(folder, d == 1 ? "model.safetensors.index.json" : "model.safetensors"), at(back, "model.safetensors"), 0);
            if (d == 0) {
                char path[4200];
                snprintf(path, sizeof path, "%s/model.safetensors", source_of(decoders[i]));
                ck_same_tensors(path, at(back, "model.safetensors"), 0);
            }
        }
}
END_TEST

/* The settings of the architecture, of the folder and of the one that was made of its run. */
START_TEST(the_same_settings)
{
    for (int i = 0; i < DECODERS; i++) {
        struct wf_config a, b;
        char run[64], back[64], path[4200];
        snprintf(run, sizeof run, "%d.run", i);
        snprintf(back, sizeof back, "%d.back", i);
        convert(source_of(decoders[i]), test_file(run, NULL, 0), NULL);
        convert(test_file(run, NULL, 0), test_file(back, NULL, 0), NULL);
        snprintf(path, sizeof path, "%s/config.json", source_of(decoders[i]));
        ck_ok(wf_config_load(&a, path, error));
        ck_ok(wf_config_load(&b, at(back, "config.json"), error));
        struct wf_config_key key;
        for (int k = 0; wf_config_key_at(&a, k, &key); k++) {
            char x[96], y[96];
            ck_assert(wf_config_get(&a, key.name, x, sizeof x) && wf_config_get(&b, key.name, y, sizeof y));
            /* a folder may leave these to the defaults that the new one writes */
            if (strcmp(key.name, "kv_heads") != 0 && strcmp(key.name, "d_key") != 0)
                ck_assert_msg(strcmp(x, y) == 0, "%s: %s: %s, not %s", decoders[i], key.name, y, x);
        }
    }
}
END_TEST

/* A run of phi3 whose gates are of another dtype than the inner layers with which transformers has them in one tensor: the tensor is of the
 * one that holds both. */
START_TEST(joined_of_two_dtypes)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/model.safetensors", source_of("decoders/phi3"));
    convert(source_of("decoders/phi3"), test_file("run", NULL, 0), NULL);
    convert(test_file("run", NULL, 0), test_file("half", NULL, 0),
            &(struct wf_convert_options){.to = WF_CONVERT_WEFT, .cast = true, .dtype = WF_BF16});
    wf_safetensors *whole = open_weights(at("run", "model.safetensors")), *half = open_weights(at("half", "model.safetensors"));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    const int64_t count = wf_safetensors_count(whole);
    void **data = wf_alloc_zero((size_t)count, sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        const char *name = wf_safetensors_at(whole, i)->name;
        wf_safetensors *from = strstr(name, ".gate.") ? half : whole;
        const struct wf_safetensors_entry *e = wf_safetensors_find(from, name);
        data[i] = wf_alloc((size_t)e->bytes);
        ck_ok(wf_safetensors_read(from, name, e->dtype, data[i], e->count, error));
        const wf_array a = wf_array_contiguous(data[i], e->dtype, &e->shape);
        wf_safetensors_put(w, name, &a);
    }
    ck_ok(wf_safetensors_commit(w, at("run", "model.safetensors"), error));
    wf_safetensors_close(whole);
    wf_safetensors_close(half);
    for (int64_t i = 0; i < count; i++)
        wf_free(data[i]);
    wf_free(data);
    const struct wf_converted done = convert(test_file("run", NULL, 0), test_file("folder", NULL, 0), NULL);
    ck_assert(done.dtype == WF_F32 && !done.several_dtypes && done.left_out == 0);
    wf_safetensors *old = open_weights(path), *new = open_weights(at("folder", "model.safetensors"));
    const char *name = "model.layers.1.mlp.gate_up_proj.weight";
    const int64_t elements = wf_safetensors_find(old, name)->count;
    float *x = wf_alloc((size_t)elements * sizeof *x), *y = wf_alloc((size_t)elements * sizeof *y);
    ck_ok(wf_safetensors_read(old, name, WF_F32, x, elements, error));
    ck_ok(wf_safetensors_read(new, name, WF_F32, y, elements, error));
    int64_t rounded = 0;
    for (int64_t i = 0; i < elements; i++) {
        rounded += i < elements / 2 && x[i] != y[i];
        ck_assert(i < elements / 2 ? fabsf(x[i] - y[i]) <= fabsf(x[i]) / 256 : x[i] == y[i]);
    }
    ck_assert_int_gt(rounded, 0);
    wf_free(x);
    wf_free(y);
    wf_safetensors_close(old);
    wf_safetensors_close(new);
}
END_TEST

START_TEST(bert)
{
    struct wf_converted done = convert(source_of("bert_train"), test_file("run", NULL, 0), NULL);
    ck_assert_int_eq(done.left_out, 0);
    convert(test_file("run", NULL, 0), test_file("back", NULL, 0), NULL);
    char path[4200];
    snprintf(path, sizeof path, "%s/model.safetensors", source_of("bert_train"));
    ck_same_tensors(path, at("back", "model.safetensors"), 0);
    done = convert(source_of("bert"), test_file("run2", NULL, 0), NULL);
    ck_assert_int_eq(done.left_out, 2); /* the pooler */
    convert(test_file("run2", NULL, 0), test_file("back2", NULL, 0), NULL);
    snprintf(path, sizeof path, "%s/model.safetensors", source_of("bert"));
    ck_same_tensors(path, at("back2", "model.safetensors"), 2);
    convert(source_of("bert"), test_file("copy", NULL, 0), &(struct wf_convert_options){.to = WF_CONVERT_HF});
    ck_same_tensors(path, at("copy", "model.safetensors"), 0); /* as it is */
}
END_TEST

static void ck_nothing(const char *name)
{
    ck_assert(!wf_folder_exists(test_file(name, NULL, 0)));
    char part[100], lock[100];
    snprintf(part, sizeof part, ".%s.weft-part", name);
    snprintf(lock, sizeof lock, ".%s.weft-lock", name);
    ck_assert(!wf_folder_exists(test_file(part, NULL, 0)) && !wf_file_exists(test_file(lock, NULL, 0)));
}

/* A run with tensors of the values 70000, which F16 cannot hold, and 3.4e38, which BF16 rounds to infinity. */
START_TEST(values_beyond_a_dtype)
{
    convert(source_of(decoders[1]), test_file("run", NULL, 0), NULL);
    for (int i = 0; i < 2; i++) {
        const char *path = at("run", "model.safetensors");
        wf_safetensors *file = open_weights(path);
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        const int64_t count = wf_safetensors_count(file);
        float **data = wf_alloc_zero((size_t)count, sizeof *data);
        for (int64_t k = 0; k < count; k++) {
            const struct wf_safetensors_entry *e = wf_safetensors_at(file, k);
            data[k] = wf_alloc((size_t)e->count * sizeof **data);
            ck_ok(wf_safetensors_read(file, e->name, WF_F32, data[k], e->count, error));
            if (strcmp(e->name, "norm.weight") == 0)
                data[k][3] = i ? 3.4e38F : 70000;
            const wf_array a = wf_array_contiguous(data[k], WF_F32, &e->shape);
            wf_safetensors_put(w, e->name, &a);
        }
        ck_ok(wf_safetensors_commit(w, path, error));
        wf_safetensors_close(file);
        for (int64_t k = 0; k < count; k++)
            wf_free(data[k]);
        wf_free(data);
        const struct wf_convert_options half = {.cast = true, .dtype = WF_F16}, brain = {.cast = true, .dtype = WF_BF16};
        ck_fails(wf_run_convert(test_file("run", NULL, 0), test_file("no", NULL, 0), &half, NULL, error), WF_ERR_NUMERIC,
                 "tensor model.norm.weight has a value that F16 cannot hold: choose another --dtype");
        ck_nothing("no");
        if (i == 0)
            convert(test_file("run", NULL, 0), test_file("brain", NULL, 0), &brain);
        else
            ck_fails(wf_run_convert(test_file("run", NULL, 0), test_file("no", NULL, 0), &brain, NULL, error), WF_ERR_NUMERIC, "BF16");
        ck_nothing("no");
    }
}
END_TEST

static bool after(void *calls)
{
    return (*(int *)calls)-- == 0;
}

START_TEST(cancelled)
{
    for (int calls = 0, total = 0;; calls = ++total) {
        struct wf_convert_options o = {.cancelled = after, .ctx = &calls};
        wf_error error = {0};
        if (wf_run_convert(source_of(decoders[0]), test_file("out", NULL, 0), &o, NULL, &error) == WF_OK) {
            ck_assert_int_gt(total, 20);
            break;
        }
        ck_assert_int_eq(error.code, WF_ERR_CANCELLED);
        ck_nothing("out");
    }
}
END_TEST

/* Many of the allocations fail in turn; not all, because each call syncs its files. The look whether a file exists is the only one that
 * goes on without memory, as if it were missing. */
START_TEST(no_memory)
{
    convert(source_of("decoders/qwen2"), test_file("run", NULL, 0), NULL);
    convert(source_of("decoders/phi3"), test_file("run2", NULL, 0), NULL);
    convert(source_of("decoders/gemma3"), test_file("run3", NULL, 0), NULL);
    static const char *const runs[] = {"run", "run2", "run3"};
    for (int way = 0; way < 4; way++) {
        char from[4096];
        snprintf(from, sizeof from, "%s", way < 3 ? test_file(runs[way], NULL, 0) : source_of(decoders[0]));
        int failures = 0, successes = 0;
        for (int n = way % 2; successes < 3; n += 1 + n / 10) {
            wf_error problem = {0};
            const int64_t live = wf_alloc_live();
            const char *out = test_file("out", NULL, 0);
            wf_alloc_fail_after(n);
            const wf_status status = wf_run_convert(from, out, NULL, NULL, &problem);
            wf_alloc_fail_after(-1);
            ck_assert_int_eq(wf_alloc_live(), live);
            if (status == WF_OK)
                ck_ok(wf_folder_remove(out, error));
            else
                ck_assert_msg(status == WF_ERR_MEMORY || strstr(problem.message, "missing"), "%d: %s", n, problem.message);
            ck_nothing("out");
            failures += status != WF_OK;
            successes = status == WF_OK ? successes + 1 : 0;
        }
        ck_assert_int_gt(failures, 40);
    }
}
END_TEST

/* A family of a program that reads folders, but has no counterpart. */
START_TEST(a_family_without_a_counterpart)
{
    static struct wf_family copied;
    int64_t bytes;
    wf_error problem = {0};
    copied = *wf_family_find("gpt", &problem);
    copied.name = "copied";
    copied.model_type = "copied-gpt";
    copied.presets = (struct wf_presets){0};
    copied.counterpart = NULL;
    ck_ok(wf_family_register(&copied, error));
    convert(source_of(decoders[0]), test_file("folder", NULL, 0), &(struct wf_convert_options){.to = WF_CONVERT_HF});
    char *text = wf_file_load(at("folder", "config.json"), 1 << 20, &bytes, &problem), *type = text ? strstr(text, "\"gpt2\"") : NULL;
    ck_assert_ptr_nonnull(type);
    char *changed = wf_format("%.*s\"copied-gpt\"%s", (int)(type - text), text, type + 6);
    ck_ok(wf_file_save(at("folder", "config.json"), changed, (int64_t)strlen(changed), error));
    wf_free(text);
    wf_free(changed);
    ck_fails(wf_run_convert(test_file("folder", NULL, 0), test_file("no", NULL, 0), NULL, NULL, error), WF_ERR_ARGUMENT,
             "folders of the family copied are read, and not converted");
    ck_nothing("no");
}
END_TEST

START_TEST(wrong_calls)
{
    const char *from = source_of(decoders[0]);
    ck_fails(wf_run_convert(from, "", NULL, NULL, error), WF_ERR_ARGUMENT, "the name of the new folder is empty");
    ck_fails(wf_run_convert(from, "/", NULL, NULL, error), WF_ERR_ARGUMENT, "the name of the new folder is empty");
    ck_fails(wf_run_convert(from, from, NULL, NULL, error), WF_ERR_EXISTS, "exists and is not empty");
    ck_fails(wf_run_convert(from, test_file("no", NULL, 0), &(struct wf_convert_options){.shard = -1}, NULL, error), WF_ERR_ARGUMENT,
             ".shard is -1 bytes");
    ck_fails(wf_run_convert(from, test_file("no", NULL, 0), &(struct wf_convert_options){.cast = true, .dtype = WF_F64}, NULL, error),
             WF_ERR_ARGUMENT, ".dtype is none of");
    ck_fails(wf_run_convert(from, test_file("no", NULL, 0), &(struct wf_convert_options){.to = 7}, NULL, error), WF_ERR_ARGUMENT,
             ".to is 7");
    ck_nothing("no");
    wf_error problem = {0};
    wf_lock *lock = wf_lock_take(test_file(".no.weft-lock", NULL, 0), &problem);
    ck_assert_ptr_nonnull(lock);
    ck_fails(wf_run_convert(from, test_file("no", NULL, 0), NULL, NULL, error), WF_ERR_BUSY, "holds the lock");
    wf_lock_release(lock);
    ck_nothing("no");
}
END_TEST

WF_TEST_MAIN("infer/convert", the_same_bytes, the_same_settings, joined_of_two_dtypes, bert, values_beyond_a_dtype, cancelled, no_memory,
             a_family_without_a_counterpart, wrong_calls)
