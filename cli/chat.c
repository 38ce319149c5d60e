/* SPDX-License-Identifier: MIT */
/* weft chat FOLDER: a conversation with a language model, in the terminal or line by line from a pipe. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/chat.h>
#include <weft/internal/minmax.h>
#include <weft/internal/string.h>

#include "cli.h"
#include "line_edit.h"
#include "line_input.h"
#include "sampling.h"

struct arguments {
    struct run_options on;
    const char *system, *template;
    int64_t max_tokens; /* -1: the run's setting */
    int64_t seed;
    struct sampling_options sampling;
    bool no_cache;
};

/* The state of the command. */
struct talk {
    const struct arguments *a;
    struct wf_run run;
    wf_chat_template *form;
    wf_chat *chat;
    int64_t max_tokens;
    bool terminal; /* the user types */
    bool quit;     /* /quit was given */
    bool broken;   /* standard output cannot be written */
};

/* --- answers ------------------------------------------------------------------------------------------------------- */

/* Whether Ctrl-C or a signal ends the answer. */
static bool stops(const struct talk *t)
{
    return interrupted(NULL) || (t->terminal && halt_asked());
}

/* Writes to standard output. Not through stdio, which counts Ctrl-C during a write as an error and loses the text. */
static void put(struct talk *t, const char *text, int64_t length)
{
    while (length > 0 && !t->broken) {
        const ssize_t written = write(STDOUT_FILENO, text, (size_t)length);
        t->broken = written < 0 && errno != EINTR;
        text += written > 0 ? written : 0;
        length -= written > 0 ? written : 0;
    }
}

static bool print(void *talk, const char *text, int64_t length)
{
    struct talk *t = talk;
    put(t, text, length);
    return !stops(t) && !t->broken;
}

static void tell(const struct talk *t, const struct wf_chat_result *r)
{
    const long long context = wf_config_shape(&t->run.config).context;
    if (r->full)
        fprintf(stderr, "%s: the answer ends here: the context of %lld tokens is full\n", program(), context);
    else if (r->end == WF_GENERATE_MAX_TOKENS)
        fprintf(stderr, "%s: the answer was cut after %lld token%s (--max-tokens)\n", program(), (long long)r->tokens, plural(r->tokens));
}

/* Answers a message, and prints the answer and a line end. */
static wf_status answer(struct talk *t, const char *text, int64_t length, wf_error *error)
{
    struct wf_chat_result result;
    (void)halt_take(); /* Ctrl-C before the answer is not meant for it */
    wf_status status = wf_chat_answer(t->chat, text, length, print, t, &result, error);
    if (status == WF_OK)
        put(t, "\n", 1);
    (void)halt_take();
    if (status == WF_OK && result.dropped > 0)
        fprintf(stderr, "%s: the conversation outgrew the context of %lld tokens: dropped the %lld oldest turn%s before this answer\n",
                program(), (long long)wf_config_shape(&t->run.config).context, (long long)result.dropped, plural(result.dropped));
    if (status == WF_OK)
        tell(t, &result);
    if (status == WF_OK && interrupted(NULL))
        status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
    if (status == WF_OK && t->broken)
        status = wf_error_set(error, WF_ERR_IO, "standard output can't be written");
    return status;
}

/* --- commands of the conversation ---------------------------------------------------------------------------------- */

static const char commands[] = "/reset forgets the conversation, /system TEXT sets the system message and begins anew, /help, /quit";

/* Carries out the line if it is a command of the conversation. *done tells whether it was one. */
static wf_status command(struct talk *t, const char *line, bool *done, wf_error *error)
{
    const bool sets = strncmp(line, "/system", 7) == 0 && (line[7] == ' ' || !line[7]);
    *done = true;
    if (strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0 || strcmp(line, "/bye") == 0)
        t->quit = true;
    else if (strcmp(line, "/help") == 0)
        fprintf(stderr, "%s: %s\n", program(), commands);
    else if (strcmp(line, "/reset") == 0)
        wf_chat_reset(t->chat);
    else if (sets && !line[7])
        fprintf(stderr, "%s: /system TEXT: the text is missing\n", program());
    else if (!sets)
        *done = false;
    else if (wf_chat_set_system(t->chat, line + 8, error) == WF_OK)
        wf_chat_reset(t->chat);
    else
        return error->code;
    return WF_OK;
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r")] == 0;
}

/* Takes a line of the user: a command, a message, or nothing. */
static wf_status take(struct talk *t, const char *line, int64_t length, wf_error *error)
{
    bool done = false;
    wf_status status = command(t, line, &done, error);
    if (status == WF_OK && !done && line[0] == '/')
        fprintf(stderr, "%s: %.*s is not a command; it is sent as a message (commands: %s)\n", program(),
                (int)WF_MIN(strcspn(line, " \t"), 32), line, commands);
    return status != WF_OK || done || is_blank(line) ? status : answer(t, line, length, error);
}

/* --- the two ways to talk ------------------------------------------------------------------------------------------ */

/* A user at a terminal reads what is wrong and goes on. */
static wf_status in_terminal(struct talk *t, wf_error *error)
{
    struct wf_string line = {0};
    struct line_edit *l = line_edit_open("> ", error);
    wf_status status = l ? WF_OK : error->code;
    fprintf(stderr, "%s: Ctrl-C ends an answer, Ctrl-D the conversation; %s\n", program(), commands);
    watch_interrupts(WATCH_ANSWER);
    while (status == WF_OK && !t->quit) {
        wf_error failure = {0};
        const enum line_edit_end end = line_edit_read(l, &line);
        if (end == LINE_EDIT_ENDED)
            break;
        if (end == LINE_EDIT_HALTED || line.length == 0)
            continue;
        status = line.failed ? wf_error_set(&failure, WF_ERR_MEMORY, "no memory for a line") : take(t, line.data, line.length, &failure);
        if (status == WF_ERR_ARGUMENT || status == WF_ERR_FORMAT) {
            fprintf(stderr, "%s: %s\n", program(), failure.message);
            status = WF_OK;
        } else if (status != WF_OK) {
            (void)!wf_error_set(error, status, "%s", failure.message);
        }
    }
    line_edit_close(l);
    wf_string_free(&line);
    if (status == WF_OK && interrupted(NULL))
        status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
    return status;
}

/* From a pipe or a file each line is a message; the first that fails ends the command. */
static wf_status from_pipe(struct talk *t, wf_error *error)
{
    struct wf_lines in;
    struct wf_string line = {0};
    watch_interrupts(WATCH_BRIEF);
    wf_status status = line_input_open(&in, NULL, error);
    while (status == WF_OK && !t->quit && (status = wf_lines_next(&in, error)) == WF_OK && in.text) {
        wf_error failure = {0};
        if ((status = wf_lines_check(&in, error)) != WF_OK)
            break;
        wf_string_cut(&line, 0);
        wf_string_add(&line, in.text, in.length);
        status = line.failed ? wf_error_set(&failure, WF_ERR_MEMORY, "no memory for a line") : take(t, line.data, line.length, &failure);
        if (status != WF_OK && status != WF_ERR_CANCELLED &&
            status != WF_ERR_IO) /* a message that does not fit is the fault of the input, not of the usage */
            wf_error_set(error, status == WF_ERR_ARGUMENT ? WF_ERR_FORMAT : status, "standard input:%lld: %s", (long long)in.line,
                         failure.message);
        else if (status != WF_OK)
            wf_error_set(error, status, "%s", failure.message);
    }
    wf_lines_close(&in);
    wf_string_free(&line);
    return status;
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static wf_status make_chat(struct talk *t, wf_error *error)
{
    const struct arguments *a = t->a;
    struct wf_sampler sampler = sampling_of(&a->sampling, &t->run);
    sampler.seed = (uint64_t)a->seed;
    const struct wf_chat_options o = {
        .system = a->system,
        .generate = {.sampler = sampler,
                     .max_tokens = a->max_tokens >= 0 ? a->max_tokens : t->run.config.generation.max_tokens,
                     .no_cache = a->no_cache},
    };
    t->form = wf_chat_template_load(a->on.run, a->template, error);
    if (!t->form)
        return error->code;
    t->chat = wf_chat_new(&t->run, t->form, &o, error);
    if (!t->chat)
        return error->code;
    const char *system = a->system ? a->system : wf_chat_template_system(t->form);
    char quoted[WF_QUOTE_SIZE];
    fprintf(stderr, "%s: chat template %s%s%s%s\n", program(), wf_chat_template_name(t->form), system ? "; system message " : "",
            system ? wf_text_quote(system, quoted) : "", a->system || !system ? "" : " (the template's own; --system replaces it)");
    return WF_OK;
}

static wf_status check(const struct run_options *on, const struct wf_run *run, wf_error *error)
{
    const enum wf_model_kind kind = wf_model_kind_of(run->model);
    if (kind == WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a translation model: use %s translate %s < FILE", on->run, program(), on->run);
    if (kind != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is not a language model and cannot answer", on->run);
    return WF_OK;
}

static wf_status chat(void *arguments, wf_error *error)
{
    struct talk t = {.a = arguments, .terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO)};
    wf_status status = open_run(&t.a->on, &t.run, error);
    if (status == WF_OK)
        status = check(&t.a->on, &t.run, error);
    if (status == WF_OK)
        status = sampling_check(t.a->on.run, &t.run, error);
    if (status == WF_OK)
        status = make_chat(&t, error);
    if (status == WF_OK)
        status = t.terminal ? in_terminal(&t, error) : from_pipe(&t, error);
    wf_chat_free(t.chat);
    wf_chat_template_free(t.form);
    wf_run_close(&t.run);
    return status;
}

int run_chat(int argc, char **argv)
{
    struct arguments a = {.max_tokens = -1, .seed = 1, .sampling = SAMPLING_DEFAULTS};
    const struct option_row options[] = {
        {"system", "TEXT", "system message (default: that of the model's chat template, if it has one)", .text = &a.system},
        {"template", "NAME",
         "chat template, instead of the one in FOLDER: chatml, llama2, llama3, llama3.1, mistral-v0, mistral-v0.1, mistral-v1, mistral-v3, "
         "mistral-tekken, gemma, gemma3, zephyr, phi3, phi3-small, phi4 or phi4-mini",
         .text = &a.template},
        {"max-tokens", "N", "maximum number of tokens of an answer (default: as of $0 generate)", .number = &a.max_tokens, .low = 1,
         .high = 1000000000},
        SAMPLING_ROWS(a.sampling),
        {"no-cache", NULL, "compute each token from the whole context, to compare: the answers are the same", .flag = &a.no_cache},
        {"seed", "N", "random seed (default 1)", .number = &a.seed, .low = 0, .high = INT64_MAX},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){"FOLDER",
                               "A conversation with a language model that was trained on conversations. On a terminal Ctrl-C ends an "
                               "answer, and Ctrl-D the conversation. From a pipe or a file, each line of standard input is a message, and "
                               "only the answers are written to standard output.",
                               options, &a.on.run, .too_few = "FOLDER is missing: $0 chat FOLDER",
                               .too_many = "$0 chat reads messages from standard input; quote the system message, --system 'TEXT'"},
        chat, &a, argc, argv);
}
