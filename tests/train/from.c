/* SPDX-License-Identifier: MIT */
/* Starting from trained weights: what is taken over, what is named, what is refused. */
#include "pairs_test.h"

static char told[4][1100];
static int tells, samples;
static double first_loss, last_valid;

static void see_tale(void *ctx, const struct wf_event *e)
{
    (void)ctx;
    if ((e->kind == WF_EVENT_WARNING || e->kind == WF_EVENT_DATA) && tells < 4)
        snprintf(told[tells++], sizeof told[0], "%s", e->text);
    if (e->kind == WF_EVENT_STEP && samples++ == 0)
        first_loss = e->loss;
    if (e->kind == WF_EVENT_VALID)
        last_valid = e->loss;
}

static bool was_told(const char *part)
{
    for (int i = 0; i < tells; i++)
        if (strstr(told[i], part))
            return true;
    return false;
}

/* Sentences of a small grammar; the two halves are of other numbers. */
static void write_story(const char *name, int from, int count)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = from; i < from + count; i++)
        fprintf(f, "the %s number %d %s the %s\n", i % 3 ? "cat" : "old dog", i * 37 % 101, i % 2 ? "looks at" : "runs over",
                i % 5 ? "mat" : "stone");
    fclose(f);
}

static struct wf_train_options model(const char *out, const char *text, int64_t steps)
{
    static const char *files[1];
    static char kept[192];
    snprintf(kept, sizeof kept, "%s", in_folder(text));
    files[0] = kept;
    tells = samples = 0;
    struct wf_train_options o = {.out = in_folder(out), .train = files, .train_files = 1, .seed = 5, .event = see_tale};
    ck_ok(wf_config_preset(&o.config, "nanogpt-char-small", error));
    ck_ok(wf_config_set_all(
        &o.config, "layers=2 d_model=32 heads=4 d_ff=64 context=16 batch=6 dropout=0.1 warmup=5 valid_every=20 save_every=20", error));
    o.config.training.steps = steps;
    return o;
}

static void open_folder(void)
{
    strcpy(folder, "/tmp/weft-from-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_story("first.txt", 0, 300);
    write_story("second.txt", 300, 300);
    struct wf_train_options o = model("first", "first.txt", 300);
    ck_ok(wf_train(&o, NULL, error));
}

/* From the folder, the best weights and a checkpoint; the tokenizer comes along, the optimiser and the steps do not. */
START_TEST(goes_on_from_weights)
{
    open_folder();
    struct wf_train_options o = model("scratch", "second.txt", 30);
    struct wf_train_result scratch, result;
    ck_ok(wf_train(&o, &scratch, error));
    double first = first_loss;
    const char *from[] = {"first", "first/best.safetensors", "first/checkpoints/step-00000300.safetensors"};
    for (int i = 0; i < 3; i++) {
        char out[32];
        snprintf(out, sizeof out, "further-%d", i);
        o = model(out, "second.txt", 30);
        o.from = in_folder(from[i]);
        ck_ok(wf_train(&o, &result, error));
        printf("first step %.3f, from scratch %.3f; validation loss after 30 steps %.3f, from scratch %.3f\n", first_loss, first,
               result.valid, scratch.valid);
        ck_assert(result.step == 30 && first_loss < 0.7 * first && result.valid < 0.8 * scratch.valid);
        ck_assert_msg(was_told("starting from the weights in ") && tells == 1, "%s / %s", told[0], told[1]);
    }
    ck_assert(same_file(in_folder("first/tokenizer.json"), in_folder("further-0/tokenizer.json")));
    ck_assert(same_file(in_folder("further-0/model.safetensors"), in_folder("further-2/model.safetensors"))); /* the same weights */
    /* a resume of it */
    o = model("further-0", "second.txt", 40);
    o.from = in_folder("gone"); /* counts no more */
    o.resume = true;
    ck_ok(wf_train(&o, &result, error));
    ck_assert(result.step == 40 && !was_told("starting from"));
    finish();
}
END_TEST

/* A path that is not UTF-8, and long ones with characters of several bytes: what is told of them ends no training. */
START_TEST(from_any_path)
{
    open_folder();
    char path[1600], target[192];
    snprintf(target, sizeof target, "%s", in_folder("first"));
    for (int i = 0; i < 3; i++) {
        int used = snprintf(path, sizeof path, "%s%s", in_folder(i == 0 ? "caf\xe9" : "deep"),
                            i == 2 ? "-" : ""); /* an odd offset, and an even one */
        for (int k = 0; i > 0 && k < 5; k++) {
            ck_ok(wf_folder_make(path, error));
            path[used++] = '/';
            for (int c = 0; c < 120; c++)
                used += snprintf(path + used, sizeof path - (size_t)used, "é");
        }
        ck_assert_int_eq(symlink(target, path), 0);
        char out[32];
        snprintf(out, sizeof out, "from-%d", i);
        struct wf_train_options o = model(out, "second.txt", 2);
        o.from = path;
        ck_ok(wf_train(&o, NULL, error));
        ck_assert(was_told(i == 0 ? "/caf\\xe9/model.safetensors" : "starting from the weights in "));
    }
    finish();
}
END_TEST

/* Weights alone, in a folder of their own: the tokenizer is given; that of another text is refused. */
START_TEST(a_file_alone)
{
    open_folder();
    ck_ok(wf_folder_make(in_folder("alone"), error));
    ck_assert_int_eq(rename(in_folder("first/model.safetensors"), in_folder("alone/weights.safetensors")), 0);
    struct wf_train_options o = model("a", "second.txt", 3);
    o.from = in_folder("alone/weights.safetensors");
    o.tokenizer = in_folder("first/tokenizer.json");
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(was_told("starting from the weights in "));
    FILE *f = fopen(in_folder("second.txt"), "a");
    fputs("and other signs: %&!\n", f);
    fclose(f);
    o = model("b", "second.txt", 3); /* the one that is made has more characters */
    o.from = in_folder("alone/weights.safetensors");
    refused(&o, WF_ERR_ARGUMENT, "was trained with another tokenizer: give that one with --tokenizer");
    o = model("c", "second.txt", 3);
    o.from = in_folder("first");
    refused(&o, WF_ERR_IO, "model.safetensors is missing");
    o.from = in_folder("alone");
    refused(&o, WF_ERR_IO, "has no config.json");
    o.from = in_folder("nowhere");
    refused(&o, WF_ERR_IO, "nowhere is missing: --from takes the folder of a run or a safetensors file");
    finish();
}
END_TEST

/* One block more is new; other shapes are refused, and settings without a shape are told. */
START_TEST(other_architectures)
{
    open_folder();
    struct wf_train_options o = model("more", "second.txt", 3);
    o.from = in_folder("first");
    ck_ok(wf_config_set(&o.config, "layers", "3", error));
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_msg(was_told("layers 3 instead of 2") && was_told("parameters are not in the file and initialised: blocks.2."),
                  "%s / %s / %s", told[0], told[1], told[2]);
    char *lines = wf_file_load(in_folder("more/metrics.jsonl"), 1 << 20, NULL, NULL);
    ck_assert(lines && strstr(lines, "parameters are not in the file and initialised: "));
    wf_free(lines);
    o = model("heads", "second.txt", 3);
    o.from = in_folder("first");
    ck_ok(wf_config_set(&o.config, "heads", "2", error));
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(was_told("they were trained with other settings: heads 2 instead of 4") && tells == 2);
    o = model("fewer", "second.txt", 3);
    o.from = in_folder("first");
    ck_ok(wf_config_set(&o.config, "layers", "1", error));
    refused(&o, WF_ERR_FORMAT, "unexpected: blocks.1.");
    o = model("wider", "second.txt", 3);
    o.from = in_folder("first");
    ck_ok(wf_config_set(&o.config, "d_ff", "96", error));
    refused(&o, WF_ERR_FORMAT, "with another shape: blocks.0.");
    ck_assert(!wf_file_exists(in_folder("wider/state.safetensors")));
    ck_ok(wf_config_preset(&o.config, "char-rms", error));
    refused(&o, WF_ERR_ARGUMENT, "holds a model of the family gpt, and char-rms is of the family rms");
    finish();
}
END_TEST

/* A configuration takes the architecture and keeps its training. */
START_TEST(an_architecture_is_taken)
{
    open_folder();
    struct wf_config c;
    char text[64];
    ck_ok(wf_config_preset(&c, "nanogpt-char", error));
    double lr = c.training.lr;
    ck_ok(wf_train_from(in_folder("first/checkpoints/step-00000300.safetensors"), &c, error));
    ck_assert(wf_config_get(&c, "d_ff", text, sizeof text) && strcmp(text, "64") == 0);
    ck_assert(c.training.lr == lr && c.training.batch != 6 && strcmp(c.model, "nanogpt-char") == 0);
    c = (struct wf_config){0};
    ck_ok(wf_train_from(in_folder("first"), &c, error)); /* all of it */
    ck_assert(c.training.batch == 6 && strcmp(c.model, "nanogpt-char-small") == 0);
    wf_error e = {0};
    ck_ok(wf_config_preset(&c, "seq2seq-tiny", error));
    ck_assert_int_eq(wf_train_from(in_folder("first"), &c, &e), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(e.message, "holds a model of the family gpt, and seq2seq-tiny is of the family seq2seq"), "%s", e.message);
    ck_ok(wf_folder_make(in_folder("alone"), error));
    ck_assert_int_eq(rename(in_folder("first/model.safetensors"), in_folder("alone/weights.safetensors")), 0);
    c = (struct wf_config){0};
    e = (wf_error){0};
    ck_assert_int_eq(wf_train_from(in_folder("alone/weights.safetensors"), &c, &e), WF_ERR_ARGUMENT);
    ck_assert_msg(strstr(e.message, "no config.json lies with"), "%s", e.message);
    finish();
}
END_TEST

/* Translation models and encoders: both tokenizers come along. */
START_TEST(translation_goes_on)
{
    begin();
    struct seen s = {0}, t = {0};
    struct wf_train_options o = small(in_folder("first"), &s);
    ck_ok(wf_config_set(&o.config, "shared", "false", error));
    ck_ok(wf_train(&o, NULL, error));
    o = small(in_folder("second"), &t);
    ck_ok(wf_config_set(&o.config, "shared", "false", error));
    o.from = in_folder("first");
    ck_ok(wf_train(&o, NULL, error));
    ck_assert(t.first_loss < 0.8 * s.first_loss);
    ck_assert(same_file(in_folder("first/tokenizer.source.json"), in_folder("second/tokenizer.source.json")));
    ck_assert(same_file(in_folder("first/tokenizer.target.json"), in_folder("second/tokenizer.target.json")));
    finish();
}
END_TEST

static struct wf_train_options swept;
static wf_status sweep_call(wf_error *error)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", swept.out);
    if (system(command) != 0)
        return WF_ERR_IO;
    return wf_train(&swept, NULL, error);
}

START_TEST(every_allocation_may_fail)
{
    open_folder();
    static char out[192], from[192]; /* in_folder's do not last */
    strcpy(out, in_folder("swept"));
    strcpy(from, in_folder("first"));
    swept = model("swept", "second.txt", 2);
    swept.out = out;
    swept.from = from;
    swept.event = NULL;
    ck_ok(wf_config_set(&swept.config, "layers", "3", error));
    sweep("from", sweep_call, 100);
    finish();
}
END_TEST

WF_TEST_MAIN("from", goes_on_from_weights, from_any_path, a_file_alone, other_architectures, an_architecture_is_taken, translation_goes_on,
             every_allocation_may_fail)
