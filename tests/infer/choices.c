/* SPDX-License-Identifier: MIT */
/* Log-likelihoods of choices against the logits of one row at a time; the batch changes no bit; what files of questions are refused. */
#include <string.h>

#include <weft/choices.h>

#include "../models/memory_test.h"
#include "../models/tape_values.h"

#ifdef WF_DOUBLE
static const double tolerance = 1e-11;
#else
static const double tolerance = 2e-5;
#endif

enum { T = 24, LETTERS = 7 };
static const char *const names[] = {"nanogpt-char-small", "char-rms"};
static const char alphabet[] = "abcdef "; /* of the tokenizer, whose ids follow the sorted characters: ' ' is 0, 'a' 1 */

#define CHOICES(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)
static const struct wf_question questions[] = {
    {"abc", CHOICES("def", "ab", "a", "fed cba"), 1, 0},
    {"abcabcabc", CHOICES("b", "ccc"), 0, 0},
    {"a b c ", CHOICES(" d", "d", "dd dd", "a", "f"), 3, 0}, /* the blank at the end belongs to the choices */
    {"a", CHOICES("b", "bb"), 1, 0},
    {"abc def abc def abc", CHOICES("a", "abc def abc def"), 0, 0}, /* of the second choice's context the beginning is dropped */
    {"abc def abc def abc def abc def abc def", CHOICES("a", "bc"), 1, 0},
    {"abc", CHOICES("abc def abc def abc def"), 0, 0}, /* a choice of the whole context */
    {"fed", CHOICES("c", "b"), 1, 0},
};
enum { N = sizeof questions / sizeof *questions, CHOICES_OF_ALL = 20 };

struct tested {
    wf_model *model;
    wf_tape *tape;
    wf_tokenizer *tokenizer;
};

static struct tested begin(const char *name)
{
    struct wf_config c = small_config(name, T, LETTERS);
    struct tested t = {.model = model_of(&c, 2), .tape = new_tape()};
    ck_ok(wf_tokenizer_train(alphabet, LETTERS, &t.tokenizer, error));
    return t;
}

static void end(struct tested *t)
{
    wf_tokenizer_free(t->tokenizer);
    wf_tape_free(t->tape);
    wf_model_free(t->model);
}

static int32_t id_of(char c)
{
    return c == ' ' ? 0 : c - 'a' + 1;
}

/* The log-likelihood of a choice, by the rules of the header for a tokenizer of characters. */
static const int32_t begin_ids[2] = {3, 5};
static double reference(struct tested *t, const char *context, const char *choice, int begins)
{
    char text[256];
    int32_t ids[256];
    wf_real logits[T * LETTERS];
    double sum = 0;
    int kept = (int)strlen(context);
    while (kept > 0 && context[kept - 1] == ' ')
        kept--;
    kept += begins;
    const int length = begins + snprintf(text, sizeof text, "%s%s%s", context, *choice == ' ' ? "" : " ", choice);
    const int first = length - 1 > T ? length - 1 - T : 0, inputs = length - 1 - first;
    for (int i = 0; i < length; i++)
        ids[i] = i < begins ? begin_ids[i] : id_of(text[i - begins]);
    wf_tape_reset(t->tape, WF_INFER);
    read_values(wf_model_logits(t->model, wf_ids(t->tape, ids + first, 1, inputs), NULL), logits, inputs * LETTERS);
    for (int i = kept; i < length; i++)
        sum -= loss_of_id(logits + (i - 1 - first) * LETTERS, LETTERS, ids[i]);
    return sum;
}

static struct wf_choice_scores evaluate_after(struct tested *t, int64_t count, int64_t tokens, int begins, double *score)
{
    struct wf_choice_scores s;
    ck_ok(wf_evaluate_choices(t->model, t->tokenizer, t->tape, questions, count,
                              &(struct wf_choice_options){.log_likelihood = score, .tokens = tokens, .begin = begin_ids, .begins = begins},
                              &s, error));
    return s;
}

static struct wf_choice_scores evaluate(struct tested *t, int64_t count, int64_t tokens, double *score)
{
    return evaluate_after(t, count, tokens, 0, score);
}

START_TEST(log_likelihoods)
{
    for (int which = 0; which < 2; which++) {
        struct tested t = begin(names[which]);
        double score[CHOICES_OF_ALL];
        int right = 0, right_norm = 0, k = 0;
        struct wf_choice_scores s = evaluate(&t, N, 0, score);
        for (int i = 0; i < N; i++) {
            const struct wf_question *q = &questions[i];
            int best = 0, best_norm = 0;
            for (int c = 0; c < q->choices; c++) {
                const double want = reference(&t, q->context, q->choice[c], 0);
                ck_assert_msg(fabs(score[k + c] - want) < tolerance * fabs(want), "question %d, choice %d: %.12g instead of %.12g", i, c,
                              score[k + c], want);
                if (score[k + c] > score[k + best])
                    best = c;
                if (score[k + c] / (double)strlen(q->choice[c]) > score[k + best_norm] / (double)strlen(q->choice[best_norm]))
                    best_norm = c;
            }
            ck_assert_int_eq(wf_choice_best(q, score + k, false), best);
            ck_assert_int_eq(wf_choice_best(q, score + k, true), best_norm);
            right += best == q->answer;
            right_norm += best_norm == q->answer;
            k += (int)q->choices;
        }
        ck_assert_int_eq(k, CHOICES_OF_ALL);
        ck_assert_int_eq(s.questions, N);
        ck_assert(fabs(s.acc - right / (double)N) < 1e-15 && fabs(s.acc_norm - right_norm / (double)N) < 1e-15);
        ck_assert(fabs(s.acc_stderr - sqrt(s.acc * (1 - s.acc) / (N - 1))) < 1e-15);
        ck_assert(fabs(s.acc_norm_stderr - sqrt(s.acc_norm * (1 - s.acc_norm) / (N - 1))) < 1e-15);
        s = evaluate(&t, 1, 0, score);
        ck_assert(isnan(s.acc_stderr) && isnan(s.acc_norm_stderr));
        end(&t);
    }
}
END_TEST

/* Ids before each context, which go first where a text is too long. */
START_TEST(ids_before_a_context)
{
    for (int which = 0; which < 2; which++) {
        struct tested t = begin(names[which]);
        double score[CHOICES_OF_ALL], other[CHOICES_OF_ALL];
        for (int begins = 0, k = 0; begins <= 2; begins++, k = 0) {
            evaluate_after(&t, N, 0, begins, score);
            for (int i = 0; i < N; i++)
                for (int c = 0; c < questions[i].choices; c++, k++) {
                    const double want = reference(&t, questions[i].context, questions[i].choice[c], begins);
                    ck_assert_msg(fabs(score[k] - want) < tolerance * fabs(want), "question %d, choice %d: %.12g instead of %.12g", i, c,
                                  score[k], want);
                }
            evaluate_after(&t, N, 30, begins, other);
            ck_assert_mem_eq(score, other, sizeof score);
        }
        /* an empty context is these ids alone */
        const struct wf_question q[] = {{"", CHOICES("ab"), 0, 0}};
        struct wf_choice_scores s;
        const struct wf_choice_options o = {.log_likelihood = score, .begin = begin_ids, .begins = 1};
        ck_ok(wf_evaluate_choices(t.model, t.tokenizer, t.tape, q, 1, &o, &s, error));
        const double want = reference(&t, "", " ab", 1);
        ck_assert(fabs(score[0] - want) < tolerance * fabs(want));
        end(&t);
    }
}
END_TEST

START_TEST(the_batch_changes_no_bit)
{
    static const int64_t tokens[] = {1, 10, 20, 30, 40, 60, 100, 200};
    for (int which = 0; which < 2; which++) {
        struct tested t = begin(names[which]);
        double all[CHOICES_OF_ALL], score[CHOICES_OF_ALL];
        evaluate(&t, N, 0, all);
        for (int i = 0; i < 8; i++) {
            evaluate(&t, N, tokens[i], score);
            ck_assert_msg(memcmp(all, score, sizeof all) == 0, "%lld tokens at once: other bits", (long long)tokens[i]);
        }
        for (int64_t n = 1; n < N; n++) {
            evaluate(&t, n, 0, score);
            ck_assert_msg(memcmp(all, score, sizeof *all * (size_t)questions[0].choices) == 0, "%lld questions: other bits", (long long)n);
        }
        end(&t);
    }
}
END_TEST

static void refused(struct tested *t, struct wf_question q, wf_status status, const char *says)
{
    struct wf_choice_scores s;
    ck_fails(wf_evaluate_choices(t->model, t->tokenizer, t->tape, &q, 1, &(struct wf_choice_options){.name = "FILE"}, &s, error), status,
             says);
    ck_assert(isnan(s.acc) && s.questions == 0);
}

START_TEST(errors)
{
    struct tested t = begin(names[0]);
    struct wf_choice_scores s;
    refused(&t, (struct wf_question){"ab", CHOICES("a", "b"), 2, 7}, WF_ERR_ARGUMENT, "FILE:7: the answer 2 is no index of its 2 choices");
    refused(&t, (struct wf_question){"ab", CHOICES("a"), -1, 0}, WF_ERR_ARGUMENT, "question 1: the answer -1");
    refused(&t, (struct wf_question){"ab", CHOICES("a", ""), 0, 7}, WF_ERR_ARGUMENT, "FILE:7: choice 2 is empty");
    refused(&t, (struct wf_question){"ab", NULL, 1, 0, 7}, WF_ERR_ARGUMENT, "at least one choice");
    refused(&t, (struct wf_question){"ab", CHOICES("a", "abc def abc def abc def a"), 0, 7}, WF_ERR_FORMAT,
            "FILE:7: choice 2 has 26 tokens, more than the model's context of 24");
    refused(&t, (struct wf_question){"", CHOICES("a"), 0, 7}, WF_ERR_FORMAT, "FILE:7: the context has no tokens");
    refused(&t, (struct wf_question){"ab", CHOICES("a", "xa"), 0, 7}, WF_ERR_FORMAT, "FILE:7: choice 2: ");
    ck_fails(wf_evaluate_choices(t.model, t.tokenizer, t.tape, questions, 0, NULL, &s, error), WF_ERR_ARGUMENT, "count: 0");
    ck_fails(wf_evaluate_choices(t.model, t.tokenizer, t.tape, questions, 1, &(struct wf_choice_options){.tokens = -1}, &s, error),
             WF_ERR_ARGUMENT, "tokens: -1");
    ck_fails(wf_evaluate_choices(t.model, t.tokenizer, t.tape, questions, 1, &(struct wf_choice_options){.begins = 1}, &s, error),
             WF_ERR_ARGUMENT, "begin is NULL");
    wf_tokenizer *other;
    ck_ok(wf_tokenizer_train("abcdefghijkl", 12, &other, error));
    ck_fails(wf_evaluate_choices(t.model, other, t.tape, questions, 1, NULL, &s, error), WF_ERR_ARGUMENT, "vocabulary size mismatch");
    wf_tokenizer_free(other);
    end(&t);
}
END_TEST

/* A tokenizer with special tokens: an empty context is the first of BOS and EOS. */
START_TEST(empty_context)
{
    struct wf_config c = small_config(names[1], T, LETTERS + 2);
    wf_model *model = model_of(&c, 2);
    wf_tape *tape = new_tape();
    wf_tokenizer *tokenizer;
    ck_ok(wf_tokenizer_train(alphabet, LETTERS, &tokenizer, error, .specials = (const char *const[]){"</s>", "<s>"}, .special_count = 2));
    const struct wf_question q[] = {{"", CHOICES("ab"), 0, 0}, {"  ", CHOICES("ab"), 0, 0}, {"<s>", CHOICES("ab"), 0, 0}};
    double score[3];
    struct wf_choice_scores s;
    ck_ok(wf_evaluate_choices(model, tokenizer, tape, q, 3, &(struct wf_choice_options){.log_likelihood = score}, &s, error));
    ck_assert(score[0] == score[2]);
    ck_assert(score[1] < score[0]);
    ck_assert(s.acc == 1);
    wf_tokenizer_free(tokenizer);
    wf_tape_free(tape);
    wf_model_free(model);
}
END_TEST

START_TEST(files)
{
    struct wf_questions q;
    ck_ok(wf_questions_load(text_file("q", "{\"context\": \"a\\u00e9\", \"choices\": [\"b\", \"c\"], \"answer\": 1, \"more\": {}}\n \t\r\n"
                                           "{\"choices\": [\"x\"], \"answer\": 0, \"context\": \"\"}"),
                            &q, error));
    ck_assert_int_eq(q.count, 2);
    ck_assert_str_eq(q.question[0].context, "a\xc3\xa9");
    ck_assert_str_eq(q.question[0].choice[1], "c");
    ck_assert(q.question[0].choices == 2 && q.question[0].answer == 1 && q.question[0].line == 1);
    ck_assert(q.question[1].choices == 1 && q.question[1].answer == 0 && q.question[1].line == 3);
    wf_questions_free(&q);
    static const char good[] = "{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": 0}\n";
    static const struct {
        const char *line, *says;
    } cases[] = {{"{\"choices\": [\"b\"], \"answer\": 0}", ":2: the key \"context\" is missing"},
                 {"{\"context\": \"a\", \"answer\": 0}", ":2: the key \"choices\" is missing"},
                 {"{\"context\": \"a\", \"choices\": [\"b\"]}", ":2: the key \"answer\" is missing"},
                 {"{\"context\": \"a\", \"choices\": [], \"answer\": 0}", ":2: key \"choices\": the list is empty"},
                 {"{\"context\": \"a\", \"choices\": [\"b\", \"\"], \"answer\": 0}", ":2: key \"choices\": a choice is empty"},
                 {"{\"context\": \"a\", \"choices\": [\"b\", 3], \"answer\": 0}", ":2: key \"choices\": a choice is not a string"},
                 {"{\"context\": \"a\", \"choices\": \"b\", \"answer\": 0}", ":2: key \"choices\": an array"},
                 {"{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": 1}", ":2: key \"answer\": 1 is out of range"},
                 {"{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": -1}", ":2: key \"answer\": -1 is out of range"},
                 {"{\"context\": \"a\", \"choices\": [\"b\"], \"answer\": \"b\"}", ":2: key \"answer\": "},
                 {"[1]", ":2: the line is not a JSON object"},
                 {"{\"context\": \"a\",", ":2:"},
                 {"\xff", ":2:1: not UTF-8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s\n", good, cases[i].line);
        ck_fails(wf_questions_load(text_file("q", text), &q, error), WF_ERR_FORMAT, cases[i].says);
        wf_questions_free(&q);
    }
    ck_fails(wf_questions_load(text_file("q", "\n\n"), &q, error), WF_ERR_FORMAT, "empty");
    wf_questions_free(&q);
    ck_fails(wf_questions_load("no/such/file", &q, error), WF_ERR_IO, "no/such/file");
    wf_questions_free(&q);
    wf_questions_free(NULL);
}
END_TEST

static wf_tokenizer *for_sweep;

static wf_status scored(const wf_model *m, wf_tape *tape, wf_error *error)
{
    struct wf_choice_scores s;
    return wf_evaluate_choices(m, for_sweep, tape, questions, N, &(struct wf_choice_options){.tokens = 40}, &s, error);
}

static wf_status loaded(void *path, wf_error *error)
{
    struct wf_questions q;
    wf_status status = wf_questions_load(path, &q, error);
    wf_questions_free(&q);
    return status;
}

START_TEST(out_of_memory)
{
    struct tested t = begin(names[0]);
    for_sweep = t.tokenizer;
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){t.model, scored}), 4);
    end(&t);
    const char *path = text_file("q", "{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"answer\": 1}\n");
    ck_assert_int_gt(sweep_memory(loaded, (void *)path), 4);
}
END_TEST

WF_TEST_MAIN("infer/choices", log_likelihoods, ids_before_a_context, the_batch_changes_no_bit, errors, empty_context, files, out_of_memory)
