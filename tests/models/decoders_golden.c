/* SPDX-License-Identifier: MIT */
/* Decoders from folders of Hugging Face against transformers in float64 (tests/golden/make_decoders.py): logits, loss, every gradient; and
 * the bits of a pass over a whole text against those of its pieces with a cache, of rows with several lengths, and of a row alone. */
#include "../golden/golden.h"
#include "models_test.h"

enum { B = 2, T = 11, V = 26 };

static const char *const folders[] = {"gpt2", "llama",  "llama-linear", "mistral",    "qwen2",       "qwen3",
                                      "phi3", "gemma2", "gemma3",       "llama-bias", "qwen2-window"};
enum { FOLDERS = sizeof folders / sizeof *folders };

static const char *path_in(const char *folder, const char *name)
{
    static char path[4096];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/golden/decoders/%s/%s", root ? root : ".", folder, name);
    return path;
}

static wf_safetensors *open_in(const char *folder, const char *name)
{
    wf_error problem = {0};
    wf_safetensors *file = wf_safetensors_open(path_in(folder, name), &problem);
    ck_assert_msg(file != NULL, "%s", problem.message);
    return file;
}

/* The model of a folder with the tensors of one of its files. */
static wf_model *folder_model(const char *folder, const char *weights)
{
    struct wf_config c;
    wf_error problem = {0};
    ck_ok(wf_config_load(&c, path_in(folder, "config.json"), error));
    set_key(&c, "dropout", 0); /* GPT-2's is 0.1 */
    wf_model *m = wf_model_new(&c, &problem);
    ck_assert_msg(m != NULL, "%s", problem.message);
    wf_safetensors *file = open_in(folder, weights);
    ck_ok(wf_model_load(m, file, error));
    wf_safetensors_close(file);
    return m;
}

static void ck_near(const char *folder, const char *what, const double *have, const double *want, int64_t count)
{
    const double norm = golden_norm(want, NULL, count), off = golden_norm(have, want, count);
    ck_assert_msg(norm > 0 && off <= (sizeof(wf_real) == 8 ? 1e-9 : 1e-5) * norm, "%s: %s differs by %g of %g", folder, what, off, norm);
}

static void ids_of(const wf_safetensors *out, int32_t x[B * T], int32_t y[B * T])
{
    int32_t ids[B * (T + 1)];
    ck_ok(wf_safetensors_read(out, "ids", WF_I32, ids, B * (T + 1), error));
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++) {
            x[b * T + t] = ids[b * (T + 1) + t];
            y[b * T + t] = ids[b * (T + 1) + t + 1];
        }
}

static void one_folder(const char *folder)
{
    wf_safetensors *out = open_in(folder, "outputs.safetensors");
    wf_model *m = folder_model(folder, "model.safetensors"), *gradients = folder_model(folder, "gradients.safetensors");
    wf_registry *registry = wf_model_registry(m), *expected = wf_model_registry(gradients);
    wf_tape *tape = new_tape();
    int32_t x[B * T], y[B * T];
    ids_of(out, x, y);
    ck_ok(wf_registry_gradients(registry, error));
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_array view = view_of(wf_keep(wf_model_logits(m, wf_ids(tape, x, B, T), NULL)));
    double *have = golden_elements(&view), *want = golden_read(out, "logits", B * T * V), loss;
    ck_near(folder, "logits", have, want, B * T * V);
    free(have);
    free(want);

    wf_tape_reset(tape, WF_GRADIENTS);
    wf_tensor *l = wf_model_loss(m, wf_ids(tape, x, B, T), wf_ids(tape, y, B, T));
    ck_assert_int_eq(wf_item(l, &loss), WF_OK);
    want = golden_read(out, "loss", 1);
    ck_near(folder, "loss", &loss, want, 1);
    free(want);
    ck_assert_int_eq(wf_backward(l), WF_OK);
    for (int i = 0; i < wf_registry_count(registry); i++) {
        const wf_tensor *p = wf_registry_at(registry, i);
        ck_assert_int_eq(wf_grad(p, &view), WF_OK);
        have = golden_elements(&view);
        want = golden_elements(&wf_parameter_info(wf_registry_at(expected, i))->value);
        ck_near(folder, wf_parameter_info(p)->name, have, want, wf_array_count(&view));
        free(have);
        free(want);
    }
    wf_tape_free(tape);
    wf_model_free(gradients);
    wf_model_free(m);
    wf_safetensors_close(out);
}

START_TEST(logits_loss_and_gradients)
{
    for (int i = 0; i < FOLDERS; i++)
        one_folder(folders[i]);
}
END_TEST

/* A model and a text, whose logits of one pass over both rows are in `whole`. */
struct text {
    const char *folder;
    wf_model *m;
    wf_tape *tape;
    enum wf_precision precision;
    int32_t ids[B * T];
    wf_real whole[B * T * V];
};

static void text_open(struct text *t, const char *folder, int precision)
{
    int32_t next[B * T];
    wf_safetensors *out = open_in(folder, "outputs.safetensors");
    *t = (struct text){
        .folder = folder, .m = folder_model(folder, "model.safetensors"), .tape = new_tape(), .precision = (enum wf_precision)precision};
    ids_of(out, t->ids, next);
    wf_safetensors_close(out);
    wf_tape_reset(t->tape, WF_INFER, .precision = t->precision);
    read_values(wf_model_logits(t->m, wf_ids(t->tape, t->ids, B, T), NULL), t->whole, B * T * V);
}

static void text_close(struct text *t)
{
    wf_tape_free(t->tape);
    wf_model_free(t->m);
}

/* Computes n more tokens of each row of the cache, of which row i continues row from[i] of the text at token at[i]. The logits must have
 * the bits of the whole. */
static void ck_next(struct text *t, struct wf_cache *cache, int rows, const int *from, int *at, int n)
{
    static wf_real part[B * T * V];
    int32_t piece[B * T];
    for (int i = 0; i < rows; i++)
        memcpy(piece + i * n, t->ids + from[i] * T + at[i], (size_t)n * sizeof *piece);
    wf_tape_reset(t->tape, WF_INFER, .precision = t->precision);
    read_values(wf_model_logits(t->m, wf_ids(t->tape, piece, rows, n), cache), part, rows * n * V);
    for (int i = 0; i < rows; i++) {
        ck_assert_msg(!memcmp(part + i * n * V, t->whole + (from[i] * T + at[i]) * V, (size_t)(n * V) * sizeof *part),
                      "%s: tokens %d to %d of row %d", t->folder, at[i], at[i] + n - 1, from[i]);
        at[i] += n;
    }
}

static void each_text(void (*check)(struct text *t))
{
    static struct text t;
    for (int i = 0; i < FOLDERS; i++)
        for (int precision = 0; precision < (sizeof(wf_real) == 4 ? 2 : 1); precision++) {
            text_open(&t, folders[i], precision);
            check(&t);
            text_close(&t);
        }
}

/* The text in pieces of 1, 2, 3 and 5 tokens, and one token after the other. */
static void in_pieces(struct text *t)
{
    static const int pieces[2][T] = {{1, 2, 3, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    for (int way = 0; way < 2; way++) {
        struct wf_cache cache;
        ck_ok(wf_model_cache(t->m, &cache, B, error));
        for (int i = 0, at[B] = {0}; at[0] < T; i++)
            ck_next(t, &cache, B, (const int[B]){0, 1}, at, pieces[way][i]);
        wf_cache_free(&cache);
    }
}

START_TEST(pieces_have_the_bits_of_the_whole)
{
    each_text(in_pieces);
}
END_TEST

/* Each row alone; rows of different lengths in one cache, which then change places. */
static void ragged(struct text *t)
{
    for (int row = 0; row < B; row++)
        ck_next(t, NULL, 1, &row, (int[B]){0}, T);
    struct wf_cache cache;
    int at[B] = {0};
    ck_ok(wf_model_cache(t->m, &cache, B, error));
    ck_next(t, &cache, B, (const int[B]){0, 1}, at, 6);
    wf_cache_rewind(&cache, 0, at[0] = 2);
    ck_next(t, &cache, B, (const int[B]){0, 1}, at, 1);
    ck_next(t, &cache, B, (const int[B]){0, 1}, at, 3);
    ck_ok(wf_cache_select(&cache, (const int32_t[B]){1, 0}, B, error));
    wf_cache_rewind(&cache, 0, at[1] = 8);
    ck_next(t, &cache, B, (const int[B]){1, 0}, (int[B]){at[1], at[0]}, 3);
    wf_cache_free(&cache);
}

START_TEST(rows_have_the_bits_of_the_whole)
{
    each_text(ragged);
}
END_TEST

/* config.json in the layouts of transformers 4 and 5. */
START_TEST(both_layouts)
{
    for (int i = 0; i < FOLDERS; i++) {
        struct wf_config c, other;
        ck_ok(wf_config_load(&c, path_in(folders[i], "config.json"), error));
        ck_ok(wf_config_load(&other, path_in(folders[i], "other_layout.json"), error));
        ck_assert_msg(memcmp(&c, &other, sizeof c) == 0, "%s: the layouts differ", folders[i]);
    }
}
END_TEST

WF_TEST_MAIN("models/decoders_golden", logits_loss_and_gradients, pieces_have_the_bits_of_the_whole, rows_have_the_bits_of_the_whole,
             both_layouts)
