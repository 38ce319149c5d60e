/* SPDX-License-Identifier: MIT */
/* Float against double: every case of every op, values and gradients, on each instruction set. The double build of this
 * program writes its numbers to a file (--dump FILE); the float build runs it and compares, error relative to the norm. */
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/gradcheck.h>
#include <weft/internal/ops_all.h>

#include "isas.h"

/* The instruction sets agree to rounding. */
START_TEST(instruction_sets_agree)
{
    for (int i = 0; i < wf_op_count(); i++)
        for (int k = 0; k < wf_op_at(i)->cases.count; k++) {
            double *first = NULL, *numbers;
            int64_t count;
            for (int s = 0; s < ISAS; s++) {
                if (!isa_used(s))
                    continue;
                ck_ok(wf_case_numbers(wf_op_at(i), &wf_op_at(i)->cases.list[k], &numbers, &count, error));
                if (!first) {
                    first = numbers;
                    continue;
                }
                double norm = 0, difference = 0, given = wf_op_at(i)->cases.list[k].bound;
                double bound = sizeof(wf_real) == 8 ? 1e-12 : 2 * (given > 0 ? given : 1e-5);
                for (int64_t j = 0; j < count; j++)
                    norm += first[j] * first[j], difference += (first[j] - numbers[j]) * (first[j] - numbers[j]);
                ck_assert_msg(sqrt(difference) <= bound * (sqrt(norm) + 1), "%s case %d on %s: off by %g", wf_op_at(i)->name, k, wf_isa(),
                              sqrt(difference));
                wf_free(numbers);
            }
            wf_free(first);
        }
}
END_TEST

#ifdef WF_DOUBLE
static int dump(const char *path)
{
    FILE *f = fopen(path, "wb");
    int failed = !f;
    for (int i = 0; f && i < wf_op_count(); i++)
        for (int k = 0; k < wf_op_at(i)->cases.count; k++) {
            wf_error error = {0};
            double *numbers;
            int64_t count;
            if (wf_case_numbers(wf_op_at(i), &wf_op_at(i)->cases.list[k], &numbers, &count, &error) != WF_OK) {
                fprintf(stderr, "%s\n", error.message);
                failed = 1;
                count = 0;
            }
            fwrite(&count, sizeof count, 1, f);
            fwrite(numbers, sizeof *numbers, (size_t)count, f);
            wf_free(numbers);
        }
    if (f && fclose(f) != 0)
        failed = 1;
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--dump") == 0)
        return dump(argv[2]);
    const TTest *const tests[] = {instruction_sets_agree};
    return run_tests("precision", tests, 1);
}
#elif defined WF_FLOAT_ONLY /* a build without the double library */
WF_TEST_MAIN("precision", instruction_sets_agree)
#else
static void against_double(int isa)
{
    if (!isa_used(isa))
        return;
    const char *build = getenv("WEFT_BUILD_ROOT");
    char command[4096], path[] = "/tmp/weft-precision-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(command, sizeof command, "'%s/tests/test_autograd_precision_f64' --dump %s", build ? build : ".", path);
    ck_assert_msg(system(command) == 0, "%s failed", command);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < wf_op_count(); i++)
        for (int k = 0; k < wf_op_at(i)->cases.count; k++) {
            const struct wf_case *c = &wf_op_at(i)->cases.list[k];
            double *numbers, norm = 0, difference = 0;
            int64_t count, expected;
            ck_ok(wf_case_numbers(wf_op_at(i), c, &numbers, &count, error));
            ck_assert_int_eq(fread(&expected, sizeof expected, 1, f), 1);
            ck_assert_int_eq(count, expected);
            double *exact = calloc((size_t)count + 1, sizeof *exact);
            ck_assert_int_eq(fread(exact, sizeof *exact, (size_t)count, f), (size_t)count);
            for (int64_t j = 0; j < count; j++)
                norm += exact[j] * exact[j], difference += (exact[j] - numbers[j]) * (exact[j] - numbers[j]);
            double bound = c->bound > 0 ? c->bound : 1e-5;
            ck_assert_msg(sqrt(difference) <= bound * (sqrt(norm) + 1e-3), "%s case %d on %s: relative error %.3g, bound %.3g",
                          wf_op_at(i)->name, k, wf_isa(), sqrt(difference) / (sqrt(norm) + 1e-3), bound);
            free(exact);
            wf_free(numbers);
        }
    fclose(f);
    unlink(path);
}

START_TEST(avx512)
{
    against_double(0);
}
END_TEST
START_TEST(avx2)
{
    against_double(1);
}
END_TEST
START_TEST(base)
{
    against_double(2);
}
END_TEST

WF_TEST_MAIN("precision", instruction_sets_agree, avx512, avx2, base)
#endif
