/* SPDX-License-Identifier: MIT */
/* weft tokenizer train --type T --out FILE TEXT... */
#include "tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "display.h"

struct arguments {
    struct wf_tokenizer_options o;
    const char *type, *out, *specials;
    const char **file; /* in argv */
    int64_t files, threads;
};

static bool take_split(const char *option, const char *value, void *arguments)
{
    static const char *const names[] = {
        [WF_METASPACE] = "metaspace", [WF_WHITESPACE] = "whitespace", [WF_METASPACE_ALONE] = "metaspace-alone"};
    struct arguments *a = arguments;
    int kind = 0;
    a->o.other_pre_tokenizer = true;
    bool fine = take_word(option, value, &(struct word_option){names, sizeof names / sizeof *names, &kind});
    a->o.pre_tokenizer = (enum wf_pre_tokenizer)kind;
    return fine;
}

static bool take_type(const char *option, const char *value, void *arguments)
{
    struct arguments *a = arguments;
    a->type = value;
    if (wf_tokenizer_kind_parse(value, &a->o.kind) && a->o.kind != WF_TOKENIZER_WORDPIECE)
        return true;
    fail_usage("--%s: '%s' is none of char, word, bpe and byte-bpe", option, value);
    return false;
}

/* What one kind has no use for would be ignored in silence. */
static int check(const struct arguments *a)
{
    bool words = a->o.kind == WF_TOKENIZER_WORD || a->o.kind == WF_TOKENIZER_BPE;
    if (a->o.kind == WF_TOKENIZER_CHAR && (a->o.vocab_size || a->o.min_frequency))
        return fail_usage("--type char takes neither --vocab-size nor --min-frequency: its vocabulary is the characters of the text");
    if (a->o.other_pre_tokenizer && !words)
        return fail_usage("--pre-tokenizer is for --type word and bpe; %s splits in its own way", a->type);
    return -1;
}

/* --- progress ------------------------------------------------------------------------------------------------------ */

static bool progress(void *ctx, const struct wf_tokenizer_progress *p)
{
    struct display *d = ctx;
    double share = p->total > 0 ? (double)p->done / (double)p->total : 0;
    if (p->phase[0] == 'r' && p->total > 0)
        display_show(d, share, false, "%s %.1f/%.1f MB", p->phase, (double)p->done / 1e6, (double)p->total / 1e6);
    else if (p->phase[0] == 'r')
        display_show(d, -1, false, "%s %.1f MB", p->phase, (double)p->done / 1e6);
    else
        display_show(d, share, false, "%s %lld/%lld", p->phase, (long long)p->done, (long long)p->total);
    return !interrupted(NULL);
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static wf_status report(const wf_tokenizer *t, const struct arguments *a, double seconds, wf_error *error)
{
    json_t *file = tokenizer_file(t, error);
    if (!file)
        return error->code;
    long long types = wf_tokenizer_vocab_size(t), merges = tokenizer_merges(file);
    json_decref(file);
    if (a->o.kind == WF_TOKENIZER_BPE || a->o.kind == WF_TOKENIZER_BYTE_BPE)
        fprintf(stderr, "%s: %s, vocabulary size %lld, %lld merges, %.1f s\n", a->out, a->type, types, merges, seconds);
    else
        fprintf(stderr, "%s: %s, vocabulary size %lld, %.1f s\n", a->out, a->type, types, seconds);
    if (a->o.vocab_size && types < a->o.vocab_size)
        fprintf(stderr, "the text yields only %lld of the %lld vocabulary entries\n", types, (long long)a->o.vocab_size);
    return WF_OK;
}

/* "<s>,<pad>" -> tokens. What is hardly meant, an empty one or blanks at an edge, is refused. */
static wf_status parse_specials(struct arguments *a, const char ***tokens, char **text, wf_error *error)
{
    if (!a->specials)
        return WF_OK;
    int64_t most = 1, count = 0;
    for (const char *c = a->specials; *c; c++)
        most += *c == ',';
    *tokens = wf_alloc((size_t)most * sizeof **tokens);
    *text = wf_strdup(a->specials);
    if (!*tokens || !*text)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for special tokens");
    a->o.specials = *tokens; /* an empty list too: not the default */
    for (char *c = *text, *end; c && a->specials[0]; c = end) {
        if ((end = strchr(c, ',')))
            *end++ = 0;
        size_t length = strlen(c);
        if (length == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "--specials: an empty token in '%s'; commas stand between tokens only",
                                a->specials);
        if (strchr(" \t\r\n", c[0]) || strchr(" \t\r\n", c[length - 1]))
            return wf_error_set(error, WF_ERR_ARGUMENT, "--specials: '%s' begins or ends with a blank; write commas without blanks", c);
        (*tokens)[count++] = c;
    }
    a->o.special_count = count;
    return WF_OK;
}

static wf_status train(struct arguments *a, wf_error *error)
{
    struct display d;
    const char **specials = NULL;
    char *text = NULL;
    wf_tokenizer *t = NULL;
    wf_status status = parse_specials(a, &specials, &text, error);
    a->o.progress = progress;
    a->o.ctx = &d;
    display_open(&d);
    if (status == WF_OK) { /* where nothing can be written is said before hours have gone into the text */
        wf_file_writer *writer = wf_file_begin(a->out, error);
        status = writer ? WF_OK : error->code;
        wf_file_abort(writer);
    }
    if (status == WF_OK)
        status = wf_tokenizer_train_files_with(a->file, a->files, &a->o, &t, error);
    display_clear(&d);
    if (status == WF_OK)
        status = wf_tokenizer_save(t, a->out, error);
    if (status == WF_OK)
        status = report(t, a, display_seconds(&d), error);
    wf_tokenizer_free(t);
    wf_free(specials);
    wf_free(text);
    return status;
}

int run_tokenizer_train(int argc, char **argv)
{
    struct arguments a = {.file = wf_alloc((size_t)argc * sizeof *a.file)};
    const struct option_row options[] = {
        {"type", "char|word|bpe|byte-bpe", "kind of tokenizer", .take = take_type, .to = &a},
        {"vocab-size", "N", "vocabulary size, including special tokens (default: bpe 10000, word unlimited)", .number = &a.o.vocab_size,
         .low = 1, .high = INT32_MAX},
        {"min-frequency", "K", "minimum number of occurrences of a word, or of a merged pair", .number = &a.o.min_frequency, .low = 1,
         .high = INT64_MAX},
        {"specials", "LIST",
         "special tokens, separated by commas; their ids are 0, 1, ... (default: word <pad>,<bos>,<eos>; bpe <s>,<pad>,</s>,<unk>; "
         "byte-bpe <s>,<pad>,</s>)",
         .text = &a.specials},
        {"pre-tokenizer", "KIND",
         "how text is split into words: metaspace (at spaces, with each punctuation mark a word; restores the text; bpe's default), "
         "metaspace-alone (at spaces only) or whitespace (runs of letters, runs of other characters; word's default)",
         .take = take_split, .to = &a},
        {"out", "FILE", "the tokenizer.json to write", .text = &a.out},
        THREADS_ROW(&a.threads),
        {0},
    };
    const struct command_line line = {
        .usage = "--type TYPE --out FILE TEXT...",
        .help =
            "Trains a tokenizer on text files of any size: only their distinct words are held in memory (char: the text). The same files "
            "and options give the same tokenizer.",
        .options = options,
        .argument = a.file,
        .most = argc,
        .count = &a.files};
    int code = a.file ? parse(&line, argc, argv) : EXIT_FAILED;
    if (code < 0 && !a.type)
        code = fail_usage("weft tokenizer train needs --type char, word, bpe or byte-bpe");
    if (code < 0 && !a.out)
        code = fail_usage("weft tokenizer train needs --out FILE: the tokenizer.json to write");
    if (code < 0 && !a.files)
        code = fail_usage("weft tokenizer train needs files of text to make the tokenizer from");
    if (code < 0)
        code = check(&a);
    if (code < 0) {
        wf_error error = {0};
        watch_interrupts(WATCH_BRIEF);
        bool fine = start(a.threads, &error) == WF_OK && train(&a, &error) == WF_OK;
        code = fine ? EXIT_DONE : fail(&error);
    }
    wf_free(a.file);
    return code;
}
