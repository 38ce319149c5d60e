/* SPDX-License-Identifier: MIT */
/* weft train MODEL --train FILE[,FILE] --out RUN ...: trains a model, or resumes a training. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/run_folder.h>

#include "cli.h"
#include "several.h"
#include "train_progress.h"

struct arguments {
    const char *model, *train, *valid, *out, *tokenizer, *config, *from;
    struct settings set;
    int64_t steps, seed, threads, max_time;
    bool resume, no_overlap;
    char tokenizers[8192]; /* holds the value for `tokenizer` if --config repeats a run */
};

static bool take_time(const char *option, const char *value, void *seconds)
{
    int64_t *to = seconds;
    if (!wf_text_to_seconds(value, to) || *to < 1)
        return fail_usage("--%s: '%s' is not a time: give seconds, MM:SS, H:MM:SS or D-HH:MM:SS, such as 3:55:00", option, value), false;
    return true;
}

/* Refuses settings about the training of a tokenizer if --tokenizer or --from gives a tokenizer. */
static wf_status check_setting(const struct arguments *a, const char *key, wf_error *error)
{
    static const char *const about[] = {"tokenizer", "vocab_size", "source_vocab_size", "min_frequency"};
    const char *option = a->tokenizer ? "tokenizer" : "from", *given = a->tokenizer ? a->tokenizer : a->from;
    for (size_t i = 0; given && i < sizeof about / sizeof *about; i++)
        if (strcmp(about[i], key) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "--set %s says how a tokenizer is made, and --%s %s gives one: leave one of the two out", key, option,
                                given);
    return WF_OK;
}

/* Applies --steps and all --set KEY=VALUE except the one with index `without` (-1: all). `optimizer` is set first, because it decides which
 * keys exist. */
static wf_status apply_settings(const struct arguments *a, int without, struct wf_config *config, wf_error *error)
{
    for (int at = 0; at < 2 * a->set.count; at++) {
        const int i = at % a->set.count;
        char key[SETTING_KEY_SIZE];
        if (i == without)
            continue;
        const char *value = setting_split(a->set.item[i], key, error);
        if (!value)
            return WF_ERR_ARGUMENT;
        if (strcmp(key, "new_tokens") == 0) /* a file, which is read once and no setting of the model */
            continue;
        if ((strcmp(key, "optimizer") == 0) != (at < a->set.count))
            continue;
        wf_status status = check_setting(a, key, error);
        if (status == WF_OK && (status = wf_config_set(config, key, value, error)) != WF_OK)
            wf_error_prefix(error, "--set %s", a->set.item[i]);
        if (status != WF_OK)
            return status;
    }
    if (a->steps > 0) {
        config->training.steps = a->steps;
        config->training.epochs = 0;
    }
    return WF_OK;
}

/* Refuses a vocabulary size for a new tokenizer of characters, which has one entry for each character of the text. */
static wf_status check_vocabulary(const struct arguments *a, const struct wf_config *config, wf_error *error)
{
    for (int i = 0; i < a->set.count && !a->resume && config->tokenizer.kind == WF_TOKENIZER_CHAR; i++)
        if (strstr(a->set.item[i], "vocab_size=") && strcmp(strchr(a->set.item[i], '='), "=0") != 0)
            return wf_error_set(
                error, WF_ERR_ARGUMENT,
                "--set %s: a tokenizer of characters has as many entries as the text has characters; leave it out, or choose "
                "--set tokenizer=bpe, byte-bpe or word",
                a->set.item[i]);
    return WF_OK;
}

static const char *find_set(const struct arguments *a, const char *key)
{
    const char *value = NULL;
    for (int i = 0; i < a->set.count; i++) {
        char name[SETTING_KEY_SIZE];
        const char *at = setting_split(a->set.item[i], name, NULL);
        value = at && strcmp(name, key) == 0 ? at : value;
    }
    return value;
}

static wf_status check_length(const struct arguments *a, const struct wf_config *config, wf_error *error)
{
    const char *epochs = find_set(a, "epochs");
    if (!epochs || strcmp(epochs, "0") == 0 || (a->steps <= 0 && !find_set(a, "steps")))
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "--set epochs=%s and %s both say how long %s is trained: leave one of them out", epochs,
                        a->steps > 0 ? "--steps" : "--set steps", config->model);
}

/* Applies the settings to a configuration. If keys then contradict each other, the message names the setting that causes this. */
static wf_status configure_further(const struct arguments *a, struct wf_config *config, wf_error *error)
{
    const struct wf_config before = *config;
    wf_status status = apply_settings(a, -1, config, error);
    if (status != WF_OK || (status = wf_config_check(config, error)) == WF_OK)
        return status != WF_OK || (status = check_length(a, config, error)) != WF_OK ? status : check_vocabulary(a, config, error);
    for (int i = 0; i < a->set.count; i++) {
        struct wf_config less = before;
        if (apply_settings(a, i, &less, NULL) == WF_OK && wf_config_check(&less, NULL) == WF_OK) {
            wf_error_prefix(error, "--set %s", a->set.item[i]);
            break;
        }
    }
    return status;
}

/* Makes the configuration for a resume: the settings of the run, then those of --config. */
static wf_status configure_resume(const struct arguments *a, struct wf_config *config, uint64_t *seed, wf_error *error)
{
    wf_status status = wf_train_config(a->out, config, seed, error);
    if (status == WF_OK && a->model && strcmp(config->model, a->model) != 0)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "%s is a run of %s, not of %s: resume it with that model, or choose another --out",
                              a->out, config->model, a->model);
    return status == WF_OK && a->config ? wf_config_load_over(config, a->config, error) : status;
}

/* Whether a folder holds the state of a run. */
static bool run_in(const char *folder)
{
    return wf_run_has(folder, "state.safetensors");
}

/* Makes the configuration of a new run: the preset of the model, then the architecture of the weights of --from, then --config. */
static wf_status configure_new(const struct arguments *a, struct wf_config *config, wf_error *error)
{
    wf_status status = a->model ? wf_config_preset(config, a->model, error) : a->config ? wf_config_load(config, a->config, error) : WF_OK;
    if (status == WF_OK && a->from)
        status = wf_train_from(a->from, config, error);
    return status == WF_OK && a->config && (a->model || a->from) ? wf_config_load_over(config, a->config, error) : status;
}

/* Makes the configuration and the seed. --set overrides --config, which overrides the resumed run or the preset; --seed overrides all other
 * seeds. *texts receives the texts that --config names. */
static wf_status configure(const struct arguments *a, struct wf_config *config, uint64_t *seed, struct wf_train_texts *texts,
                           wf_error *error)
{
    const bool resumes = a->resume && run_in(a->out);
    *seed = 1;
    wf_status status = resumes ? configure_resume(a, config, seed, error) : configure_new(a, config, error);
    if (status == WF_OK && a->config && (status = wf_train_texts_load(a->config, texts, error)) == WF_OK && texts->has_seed)
        *seed = texts->seed;
    if (a->seed >= 0)
        *seed = (uint64_t)a->seed;
    return status == WF_OK ? configure_further(a, config, error) : status;
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static wf_status list_of(const struct wf_train_text *text, int64_t count, struct list *list, wf_error *error)
{
    list->item = wf_alloc_zero((size_t)count + 1, sizeof *list->item);
    for (; list->item && list->count < count; list->count++)
        list->item[list->count] = text[list->count].path;
    return list->item ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of texts");
}

/* Lists the texts of --train and --valid, or those that --config names. If these options name no texts, a resume
 * leaves both lists empty, and wf_train takes the texts of the run. */
static wf_status list_texts(const struct arguments *a, const struct wf_train_texts *texts, struct list *train, struct list *valid,
                            wf_error *error)
{
    const bool recall = !a->train && texts->train_files > 0, also = recall && !a->valid;
    wf_status status = a->train ? list_parse(a->train, true, train, error) : WF_OK;
    if (status == WF_OK && a->valid)
        status = list_parse(a->valid, true, valid, error);
    if (status == WF_OK && recall)
        status = wf_train_texts_check(texts, a->config, true, also, error);
    if (status == WF_OK && recall)
        status = list_of(texts->train, texts->train_files, train, error);
    if (status == WF_OK && also)
        status = list_of(texts->valid, texts->valid_files, valid, error);
    if (status == WF_OK && train->count == 0 && !(a->resume && run_in(a->out)))
        status = wf_error_set(error, WF_ERR_ARGUMENT, "%s train needs --train FILE[,FILE]: the text to train on", program());
    return status;
}

/* If --config repeats a run, takes the weights and tokenizers with which that run began. Does nothing with --from, --tokenizer or
 * --resume. */
static wf_status take_files(struct arguments *a, const struct wf_train_texts *texts, wf_error *error)
{
    const char *const path[] = {texts->from, texts->tokenizer, texts->source_tokenizer};
    static const char *const option[] = {"--from", "--tokenizer", "--tokenizer"};
    if (a->from || a->tokenizer || a->resume)
        return WF_OK;
    for (int i = 0; i < 3; i++)
        if (path[i] && !wf_file_exists(path[i]) && !wf_folder_exists(path[i]))
            return wf_error_set(error, WF_ERR_IO, "%s, which the run of %s began with, is gone: give its new place with %s", path[i],
                                a->config, option[i]);
    a->from = texts->from;
    if (texts->source_tokenizer)
        snprintf(a->tokenizers, sizeof a->tokenizers, "%s,%s", texts->source_tokenizer, texts->tokenizer);
    else if (texts->tokenizer)
        snprintf(a->tokenizers, sizeof a->tokenizers, "%s", texts->tokenizer);
    a->tokenizer = a->tokenizers[0] ? a->tokenizers : NULL;
    return WF_OK;
}

/* Checks the model and --out. With --resume the run's folder may be given in place of the model. */
static wf_status check_arguments(struct arguments *a, wf_error *error)
{
    struct wf_config preset;
    const bool known = a->model && wf_config_preset(&preset, a->model, NULL) == WF_OK;
    if (a->model && !a->out && !a->resume && !known && run_in(a->model))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is the folder of a run: %s train %s --resume continues it", a->model, program(),
                            a->model);
    if (a->resume && a->model && a->out && !known && run_in(a->model)) {
        if (strcmp(a->model, a->out) != 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "with --resume the run stands in the place of MODEL: leave --out %s out", a->out);
        a->model = NULL;
    }
    if (a->resume && a->model && !a->out && (run_in(a->model) || !known)) {
        a->out = a->model;
        a->model = NULL;
        if (!run_in(a->out))
            return wf_error_set(error, WF_ERR_ARGUMENT, "there is no run to resume in %s: it holds no state.safetensors", a->out);
    }
    if (!a->out)
        return a->resume
                   ? wf_error_set(error, WF_ERR_ARGUMENT, "%s train needs the run's folder: %s train RUN --resume", program(), program())
                   : wf_error_set(error, WF_ERR_ARGUMENT, "%s train needs --out RUN: the folder for the trained model and its logs",
                                  program());
    if (!a->model && !a->config && !a->from && !(a->resume && run_in(a->out)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "MODEL is missing: %s train MODEL --train FILE --out RUN; %s models lists them",
                            program(), program());
    return WF_OK;
}

static wf_status train(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
    struct list train = {0}, valid = {0}, tokenizer = {0};
    struct wf_train_texts texts = {0};
    char *cache;
    wf_status status = wf_cache_folder(&cache, error);
    struct training_progress progress = {.loss = NAN};
    wf_dist *dist = status == WF_OK ? open_world("train", error) : NULL;
    if (error->code) {
        wf_free(cache);
        return error->code;
    }
    status = check_arguments(a, error);
    struct wf_train_options o = {.out = a->out,
                                 .from = a->from,
                                 .cache = cache,
                                 .resume = a->resume,
                                 .max_time = (double)a->max_time,
                                 .no_overlap = a->no_overlap,
                                 .event = show_training,
                                 .ctx = &progress,
                                 .cancelled = interrupted};
    if (status == WF_OK)
        status = configure(a, &o.config, &o.seed, &texts, error);
    if (status == WF_OK)
        status = list_texts(a, &texts, &train, &valid, error);
    if (status == WF_OK)
        status = take_files(a, &texts, error);
    o.from = a->from;
    o.new_tokens = find_set(a, "new_tokens") ? find_set(a, "new_tokens") : a->from && a->from == texts.from ? texts.new_tokens : NULL;
    o.repeats = a->config ? &texts : NULL;
    if (status == WF_OK && a->tokenizer)
        status = list_parse(a->tokenizer, true, &tokenizer, error);
    if (status == WF_OK && tokenizer.count > 2)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "--tokenizer %s: one file, or one for the source and one for the target, not %lld",
                              a->tokenizer, (long long)tokenizer.count);
    if (status == WF_OK)
        status = start(a->threads, error);
    progress.precision = o.config.training.precision;
    status = wf_dist_agree(dist, status, error);
    if (status == WF_OK) {
        o.source_tokenizer = tokenizer.count == 2 ? tokenizer.item[0] : NULL;
        o.tokenizer = tokenizer.count > 0 ? tokenizer.item[tokenizer.count - 1] : NULL;
        o.train = (const char *const *)train.item;
        o.train_files = train.count;
        o.valid = (const char *const *)valid.item;
        o.valid_files = valid.count;
        watch_interrupts(WATCH_SAVE);
        signal(SIGPIPE, SIG_IGN); /* Ctrl-C in `2>&1 | tee log` also ends tee; the training must still save */
        display_open(&progress.display);
        struct wf_train_result result;
        status = wf_train(&o, &result, error);
        display_clear(&progress.display);
    }
    list_free(&train);
    list_free(&valid);
    list_free(&tokenizer);
    wf_train_texts_free(&texts);
    wf_free(cache);
    if ((status == WF_ERR_CANCELLED || status == WF_ERR_TIME) && progress.begun)
        error->message[0] = 0; /* the message was already printed when the state was saved */
    return status;
}

int run_train(int argc, char **argv)
{
    struct arguments a = {.seed = -1};
    const struct option_row options[] = {
        {"train", "FILE[,FILE]", "training text, UTF-8; for translation: source and target, aligned by line", .text = &a.train},
        {"valid", "FILE[,FILE]", "validation text (default: the last tenth of the training text; for translation: none)", .text = &a.valid},
        {"out", "RUN", "folder for the trained model and its logs", .text = &a.out},
        {"tokenizer", "FILE[,FILE]",
         "tokenizer.json to use, or one for the source and one for the target (default: trained on the text and saved in RUN)",
         .text = &a.tokenizer},
        {"from", "RUN|FOLDER|FILE",
         "start from the weights of a run or of a Hugging Face folder, with its architecture and tokenizer and a fresh "
         "optimiser, or of a safetensors file; MODEL can then be omitted; --set new_tokens=FILE adds tokens, one a line (\\n: a line "
         "feed), to the vocabulary",
         .text = &a.from},
        {"config", "FILE",
         "settings in JSON: your own with some of the keys, or a run's config.json, which repeats its seed and its texts too; MODEL can "
         "then be omitted",
         .text = &a.config},
        {"set", "KEY=VALUE", "change a setting of the model, such as lr=5e-4; can be repeated; all settings are listed below",
         .take = take_setting, .to = &a.set, .repeatable = true},
        {"steps", "N", "total number of updates (default: the model's)", .number = &a.steps, .low = 1, .high = 1000000000},
        {"max-time", "TIME",
         "save and end before this time has passed, as a job of a queue must: seconds, MM:SS, H:MM:SS or D-HH:MM:SS; the exit code is then "
         "124, and --resume continues",
         .take = take_time, .to = &a.max_time},
        {"resume", NULL,
         "continue the training in RUN, which may stand in MODEL's place; texts, seed and settings are those of the run unless --train, "
         "--config or --set give others",
         .flag = &a.resume},
        {"seed", "N", "random seed of weights, batches, masks and dropout (default 1; with --resume or --config that of the run)",
         .number = &a.seed, .low = 0, .high = INT64_MAX},
        {"no-overlap", NULL, "under mpirun: exchange gradients and weights only when nothing is computed, to compare",
         .flag = &a.no_overlap},
        THREADS_ROW(&a.threads),
        {0},
    };
    return run_command(&(struct command_line){"MODEL --train FILE --out RUN | RUN --resume",
                                              "Trains a model of the zoo ($0 models lists them).", options, &a.model,
                                              .too_many = "$0 train takes one model", .several = true, .more_help = print_settings},
                       train, &a, argc, argv);
}
