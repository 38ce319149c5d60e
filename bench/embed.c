/* SPDX-License-Identifier: MIT */
/* Computes sentence vectors for the lines of a text, writes them for a comparison with another library, and prints the time.
 *
 *   embed [-t threads] [-n times] [-o FILE] FOLDER TEXT
 *
 * FILE gets the vectors of all lines one after another, in float32 or float64. Lines that are longer than the model allows are truncated.
 * Prints one JSON object: lines, width, dtype, ms (the median of `times` runs, after one run that does not count), ms_min, truncated,
 * threads. bench/embed.py reads the vectors and the object. */
#include <string.h>

#include <weft/embed.h>
#include <weft/file.h>
#include <weft/memory.h>
#include <weft/run.h>
#include <weft/runtime.h>

#include "measure.h"

struct text {
    char *bytes;
    const char **line;
    int64_t *length, count;
};

static bool read_lines(const char *path, struct text *t, wf_error *error)
{
    int64_t bytes;
    if (!(t->bytes = wf_file_load(path, 1 << 30, &bytes, error)))
        return false;
    t->line = room(bytes, sizeof *t->line);
    t->length = room(bytes, sizeof *t->length);
    for (int64_t at = 0; at < bytes;) {
        const char *end = memchr(t->bytes + at, '\n', (size_t)(bytes - at));
        int64_t length = end ? end - (t->bytes + at) : bytes - at;
        t->line[t->count] = t->bytes + at;
        t->length[t->count++] = length;
        at += length + 1;
    }
    return true;
}

static int run(const char *folder, const char *path, const char *out, int times)
{
    struct wf_run r = {0};
    struct text t = {0};
    wf_error error = {0};
    wf_embedder *e = NULL;
    int64_t truncated = 0;
    bool good = wf_run_open(&r, folder, NULL, &error) == WF_OK && read_lines(path, &t, &error);
    r.embed.truncate = true;
    good = good && (e = wf_embedder_new(r.model, r.tokenizer, &r.embed, &error)) != NULL;
    int64_t width = good ? wf_embedder_width(e) : 0;
    wf_real *vectors = room(t.count * width, sizeof *vectors);
    double *ms = room(times, sizeof *ms);
    for (int i = -1; good && i < times; i++) {
        double start = seconds();
        good = wf_embed(e, t.line, t.length, t.count, 1, vectors, &truncated, &error) == WF_OK;
        if (i >= 0)
            ms[i] = 1e3 * (seconds() - start);
    }
    if (good && out)
        good = wf_file_save(out, vectors, t.count * width * (int64_t)sizeof *vectors, &error) == WF_OK;
    if (good) {
        const double middle = median(ms, times);
        printf("{\"lines\": %lld, \"width\": %lld, \"dtype\": \"float%d\", \"ms\": %.2f, \"ms_min\": %.2f, \"truncated\": %lld, "
               "\"threads\": %d}\n",
               (long long)t.count, (long long)width, 8 * (int)sizeof(wf_real), middle, ms[0], (long long)truncated, wf_threads());
    }
    wf_embedder_free(e);
    wf_run_close(&r);
    wf_free(t.bytes);
    free(t.line);
    free(t.length);
    free(vectors);
    free(ms);
    return good ? 0 : fail(error.message);
}

int main(int argc, char **argv)
{
    const char *given[128] = {NULL};
    wf_error error = {0};
    if (!read_options(argc, argv, "t:n:o:", given))
        return 2;
    if (argc - optind != 2)
        return fail("embed [-t threads] [-n times] [-o FILE] FOLDER TEXT");
    if (wf_init(&error, .threads = (int)number_or(given['t'], 0)) != WF_OK)
        return fail(error.message);
    return run(argv[optind], argv[optind + 1], given['o'], (int)number_or(given['n'], 0));
}
