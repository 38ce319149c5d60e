/* SPDX-License-Identifier: MIT */
/* Enlarges the vocabulary of trained weights: tokens of a file go into the tokenizer after its own, and the model gets rows for them. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "trainer.h"

static wf_status no_memory(struct trainer *t)
{
    return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for the new tokens in %s", t->options->new_tokens);
}

/* --- the tokenizer --------------------------------------------------------------------------------------------------- */

/* Appends a line. The lines \\n, \\t, \\r and \\\\ stand for a line feed, a tab, a carriage return and a backslash; other lines for
 * themselves. */
static void add_line(struct wf_string *text, const char *line, int64_t length)
{
    static const char names[] = "ntr\\", values[] = "\n\t\r\\";
    const char *name = length == 2 && line[0] == '\\' && line[1] ? strchr(names, line[1]) : NULL;
    if (name)
        wf_string_char(text, values[name - names]);
    else
        wf_string_add(text, line, length);
}

/* Lines that are not empty, one after the other, each with a NUL. */
static wf_status read_tokens(struct trainer *t, struct wf_string *text, int64_t *count)
{
    struct wf_lines in;
    wf_status status = wf_lines_open(&in, t->options->new_tokens, t->error);
    while (status == WF_OK && (status = wf_lines_next(&in, t->error)) == WF_OK && in.text)
        if ((status = wf_lines_check(&in, t->error)) == WF_OK && in.length > 0) {
            ++*count;
            add_line(text, in.text, in.length);
            if (!wf_string_char(text, 0))
                status = no_memory(t);
        }
    wf_lines_close(&in);
    if (status == WF_OK && *count == 0)
        status = wf_error_set(t->error, WF_ERR_FORMAT, "%s has no tokens: give one a line", t->options->new_tokens);
    return status;
}

/* Writes "2 tokens added to the vocabulary of 65: "a", "b"; already there: "c"". */
static void describe(struct trainer *t, const char *const *token, const bool *added, int64_t count)
{
    int64_t fresh = 0;
    struct wf_string list[2] = {{0}, {0}};
    for (int64_t i = 0; i < count; i++) {
        char quoted[WF_QUOTE_SIZE];
        struct wf_string *l = &list[added[i]];
        fresh += added[i];
        if (l->length < 400)
            wf_string_format(l, "%s%s", l->length ? ", " : "", wf_text_quote(token[i], quoted));
        else if (l->data[l->length - 1] != '.')
            wf_string_text(l, ", ...");
    }
    wf_string_format(&t->grown, "%" PRId64 " token%s added to the vocabulary of %" PRId64 "%s%s", fresh, fresh == 1 ? "" : "s",
                     wf_tokenizer_vocab_size(t->before), fresh ? ": " : "", fresh ? list[1].data : "");
    if (fresh < count)
        wf_string_format(&t->grown, "; already there: %s", list[0].data);
    t->grown.failed |= list[0].failed || list[1].failed;
    wf_string_free(&list[0]);
    wf_string_free(&list[1]);
}

wf_status grow_tokenizer(struct trainer *t)
{
    struct wf_string text = {0};
    int64_t count = 0;
    wf_status status = read_tokens(t, &text, &count);
    const char **token = wf_alloc((size_t)(count + 1) * sizeof *token), *at = text.data;
    bool *added = wf_alloc_zero((size_t)count + 1, sizeof *added);
    for (int64_t i = 0; status == WF_OK && token && i < count; i++, at += strlen(at) + 1)
        token[i] = at;
    wf_tokenizer *larger = NULL;
    if (status == WF_OK && (!token || !added))
        status = no_memory(t);
    if (status == WF_OK && (status = wf_tokenizer_extend(t->tokenizer, token, count, added, &larger, t->error)) != WF_OK)
        wf_error_prefix(t->error, "%s", t->options->new_tokens);
    if (status == WF_OK) {
        t->before = t->tokenizer;
        t->tokenizer = larger;
        describe(t, token, added, count);
        status = t->grown.failed ? no_memory(t) : WF_OK;
    }
    wf_free(token);
    wf_free(added);
    wf_string_free(&text);
    return status;
}

/* --- the weights ----------------------------------------------------------------------------------------------------- */

/* The model of the configuration with another vocabulary size; no memory for its weights. */
static wf_model *with_vocabulary(struct trainer *t, int64_t rows)
{
    struct wf_config c = t->config;
    wf_config_set_vocab(&c, rows, 0);
    return wf_model_new(&c, t->error);
}

static wf_array value_of(const wf_model *model, int i)
{
    return wf_parameter_info(wf_registry_at(wf_model_registry(model), i))->value;
}

/* Sets row `to` and the rows up to `end` of a matrix, or of a vector, to the mean of the first `count` rows. */
static void set_to_mean(wf_real *rows, int64_t width, int64_t count, int64_t to, int64_t end)
{
    for (int64_t k = 0; k < width; k++) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += (double)rows[i * width + k];
        for (int64_t i = to; i < end; i++)
            rows[i * width + k] = (wf_real)(sum / (double)count);
    }
}

/* Copies the weights of `old`. `more` has one row more than `old`, so the parameters in which they differ have a row for each token. */
static wf_status copy_weights(struct trainer *t, const wf_model *old, const wf_model *more)
{
    const int64_t types = wf_tokenizer_vocab_size(t->before), end = wf_tokenizer_vocab_size(t->tokenizer);
    for (int i = 0; i < wf_registry_count(t->registry); i++) {
        const wf_array from = value_of(old, i), to = value_of(t->model, i), probe = value_of(more, i);
        const wf_shape a = wf_array_shape(&from), b = wf_array_shape(&probe);
        const int64_t width = from.ndim > 0 && from.dim[0] > 0 ? wf_array_count(&from) / from.dim[0] : 1;
        if (wf_shape_equal(&a, &b)) {
            memcpy(to.data, from.data, (size_t)wf_array_count(&from) * sizeof(wf_real));
            continue;
        }
        if (probe.dim[0] != from.dim[0] + 1)
            return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s: '%s' has no rows of tokens: its vocabulary cannot grow", t->config.model,
                                wf_parameter_info(wf_registry_at(t->registry, i))->name);
        memcpy(to.data, from.data, (size_t)(WF_MIN(from.dim[0], to.dim[0]) * width) * sizeof(wf_real));
        set_to_mean(to.data, width, types, types, end);
    }
    return WF_OK;
}

wf_status grow_load(struct trainer *t, const wf_safetensors *file, int64_t rows, const struct wf_load_options *options)
{
    wf_model *old = with_vocabulary(t, rows), *more = old ? with_vocabulary(t, rows + 1) : NULL;
    wf_status status = more ? wf_model_load_with(old, file, options, t->error) : t->error->code;
    if (status == WF_OK)
        status = copy_weights(t, old, more);
    wf_model_free(old);
    wf_model_free(more);
    return status;
}
