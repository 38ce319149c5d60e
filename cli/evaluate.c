/* SPDX-License-Identifier: MIT */
/* weft evaluate RUN --data FILE[,FILE] [--json] */
#include <math.h>
#include <stdio.h>

#include "cli.h"

enum { KEY_DATA = 1000, KEY_JSON, KEY_WEIGHTS, KEY_THREADS };

static const struct argp_option options[] = {
    {"data", KEY_DATA, "FILE[,FILE]", 0, "text to evaluate on, UTF-8", 0},
    {"json", KEY_JSON, NULL, 0, "print one JSON object", 0},
    {"weights", KEY_WEIGHTS, "best|FILE", 0, "other weights than the run's latest", 0},
    {"threads", KEY_THREADS, "N", 0, "threads", 0},
    {0},
};

struct arguments {
    const char *run, *data, *weights;
    int64_t threads;
    bool json;
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    bool fine = true;
    switch (key) {
    case KEY_DATA: a->data = value; break;
    case KEY_JSON: a->json = true; break;
    case KEY_WEIGHTS: a->weights = value; break;
    case KEY_THREADS: fine = parse_int("threads", value, 1, 256, &a->threads); break;
    case ARGP_KEY_ARG:
        if (a->run)
            return fail_usage("'%s' is one argument too many: the text is given by --data FILE", value), EINVAL;
        a->run = value;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return fine ? 0 : EINVAL;
}

static const struct argp argp = {options, parse_option, "RUN --data FILE",
                                 "Loss in nats a token, perplexity and bits a character of a run's model on a text.", NULL, NULL, NULL};

struct figures {
    double loss, perplexity, bits;
    int64_t tokens;
};

static wf_status evaluate(const struct arguments *a, struct figures *f, wf_error *error)
{
    struct wf_run run = {0};
    struct file_list files = {0};
    struct wf_text text = {0};
    struct wf_tokens ids = {0};
    wf_tape *tape = NULL;
    wf_status status = file_list_parse(a->data, &files, error);
    if (status == WF_OK)
        status = wf_run_open(&run, a->run, a->weights, error);
    if (status == WF_OK)
        status = wf_text_read((const char *const *)files.path, files.count, &text, error);
    if (status == WF_OK)
        status = wf_text_encode(&text, 0, text.length, run.tokenizer, &ids, error);
    if (status == WF_OK && ids.count < 2)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: a text of one token has nothing to predict", a->data);
    if (status == WF_OK && !(tape = wf_tape_new(error)))
        status = error->code;
    if (status == WF_OK)
        status = wf_model_evaluate(run.model, tape, ids.id, ids.count, &f->loss, &f->tokens, error);
    if (status == WF_OK) {
        f->perplexity = exp(f->loss);
        /* The first token is given, so the characters that were predicted are fewer by its own. */
        f->bits = f->loss * (double)f->tokens / ((double)text.characters * (double)f->tokens / (double)ids.count) / M_LN2;
    }
    wf_tape_free(tape);
    wf_tokens_free(&ids);
    wf_text_free(&text);
    wf_run_close(&run);
    file_list_free(&files);
    return status;
}

int run_evaluate(int argc, char **argv)
{
    struct arguments a = {0};
    int code = parse(&argp, argc, argv, &a);
    if (code >= 0)
        return code;
    if (!a.run)
        return fail_usage("which run? weft evaluate RUN --data FILE; RUN is the --out of weft train");
    if (!a.data)
        return fail_usage("weft evaluate needs --data FILE: the text to evaluate on");
    wf_error error = {0};
    struct figures f;
    if (start(a.threads, &error) != WF_OK || evaluate(&a, &f, &error) != WF_OK)
        return fail(&error);
    if (!isfinite(f.loss) || !isfinite(f.perplexity)) {
        wf_error_set(&error, WF_ERR_NUMERIC, "%s: the loss is %g: the weights are not those of a model that was trained well", a.run, f.loss);
        return fail(&error);
    }
    if (a.json)
        printf("{\"loss\": %.17g, \"perplexity\": %.17g, \"bits_per_character\": %.17g, \"tokens\": %lld}\n", f.loss, f.perplexity, f.bits,
               (long long)f.tokens);
    else
        printf("loss %.4f\nperplexity %.4f\nbits per character %.4f\ntokens %lld\n", f.loss, f.perplexity, f.bits, (long long)f.tokens);
    return EXIT_DONE;
}
