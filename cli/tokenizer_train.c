/* SPDX-License-Identifier: MIT */
/* weft tokenizer train --type T --out FILE TEXT... */
#include "tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "display.h"

enum { KEY_TYPE = 1000, KEY_SIZE, KEY_FREQUENCY, KEY_SPECIALS, KEY_SPLIT, KEY_OUT, KEY_THREADS };

static const struct argp_option options[] = {
    {"type", KEY_TYPE, "char|word|bpe|byte-bpe", 0, "kind of tokenizer", 0},
    {"vocab-size", KEY_SIZE, "N", 0, "vocabulary size, including special tokens (default: bpe 10000, word unlimited)", 0},
    {"min-frequency", KEY_FREQUENCY, "K", 0, "leave out words, or merges of pairs, that occur less often", 0},
    {"specials", KEY_SPECIALS, "LIST", 0,
     "special tokens, separated by commas; their ids are 0, 1, ... (default: word <pad>,<bos>,<eos>; bpe <s>,<pad>,</s>,<unk>; "
     "byte-bpe <s>,<pad>,</s>)",
     0},
    {"pre-tokenizer", KEY_SPLIT, "KIND", 0,
     "how text is split into words: metaspace (at spaces, punctuation by itself; gives back the text; bpe's default), metaspace-alone (at "
     "spaces "
     "only), running-text (metaspace with the line end as a token, for language models) or whitespace (runs of letters, runs of signs; "
     "word's default)",
     0},
    {"out", KEY_OUT, "FILE", 0, "the tokenizer.json to write", 0},
    {"threads", KEY_THREADS, "N", 0, THREADS_HELP, 0},
    {0},
};

struct arguments {
    struct wf_tokenizer_options o;
    const char *type, *out, *specials;
    const char **file; /* in argv */
    int64_t files, threads;
};

static bool parse_split(const char *value, struct arguments *a)
{
    static const char *const names[] = {[WF_METASPACE] = "metaspace",
                                        [WF_WHITESPACE] = "whitespace",
                                        [WF_METASPACE_ALONE] = "metaspace-alone",
                                        [WF_RUNNING_TEXT] = "running-text"};
    a->o.other_pre_tokenizer = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(value, names[i]) == 0) {
            a->o.pre_tokenizer = (enum wf_pre_tokenizer)i;
            return true;
        }
    fail_usage("--pre-tokenizer: '%s' is none of metaspace, metaspace-alone, running-text and whitespace", value);
    return false;
}

static bool parse_type(const char *value, struct arguments *a)
{
    a->type = value;
    if (wf_tokenizer_kind_parse(value, &a->o.kind) && a->o.kind != WF_TOKENIZER_WORDPIECE)
        return true;
    fail_usage("--type: '%s' is none of char, word, bpe and byte-bpe", value);
    return false;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    bool fine = true;
    switch (key) {
    case KEY_TYPE:
        fine = parse_type(value, a);
        break;
    case KEY_SIZE:
        fine = parse_int("vocab-size", value, 1, INT32_MAX, &a->o.vocab_size);
        break;
    case KEY_FREQUENCY:
        fine = parse_int("min-frequency", value, 1, INT64_MAX, &a->o.min_frequency);
        break;
    case KEY_SPECIALS:
        a->specials = value;
        break;
    case KEY_SPLIT:
        fine = parse_split(value, a);
        break;
    case KEY_OUT:
        a->out = value;
        break;
    case KEY_THREADS:
        fine = parse_int("threads", value, 1, 256, &a->threads);
        break;
    case ARGP_KEY_ARG:
        a->file[a->files++] = value;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return fine ? 0 : EINVAL;
}

static const struct argp argp = {
    options,
    parse_option,
    "--type TYPE --out FILE TEXT...",
    "Trains a tokenizer on text files of any size: only their distinct words are held in memory (char: the text). "
    "The same files and options give the same tokenizer.",
    NULL,
    NULL,
    NULL};

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
    int code = a.file ? parse(&argp, argc, argv, &a) : EXIT_FAILED;
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
