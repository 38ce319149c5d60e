/* SPDX-License-Identifier: MIT */
/* weft tokenizer encode and decode: convert standard input to standard output line by line. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/string.h>

#include "line_input.h"

enum { CACHED_WORDS = 1 << 16 };

struct state {
    const char *path;
    bool specials, tokens;
    wf_status (*line)(struct state *s,
                      wf_error *error); /* encode_line or decode_line: converts the line that was read, and writes it to `text` */
    wf_tokenizer *tokenizer;
    wf_token_cache *cache;
    struct wf_lines in;
    struct wf_tokens ids;
    struct wf_string text;
};

static void add_id(struct wf_string *out, int32_t id)
{
    char digits[12], *p = digits + sizeof digits;
    uint32_t rest = (uint32_t)id;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    wf_string_add(out, p, digits + sizeof digits - p);
}

static wf_status encode_line(struct state *s, wf_error *error)
{
    const struct wf_encode_options o = {.specials = s->specials, .cache = s->cache, .cancelled = interrupted};
    s->ids.count = 0;
    wf_status status = line_input_encode(&s->in, s->tokenizer, &o, &s->ids, error);
    wf_string_cut(&s->text, 0);
    wf_string_text(&s->text, s->tokens ? "[" : "");
    for (int64_t i = 0; i < s->ids.count; i++) {
        wf_string_text(&s->text, i == 0 ? "" : s->tokens ? ", " : " ");
        if (s->tokens) {
            int64_t bytes;
            const char *piece = wf_tokenizer_token(s->tokenizer, s->ids.id[i], &bytes);
            wf_string_json(&s->text, piece, bytes);
        } else
            add_id(&s->text, s->ids.id[i]);
    }
    wf_string_text(&s->text, s->tokens ? "]" : "");
    return status;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static wf_status refuse(const struct state *s, int64_t at, const char *what, wf_error *error)
{
    char place[1024];
    return wf_error_set(error, WF_ERR_FORMAT, "%s: %s; ids are integers from 0 to %lld, separated by spaces",
                        wf_lines_place(&s->in, at, place, sizeof place), what, (long long)wf_tokenizer_vocab_size(s->tokenizer) - 1);
}

static wf_status read_ids(struct state *s, wf_error *error)
{
    const char *text = s->in.text;
    int64_t vocab_size = wf_tokenizer_vocab_size(s->tokenizer), length = s->in.length;
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
            return refuse(s, begin, "this is not an id", error);
        if (id >= vocab_size)
            return refuse(s, begin, "this id is not in the vocabulary", error);
        if (!wf_grow(&s->ids.id, &s->ids.capacity, s->ids.count + 1, sizeof *s->ids.id))
            return wf_error_set(error, WF_ERR_MEMORY, "%s:%lld: no memory for so many ids", s->in.name, (long long)s->in.line);
        s->ids.id[s->ids.count++] = (int32_t)id;
    }
    return WF_OK;
}

static wf_status decode_line(struct state *s, wf_error *error)
{
    const struct wf_decode_options o = {.specials = s->specials};
    wf_status status = read_ids(s, error);
    wf_string_cut(&s->text, 0);
    if (status == WF_OK && s->ids.count > 0 &&
        (status = wf_tokenizer_decode_with(s->tokenizer, s->ids.id, s->ids.count, &o, &s->text, error)) != WF_OK)
        wf_error_prefix(error, "%s:%lld", s->in.name, (long long)s->in.line);
    for (int64_t i = 0; i < s->text.length; i++) /* the output stays one line, even if tokens contain line ends */
        if (s->text.data[i] == '\n' || s->text.data[i] == '\r')
            s->text.data[i] = ' ';
    return status;
}

/* Converts all lines. If standard output cannot be written, stops without an error, because main.c reports that at the end. */
static wf_status convert(void *state, wf_error *error)
{
    struct state *s = state;
    wf_status status = wf_tokenizer_load(s->path, &s->tokenizer, error);
    if (status == WF_OK && s->line == encode_line && !(s->cache = wf_token_cache_new(s->tokenizer, CACHED_WORDS, error)))
        status = error->code;
    if (status == WF_OK)
        status = line_input_open(&s->in, NULL, error);
    while (status == WF_OK && !ferror(stdout) && (status = wf_lines_next(&s->in, error)) == WF_OK && s->in.text) {
        status = s->line(s, error);
        if (status == WF_OK && !wf_string_char(&s->text, '\n'))
            status = wf_error_set(error, WF_ERR_MEMORY, "%s:%lld: no memory for the line", s->in.name, (long long)s->in.line);
        if (status == WF_OK)
            fwrite(s->text.data, 1, (size_t)s->text.length, stdout);
    }
    wf_lines_close(&s->in);
    wf_token_cache_free(s->cache);
    wf_tokenizer_free(s->tokenizer);
    wf_tokens_free(&s->ids);
    wf_string_free(&s->text);
    return status;
}

static int run(const char *help, const struct option_row *options, struct state *s, int argc, char **argv)
{
    return run_command(&(struct command_line){"TOKENIZER.json", help, options, &s->path,
                                              .too_few = "TOKENIZER.json is missing; the input is read from standard input",
                                              .too_many = "the input is read from standard input, < FILE"},
                       convert, s, argc, argv);
}

int run_tokenizer_encode(int argc, char **argv)
{
    struct state s = {.line = encode_line, .in.fd = -1};
    const struct option_row options[] = {
        {"specials", NULL, "add the special tokens of the template, such as <s> and </s>", .flag = &s.specials},
        {"tokens", NULL, "print the tokens as a JSON array per line instead of ids", .flag = &s.tokens},
        {0},
    };
    return run("Converts lines of text on standard input to lines of ids. Line ends (\\n, \\r\\n) are not encoded; an empty line gives an "
               "empty line.",
               options, &s, argc, argv);
}

int run_tokenizer_decode(int argc, char **argv)
{
    struct state s = {.line = decode_line, .in.fd = -1};
    const struct option_row options[] = {{"specials", NULL, "print special tokens too", .flag = &s.specials}, {0}};
    return run("Converts lines of ids on standard input to lines of text: an empty line gives an empty line, and a line feed in the text "
               "becomes a space.",
               options, &s, argc, argv);
}
