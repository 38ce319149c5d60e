/* SPDX-License-Identifier: MIT */
/* Starting from trained weights: what a training takes from them, reports and refuses. */
#include "scenarios.h"

static struct seen seen; /* of the latest training */

static void assert_told(const char *words)
{
    ck_assert_msg(strstr(seen.text[WF_EVENT_WARNING], words) || strstr(seen.text[WF_EVENT_DATA], words), "%s\n%s",
                  seen.text[WF_EVENT_WARNING], seen.text[WF_EVENT_DATA]);
}

static int tells(void)
{
    return seen.count[WF_EVENT_WARNING] + seen.count[WF_EVENT_DATA];
}

/* Sentences of a small grammar, numbered from `from` on. */
static void write_story(const char *name, int from, int count)
{
    FILE *f = fopen(in_folder(name), "w");
    for (int i = from; i < from + count; i++)
        fprintf(f, "the %s number %d %s the %s\n", i % 3 ? "cat" : "old dog", i * 37 % 101, i % 2 ? "looks at" : "runs over",
                i % 5 ? "mat" : "stone");
    fclose(f);
}

static struct wf_train_options model(const char *out, const char *text, const char *settings)
{
    struct wf_train_options o =
        preset_options("nanogpt-char-small", out, &seen,
                       "layers=2 d_model=32 heads=4 d_ff=64 context=16 batch=6 dropout=0.1 warmup=5 valid_every=20 save_every=20 steps=3");
    seen = (struct seen){0};
    set_keys(&o.config, settings);
    train_on(&o, text, NULL);
    return o;
}

static struct wf_train_options from_first(const char *out, const char *settings)
{
    struct wf_train_options o = model(out, "second.txt", settings);
    o.from = lasting("first");
    return o;
}

/* A run to start from, "first", and another text. */
static void train_first(void)
{
    write_story("first.txt", 0, 300);
    write_story("second.txt", 300, 300);
    struct wf_train_options o = model("first", "first.txt", "steps=300");
    trained(&o);
}

/* From the folder, the best weights and a checkpoint: the tokenizer is taken over, the optimiser and the steps are not. */
START_TEST(continues_from_weights)
{
    train_first();
    struct wf_train_options o = model("scratch", "second.txt", "steps=30");
    const double valid = trained(&o).valid, loss = seen.first_loss;
    static const char *const from[] = {"first", "first/best.safetensors", "first/checkpoints/step-00000300.safetensors"};
    for (int i = 0; i < 3; i++) {
        char out[32];
        snprintf(out, sizeof out, "further-%d", i);
        o = model(out, "second.txt", "steps=30");
        o.from = lasting(from[i]);
        const struct wf_train_result result = trained(&o);
        printf("first step %.3f, from scratch %.3f; validation loss after 30 steps %.3f, from scratch %.3f\n", seen.first_loss, loss,
               result.valid, valid);
        ck_assert(result.step == 30 && seen.first_loss < 0.7 * loss && result.valid < 0.8 * valid);
        assert_told("starting from the weights in ");
        ck_assert_int_eq(tells(), 1);
    }
    ck_assert(same_file("first/tokenizer.json", "further-0/tokenizer.json"));
    ck_assert(same_file("further-0/model.safetensors", "further-2/model.safetensors")); /* the same weights */
    o = model("further-0", "second.txt", "steps=40");
    o.from = lasting("gone"); /* counts no more in a resume */
    o.resume = true;
    ck_assert_int_eq(trained(&o).step, 40);
    ck_assert_int_eq(tells(), 0);
}
END_TEST

/* A path that is not UTF-8, and long ones with characters of several bytes: messages about them end no training. */
START_TEST(from_any_path)
{
    train_first();
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
        struct wf_train_options o = model(out, "second.txt", "steps=2");
        o.from = path;
        trained(&o);
        assert_told(i == 0 ? "/caf\\xe9/model.safetensors" : "starting from the weights in ");
    }
    /* with the tokenizer named, which belongs to the weights */
    struct wf_train_options o = model("named", "second.txt", "steps=2");
    o.from = in_folder("first");
    o.tokenizer = in_folder("first/tokenizer.json");
    trained(&o);
}
END_TEST

/* Weights without a run beside them: the tokenizer is given; one of another text is refused. */
START_TEST(a_file_alone)
{
    train_first();
    ck_ok(wf_folder_make(in_folder("alone"), error));
    ck_assert_int_eq(rename(in_folder("first/model.safetensors"), in_folder("alone/weights.safetensors")), 0);
    struct wf_train_options o = model("a", "second.txt", "");
    o.from = lasting("alone/weights.safetensors");
    o.tokenizer = lasting("first/tokenizer.json");
    trained(&o);
    assert_told("starting from the weights in ");
    FILE *f = fopen(in_folder("second.txt"), "a");
    fputs("and other signs: %&!\n", f);
    fclose(f);
    o = model("b", "second.txt", ""); /* the one that is made has more characters */
    o.from = lasting("alone/weights.safetensors");
    refused(&o, WF_ERR_ARGUMENT, "was trained with another tokenizer: give that one with --tokenizer");
    o = from_first("c", "");
    refused(&o, WF_ERR_IO, "model.safetensors is missing");
    o.from = lasting("alone");
    refused(&o, WF_ERR_IO, "has no config.json");
    o.from = lasting("nowhere");
    refused(&o, WF_ERR_IO, "nowhere is missing: --from takes a run, a Hugging Face folder or a safetensors file");
}
END_TEST

/* One block more is new; other shapes are refused, and settings without a shape are reported. */
START_TEST(other_architectures)
{
    train_first();
    struct wf_train_options o = from_first("more", "layers=3");
    trained(&o);
    assert_told("layers 3 instead of 2");
    assert_told("parameters are not in the file and initialised: blocks.2.");
    ASSERT_HAS(in_folder("more/metrics.jsonl"), "parameters are not in the file and initialised: ");
    o = from_first("heads", "heads=2");
    trained(&o);
    assert_told("they were trained with other settings: heads 2 instead of 4");
    ck_assert_int_eq(tells(), 2);
    o = from_first("fewer", "layers=1");
    refused(&o, WF_ERR_FORMAT, "unexpected: blocks.1.");
    o = from_first("wider", "d_ff=96");
    refused(&o, WF_ERR_FORMAT, "with another shape: blocks.0.");
    ck_assert(!exists("wider/state.safetensors"));
    ck_ok(wf_config_preset(&o.config, "char-rms", error));
    refused(&o, WF_ERR_ARGUMENT, "holds a model of the family gpt, and char-rms is of the family rms");
}
END_TEST

/* A configuration takes the architecture and keeps its training. */
START_TEST(an_architecture_is_taken)
{
    train_first();
    struct wf_config c;
    ck_ok(wf_config_preset(&c, "nanogpt-char", error));
    double lr = c.training.lr;
    ck_ok(wf_train_from(in_folder("first/checkpoints/step-00000300.safetensors"), &c, error));
    ck_assert_int_eq(key_of(&c, "d_ff"), 64);
    ck_assert(c.training.lr == lr && c.training.batch != 6 && strcmp(c.model, "nanogpt-char") == 0);
    set_keys(&c, "precision=bf16"); /* stays: the weights were trained in f32 */
    ck_ok(wf_train_from(in_folder("first"), &c, error));
    ck_assert(key_is(&c, "precision", "bf16"));
    c = (struct wf_config){0};
    ck_ok(wf_train_from(in_folder("first"), &c, error)); /* all of it */
    ck_assert(c.training.batch == 6 && strcmp(c.model, "nanogpt-char-small") == 0);
    ck_ok(wf_config_preset(&c, "seq2seq-tiny", error));
    ck_fails(wf_train_from(in_folder("first"), &c, error), WF_ERR_ARGUMENT,
             "holds a model of the family gpt, and seq2seq-tiny is of the family seq2seq");
    ck_ok(wf_folder_make(in_folder("alone"), error));
    ck_assert_int_eq(rename(in_folder("first/model.safetensors"), in_folder("alone/weights.safetensors")), 0);
    c = (struct wf_config){0};
    ck_fails(wf_train_from(in_folder("alone/weights.safetensors"), &c, error), WF_ERR_ARGUMENT, "no config.json lies with");
}
END_TEST

/* With two tokenizers both are taken. */
START_TEST(translation_continues)
{
    struct seen first = {0}, second = {0};
    struct wf_train_options o = translation("first", &first);
    trained(&o);
    o = translation("second", &second);
    o.from = lasting("first");
    trained(&o);
    ck_assert(second.first_loss < 0.8 * first.first_loss);
    ck_assert(same_file("first/tokenizer.source.json", "second/tokenizer.source.json"));
    ck_assert(same_file("first/tokenizer.target.json", "second/tokenizer.target.json"));
}
END_TEST

static struct wf_train_options language_from_first(const char *out, struct seen *unused)
{
    (void)unused;
    struct wf_train_options o = from_first(out, "");
    o.event = NULL;
    return o;
}

START_TEST(every_allocation_may_fail)
{
    train_first();
    short_of_memory(&(struct trainee){"from", train_zoo, language_from_first, "layers=3"});
}
END_TEST

WF_TEST_MAIN("from", continues_from_weights, from_any_path, a_file_alone, other_architectures, an_architecture_is_taken,
             translation_continues, every_allocation_may_fail)
