/* SPDX-License-Identifier: MIT */
/* weft tokenizer survey TOKENIZER.json[,TOKENIZER.json] FILE[,FILE]: prints statistics of line lengths in tokens. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/text.h>

#include "display.h"
#include "line_input.h"

enum { CACHED_WORDS = 1 << 16, WINDOW = 4096 };

struct arguments {
    const char *file[2]; /* the argument with the tokenizers, and the argument with the texts */
    const char *model;
    const char *cost_given; /* not NULL if --batch-cost is given */
    int64_t max_length, batch_tokens, tolerance, window, threads;
    double max_ratio;
    int side; /* value of --batch-cost: whether the size of a batch is pairs x the sum of both sides (0) or pairs x the longer side (1) */
    bool bos, eos, deduplicate;
};

/* Takes from the preset of --model the options that are not given. */
static wf_status take_model(struct arguments *a, wf_error *error)
{
    struct wf_config c = {.training.batch_window = WINDOW};
    if (a->model) {
        wf_status status = wf_config_preset(&c, a->model, error);
        if (status != WF_OK)
            return status;
        if (wf_config_kind(&c) != WF_MODEL_PAIRS)
            return wf_error_set(error, WF_ERR_ARGUMENT, "--model: %s is %s: take one that translates, such as multi30k", a->model,
                                wf_config_kind(&c) == WF_MODEL_ENCODER ? "an encoder" : "a language model");
    }
    struct wf_model_shape shape = wf_config_shape(&c); /* all zeros if --model is not given */
    a->max_length = a->max_length ? a->max_length : shape.context;
    a->batch_tokens = a->batch_tokens ? a->batch_tokens : c.training.batch_tokens;
    a->side = a->cost_given ? a->side : c.training.batch_cost == WF_BATCH_SIDE;
    a->tolerance = c.training.batch_tolerance;
    a->window = c.training.batch_window;
    a->max_ratio = a->max_ratio > 0 ? a->max_ratio : c.training.max_ratio;
    a->deduplicate = a->deduplicate || c.training.deduplicate;
    a->bos = a->bos || shape.source_bos;
    a->eos = a->eos || shape.source_eos;
    return WF_OK;
}

/* --- lengths ------------------------------------------------------------------------------------------------------- */

/* A histogram: how many lines have each length. */
struct lengths {
    int64_t *lines; /* [room]: lines[n] lines have n tokens */
    int64_t room;
    int64_t count;   /* number of lines */
    int64_t tokens;  /* number of tokens in all lines */
    int64_t longest; /* number of tokens in the longest line */
};

static bool lengths_add(struct lengths *l, int64_t length)
{
    int64_t room = l->room;
    if (!wf_grow(&l->lines, &l->room, length + 1, sizeof *l->lines))
        return false;
    if (l->room > room)
        memset(l->lines + room, 0, (size_t)(l->room - room) * sizeof *l->lines);
    l->lines[length]++;
    l->count++;
    l->tokens += length;
    l->longest = WF_MAX(length, l->longest);
    return true;
}

/* The smallest length such that at least `mille` of 1,000 lines have this length or less. */
static int64_t quantile(const struct lengths *l, int64_t mille)
{
    int64_t length = 0;
    for (int64_t seen = l->lines[0]; seen * 1000 < l->count * mille; seen += l->lines[length])
        length++;
    return length;
}

static void lengths_print(const struct lengths *l, const char *what)
{
    char count[WF_NUMBER_SIZE];
    printf("%s: %s tokens; per line: mean %.1f, median %lld, 90 %% at most %lld, 99 %% %lld, 99.9 %% %lld, longest %lld\n", what,
           wf_text_count(l->tokens, count), (double)l->tokens / (double)l->count, (long long)quantile(l, 500), (long long)quantile(l, 900),
           (long long)quantile(l, 990), (long long)quantile(l, 999), (long long)l->longest);
}

/* --- one file ------------------------------------------------------------------------------------------------------ */

static wf_status survey_one(const struct arguments *a, const char *path, const wf_tokenizer *t, wf_error *error)
{
    struct wf_lines in;
    struct lengths l = {0};
    struct wf_tokens ids = {0};
    char count[2][WF_NUMBER_SIZE];
    int64_t empty = 0, unknown = 0, over = 0;
    struct wf_encode_options o = {
        .unknown = &unknown, .cache = wf_token_cache_new(t, CACHED_WORDS, error), .whole = true, .cancelled = interrupted};
    wf_status status = line_input_open(&in, path, error);
    if (status == WF_OK && !o.cache)
        status = error->code;
    while (status == WF_OK && (status = wf_lines_next(&in, error)) == WF_OK && in.text) {
        empty += in.length == 0;
        ids.count = 0;
        status = interrupted(NULL) ? WF_ERR_CANCELLED : line_input_encode(&in, t, &o, &ids, error);
        if (status == WF_OK && !lengths_add(&l, ids.count))
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for lengths");
    }
    status = count_interrupted(status, l.count, error);
    if (status == WF_OK && l.count == 0)
        status = wf_text_empty(path, error);
    if (status == WF_OK) {
        printf("%s line%s, %s empty\n", wf_text_count(l.count, count[0]), plural(l.count), wf_text_count(empty, count[1]));
        lengths_print(&l, path);
    }
    if (status == WF_OK && unknown > 0)
        printf("%s unknown token%s, %.3f %%\n", wf_text_count(unknown, count[0]), plural(unknown),
               100.0 * (double)unknown / (double)l.tokens);
    for (int64_t n = a->max_length + 1; n < l.room; n++)
        over += l.lines[n];
    if (status == WF_OK && a->max_length)
        printf("%s line%s longer than %s\n", wf_text_count(over, count[0]), plural(over), wf_text_count(a->max_length, count[1]));
    wf_token_cache_free(o.cache);
    wf_tokens_free(&ids);
    wf_lines_close(&in);
    wf_free(l.lines);
    return status;
}

/* --- two files ----------------------------------------------------------------------------------------------------- */

static bool show(void *ctx, int64_t done, int64_t total)
{
    display_show(ctx, total > 0 ? (double)done / (double)total : 0, false, "%.1f/%.1f MB", (double)done / 1e6, (double)total / 1e6);
    return !interrupted(NULL);
}

static wf_status print_lengths(const wf_bitext *bitext, wf_error *error)
{
    struct lengths source = {0}, target = {0};
    bool memory = true;
    for (int64_t i = 0; memory && i < wf_bitext_survey(bitext)->used; i++) {
        int64_t s, t;
        wf_bitext_lengths(bitext, i, &s, &t);
        memory = lengths_add(&source, s) && lengths_add(&target, t);
    }
    if (memory) {
        lengths_print(&source, "source");
        lengths_print(&target, "target");
    }
    wf_free(source.lines);
    wf_free(target.lines);
    return memory ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for lengths");
}

static wf_status print_padding(wf_bitext *bitext, const struct arguments *a, wf_error *error)
{
    wf_pair_batches *batches;
    const struct wf_pair_batches_options o = {
        .tokens = a->batch_tokens, .tolerance = a->tolerance, .side = a->side, .window = a->window, .seed = 1};
    wf_status status = wf_pair_batches_new(bitext, &o, &batches, error);
    int64_t count = 0, positions = 0, most = 0, tokens = wf_bitext_survey(bitext)->source_tokens + wf_bitext_survey(bitext)->target_tokens;
    for (int64_t epoch = 0, index = 0; status == WF_OK; count++) {
        struct wf_pairs pairs;
        wf_pair_batches_place(batches, &epoch, &index);
        if (epoch > 0)
            break;
        if ((status = wf_pair_batches_next(batches, &pairs, error)) != WF_OK)
            break;
        int64_t source = 0, target = 0;
        for (int64_t i = 0; i < pairs.count; i++) {
            int64_t s = pairs.source_offsets[i + 1] - pairs.source_offsets[i], t = pairs.target_offsets[i + 1] - pairs.target_offsets[i];
            source = WF_MAX(s, source);
            target = WF_MAX(t, target);
        }
        int64_t cost = pairs.count * (source + target);
        positions += cost;
        most = WF_MAX(cost, most);
    }
    char limit[WF_NUMBER_SIZE], batch[WF_NUMBER_SIZE], largest[WF_NUMBER_SIZE];
    if (status == WF_OK)
        printf("batches of %s%s: %s, with %.1f tokens on average; padding would be %.2f %% of the positions; the largest has %s "
               "positions\n",
               wf_text_count(a->batch_tokens, limit), a->side ? " a side" : "", wf_text_count(count, batch), (double)tokens / (double)count,
               100.0 * (double)(positions - tokens) / (double)positions, wf_text_count(most, largest));
    wf_pair_batches_free(batches);
    return status;
}

static wf_status survey_two(const struct arguments *a, char **path, const wf_tokenizer *source, const wf_tokenizer *target, wf_error *error)
{
    char text[512], *cache;
    wf_bitext *bitext;
    struct display d;
    wf_status status = wf_cache_folder(&cache, error);
    if (status != WF_OK)
        return status;
    const struct wf_bitext_options o = {.source = source,
                                        .target = target,
                                        .source_bos = a->bos,
                                        .source_eos = a->eos,
                                        .max_length = a->max_length,
                                        .cache = cache,
                                        .progress = show,
                                        .ctx = &d,
                                        .max_ratio = a->max_ratio,
                                        .deduplicate = a->deduplicate};
    display_open(&d);
    status = wf_bitext_open(path[0], path[1], &o, &bitext, error);
    display_clear(&d);
    wf_free(cache);
    if (status != WF_OK)
        return status;
    puts(wf_bitext_describe(wf_bitext_survey(bitext), text, sizeof text));
    status = print_lengths(bitext, error);
    if (status == WF_OK && a->batch_tokens)
        status = print_padding(bitext, a, error);
    wf_bitext_close(bitext);
    return status;
}

static wf_status survey(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
    struct list files = {0}, names = {0};
    wf_tokenizer *t[2] = {NULL, NULL};
    watch_interrupts(WATCH_BRIEF);
    wf_status status = list_parse(a->file[1], true, &files, error);
    if (status == WF_OK)
        status = list_parse(a->file[0], true, &names, error);
    if (status == WF_OK && (files.count > 2 || names.count > files.count))
        status = wf_error_set(error, WF_ERR_ARGUMENT, "%lld tokenizer%s for %lld text%s: give one text, or two with one tokenizer or two",
                              (long long)names.count, plural(names.count), (long long)files.count, plural(files.count));
    if (status == WF_OK && files.count < 2 &&
        (a->model || a->batch_tokens || a->cost_given || a->bos || a->eos || a->max_ratio > 0 || a->deduplicate))
        status =
            wf_error_set(error, WF_ERR_ARGUMENT,
                         "--model, --batch-tokens, --batch-cost, --source-bos, --source-eos, --max-ratio and --deduplicate are for two "
                         "texts, FILE,FILE");
    if (status == WF_OK)
        status = take_model(a, error);
    if (status == WF_OK && a->cost_given && !a->batch_tokens)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "--batch-cost needs --batch-tokens: give both");
    for (int64_t i = 0; status == WF_OK && i < names.count; i++)
        status = wf_tokenizer_load(names.item[i], &t[i], error);
    if (status == WF_OK && files.count == 2)
        status = start(a->threads, error);
    if (status == WF_OK)
        status = files.count == 2 ? survey_two(a, files.item, t[0], t[names.count - 1], error) : survey_one(a, files.item[0], t[0], error);
    wf_tokenizer_free(t[0]);
    wf_tokenizer_free(t[1]);
    list_free(&files);
    list_free(&names);
    return status;
}

int run_tokenizer_survey(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"model", "NAME",
         "of two files: with the max_length, batch_tokens, batch_tolerance, batch_cost, batch_window, filters and special tokens of this "
         "preset's "
         "training; the options below override them",
         .text = &a.model},
        {"max-length", "N", "maximum length of a side in tokens; longer pairs are skipped", .number = &a.max_length, .low = 1,
         .high = INT32_MAX},
        {"batch-tokens", "N", "of two files: print the share of padding in batches of at most N tokens", .number = &a.batch_tokens,
         .low = 1, .high = INT32_MAX},
        {"batch-cost", "both|side",
         "size of a batch in tokens: pairs x (longest source + longest target) (default), or pairs x the longer of the two",
         .choice = &a.side, .given = &a.cost_given},
        {"source-bos", NULL, "of two files: the source begins with <s> (default: no)", .flag = &a.bos},
        {"source-eos", NULL, "of two files: the source ends with </s> (default: no)", .flag = &a.eos},
        {"max-ratio", "R", "of two files: skip pairs whose longer side has more than R times the tokens of the shorter",
         .real = &a.max_ratio, .least = 1, .most = 1e6},
        {"deduplicate", NULL, "of two files: of equal pairs of sentences only the first counts", .flag = &a.deduplicate},
        THREADS_ROW(&a.threads),
        {0},
    };
    return run_command(
        &(struct command_line){
            "TOKENIZER.json[,TOKENIZER.json] FILE[,FILE]",
            "Prints the lengths in tokens of the lines of a text, or of two texts of a translation, aligned by line.", options, a.file,
            .most = 2, .too_few = "the tokenizer or the text is missing: $0 tokenizer survey TOKENIZER.json[,TOKENIZER.json] FILE[,FILE]",
            .too_many = "two texts of a translation are given as FILE,FILE"},
        survey, &a, argc, argv);
}
