/* SPDX-License-Identifier: MIT */
/* weft tokenizer train --type T --out FILE TEXT...: trains a tokenizer on texts. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/internal/files.h>
#include <weft/internal/text.h>

#include "cli.h"
#include "display.h"

struct arguments {
    struct wf_tokenizer_options o;
    int type;                /* enum wf_tokenizer_kind */
    int pre_tokenizer;       /* enum wf_pre_tokenizer */
    const char *split_given; /* not NULL if --pre-tokenizer is given */
    const char *out, *specials;
    const char **file;
    int64_t files, threads, long_words;
};

/* Refuses options that this kind of tokenizer would ignore, and an output file that would replace one of the texts. */
static wf_status check(const struct arguments *a, wf_error *error)
{
    enum wf_tokenizer_kind kind = a->o.kind;
    if (kind == WF_TOKENIZER_CHAR && (a->o.vocab_size || a->o.min_frequency))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "--type char takes neither --vocab-size nor --min-frequency: its vocabulary is the characters of the text");
    if (a->split_given && kind != WF_TOKENIZER_WORD && kind != WF_TOKENIZER_BPE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--pre-tokenizer applies to --type word and bpe, not to %s",
                            wf_tokenizer_kind_name(kind));
    struct stat out;
    bool replaces = stat(a->out, &out) == 0 && S_ISREG(out.st_mode);
    for (int64_t i = 0; replaces && i < a->files; i++)
        if (wf_path_same(a->file[i], a->out))
            return wf_error_set(error, WF_ERR_ARGUMENT, "--out %s would replace the text %s: choose another file", a->out, a->file[i]);
    return WF_OK;
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
    char text[64] = "";
    int64_t size = wf_tokenizer_vocab_size(t), merges;
    if (a->o.kind == WF_TOKENIZER_BPE || a->o.kind == WF_TOKENIZER_BYTE_BPE) {
        if (tokenizer_merges(t, &merges, error) != WF_OK)
            return error->code;
        snprintf(text, sizeof text, ", %lld merges", (long long)merges);
    }
    fprintf(stderr, "%s: %s, vocabulary size %lld%s, %.1f s\n", a->out, wf_tokenizer_kind_name(a->o.kind), (long long)size, text, seconds);
    if (a->o.vocab_size && size < a->o.vocab_size)
        fprintf(stderr, "the text yields only %lld of the %lld vocabulary entries\n", (long long)size, (long long)a->o.vocab_size);
    char count[WF_NUMBER_SIZE];
    if (a->long_words > 0)
        fprintf(stderr, "%s place%s without a space for 2 MiB or more: %s\n", wf_text_count(a->long_words, count), plural(a->long_words),
                a->o.kind == WF_TOKENIZER_WORD ? "left out of the vocabulary" : "cut into pieces of that size, whose pairs were counted");
    return WF_OK;
}

/* Parses --specials, and refuses likely mistakes: an empty token, or a token with blanks at its start or end. */
static wf_status parse_specials(struct arguments *a, struct list *specials, wf_error *error)
{
    static const char *const none[1];
    if (a->specials && !a->specials[0])
        a->o.specials = none; /* an empty list; NULL would stand for the default tokens */
    if (!a->specials || !a->specials[0])
        return WF_OK;
    wf_status status = list_parse(a->specials, false, specials, error);
    for (int64_t i = 0; status == WF_OK && i < specials->count; i++) {
        const char *c = specials->item[i];
        if (strchr(" \t\r\n", c[0]) || strchr(" \t\r\n", c[strlen(c) - 1]))
            status = wf_error_set(error, WF_ERR_ARGUMENT, "'%s' begins or ends with a space; separate tokens by commas without spaces", c);
    }
    if (status != WF_OK)
        wf_error_prefix(error, "--specials");
    a->o.specials = (const char *const *)specials->item;
    a->o.special_count = specials->count;
    return status;
}

static wf_status train(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
    struct display d;
    struct list specials = {0};
    wf_tokenizer *t = NULL;
    a->o.kind = (enum wf_tokenizer_kind)a->type;
    a->o.other_pre_tokenizer = a->split_given != NULL;
    a->o.pre_tokenizer = (enum wf_pre_tokenizer)a->pre_tokenizer;
    a->o.progress = progress;
    a->o.ctx = &d;
    a->o.long_words = &a->long_words;
    watch_interrupts(WATCH_BRIEF);
    wf_status status = check(a, error);
    if (status == WF_OK)
        status = parse_specials(a, &specials, error);
    if (status == WF_OK)
        status = start(a->threads, error);
    display_open(&d);
    if (status == WF_OK) { /* fail before the training, which may take hours, if the output file cannot be written */
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
    list_free(&specials);
    return status;
}

int run_tokenizer_train(int argc, char **argv)
{
    const char *files[argc];
    struct arguments a = {.file = files};
    const struct option_row options[] = {
        {"type", "char|word|bpe|byte-bpe", "kind of tokenizer", .choice = &a.type, .needed = "the kind of tokenizer"},
        {"vocab-size", "N", "vocabulary size, including special tokens (default: bpe 10000, word unlimited)", .number = &a.o.vocab_size,
         .low = 1, .high = INT32_MAX},
        {"min-frequency", "K", "minimum number of occurrences of a word, or of a merged pair", .number = &a.o.min_frequency, .low = 1,
         .high = INT64_MAX},
        {"specials", "LIST",
         "special tokens, separated by commas; their ids are 0, 1, ... (default: word <pad>,<bos>,<eos>; bpe <s>,<pad>,</s>,<unk>; "
         "byte-bpe <s>,<pad>,</s>)",
         .text = &a.specials},
        {"pre-tokenizer", "metaspace|whitespace|metaspace-alone",
         "how text is split into words: at spaces, each punctuation mark a word (reversible; bpe's default), into runs of letters and "
         "runs of other characters (word's default), or at spaces only",
         .choice = &a.pre_tokenizer, .given = &a.split_given},
        {"out", "FILE", "the tokenizer.json to write", .text = &a.out, .needed = "the tokenizer.json to write"},
        THREADS_ROW(&a.threads),
        {0},
    };
    return run_command(
        &(struct command_line){"--type TYPE --out FILE TEXT...",
                               "Trains a tokenizer on text files of any size: only their distinct words are held in memory (char: the "
                               "characters). Words of more than 2 MiB, as in base64 or DNA, are cut into pieces (word: left out), and a "
                               "line says so. The same files and options give the same tokenizer.",
                               options, a.file, .most = argc, .count = &a.files,
                               .too_few = "$0 tokenizer train needs files of text to make the tokenizer from"},
        train, &a, argc, argv);
}
