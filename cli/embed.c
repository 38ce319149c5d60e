/* SPDX-License-Identifier: MIT */
/* weft embed RUN < lines > vectors: prints a sentence vector for each line, or the cosines of all pairs of lines. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/string.h>

#include "display.h"
#include "line_input.h"

enum format {
    FORMAT_TEXT, /* one row per line, with blanks between the numbers */
    FORMAT_JSON, /* one JSON array per line */
    FORMAT_NPY   /* one NumPy file with all rows */
};

struct arguments {
    struct run_options on;
    int format;  /* enum format */
    int pooling; /* enum wf_pooling, if pooling_given is not NULL */
    bool similarity, truncate, normalize, as_they_are;
    const char *pooling_given; /* not NULL if --pooling is given */
};

/* --- output -------------------------------------------------------------------------------------------------------- */

/* Prints x [rows,columns]. Text and JSON have one line per row, with enough digits to read the same number back. */
enum { DIGITS = sizeof(wf_real) == 8 ? 17 : 9 };
static wf_status print_rows(const wf_real *x, int64_t rows, int64_t columns, enum format format, wf_error *error)
{
    struct wf_string text = {0};
    if (format == FORMAT_NPY) {
        wf_array array = wf_array_contiguous((void *)x, WF_REAL, &(wf_shape){2, {rows, columns}});
        return wf_npy_save("/dev/stdout", &array, error);
    }
    for (int64_t i = 0; i < rows && !ferror(stdout); i++) {
        wf_string_cut(&text, 0);
        wf_string_text(&text, format == FORMAT_JSON ? "[" : "");
        for (int64_t j = 0; j < columns; j++)
            wf_string_format(&text, "%s%.*g", j == 0 ? "" : format == FORMAT_JSON ? ", " : " ", DIGITS, (double)x[i * columns + j]);
        wf_string_text(&text, format == FORMAT_JSON ? "]\n" : "\n");
        if (text.failed)
            break;
        fwrite(text.data, 1, (size_t)text.length, stdout);
    }
    bool memory = !text.failed;
    wf_string_free(&text);
    if (!memory)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a line of %lld numbers", (long long)columns);
    if (fflush(stdout) != 0 || ferror(stdout))
        return wf_error_set(error, WF_ERR_IO, "standard output can't be written");
    return WF_OK;
}

/* --- lines to vectors ---------------------------------------------------------------------------------------------- */

enum {
    BLOCK_LINES = 512,     /* maximum number of lines that are sorted by length and embedded together */
    BLOCK_BYTES = 1 << 20, /* bytes of input at which a block is full */
    COSINE_ROWS = 64       /* number of rows of the cosine matrix that are computed together */
};

struct embedding {
    const struct arguments *a;
    wf_embedder *embedder;
    struct wf_lines in;
    struct display display;
    int64_t width;     /* number of elements of a vector */
    int64_t done;      /* number of lines read */
    int64_t truncated; /* number of truncated lines */
    int64_t unknown;   /* number of unknown tokens */
    int64_t tokens;    /* number of all tokens */
    wf_real *vector;   /* the vectors of the present block, or with `keep` of all lines */
    int64_t lines;     /* number of vectors that are kept */
    int64_t room;      /* capacity of `vector` in elements */
    bool keep;         /* keeps all vectors until the end, instead of printing each block */
};

/* Prints the vectors of `count` lines, or keeps them. */
static wf_status give(struct embedding *e, int64_t count, wf_error *error)
{
    if (e->keep) {
        e->lines += count;
        return WF_OK;
    }
    display_make_way(&e->display);
    return print_rows(e->vector, count, e->width, (enum format)e->a->format, error);
}

/* Embeds `count` lines; `first` is the line number of the first one. If that fails, embeds the first half and then the second half, so that
 * all lines before an invalid one are printed, even if they are in one block with it. */
static wf_status embed_lines(struct embedding *e, const char *const *line, const int64_t *length, int64_t count, int64_t first,
                             wf_error *error)
{
    int64_t cut = 0, half = count / 2;
    wf_error failure = {0};
    wf_real *out = e->vector + e->lines * e->width;
    wf_status status = wf_embed(e->embedder, line, length, count, first, out, &cut, &failure);
    for (int64_t i = 0; status == WF_OK && i < count * e->width; i++)
        if (!isfinite(out[i]))
            status = wf_error_set(&failure, WF_ERR_NUMERIC,
                                  "%s:%lld: the vector is not finite: the weights are damaged, or the training diverged", e->in.name,
                                  (long long)(first + i / e->width));
    if (status == WF_OK) {
        e->truncated += cut;
        return give(e, count, error);
    }
    if (status == WF_ERR_MEMORY || half == 0 || interrupted(NULL))
        return wf_error_set(error, status, "%s", failure.message);
    status = embed_lines(e, line, length, half, first, error);
    return status == WF_OK ? embed_lines(e, line + half, length + half, count - half, first + half, error) : status;
}

/* Reads and embeds the next block. *count is its number of lines; 0 at the end of the input. */
static wf_status next_block(struct embedding *e, int64_t *count, wf_error *error)
{
    const char *line[BLOCK_LINES];
    int64_t length[BLOCK_LINES], held, bytes, first = e->done + 1;
    wf_status status = line_input_wait(&e->in, BLOCK_LINES, BLOCK_BYTES, &held, &bytes, error), fine = WF_OK;
    if (status != WF_OK)
        return status;
    if (!wf_grow(&e->vector, &e->room, (e->lines + held) * e->width, sizeof *e->vector))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the vectors of %lld lines%s", (long long)(e->lines + held),
                            e->a->similarity ? ": take fewer"
                            : e->keep        ? ": --format text and json need less"
                                             : "");
    for (*count = 0; *count < held; ++*count, e->done++) {
        fine = wf_lines_next(&e->in, error);
        if (fine == WF_OK)
            fine = wf_lines_check(&e->in, error);
        if (fine != WF_OK)
            break;
        line[*count] = e->in.text;
        length[*count] = e->in.length;
    }
    wf_error earlier = {
        0}; /* an error of embed_lines, which is reported first, because it is in an earlier line than an error of reading */
    status = *count > 0 ? embed_lines(e, line, length, *count, first, &earlier) : WF_OK;
    if (status == WF_OK)
        return fine;
    wf_error_clear(error);
    return wf_error_set(error, status, "%s", earlier.message);
}

static wf_status embed_all(struct embedding *e, wf_error *error)
{
    wf_status status = line_input_open(&e->in, NULL, error);
    for (int64_t count = 1; status == WF_OK && count > 0 && (status = next_block(e, &count, error)) == WF_OK;) {
        display_show_lines(&e->display, line_input_share(&e->in, (double)e->in.done), e->done);
        if (interrupted(NULL))
            status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
    }
    display_clear(&e->display);
    return count_interrupted(status, e->done, error);
}

/* Prints the matrix [n,n] of the cosines of all pairs of lines. */
static wf_status print_cosines(struct embedding *e, wf_error *error)
{
    wf_status status = WF_OK;
    enum format format = (enum format)e->a->format;
    int64_t n = e->lines, rows = format == FORMAT_NPY || n < COSINE_ROWS ? n : COSINE_ROWS;
    wf_real *out = rows == 0 || n < INT64_MAX / 8 / rows ? wf_alloc((size_t)(rows * n) * sizeof *out) : NULL;
    if (!out && n > 0)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the cosines of %lld lines%s", (long long)n,
                            format == FORMAT_NPY ? ": --format text and json need less" : "");
    for (int64_t i = 0; i < n && status == WF_OK; i += COSINE_ROWS) {
        int64_t count = WF_MIN(n - i, COSINE_ROWS);
        wf_real *block = format == FORMAT_NPY ? out + i * n : out;
        display_show(&e->display, (double)i / (double)n, false, "%lld/%lld lines compared", (long long)i, (long long)n);
        if ((status = wf_cosines(e->vector, n, e->width, i, count, block, error)) != WF_OK)
            break;
        if (format != FORMAT_NPY) {
            display_make_way(&e->display);
            status = print_rows(block, count, n, format, error);
        }
        if (status == WF_OK && interrupted(NULL))
            status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted after %lld of %lld rows", (long long)(i + count), (long long)n);
    }
    display_clear(&e->display);
    if (status == WF_OK && format == FORMAT_NPY)
        status = print_rows(out, n, n, format, error);
    wf_free(out);
    return status;
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static wf_status embed(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    struct wf_run run = {0};
    struct embedding e = {.a = a, .in.fd = -1, .keep = a->similarity || a->format == FORMAT_NPY};
    if (a->format == FORMAT_NPY && isatty(STDOUT_FILENO))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "--format npy is binary and is not printed to a terminal: redirect it to a file, > FILE");
    watch_interrupts(WATCH_BRIEF);
    wf_status status = open_run(&a->on, &run, error);
    struct wf_embedder_options o = run.embed;
    o.truncate = a->truncate;
    if (a->pooling_given)
        o.pooling = (enum wf_pooling)a->pooling;
    o.normalize = (o.normalize && !a->as_they_are) || a->normalize || a->similarity; /* wf_cosines expects normalised vectors */
    o.name = "standard input";
    o.unknown = &e.unknown;
    o.tokens = &e.tokens;
    if (status == WF_OK && !(e.embedder = wf_embedder_new(run.model, run.tokenizer, &o, error))) {
        status = error->code;
        wf_error_prefix(error, "%s", a->on.run);
    }
    if (status == WF_OK) {
        e.width = wf_embedder_width(e.embedder);
        display_open_beside_output(&e.display);
        status = embed_all(&e, error);
        if (status == WF_OK && a->similarity)
            status = print_cosines(&e, error);
        else if (status == WF_OK && a->format == FORMAT_NPY)
            status = print_rows(e.vector, e.lines, e.width, FORMAT_NPY, error);
        report_truncated(e.truncated, e.done, o.max_length > 0 ? o.max_length : wf_config_shape(&run.config).context);
        if (status == WF_OK)
            warn_of_unknown(o.name, e.unknown, e.tokens);
    }
    wf_embedder_free(e.embedder);
    wf_lines_close(&e.in);
    wf_free(e.vector);
    wf_run_close(&run);
    return status;
}

int run_embed(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"format", "text|json|npy",
         "numbers separated by spaces (default), a JSON array per line, or one NumPy file, which is held in memory as a whole",
         .choice = &a.format},
        {"similarity", NULL, "print the cosine similarity of each pair of lines instead, one row per line", .flag = &a.similarity},
        {"pooling", "mean|cls", "use the mean of the token vectors, or the first one (default: as the model's folder specifies, else mean)",
         .choice = &a.pooling, .given = &a.pooling_given},
        {"normalize", NULL, "scale each vector to length 1 (default: as the model's folder specifies, else no)", .flag = &a.normalize},
        {"no-normalize", NULL, "do not scale the vectors", .flag = &a.as_they_are},
        {"truncate", NULL, "truncate lines longer than the model's maximum (default: an error)", .flag = &a.truncate},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){"RUN",
                               "Prints a sentence vector for each line of standard input. RUN is a run of encoder-attention or a "
                               "Hugging Face folder with a BERT model. An empty line has a vector too.",
                               options, &a.on.run,
                               .too_few = "RUN is missing: $0 embed RUN < lines; RUN is the --out of $0 train, or a Hugging Face folder",
                               .too_many = "the lines are read from standard input, < FILE"},
        embed, &a, argc, argv);
}
