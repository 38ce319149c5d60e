/* SPDX-License-Identifier: MIT */
/* Decoders from folders of Hugging Face against transformers in float64 (tests/golden/make_decoders.py): logits, loss, every gradient; and
 * the bits of a pass over a whole text against those of its pieces with a cache. */
#include "../golden/golden.h"
#include "models_test.h"

enum { B = 2, T = 11, V = 26 };

static const char *const folders[] = {"gpt2", "llama", "llama-linear", "mistral", "qwen2", "qwen3"};
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
    set_key(&c, "dropout", 0);
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

/* The text in pieces of 1, 2, 3 and 5 tokens, and one token after the other. */
static void in_pieces(const char *folder)
{
    static const int pieces[2][T] = {{1, 2, 3, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    wf_safetensors *out = open_in(folder, "outputs.safetensors");
    wf_model *m = folder_model(folder, "model.safetensors");
    wf_tape *tape = new_tape();
    int32_t x[B * T], y[B * T], piece[B * T];
    static wf_real whole[B * T * V], part[B * T * V];
    ids_of(out, x, y);
    for (int precision = 0; precision < (sizeof(wf_real) == 4 ? 2 : 1); precision++) {
        wf_tape_reset(tape, WF_INFER, .precision = (enum wf_precision)precision);
        read_values(wf_model_logits(m, wf_ids(tape, x, B, T), NULL), whole, B * T * V);
        for (int way = 0; way < 2; way++) {
            struct wf_cache cache;
            ck_ok(wf_model_cache(m, &cache, B, error));
            for (int i = 0, at = 0; at < T; at += pieces[way][i++]) {
                const int n = pieces[way][i];
                for (int b = 0; b < B; b++)
                    memcpy(piece + b * n, x + b * T + at, (size_t)n * sizeof *x);
                wf_tape_reset(tape, WF_INFER, .precision = (enum wf_precision)precision);
                read_values(wf_model_logits(m, wf_ids(tape, piece, B, n), &cache), part, B * n * V);
                for (int b = 0; b < B; b++)
                    ck_assert_msg(!memcmp(part + b * n * V, whole + (b * T + at) * V, (size_t)(n * V) * sizeof *part),
                                  "%s: tokens %d to %d of row %d", folder, at, at + n - 1, b);
            }
            wf_cache_free(&cache);
        }
    }
    wf_tape_free(tape);
    wf_model_free(m);
    wf_safetensors_close(out);
}

START_TEST(pieces_have_the_bits_of_the_whole)
{
    for (int i = 0; i < FOLDERS; i++)
        in_pieces(folders[i]);
}
END_TEST

WF_TEST_MAIN("models/decoders_golden", logits_loss_and_gradients, pieces_have_the_bits_of_the_whole)
