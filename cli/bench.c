/* SPDX-License-Identifier: MIT */
/* weft bench [CASE...] */
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

#include "stopwatch.h"

enum { KEY_SECONDS = 1000, KEY_JSON, KEY_DROPOUT, KEY_STEPS, KEY_THREADS };

static const struct argp_option options[] = {
    {"seconds", KEY_SECONDS, "S", 0, "seconds to measure each case for (default 4)", 0},
    {"steps", KEY_STEPS, "N", 0, "at most N steps of each case (default: as many as fit, three at least)", 0},
    {"dropout", KEY_DROPOUT, "P", 0, "dropout rate (default 0)", 0},
    {"json", KEY_JSON, NULL, 0, "print one JSON object per case", 0},
    {"threads", KEY_THREADS, "N", 0, THREADS_HELP, 0},
    {0},
};

enum { MOST_CASES = 64 };
struct arguments {
    const char *name[MOST_CASES];
    int names;
    double seconds, dropout;
    int64_t steps, threads;
    bool json;
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    bool fine = true;
    switch (key) {
    case KEY_SECONDS:
        fine = parse_real("seconds", value, 0.01, 86400, &a->seconds);
        break;
    case KEY_DROPOUT:
        fine = parse_real("dropout", value, 0, 0.99, &a->dropout);
        break;
    case KEY_STEPS:
        fine = parse_int("steps", value, 1, INT32_MAX, &a->steps);
        break;
    case KEY_JSON:
        a->json = true;
        break;
    case KEY_THREADS:
        fine = parse_int("threads", value, 1, 256, &a->threads);
        break;
    case ARGP_KEY_ARG:
        if (a->names == MOST_CASES)
            return fail_usage("%d cases at most", MOST_CASES), EINVAL;
        a->name[a->names++] = value;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return fine ? 0 : EINVAL;
}

/* --help ends with the cases. */
static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    size_t size;
    char *list = NULL;
    FILE *to = key == ARGP_KEY_HELP_POST_DOC ? open_memstream(&list, &size) : NULL;
    if (!to)
        return (char *)text;
    fputs("Cases:\n", to);
    for (int i = 0; i < wf_bench_count(); i++)
        print_entry(to, wf_bench_at(i)->name, 31, wf_bench_at(i)->purpose);
    return fclose(to) == 0 ? list : (free(list), (char *)text);
}

static const struct argp argp = {options, parse_option, "[CASE...]", "Times training steps and generation; without a case, all small ones.",
                                 NULL,    help_filter,  NULL};

static const char *const small_cases[] = {"char-rms", "nanogpt-char-small", "generate-nanogpt-char-small"};

int run_bench(int argc, char **argv)
{
    struct arguments a = {0};
    int code = parse(&argp, argc, argv, &a);
    if (code >= 0)
        return code;
    for (int i = 0; a.names == 0 && i < 3; i++)
        a.name[i] = small_cases[i];
    int count = a.names > 0 ? a.names : 3;
    wf_error error = {0};
    watch_interrupts(WATCH_BRIEF);
    if (start(a.threads, &error) != WF_OK)
        return fail(&error);
    for (int i = 0; i < count; i++) {
        struct wf_bench_options o = {.seconds = a.seconds, .steps = a.steps, .dropout = a.dropout, .cancelled = interrupted};
        struct wf_bench_result r;
        if (wf_bench_run(a.name[i], &o, &r, &error) != WF_OK)
            return fail(&error);
        char text[512];
        if (a.json)
            printf("%s\n", wf_bench_json(&r, text, sizeof text));
        else
            printf("%s: %lld parameters, %lld tokens, %.3f ms (min %.3f, max %.3f), %.0f tokens/s, %.0f GFLOP/s, %.0f MiB\n", r.name,
                   (long long)r.parameters, (long long)r.tokens, r.ms, r.ms_min, r.ms_max, (double)r.tokens / r.ms * 1000, r.gflops,
                   r.peak_rss_mib);
        fflush(stdout);
    }
    return EXIT_DONE;
}
