/* SPDX-License-Identifier: MIT */
/* Trains a folder or a run further on a text, in a fixed order of batches, so that another program can make the same steps: step i has the
 * rows of LENGTH tokens that begin at (4 i + r) LENGTH, r = 0 .. 3. Prints the loss and the milliseconds of each step as JSON lines, and
 * then the peak of the resident memory. finetune.py does the same with transformers and compares.
 *
 *   finetune [-t THREADS] [-p f32|bf16] [-n STEPS] [-l RATE] [-c] [-w] FOLDER TEXT        -c: blocks are computed again in backward;
 *                                                -w: waits for a line of standard input before each step */
#include <string.h>
#include <sys/resource.h>

#include <weft/data.h>
#include <weft/models.h>
#include <weft/optim.h>
#include <weft/run.h>
#include <weft/runtime.h>

#include "measure.h"

enum { ROWS = 4, LENGTH = 256 };

static wf_error error;

static void end_with(wf_status status)
{
    if (status != WF_OK)
        exit(fail(error.message));
}

static char *read_text(const char *path, int64_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        exit(fail("the text cannot be read"));
    *length = ftell(f);
    rewind(f);
    char *text = room(*length, 1);
    if (fread(text, 1, (size_t)*length, f) != (size_t)*length)
        exit(fail("the text cannot be read"));
    fclose(f);
    return text;
}

/* The model for training, with the weights of the folder. */
static wf_model *open_model(const char *folder, bool checkpoint, enum wf_precision precision, struct wf_tokens *ids, const char *text,
                            int64_t length)
{
    struct wf_run run;
    end_with(wf_run_open_with(&run, folder, NULL, &error));
    end_with(wf_tokenizer_encode(run.tokenizer, text, length, ids, &error));
    struct wf_config config = run.config;
    config.training.checkpoint = checkpoint;
    config.training.precision = precision;
    wf_run_close(&run);
    char path[4096];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    wf_model *model = wf_model_new(&config, &error);
    wf_safetensors *file = model ? wf_safetensors_open(path, &error) : NULL;
    if (!file)
        exit(fail(error.message));
    end_with(wf_model_load(model, file, &error));
    wf_safetensors_close(file);
    end_with(wf_registry_gradients(wf_model_registry(model), &error));
    return model;
}

int main(int argc, char **argv)
{
    const char *value[128] = {0};
    if (!read_options(argc, argv, "t:p:n:l:cw", value) || optind != argc - 2)
        return fail("usage: finetune [-t THREADS] [-p f32|bf16] [-n STEPS] [-l RATE] [-c] [-w] FOLDER TEXT");
    const enum wf_precision precision = value['p'] && strcmp(value['p'], "bf16") == 0 ? WF_PRECISION_BF16 : WF_PRECISION_REAL;
    const int64_t steps = (int64_t)number_or(value['n'], 200);
    struct wf_tokens ids = {0};
    struct wf_optimizer adam;
    int64_t length;
    char *text = read_text(argv[optind + 1], &length);
    end_with(wf_init(&error, .threads = (int)number_or(value['t'], 0)));
    wf_model *model = open_model(argv[optind], value['c'] != NULL, precision, &ids, text, length);
    wf_tape *tape = wf_tape_new(&error);
    wf_grads *grads = wf_registry_grads(wf_model_registry(model));
    end_with(wf_adamw_init(&adam, wf_model_registry(model), &error, .lr = number_or(value['l'], 2e-5), .weight_decay = 0.1));
    wf_optimizer_decay_matrices_only(&adam);
    static int32_t in[ROWS * LENGTH], out[ROWS * LENGTH];
    for (int64_t step = 0; step < steps && (step * ROWS + ROWS) * LENGTH < ids.count; step++) {
        double loss = 0, norm;
        for (int c = 0; value['w'] && c != '\n' && c != EOF;)
            c = getchar();
        memcpy(in, ids.id + step * ROWS * LENGTH, sizeof in);
        memcpy(out, ids.id + step * ROWS * LENGTH + 1, sizeof out);
        const double begin = seconds();
        wf_tape_reset(tape, WF_TRAIN, .precision = precision);
        wf_tensor *l = wf_model_loss(model, wf_ids(tape, in, ROWS, LENGTH), wf_ids(tape, out, ROWS, LENGTH));
        if (wf_item(l, &loss) != WF_OK || wf_backward(l) != WF_OK)
            return fail(wf_tape_error(tape)->message);
        end_with(wf_clip_norm(grads, 1, &norm, &error));
        end_with(wf_adamw_step(&adam, &error));
        printf("{\"step\": %lld, \"loss\": %.6f, \"ms\": %.1f}\n", (long long)step + 1, loss, 1e3 * (seconds() - begin));
        fflush(stdout);
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("{\"peak_mib\": %ld}\n", used.ru_maxrss / 1024);
    wf_optimizer_free(&adam);
    wf_tape_free(tape);
    wf_model_free(model);
    wf_tokens_free(&ids);
    free(text);
    return 0;
}
