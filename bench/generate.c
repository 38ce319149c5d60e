/* SPDX-License-Identifier: MIT */
/* Measures generation with a folder or a run: tokens per second of a prompt, of one text, and of several texts at once, and the rate at
 * which the same threads read memory of the size of the weights.
 *
 *   generate [-t THREADS] [-p f32|bf16] [-n PROMPT] [-k TOKENS] [-b BATCH] [-s SECONDS] [-m] FOLDER        -m: the weights are mapped
 *
 * Prints a JSON object with medians. */
#include <string.h>

#include <weft/compute.h>
#include <weft/generator.h>
#include <weft/run.h>
#include <weft/runtime.h>

#include "measure.h"

struct setting {
    int64_t prompt, tokens, batch;
    double seconds;
};

static wf_error error;
static int64_t bytes_read;
static volatile uint64_t sink;

static void end_with(wf_status status)
{
    if (status != WF_OK)
        exit(fail(error.message));
}

/* --- memory -------------------------------------------------------------------------------------------------------- */

enum { PART = 1 << 16 };

static void read_part(void *memory, int64_t part)
{
    typedef uint64_t lanes __attribute__((vector_size(64)));
    const lanes *at = (const lanes *)((const char *)memory + part * PART);
    lanes sum[4] = {0};
    for (int i = 0; i < PART / 64; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += at[i + k];
    lanes all = sum[0] + sum[1] + sum[2] + sum[3];
    if (all[0] == 0x123456789abcdef) /* the sum must be computed */
        sink = all[1];
}

static double read_rate(const void *memory)
{
    const double begin = seconds();
    wf_parallel(bytes_read / PART, 1e12, read_part, (void *)memory);
    return (double)bytes_read / (seconds() - begin) / 1e9;
}

/* --- generation ---------------------------------------------------------------------------------------------------- */

/* Tokens per second: of the prompt if `tokens` is 1, otherwise of the tokens after each text's first. */
static double rate(const struct wf_next *model, wf_tape *tape, int64_t rows, int64_t prompt, int64_t tokens)
{
    int32_t *ids = room(prompt, sizeof *ids);
    wf_generator *g = wf_generator_new(model, tape, &(struct wf_generator_options){.rows = rows}, &error);
    if (!g)
        exit(fail(error.message));
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < prompt; i++) /* texts that share nothing */
            ids[i] = (int32_t)((i * 7919 + 13 + 104729 * r) % (model->vocab_size - 3) + 3);
        end_with(wf_generator_add(g, ids, prompt, &(struct wf_generate_options){.sampler.greedy = true, .max_tokens = tokens}, &error));
    }
    double begin = seconds();
    while (tokens > 1 && wf_generator_counts(g).prompt < rows * prompt)
        end_with(wf_generator_step(g, &error));
    const int64_t before = wf_generator_counts(g).tokens;
    if (tokens > 1)
        begin = seconds();
    while (wf_generator_active(g) > 0)
        end_with(wf_generator_step(g, &error));
    const double time = seconds() - begin;
    const int64_t done = tokens > 1 ? wf_generator_counts(g).tokens - before : rows * prompt;
    wf_generator_free(g);
    free(ids);
    return (double)done / time;
}

int main(int argc, char **argv)
{
    const char *value[128] = {0};
    if (!read_options(argc, argv, "t:p:n:k:b:s:m", value) || optind != argc - 1)
        return fail("usage: generate [-t THREADS] [-p f32|bf16] [-n PROMPT] [-k TOKENS] [-b BATCH] [-s SECONDS] [-m] FOLDER");
    const struct setting s = {(int64_t)number_or(value['n'], 512), (int64_t)number_or(value['k'], 64), (int64_t)number_or(value['b'], 16),
                              number_or(value['s'], 10)};
    const bool bf16 = value['p'] && strcmp(value['p'], "bf16") == 0;
    struct wf_run run;
    end_with(wf_init(&error, .threads = (int)number_or(value['t'], 0)));
    end_with(wf_run_open_with(&run, argv[optind],
                              &(struct wf_run_options){.stored = WF_STORED_AS_FILE, .map = value['m'] ? WF_RUN_MAP : WF_RUN_READ}, &error));
    end_with(wf_model_set_precision(run.model, bf16 ? WF_PRECISION_BF16 : WF_PRECISION_REAL, &error));
    const struct wf_next next = wf_next_of(run.model);
    const struct wf_model_bytes size = wf_model_bytes(run.model);
    bytes_read = size.weights / PART * PART;
    void *memory = aligned_alloc(64, (size_t)bytes_read);
    wf_tape *tape = wf_tape_new(&error);
    if (!memory || !tape)
        return fail("no memory");
    memset(memory, 1, (size_t)bytes_read);
    enum { MOST = 200 };
    double prompt[MOST], one[MOST], several[MOST], reading[MOST];
    int count = 0;
    rate(&next, tape, 1, 16, 4);
    for (double begin = seconds(); count < 3 || (count < MOST && seconds() - begin < s.seconds); count++) {
        reading[count] = read_rate(memory);
        prompt[count] = rate(&next, tape, 1, s.prompt, 1);
        one[count] = rate(&next, tape, 1, 32, s.tokens);
        several[count] = s.batch > 1 ? rate(&next, tape, s.batch, 32, s.tokens) : 0;
    }
    const double token = median(one, count), gigabytes = token * (double)size.weights / 1e9, read = median(reading, count);
    printf(
        "{\"folder\": \"%s\", \"threads\": %d, \"isa\": \"%s\", \"precision\": \"%s\", \"weights\": %lld, \"prompt\": %.1f, \"one\": %.2f, "
        "\"batch\": %lld, \"several\": %.1f, \"gb_per_s\": %.2f, \"read_gb_per_s\": %.2f, \"share\": %.3f, \"rounds\": %d}\n",
        argv[optind], wf_threads(), wf_isa(), bf16 ? "bf16" : "f32", (long long)size.weights, median(prompt, count), token,
        (long long)s.batch, median(several, count), gigabytes, read, gigabytes / read, count);
    wf_tape_free(tape);
    wf_run_close(&run);
    free(memory);
    return 0;
}
