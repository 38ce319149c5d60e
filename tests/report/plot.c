/* SPDX-License-Identifier: MIT */
/* Curves of runs as drawings of characters and as pictures. */
#include "plot_test.h"

/* Lines as they are, none longer than the window, with no blank at an end and no form feed. */
static int check_lines(const char *text, int columns)
{
    int count = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1, count++) {
        size_t length = strcspn(line, "\n");
        ck_assert_msg(line[length] == '\n' && (length == 0 || line[length - 1] != ' ') && (int)length <= columns, "%s", text);
    }
    ck_assert_ptr_null(strchr(text, '\f'));
    return count;
}

START_TEST(drawings)
{
    struct wf_string out = {0};
    const char *long_run = make_long("long", 3000, 500), *short_run = make_long("brief", 1000, 0);
    ck_ok(wf_plot_text(RUNS(long_run), NULL, &out, error));
    ck_assert_int_eq(check_lines(out.data, 80), 24);
    ck_assert_msg(strncmp(out.data, "loss (nats per token): * training  o validation  long\n", 54) == 0, "%s", out.data);
    static const char *const parts[] = {"\n     10 +", "\nlearning rate (1e-4)\n", "         0         500       1,000      1,500",
                                        "\n                                        step\n", "*o"};
    for (int i = 0; i < 5; i++)
        ck_assert_msg(strstr(out.data, parts[i]) != NULL, "no \"%s\" in\n%s", parts[i], out.data);
    /* appended; another size; two runs on a logarithmic axis */
    int64_t before = out.length;
    ck_ok(wf_plot_text(RUNS(long_run, short_run), &OPTIONS(.log = true, .columns = 100, .rows = 40), &out, error));
    const char *second = out.data + before;
    ck_assert_int_eq(check_lines(second, 100), 40);
    static const char head[] = "loss (nats per token), logarithmic\n  * training  A validation  long\n  # training                brief\n";
    ck_assert_msg(strncmp(second, head, strlen(head)) == 0, "%s", second);
    ck_assert(strstr(second, "\n      5 +") && strstr(second, "\n      2 +"));
    /* a window that is too small gets what is legible */
    out.length = 0;
    ck_ok(wf_plot_text(RUNS(long_run), &OPTIONS(.columns = 3, .rows = 2), &out, error));
    ck_assert_int_gt(check_lines(out.data, 60), 14);
    ck_assert_ptr_nonnull(strstr(out.data, "+--------------------")); /* an axis */
    out.length = 0;
    ck_fails(wf_plot_text(RUNS(long_run), &OPTIONS(.rows = -1), &out, error), WF_ERR_ARGUMENT, "");
    ck_assert_int_eq(out.length, 0);
    wf_string_free(&out);
}
END_TEST

START_TEST(little)
{
    /* losses that differ by less than gnuplot is told, and the last of all steps */
    make_run("r", "{\"step\":9223372036854775807,\"loss/train\":2.5}\n{\"step\":9223372036854775807,\"loss/valid\":2.5000000000000004}\n");
    const char *run = in_folder("r");
    text_of(RUNS(run), NULL);
    make_run("r", "{\"step\":9223372036854775807,\"loss/train\":1e308,\"lr\":-1e308}\n"); /* gnuplot died of it */
    text_of(RUNS(run), NULL);
    /* one point, no learning rate, validation only, losses of 0 */
    make_run("r", "{\"step\":1,\"loss/train\":9.5}\n");
    const char *text = text_of(RUNS(run), NULL);
    ck_assert_int_eq(check_lines(text, 80), 24);
    ck_assert_ptr_null(strstr(text, "learning rate"));
    ck_assert_msg(strstr(text, "  *\n") && strstr(text, "         0                                1  "), "%s", text);
    make_run("r", "{\"step\":0,\"loss/valid\":9.5}\n");
    text = text_of(RUNS(run), NULL);
    ck_assert_msg(strstr(text, "loss (nats per token): o validation  r\n") && strchr(strchr(text, '\n'), 'o'), "%s", text);
    make_run("r", "{\"step\":1,\"loss/train\":0,\"lr\":0}\n{\"step\":2,\"loss/train\":0.0,\"lr\":0}\n");
    text_of(RUNS(run), NULL);
    struct wf_string out = {0};
    ck_fails(wf_plot_text(RUNS(run), &OPTIONS(.log = true), &out, error), WF_ERR_ARGUMENT, "no loss is above 0");
    wf_string_free(&out);
    make_run("r", "{\"step\":1,\"loss/train\":2,\"loss/valid\":-2}\n{\"step\":2,\"loss/train\":2}\n");
    text_of(RUNS(run), &OPTIONS(.log = true)); /* gnuplot died of it */
}
END_TEST

START_TEST(pictures)
{
    const char *all[] = {make_long("<a>&_{b}\"", 3000, 500), make_long("two", 1000, 100), make_long("three", 20, 0)};
    char *svg = svg_of(all, 3, NULL);
    static const char *const shown[] = {"&lt;a>&amp;_{b}\"<",      ">two<",        ">three<", ">training (running mean)<",
                                        ">training (as logged)<",  ">validation<", ">step<",  ">learning rate (1e-4)<",
                                        ">loss (nats per token)<", ">3,000<",      ">1.0<"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        ck_assert_msg(occurrences(svg, shown[i]) == 1, "%d of %s", occurrences(svg, shown[i]), shown[i]);
    ck_assert_int_eq(occurrences(svg, "</svg>"), 1);
    wf_free(svg);
    /* the same bytes each time */
    ck_ok(wf_plot_save(all, 3, NULL, in_folder("q.svg"), error));
    assert_same_files(in_folder("p.svg"), in_folder("q.svg"));
    /* the title of a single run stands over its losses only */
    svg = svg_of(&all[1], 1, NULL);
    ck_assert_int_eq(occurrences(svg, ">two<"), 1);
    wf_free(svg);
    ck_ok(wf_plot_save(all, 1, &OPTIONS(.log = true), in_folder("p.png"), error));
    int64_t bytes;
    char *png = load_file(in_folder("p.png"), &bytes);
    ck_assert(bytes > 20000 && memcmp(png, "\x89PNG\r\n\x1a\n", 8) == 0);
    wf_free(png);
    /* a refusal leaves what was there */
    write_text(in_folder("old.svg"), "old");
    static const struct {
        const char *path, *part;
        wf_status code;
    } bad[] = {{"p.pdf", "p.pdf: no format of pictures; the name must end in .svg or .png", WF_ERR_ARGUMENT},
               {"none/p.svg", "none", WF_ERR_IO},
               {"old.svg", "is not a run folder", WF_ERR_IO}};
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            all[1] = "/nowhere/run";
        ck_fails(wf_plot_save(all, 2, NULL, in_folder(bad[i].path), error), bad[i].code, bad[i].part);
    }
    assert_text_is(in_folder("old.svg"), "old");
}
END_TEST

static int marks(const char *const *runs, int64_t count)
{
    char *svg = svg_of(runs, count, NULL);
    int found = occurrences(svg, "' transform='translate(");
    wf_free(svg);
    return found;
}

/* Points stand for validations, and for a training of one step, which makes no line. */
START_TEST(points)
{
    const char *first = make_run("first", "{\"step\":1,\"loss/train\":2}\n"), *longer = make_long("longer", 600, 0),
               *validated = make_long("validated", 600, 200);
    ck_assert_int_eq(marks(RUNS(first)), 1);
    ck_assert_int_eq(marks(RUNS(longer)), 0);
    ck_assert_int_eq(marks(RUNS(longer, longer)), 0);
    ck_assert_int_eq(marks(RUNS(validated)), 3 + 1);            /* and one in the legend */
    ck_assert_int_eq(marks(RUNS(first, validated)), 1 + 3 + 3); /* in the legend one of each run, and one of validations */
}
END_TEST

static char swept[512];
static wf_status sweep_save(wf_error *error)
{
    return wf_plot_save(RUNS(swept, swept), NULL, in_folder("swept.svg"), error);
}
static wf_status sweep_text(wf_error *error)
{
    struct wf_string out = {0};
    wf_status status = wf_plot_text(RUNS(swept), NULL, &out, error);
    ck_assert(status == WF_OK || out.length == 0);
    wf_string_free(&out);
    return status;
}

START_TEST(memory)
{
    strcpy(swept, make_run("swept", "{\"step\":1,\"loss/train\":9.5,\"lr\":1}\n{\"step\":1,\"loss/valid\":9.5}\n"));
    ck_assert_int_ge(sweep_allocations(sweep_save), 40);
    ck_assert_int_ge(sweep_allocations(sweep_text), 20);
    ck_assert(wf_file_exists(in_folder("swept.svg")));
}
END_TEST

WF_TEST_MAIN("plot", drawings, little, pictures, points, memory)
