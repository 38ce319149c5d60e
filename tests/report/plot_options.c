/* SPDX-License-Identifier: MIT */
/* The options of a plot: metrics, axis, part, smoothing; many runs; and outliers. */
#include "plot_test.h"

/* A run whose loss is constant. */
static const char *flat(int number, double loss)
{
    char name[32], lines[200];
    snprintf(name, sizeof name, "flat%d", number);
    snprintf(lines, sizeof lines, "{\"event\":\"step\",\"step\":1,\"loss/train\":%g}\n{\"event\":\"step\",\"step\":9,\"loss/train\":%g}\n",
             loss, loss);
    return make_run(name, lines);
}

static void refuses(const char *const *runs, int64_t count, struct wf_plot_options options, const char *part)
{
    struct wf_string out = {0};
    wf_status status = wf_plot_text(runs, count, &options, &out, NULL);
    ck_assert(status == WF_ERR_ARGUMENT || status == WF_ERR_FORMAT);
    ck_fails(wf_plot_text(runs, count, &options, &out, error), status, part);
    ck_assert_int_eq(out.length, 0);
    wf_string_free(&out);
    ck_fails(wf_plot_save(runs, count, &options, in_folder("no.svg"), error), status, part);
    ck_assert(!wf_file_exists(in_folder("no.svg")));
}

#define HAS(text, part) ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in\n%.2000s", part, text)
#define LACKS(text, part) ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in\n%.2000s", part, text)

/* --- many runs ------------------------------------------------------------------------------------------------------- */

enum { SAMPLES = 64, MOST_STYLE = 128 };

/* Whether the text is new among `count` others, to which it is added. */
static bool is_new(char seen[SAMPLES][MOST_STYLE], int *count, const char *text)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(seen[i], text) == 0)
            return false;
    ck_assert_int_lt(*count, SAMPLES);
    snprintf(seen[(*count)++], MOST_STYLE, "%.*s", MOST_STYLE - 1, text);
    return true;
}

/* The lines right of the panels are the legend's samples: those of runs differ. Returns how many colours they have. */
static int check_samples(const char *svg, int runs)
{
    static const char opening[] = "<path stroke='", grey[] = "rgb( 85,  85,  85)";
    static char styles[SAMPLES][MOST_STYLE], colours[SAMPLES][MOST_STYLE];
    int style_count = 0, colour_count = 0;
    for (const char *at = svg; (at = strstr(at, opening)); at++) {
        const char *stroke = at + strlen(opening), *d = strstr(at, " d='M");
        double x1, y1, x2, y2;
        ck_assert_ptr_nonnull(d);
        if (sscanf(d, " d='M%lf,%lf L%lf,%lf", &x1, &y1, &x2, &y2) != 4 || x1 < 880 || y1 != y2 || strncmp(stroke, grey, strlen(grey)) == 0)
            continue;
        char style[MOST_STYLE], colour[MOST_STYLE];
        snprintf(style, sizeof style, "%.*s", (int)(d - stroke), stroke); /* with its dashes */
        snprintf(colour, sizeof colour, "%.*s", (int)strcspn(stroke, "'"), stroke);
        ck_assert_msg(is_new(styles, &style_count, style), "two runs are drawn as %s", style);
        is_new(colours, &colour_count, colour);
    }
    ck_assert_int_eq(style_count, runs);
    return colour_count;
}

START_TEST(many_runs)
{
    const char *runs[41];
    for (int i = 0; i < 41; i++)
        runs[i] = flat(i, 1 + i);
    char *svg = svg_of(runs, 8, NULL);
    ck_assert_int_eq(check_samples(svg, 8), 8);
    wf_free(svg);
    svg = svg_of(runs, 40, NULL);
    ck_assert_int_eq(check_samples(svg, 40), 8);
    wf_free(svg);
    /* each line has its own sign, in the legend and in the drawing */
    static const char signs[] = "*#$%@&=hijklmnopqrstuvwxyz";
    const char *text = text_of(runs, 26, &OPTIONS(.rows = 100));
    const char *drawing = strstr(text, "flat25\n") + 7;
    for (int i = 0; i < 26; i++) {
        char entry[64], line[8];
        snprintf(entry, sizeof entry, "  %c training                flat%d\n", signs[i], i);
        snprintf(line, sizeof line, "%c%c%c", signs[i], signs[i], signs[i]);
        HAS(text, entry);
        HAS(drawing, line);
    }
    struct wf_string out = {0};
    ck_fails(wf_plot_text(runs, 27, NULL, &out, error), WF_ERR_ARGUMENT,
             "27 runs are too many to tell their lines apart: plot at most 26, or draw a picture");
    ck_fails(wf_plot_save(runs, 41, NULL, in_folder("many.svg"), error), WF_ERR_ARGUMENT,
             "41 runs are too many to tell their lines apart: plot at most 40");
}
END_TEST

/* --- outliers -------------------------------------------------------------------------------------------------------- */

/* `count` losses between 3 and 4, those at first, spike and hole replaced (0: not). */
static const char *noisy(int count, double first, double spike, double hole)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; i < count; i++) {
        double loss = 3 + i * 37 % 100 / 100.0;
        loss = i == 0 && first ? first : i == count / 2 && spike ? spike : i == count / 3 && hole ? hole : loss;
        fprintf(f, "{\"event\":\"step\",\"step\":%d,\"loss/train\":%.9g}\n", 1 + i, loss);
    }
    fclose(f);
    const char *path = make_run("noisy", text);
    free(text);
    return path;
}

static struct axis axis_of(const char *run, bool log)
{
    struct plot p;
    ck_ok(plot_load(&run, 1, &OPTIONS(.log = log), 1000, 40, &p, error));
    plot_finish(&p, 0);
    struct axis y = p.panel[0].y;
    plot_free(&p);
    return y;
}

START_TEST(outliers)
{
    static const struct {
        double first, spike, hole;
        bool log;
    } cases[] = {{400, 0, 0, false}, {0, 90, 0, false}, {0, 90, 0, true}, {0, 0, -50, false}};
    static const int counts[] = {10, 30, 1000};
    for (int i = 0; i < 3; i++) {
        struct axis y = axis_of(noisy(counts[i], 0, 4.4, 2.9), false); /* flattens nothing: is shown */
        ck_assert_msg(y.high == 4.4 && y.low == 2.9, "%d values: %g to %g", counts[i], y.low, y.high);
        for (int c = 0; c < 4; c++) {
            y = axis_of(noisy(counts[i], cases[c].first, cases[c].spike, cases[c].hole), cases[c].log);
            ck_assert_msg(y.high < 4.01 && y.low > 2.9, "%d values: %g to %g", counts[i], y.low, y.high);
        }
    }
    ck_assert_double_eq(axis_of(noisy(9, 400, 0, 0), false).high, 400); /* few values have no outliers */
    /* and the picture says what it leaves out */
    const char *run = noisy(1000, 400, 90, -50);
    HAS(text_of(&run, 1, NULL), "loss (nats per token), 2 values above and 1 below the axis\n  * training  noisy\n");
    char *svg = svg_of(&run, 1, NULL);
    HAS(svg, ">2 values above and 1 below the axis<");
    wf_free(svg);
    run = noisy(1000, 0, 90, 0);
    HAS(text_of(&run, 1, NULL), "loss (nats per token), 1 value above the axis\n");
    run = noisy(1000, 0, 0, 0);
    HAS(text_of(&run, 1, NULL), "loss (nats per token): * training  noisy\n");
}
END_TEST

/* --- the horizontal axis --------------------------------------------------------------------------------------------- */

/* Two resumes; the second goes back by a step. */
static const char *const RESUMED = "{\"event\":\"data\",\"step\":0,\"lines\":3,\"seconds\":0.25}\n"
                                   "{\"event\":\"start\",\"step\":0,\"seconds\":0.5}\n"
                                   "{\"event\":\"step\",\"step\":1,\"loss/train\":5,\"tokens_per_second\":9,\"tokens\":100,\"seconds\":1}\n"
                                   "{\"event\":\"step\",\"step\":2,\"loss/train\":4,\"tokens_per_second\":9,\"tokens\":200,\"seconds\":3}\n"
                                   "{\"event\":\"start\",\"step\":2,\"seconds\":4}\n" /* slower than the whole process before it */
                                   "{\"event\":\"step\",\"step\":3,\"loss/train\":3,\"tokens_per_second\":9,\"tokens\":350,\"seconds\":6}\n"
                                   "{\"event\":\"step\",\"step\":4,\"loss/train\":9,\"tokens_per_second\":9,\"tokens\":450,\"seconds\":7}\n"
                                   "{\"event\":\"change\",\"step\":3,\"seconds\":0.125}\n"
                                   "{\"event\":\"start\",\"step\":3,\"seconds\":0.25}\n"
                                   "{\"event\":\"step\",\"step\":4,\"loss/train\":2,\"tokens_per_second\":9,\"tokens\":470,\"seconds\":2}\n"
                                   "{\"event\":\"valid\",\"step\":4,\"loss/valid\":2,\"tokens\":470,\"seconds\":2.5}\n";

static void placed(const char *run, enum wf_plot_x x, const double *train, double valid)
{
    struct curves c;
    ck_ok(curves_read(run, &OPTIONS(.x = x), &c, error));
    ck_assert_int_eq(c.of[CURVE_TRAIN].count, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(c.of[CURVE_TRAIN].point[i].x, train[i]);
    ck_assert_double_eq(c.of[CURVE_VALID].point[0].x, valid);
    ck_assert_double_eq(c.of[CURVE_TRAIN].point[3].value, 2);
    curves_free(&c);
}

START_TEST(axes)
{
    const char *run = make_run("resumed", RESUMED);
    placed(run, WF_PLOT_STEPS, (double[]){1, 2, 3, 4}, 4);
    placed(run, WF_PLOT_TOKENS, (double[]){100, 200, 350, 470}, 470);
    placed(run, WF_PLOT_SECONDS, (double[]){1, 3, 9, 12}, 12.5);
    HAS(text_of(RUNS(run), &OPTIONS(.x = WF_PLOT_SECONDS)), "\n                                       seconds\n");
    HAS(text_of(RUNS(run), &OPTIONS(.x = WF_PLOT_TOKENS)), " tokens\n");
    char *svg = svg_of(RUNS(run, run), &OPTIONS(.x = WF_PLOT_TOKENS));
    HAS(svg, ">tokens<");
    LACKS(svg, ">step<");
    wf_free(svg);
    const char *images =
        make_run("images", "{\"event\":\"step\",\"step\":1,\"loss/train\":5,\"images_per_second\":9,\"images\":60,\"seconds\":1}\n"
                           "{\"event\":\"step\",\"step\":2,\"loss/train\":5,\"images_per_second\":9,\"images\":90,\"seconds\":2}\n");
    HAS(text_of(RUNS(images), &OPTIONS(.x = WF_PLOT_TOKENS)), " images\n");
    refuses(RUNS(run, images), OPTIONS(.x = WF_PLOT_TOKENS), "some runs count tokens and some images");
    const char *old = make_run("old", "{\"event\":\"start\",\"step\":0}\n"
                                      "{\"event\":\"step\",\"step\":1,\"loss/train\":5,\"tokens_per_second\":9,\"seconds\":1}\n");
    refuses(RUNS(old), OPTIONS(.x = WF_PLOT_TOKENS),
            "old/metrics.jsonl:2: the line has no \"tokens\", which older versions of Weft did not log: plot over the steps instead");
    text_of(RUNS(old), &OPTIONS(.x = WF_PLOT_SECONDS));
    refuses(RUNS(make_run("old", "{\"step\":1,\"loss/train\":5}\n")), OPTIONS(.x = WF_PLOT_SECONDS),
            "old/metrics.jsonl:1: the line has no \"seconds\": plot over the steps instead");
    refuses(RUNS(run), OPTIONS(.x = 3), "x = 3 is no axis");
}
END_TEST

START_TEST(parts)
{
    const char *run = make_long("whole", 3000, 500);
    struct plot p;
    ck_ok(plot_load(RUNS(run), &OPTIONS(.from = 1000, .to = 1500, .smooth = 5), 10000, 40, &p, error));
    const struct plot_line *line = &p.run[0].of[CURVE_TRAIN];
    ck_assert_int_eq(line->mean.count, 51);
    ck_assert(line->mean.point[0].x == 1000 && line->mean.point[50].x == 1500);
    ck_assert_int_eq(p.run[0].of[CURVE_VALID].mean.count, 2);
    /* the mean at an end of the part is of values on both sides of it */
    for (int i = 0; i < 51; i++) {
        double sum = 0;
        for (int step = 980 + 10 * i; step <= 1020 + 10 * i; step += 10)
            sum += (1 + 9 * exp(-step / 300.0)) * (step % 20 ? 1.2 : 0.8);
        ck_assert_double_eq_tol(line->mean.point[i].value, sum / 5, 1e-5);
    }
    plot_finish(&p, 0);
    ck_assert(p.x.low == 1000 && p.x.high == 1500);
    plot_free(&p);
    ck_ok(plot_load(RUNS(run), &OPTIONS(.smooth = -1), 10000, 40, &p, error));
    ck_assert(!p.noisy && p.run[0].of[CURVE_TRAIN].raw.count == 0 && p.run[0].of[CURVE_TRAIN].mean.count == 300);
    plot_free(&p);
    ck_ok(plot_load(RUNS(run), &OPTIONS(.smooth = INT64_MAX), 10000, 40, &p, error));
    plot_free(&p);
    HAS(text_of(RUNS(run), &OPTIONS(.from = 1000, .to = 1500)), "1,500\n");
    refuses(RUNS(run), OPTIONS(.from = 3001), "there is nothing to plot from 3001 to the end: the runs go from step 10 to 3000");
    refuses(RUNS(run), OPTIONS(.to = 9), "there is nothing to plot from 0 to 9");
    refuses(RUNS(run), OPTIONS(.from = 5, .to = 5), "from 5 to 5 is no part of the axis");
    refuses(RUNS(run), OPTIONS(.from = -1), "from -1");
    refuses(RUNS(run), OPTIONS(.to = NAN), "is no part of the axis");
}
END_TEST

/* --- metrics --------------------------------------------------------------------------------------------------------- */

static const char *const MEASURED = "{\"event\":\"start\",\"step\":0,\"parameters\":7}\n"
                                    "{\"event\":\"step\",\"step\":1,\"loss/train\":5,\"aux/train\":1,\"lr\":0.001,\"grad_norm\":3}\n"
                                    "{\"event\":\"step\",\"step\":2,\"loss/train\":4,\"aux/train\":0,\"lr\":0.002,\"grad_norm\":1}\n"
                                    "{\"event\":\"valid\",\"step\":2,\"loss/valid\":4,\"aux/valid\":1,\"accuracy\":0.5,\"best\":4}\n";

#define METRICS(...) .metric = NAMED(__VA_ARGS__), .metrics = sizeof(NAMED(__VA_ARGS__)) / sizeof(char *)

START_TEST(metrics)
{
    const char *run = make_run("measured", MEASURED), *other = flat(1, 2);
    const char *text = text_of(RUNS(run), &OPTIONS(METRICS("grad_norm", "aux/train", "accuracy", "aux/valid")));
    HAS(text, "grad_norm: * training  o validation  measured\n");
    HAS(text, "\naux\n");
    HAS(text, "\naccuracy\n");
    LACKS(text, "loss");
    LACKS(text, "learning rate");
    char *svg = svg_of(RUNS(run, other), &OPTIONS(METRICS("lr", "grad_norm", "grad_norm", "loss/train")));
    HAS(svg, ">learning rate (1e-3)<");
    HAS(svg, ">loss (nats per token)<");
    ck_assert_int_eq(occurrences(svg, ">grad_norm<"), 1);
    LACKS(svg, ">validation<");
    wf_free(svg);
    HAS(text_of(RUNS(run), &OPTIONS(METRICS("lr"))), "learning rate (1e-3): * line  measured\n");
    HAS(text_of(RUNS(run), &OPTIONS(METRICS("grad_norm", "lr"), .log = true)), "grad_norm, logarithmic: ");
    refuses(RUNS(run), OPTIONS(METRICS("grad")),
            "measured has no metric 'grad': there are accuracy, aux/train, aux/valid, best, grad_norm, loss/train, loss/valid, lr");
    refuses(RUNS(run, other), OPTIONS(METRICS("loss/train", "bleu/valid")),
            "no run has a metric 'bleu/valid': there are accuracy, aux/train");
    refuses(RUNS(other, run), OPTIONS(METRICS("lr")), "flat1 has no metric 'lr': there are loss/train");
    refuses(RUNS(run), OPTIONS(METRICS("parameters")), "has no metric 'parameters'");
    refuses(RUNS(run), OPTIONS(METRICS("lr", "")), "metric 2 has no name");
    refuses(RUNS(run), OPTIONS(METRICS("lr", NULL)), "metric 2 has no name");
    refuses(RUNS(run), OPTIONS(.metrics = 2), "2 metrics: a picture shows 1 to 16");
    refuses(RUNS(run), OPTIONS(.metric = NAMED("lr"), .metrics = 17), "17 metrics");
    refuses(RUNS(make_run("r", "{\"step\":1,\"a\":0,\"b\":1}\n")), OPTIONS(METRICS("a", "b"), .log = true),
            "no a is above 0: leave the logarithmic axis out");
    refuses(RUNS(make_run("r", "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":\"x\"}\n")), OPTIONS(METRICS("a")),
            "r/metrics.jsonl:2: \"a\" is not a number");
    struct wf_string out = {0};
    ck_fails(wf_plot_text(RUNS(make_run("gan", "{\"step\":1,\"real/train\":1}\n")), NULL, &out, error), WF_ERR_STATE,
             "gan has no metric 'loss/train' or 'loss/valid': there are real/train");
    text_of(RUNS(in_folder("gan")), &OPTIONS(METRICS("real/train")));
}
END_TEST

static char swept[512];
static wf_status sweep(wf_error *error)
{
    struct wf_string out = {0};
    wf_status status = wf_plot_text(RUNS(swept, swept), &OPTIONS(METRICS("grad_norm", "lr", "best"), .smooth = 3), &out, error);
    ck_assert(status == WF_OK || out.length == 0);
    wf_string_free(&out);
    return status;
}

START_TEST(memory)
{
    strcpy(swept, make_run("swept", MEASURED));
    ck_assert_int_ge(sweep_allocations(sweep), 40);
}
END_TEST

WF_TEST_MAIN("plot_options", many_runs, outliers, axes, parts, metrics, memory)
