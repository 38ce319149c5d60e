/* SPDX-License-Identifier: MIT */
/* Curves of runs before they are drawn: reading, smoothing, names of runs, tics. */
#include <unistd.h>

#include "plot_test.h"

static void refused(const char *run, wf_status code, const char *part)
{
    struct curves curves;
    ck_fails(curves_read(run, NULL, &curves, error), code, part);
    ck_assert_int_eq(curves.of[CURVE_TRAIN].count, 0);
    ck_assert_ptr_null(curves.of[CURVE_TRAIN].point);
}

START_TEST(reads)
{
    struct curves c;
    make_run("run", "{\"event\":\"start\",\"step\":0}\n"
                    "{\"event\":\"step\",\"step\":1,\"loss/train\":9,\"lr\":0.5}\n"
                    "{\"event\":\"step\",\"step\":10,\"loss/train\":8.5,\"loss/train_smoothed\":7,\"lr\":1e-3}\n"
                    "{\"event\":\"valid\",\"step\":10,\"loss/valid\":8.25}\n"
                    "{\"event\":\"step\",\"step\":20,\"loss/train\":8,\"lr\":1e-4}\n"
                    "{\"event\":\"start\",\"step\":10}\n"                /* a resume: what came behind step 10 is drawn once */
                    "{\"event\":\"step\",\"step\":15,\"grad_norm\":1}\n" /* a loss that was no number is not written */
                    "{\"event\":\"step\",\"step\":20,\"loss/train\":7,\"lr\":1e-4}\n"
                    "{\"event\":\"new\",\"loss/other\":\"x\"}\n"
                    "{\"event\":\"step\",\"step\":30,\"loss/tra");
    ck_ok(curves_read(in_folder("run"), NULL, &c, error));
    ck_assert_int_eq(c.of[CURVE_TRAIN].count, 3);
    ck_assert_int_eq(c.of[CURVE_VALID].count, 1);
    ck_assert_int_eq(c.of[CURVE_LR].count, 3);
    static const struct point expected[] = {{1, 9}, {10, 8.5}, {20, 7}};
    for (int i = 0; i < 3; i++)
        ck_assert(c.of[CURVE_TRAIN].point[i].step == expected[i].step && c.of[CURVE_TRAIN].point[i].value == expected[i].value);
    ck_assert(c.of[CURVE_LR].point[1].value == 1e-3 && c.of[CURVE_VALID].point[0].value == 8.25);
    curves_free(&c);
}
END_TEST

START_TEST(refuses)
{
    refused(in_folder("nowhere"), WF_ERR_IO, "nowhere is not a run folder: give the --out of a training");
    refused("", WF_ERR_IO, "\"\" is not a run folder");
    mkdir(in_folder("bare"), 0777);
    refused(in_folder("bare"), WF_ERR_IO, "bare has no metrics.jsonl, which a training writes: the model was not trained in it");
    mkdir(in_folder("odd"), 0777);
    mkdir(in_folder("odd/metrics.jsonl"), 0777);
    refused(in_folder("odd"), WF_ERR_IO, "odd/metrics.jsonl: is not a regular file");
    mkdir(in_folder("pipe"), 0777);
    ck_assert_int_eq(mkfifo(in_folder("pipe/metrics.jsonl"), 0666), 0);
    refused(in_folder("pipe"), WF_ERR_IO, "pipe/metrics.jsonl: is not a regular file"); /* and does not wait for a writer */
    refused(make_run("young", "{\"event\":\"start\",\"step\":0}\n{\"event\":\"step\",\"step\":1"), WF_ERR_STATE,
            "metrics.jsonl holds no loss yet");
    refused(make_run("young", ""), WF_ERR_STATE, "holds no loss yet");
    static const char good[] = "{\"step\":1,\"loss/train\":2}\n";
    static const struct {
        const char *line, *part;
    } bad[] = {{"{\"step\" 2}\n", "metrics.jsonl:2:9: "},
               {"\n", "metrics.jsonl:2:"},
               {"[1]\n", "metrics.jsonl:2: the line is not a JSON object"},
               {"{\"step\":2,\"loss/train\":\"3\"}\n", "metrics.jsonl:2: \"loss/train\" is not a number"},
               {"{\"step\":2,\"lr\":null}\n", "metrics.jsonl:2: \"lr\" is not a number"},
               {"{\"loss/valid\":3}\n", "metrics.jsonl:2: \"loss/valid\" without a \"step\" of 0 or more"},
               {"{\"step\":-1,\"loss/valid\":3}\n", "without a \"step\""},
               {"{\"step\":1.5,\"loss/valid\":3}\n", "without a \"step\""},
               {"{\"step\":2,\"loss/train\":1e999}\n", "metrics.jsonl:2:"},
               {"\xff\n", "metrics.jsonl:2:"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s%s", good, bad[i].line, good);
        refused(make_run("bad", text), WF_ERR_FORMAT, bad[i].part);
    }
    struct wf_string out = {0};
    ck_fails(wf_plot_text(NULL, 0, NULL, &out, error), WF_ERR_ARGUMENT, "no run to plot");
}
END_TEST

START_TEST(shapes)
{
    enum { N = 1000 };
    struct curve in = {.point = wf_alloc(N * sizeof *in.point), .count = N}, out;
    for (int i = 0; i < N; i++)
        in.point[i] = (struct point){i, i % 2 ? 3 : 1, i};
    in.point[500].value = 1e30;
    in.point[617].value = -50;
    ck_ok(curve_smooth(&in, 10, &out, error));
    ck_assert_int_eq(out.count, N);
    for (int i = 0; i < N; i++) {
        int reach = i < 10 ? i : 10, from = i - reach, to = i + reach < N ? i + reach : N - 1;
        double sum = 0;
        for (int j = from; j <= to; j++)
            sum += in.point[j].value;
        ck_assert_double_eq_tol(out.point[i].value / (sum / (to - from + 1)), 1, 1e-9); /* the huge one is gone when it leaves */
    }
    curve_free(&out);
    ck_ok(curve_thin(&in, 40, &out, error));
    ck_assert_int_le(out.count, 80);
    bool high = false, low = false;
    for (int64_t i = 0; i < out.count; i++) {
        ck_assert(i == 0 || out.point[i].step > out.point[i - 1].step);
        high |= out.point[i].step == 500 && out.point[i].value == 1e30;
        low |= out.point[i].step == 617 && out.point[i].value == -50;
    }
    ck_assert_msg(high && low, "a peak was lost");
    curve_free(&out);
    ck_ok(curve_thin(&in, N / 2, &out, error));
    ck_assert_int_eq(out.count, N);
    ck_assert_int_eq(memcmp(out.point, in.point, N * sizeof *in.point), 0);
    curve_free(&out);
    curve_free(&in);
}
END_TEST

/* Noise of 20 parts in a hundred as it was logged; next to none in the mean. */
START_TEST(means)
{
    struct plot p;
    const char *run = make_long("noisy", 3000, 0);
    ck_ok(plot_load(&run, 1, NULL, 10000, 40, &p, error));
    const struct plot_line *r = &p.run[0].of[CURVE_TRAIN];
    ck_assert(p.noisy && p.trained && !p.validated);
    ck_assert_int_eq(r->raw.count, 300);
    ck_assert_int_eq(r->mean.count, 300);
    for (int i = 150; i < 300; i++) {
        double loss = 1 + 9 * exp(-r->mean.point[i].step / 300);
        ck_assert_double_gt(fabs(r->raw.point[i].value / loss - 1), 0.19);
        ck_assert_double_lt(fabs(r->mean.point[i].value / loss - 1), 0.05);
    }
    plot_finish(&p, 0.03);
    ck_assert_int_eq(axis_fit(&p.x, 40), 40 / (5 + 3)); /* "3,000", and some space */
    plot_free(&p);
    run = make_long("few", 390, 0); /* is drawn as it is */
    ck_ok(plot_load(&run, 1, NULL, 10000, 40, &p, error));
    ck_assert(!p.noisy && p.run[0].of[CURVE_TRAIN].raw.count == 0);
    ck_assert_double_eq_tol(p.run[0].of[CURVE_TRAIN].mean.point[38].value, (1 + 9 * exp(-1.3)) * 1.2, 1e-5);
    plot_free(&p);
}
END_TEST

static void named(const char *const *expected, const char *const *runs, int64_t count)
{
    struct plot p;
    ck_ok(plot_load(runs, count, NULL, 100, 40, &p, error));
    for (int64_t i = 0; i < count; i++)
        ck_assert_str_eq(p.run[i].name, expected[i]);
    plot_free(&p);
}

/* A run of that name in the folder of the test, which is the current one; its path as given. */
static const char *as(const char *path)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = folder; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(in_folder(folder), 0777);
    }
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        folder[--length] = 0;
    make_run(folder, "{\"step\":1,\"loss/train\":2}\n");
    return path;
}

START_TEST(names)
{
    char here[4096];
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(in_folder("")), 0);
    named(NAMED("run"), RUNS(as("a/run/")));
    named(NAMED("s1", "s10", "t"), RUNS(as("runs/s1"), as("runs/s10"), as("runs/t//")));
    named(NAMED("a/s1", "b/s1", "s2"), RUNS(as("a/s1"), as("b/s1"), as("s2")));
    named(NAMED("s", "s/t"), RUNS(as("x/s"), as("x/s/t")));
    named(NAMED("s1", "s1"), RUNS("a/s1", "a/s1/")); /* the same twice */
    named(NAMED("0123456789abcdefghijklmnopqrstuvwxyz"), RUNS(as("runs/0123456789abcdefghijklmnopqrstuvwxyz")));
    named(NAMED("0123456789ab\u2026fghijklmnopqrstuvwxyzA"), RUNS(as("runs/0123456789abcdefghijklmnopqrstuvwxyzA")));
    /* nothing in a name moves a terminal's cursor, ends a line, or is no UTF-8 */
    named(NAMED("a\uFFFD[31m\uFFFDb\uFFFD\uFFFD"), RUNS(as("a\x1b[31m\nb\xc2\x9b\x7f")));
    named(NAMED("x/\uFFFD\uFFFD", "y/\u00e9"), RUNS(as("x/\xff\xc3"), as("y/\xc3\xa9")));
    struct plot p;
    ck_ok(plot_load(RUNS(as("日日日日日日日日日日日日日日日日日日日日")), NULL, 100, 40, &p, error));
    ck_assert_int_le(text_columns(p.run[0].name), NAME_COLUMNS);
    ck_assert_int_ge(text_columns(p.run[0].name), NAME_COLUMNS - 4);
    ck_assert_int_eq(strlen(p.run[0].name) % 3, 0); /* whole characters */
    plot_free(&p);
    ck_assert_int_eq(chdir(here), 0);
}
END_TEST

static void tics(double low, double high, bool log, int most, const char *expected)
{
    struct axis a = {.low = low, .high = high, .log = log, .unit = 1};
    struct wf_string s = {0};
    axis_script(&a, 'y', true, most, &s);
    ck_assert_msg(strstr(s.data, expected) != NULL, "no %s in %s", expected, s.data);
    wf_string_free(&s);
}

START_TEST(axes)
{
    tics(0, 12000, false, 9, "unset logscale y\nset yrange [0:12000]\nset format y \"%.0f\"\nset ytics 2000\n");
    tics(0, 2, false, 4, "set format y \"%.1f\"\nset ytics 0.5\n");
    tics(1.81, 2.6, false, 9, "set format y \"%.1f\"\nset ytics 0.1\n");
    tics(0.25, 0.45, false, 5, "set format y \"%.2f\"\nset ytics 0.05\n");
    tics(0, 3e29, false, 4, "set format y \"%g\"\nset ytics 1e+29\n");
    tics(0.5, 9.8, true, 9, "set logscale y\nset yrange [0.5:9.8]\nset format y \"%g\"\nset ytics (0.5, 1, 2, 3, 5)\n");
    tics(2.2, 4.4, true, 9, "set ytics (2.5, 3, 3.5, 4)\n");
    tics(1, 12, true, 9, "set ytics (1, 1.5, 2, 3, 4, 5, 6, 8, 10)\n");
    tics(1e-12, 1e12, true, 9, "set ytics autofreq\n");
}
END_TEST

WF_TEST_MAIN("plot_runs", reads, refuses, shapes, means, names, axes)
