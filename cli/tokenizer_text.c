/* SPDX-License-Identifier: MIT */
/* weft tokenizer encode and decode: standard input to standard output, line for line. */
#include "tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "line_input.h"

enum { KEY_SPECIALS = 1000, KEY_TOKENS, CACHED_WORDS = 1 << 16 };

static const struct argp_option encode_options[] = {
    {"specials", KEY_SPECIALS, NULL, 0, "add the special tokens of the template, such as <s> and </s>", 0},
    {"tokens", KEY_TOKENS, NULL, 0, "print the pieces, a JSON array a line, instead of ids", 0},
    {0},
};
static const struct argp_option decode_options[] = {
    {"specials", KEY_SPECIALS, NULL, 0, "print special tokens too", 0},
    {0},
};

struct arguments {
    const char *tokenizer;
    bool specials, tokens;
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    switch (key) {
    case KEY_SPECIALS:
        a->specials = true;
        break;
    case KEY_TOKENS:
        a->tokens = true;
        break;
    case ARGP_KEY_ARG:
        if (a->tokenizer)
            return fail_usage("'%s' is one argument too many: what to convert comes from standard input", value), EINVAL;
        a->tokenizer = value;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp encode_argp = {
    encode_options,
    parse_option,
    "TOKENIZER.json",
    "Turns lines of text on standard input into lines of ids. Line ends, \\r\\n too, belong to no text; an empty line gives an empty line.",
    NULL,
    NULL,
    NULL};
static const struct argp decode_argp = {
    decode_options,
    parse_option,
    "TOKENIZER.json",
    "Turns lines of ids on standard input into lines of text, line for line: an empty line gives an empty line, and a "
    "line end among the tokens becomes a blank.",
    NULL,
    NULL,
    NULL};

struct state {
    const struct arguments *arguments;
    wf_tokenizer *tokenizer;
    wf_token_cache *cache;
    struct line_input in;
    struct wf_tokens ids;
    struct wf_string text;
};

static void print_quoted(const char *text, int64_t length)
{
    putchar('"');
    for (int64_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20)
            printf("\\u%04x", c);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_number(int32_t n)
{
    char digits[12], *p = digits + sizeof digits;
    uint32_t rest = (uint32_t)n;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    fwrite(p, 1, (size_t)(digits + sizeof digits - p), stdout);
}

static wf_status encode_line(struct state *s, const char *text, int64_t length, wf_error *error)
{
    const struct wf_encode_options o = {.specials = s->arguments->specials, .cache = s->cache};
    s->ids.count = 0;
    wf_status status = line_input_encode(&s->in, s->tokenizer, text, length, &o, &s->ids, error);
    if (status != WF_OK)
        return status;
    if (s->arguments->tokens)
        putchar('[');
    for (int64_t i = 0; i < s->ids.count; i++) {
        if (s->arguments->tokens) {
            int64_t bytes;
            const char *piece = wf_tokenizer_token(s->tokenizer, s->ids.id[i], &bytes);
            fputs(i ? ", " : "", stdout);
            print_quoted(piece, bytes);
        } else {
            if (i)
                putchar(' ');
            print_number(s->ids.id[i]);
        }
    }
    fputs(s->arguments->tokens ? "]\n" : "\n", stdout);
    return WF_OK;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static wf_status read_ids(struct state *s, const char *text, int64_t length, wf_error *error)
{
    int64_t types = wf_tokenizer_vocab_size(s->tokenizer);
    s->ids.count = 0;
    for (int64_t at = 0; at < length;) {
        if (blank(text[at])) {
            at++;
            continue;
        }
        int64_t begin = at, id = 0;
        for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
            id = id < INT32_MAX ? id * 10 + (text[at] - '0') : id;
        if (at == begin || (at < length && !blank(text[at])))
            return line_input_fault(&s->in, begin, error, "no id stands here; ids are whole numbers from 0 to %lld with blanks between",
                                    (long long)types - 1);
        if (id >= types)
            return line_input_fault(&s->in, begin, error, "the id %.*s is none of the vocabulary, 0 to %lld",
                                    (int)(at - begin < 20 ? at - begin : 20), text + begin, (long long)types - 1);
        if (s->ids.count == s->ids.capacity) {
            int64_t capacity = s->ids.capacity * 2 + 256;
            int32_t *grown = wf_realloc(s->ids.id, (size_t)capacity * sizeof *grown);
            if (!grown)
                return wf_error_set(error, WF_ERR_MEMORY, "%s:%lld: no memory for so many ids", s->in.name, (long long)s->in.line);
            s->ids.id = grown;
            s->ids.capacity = capacity;
        }
        s->ids.id[s->ids.count++] = (int32_t)id;
    }
    return WF_OK;
}

static wf_status decode_line(struct state *s, const char *text, int64_t length, wf_error *error)
{
    const struct wf_decode_options o = {.specials = s->arguments->specials};
    wf_status status = read_ids(s, text, length, error);
    s->text.length = 0;
    if (status == WF_OK && s->ids.count > 0 &&
        (status = wf_tokenizer_decode_with(s->tokenizer, s->ids.id, s->ids.count, &o, &s->text, error)) != WF_OK)
        wf_error_prefix(error, "%s:%lld", s->in.name, (long long)s->in.line);
    if (status != WF_OK)
        return status;
    for (int64_t i = 0; i < s->text.length; i++) /* one line, whatever its tokens hold */
        if (s->text.data[i] == '\n' || s->text.data[i] == '\r')
            s->text.data[i] = ' ';
    if (s->text.length > 0)
        fwrite(s->text.data, 1, (size_t)s->text.length, stdout);
    putchar('\n');
    return WF_OK;
}

/* A standard output that can't be written ends it; the message comes when the program ends. */
static wf_status stream(struct state *s, wf_status (*line)(struct state *, const char *, int64_t, wf_error *), wf_error *error)
{
    char *text;
    int64_t length;
    wf_status status = line_input_open(&s->in, NULL, error);
    while (status == WF_OK && !ferror(stdout) && (status = line_input_next(&s->in, &text, &length, error)) == WF_OK && text)
        status = line(s, text, length, error);
    line_input_close(&s->in);
    return status;
}

static int run(const struct argp *argp, int argc, char **argv, wf_status (*line)(struct state *, const char *, int64_t, wf_error *))
{
    struct arguments a = {0};
    int code = parse(argp, argc, argv, &a);
    if (code >= 0)
        return code;
    if (!a.tokenizer)
        return fail_usage("which tokenizer? %s TOKENIZER.json, with what to convert on standard input", argv[0]);
    wf_error error = {0};
    struct state s = {.arguments = &a};
    wf_status status = wf_tokenizer_load(a.tokenizer, &s.tokenizer, &error);
    if (status == WF_OK && line == encode_line && !(s.cache = wf_token_cache_new(s.tokenizer, CACHED_WORDS, &error)))
        status = error.code;
    if (status == WF_OK)
        status = stream(&s, line, &error);
    wf_token_cache_free(s.cache);
    wf_tokenizer_free(s.tokenizer);
    wf_tokens_free(&s.ids);
    wf_string_free(&s.text);
    if (status == WF_OK)
        return EXIT_DONE;
    fail(&error);
    return EXIT_FAILED;
}

int run_tokenizer_encode(int argc, char **argv)
{
    return run(&encode_argp, argc, argv, encode_line);
}

int run_tokenizer_decode(int argc, char **argv)
{
    return run(&decode_argp, argc, argv, decode_line);
}
