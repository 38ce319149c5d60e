/* SPDX-License-Identifier: MIT */
/* Curves of runs before they are drawn: what is read, how it is smoothed, what runs are called, where tics stand. */
#include <unistd.h>

#include "plot_test.h"

static void refused(const char *run, wf_status code, const char *part)
{
    struct curves curves;
    wf_error problem = {0};
    ck_assert_int_eq(curves_read(run, &curves, &problem), code);
    assert_message(&problem, code, part);
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
    ck_ok(curves_read(in_folder("run"), &c, error));
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
    refused(in_folder("nowhere"), WF_ERR_IO, "nowhere is no folder of a run: give the --out of weft train");
    refused("", WF_ERR_IO, "\"\" is no folder of a run");
    mkdir(in_folder("bare"), 0777);
    refused(in_folder("bare"), WF_ERR_IO, "bare has no metrics.jsonl, which weft train writes: the model was not trained in it");
    mkdir(in_folder("odd"), 0777);
    mkdir(in_folder("odd/metrics.jsonl"), 0777);
    refused(in_folder("odd"), WF_ERR_IO, "odd/metrics.jsonl: is a folder");
    refused(make_run("young", "{\"event\":\"start\",\"step\":0}\n{\"event\":\"step\",\"step\":1"), WF_ERR_STATE,
            "metrics.jsonl holds no loss yet");
    refused(make_run("young", ""), WF_ERR_STATE, "holds no loss yet");
    static const char good[] = "{\"step\":1,\"loss/train\":2}\n";
    static const struct {
        const char *line, *part;
    } bad[] = {{"{\"step\" 2}\n", "metrics.jsonl:2:9: "},
               {"\n", "metrics.jsonl:2:"},
               {"[1]\n", "metrics.jsonl:2: a line that is no JSON object"},
               {"{\"step\":2,\"loss/train\":\"3\"}\n", "metrics.jsonl:2: \"loss/train\" is no number"},
               {"{\"step\":2,\"lr\":null}\n", "metrics.jsonl:2: \"lr\" is no number"},
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
    wf_error problem = {0};
    ck_assert_int_eq(wf_plot_text(NULL, 0, NULL, &out, &problem), WF_ERR_ARGUMENT);
    assert_message(&problem, WF_ERR_ARGUMENT, "no run to plot");
}
END_TEST

START_TEST(shapes)
{
    enum { N = 1000 };
    struct curve in = {.point = wf_alloc(N * sizeof *in.point), .count = N}, out;
    for (int i = 0; i < N; i++)
        in.point[i] = (struct point){i, i % 2 ? 3 : 1};
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
    ck_ok(plot_load(&run, 1, false, 10000, &p, error));
    const struct plot_run *r = &p.run[0];
    ck_assert(p.noisy && p.trained && !p.validated);
    ck_assert_int_eq(r->raw.count, 300);
    ck_assert_int_eq(r->mean.count, 300);
    for (int i = 150; i < 300; i++) {
        double loss = 1 + 9 * exp(-r->mean.point[i].step / 300);
        ck_assert_double_gt(fabs(r->raw.point[i].value / loss - 1), 0.19);
        ck_assert_double_lt(fabs(r->mean.point[i].value / loss - 1), 0.05);
    }
    plot_finish(&p, 40, 9, 4, 0.03);
    ck_assert_int_le(p.x.count, 40 / (5 + 3)); /* "3,000", and some space */
    ck_assert_int_ge(p.x.count, 2);
    plot_free(&p);
    run = make_long("few", 390, 0); /* is drawn as it is */
    ck_ok(plot_load(&run, 1, false, 10000, &p, error));
    ck_assert(!p.noisy && p.run[0].raw.count == 0);
    ck_assert_double_eq_tol(p.run[0].mean.point[38].value, (1 + 9 * exp(-1.3)) * 1.2, 1e-5);
    plot_free(&p);
}
END_TEST

static void named(const char *const *runs, int count, const char *const *expected)
{
    char *name[8];
    ck_ok(plot_names(runs, count, name, error));
    for (int i = 0; i < count; i++) {
        ck_assert_str_eq(name[i], expected[i]);
        wf_free(name[i]);
    }
}

START_TEST(names)
{
    named(NAMED("/tmp/a/run/"), 1, NAMED("run"));
    named(NAMED("a/one", "b/two/.", "./three//"), 3, NAMED("one", "two", "three"));
    named(NAMED("a/s1", "b/s1", "s2"), 3, NAMED("a/s1", "b/s1", "s2"));
    named(NAMED("s1", "x/s1", "y/x/s1"), 3, NAMED("s1", "x/s1", "y/x/s1"));
    named(NAMED("p/x/s1", "q/x/s1", "s1x"), 3, NAMED("p/x/s1", "q/x/s1", "s1x"));
    named(NAMED("a/s1", "a/s1/"), 2, NAMED("s1", "s1")); /* the same twice */
    named(NAMED("/"), 1, NAMED("/"));
    named(NAMED("runs/0123456789abcdefghijklmnopqrstuvwxyz"), 1, NAMED("0123456789abcdefghijklmnopqrstuvwxyz"));
    named(NAMED("runs/0123456789abcdefghijklmnopqrstuvwxyzA"), 1,
          NAMED(("0123456789ab\xe2\x80\xa6"
                 "fghijklmnopqrstuvwxyzA")));
    char *name[1];
    ck_ok(plot_names(
        NAMED("\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
              "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"),
        1, name, error));
    ck_assert_int_le(text_columns(name[0]), NAME_COLUMNS);
    ck_assert_int_ge(text_columns(name[0]), NAME_COLUMNS - 4);
    ck_assert_int_eq(strlen(name[0]) % 3, 0); /* whole characters */
    wf_free(name[0]);
    /* nothing in a name moves a terminal's cursor, ends a line, or is no UTF-8 */
    named(NAMED("a\x1b[31m\nb\xc2\x9b\x7f"), 1,
          NAMED(("a\xef\xbf\xbd[31m\xef\xbf\xbd"
                 "b\xef\xbf\xbd\xef\xbf\xbd")));
    named(NAMED("x/\xff\xc3", "y/\xc3\xa9"), 2, NAMED("\xef\xbf\xbd\xef\xbf\xbd", "\xc3\xa9"));
    char here[4096];
    ck_assert_int_eq(mkdir(in_folder("inner"), 0777), 0);
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    ck_assert_int_eq(chdir(in_folder("inner")), 0);
    named(NAMED(".", "x"), 2, NAMED("inner", "x"));
    named(NAMED("./"), 1, NAMED("inner"));
    ck_assert_int_eq(chdir(here), 0);
}
END_TEST

static void tics(double low, double high, bool log, int most, const char *expected)
{
    struct axis a = axis_new(log);
    char text[1024] = "";
    axis_see(&a, high);
    axis_see(&a, low);
    axis_finish(&a, 0, most);
    ck_assert_int_le(a.count, most);
    for (int i = 0; i < a.count; i++) {
        ck_assert(a.tic[i] >= a.low - 1e-9 * fabs(a.low) - 1e-300 && a.tic[i] <= a.high + 1e-9 * fabs(a.high));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", a.label[i]);
    }
    ck_assert_str_eq(text, expected);
}

START_TEST(axes)
{
    tics(0, 12000, false, 9, "0 2,000 4,000 6,000 8,000 10,000 12,000");
    tics(0, 0.002, false, 4, "0 0.001 0.002");
    tics(0, 1e-4, false, 4, "0 5e-5 1e-4");
    tics(0, 1.6e-4, false, 4, "0 5e-5 1e-4 1.5e-4");
    tics(0, 3e-7, false, 4, "0 1e-7 2e-7 3e-7");
    tics(-0.3, 0.3, false, 4, "-0.2 0 0.2");
    tics(1.81, 2.6, false, 9, "1.9 2.0 2.1 2.2 2.3 2.4 2.5 2.6");
    tics(0, 3e29, false, 4, "0 1e29 2e29 3e29");
    tics(0.5, 9.8, true, 9, "0.5 1 2 3 5");
    tics(1, 12, true, 9, "1 1.5 2 3 4 5 6 8 10");
    tics(0.25, 0.45, true, 9, "0.25 0.30 0.35 0.40 0.45");
    tics(1e-12, 1e12, true, 9, "1e-12 1e-9 1e-6 0.001 1 1000 1e6 1e9 1e12");
    tics(1e18, 1e18 + 4e12, false, 4, "1e18 1.000002e18 1.000004e18");
    tics(-1e308, 1e308, false, 4, "-1e100 0 1e100");
    tics(1e-300, 1e300, true, 4, "1e-51 1 1e51");
    /* what no float tells apart is one value */
    tics(2.5, 2.5 + 4e-16, false, 4, "2.4 2.6");
    tics(2.5, 2.5 + 4e-16, true, 4, "2.4 2.6");
    tics(0, 1e-320, false, 4, "-1 0 1");
    struct script s = {0};
    struct axis a = axis_new(true);
    axis_see(&a, 1);
    axis_see(&a, 12);
    axis_finish(&a, 0, 4);
    axis_script(&a, 'y', true, &s);
    a.log = false;
    axis_script(&a, 'x', false, &s);
    ck_assert_str_eq(s.text.data, "set logscale y\nset yrange [1:12]\nset ytics (\"1\" 1, \"2\" 2, \"5\" 5, \"10\" 10)\n"
                                  "unset logscale x\nset xrange [1:12]\nset xtics (\"\" 1, \"\" 2, \"\" 5, \"\" 10)\n");
    wf_string_free(&s.text);
    a = axis_new(false);
    ck_assert(axis_empty(&a));
    a.whole = true;
    axis_see(&a, 3);
    axis_finish(&a, 0, 9);
    ck_assert_int_eq(a.count, 3);
    ck_assert_str_eq(a.label[0], "2");
    ck_assert_str_eq(a.label[2], "4");
    a = axis_new(true);
    axis_see(&a, 0);
    axis_see(&a, -1);
    ck_assert(axis_empty(&a));
}
END_TEST

WF_TEST_MAIN("plot_runs", reads, refuses, shapes, means, names, axes)
