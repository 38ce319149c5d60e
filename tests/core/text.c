/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <math.h>

#include "../io/io_test.h"
#include <weft/internal/text.h>

START_TEST(utf8_is_checked)
{
    static const struct {
        const char *text;
        int64_t bad;
    } cases[] = {
        {"", -1},
        {"plain text, longer than eight bytes", -1},
        {"gr\xc3\xbc\xc3\x9f \xe4\xb8\x96 \xf0\x9f\x98\x80", -1},
        {"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", -1}, /* the edges */
        {"\x80", 0},
        {"a\xbf", 1},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xc2", 0},
        {"abc\xc2 ", 3},
        {"\xc2\xc0", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xed\xbf\xbf", 0},
        {"\xe4\xb8", 0},
        {"\xe4\xb8\x41", 0},
        {"\xe4\x41\x96", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
        {"\xf0\x9f\x98", 0},
        {"12345678\x80", 8},
        {"1234567\x80", 7},
        {"12345678123456\xc3\xbc\xc3", 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(wf_utf8_check(cases[i].text, (int64_t)strlen(cases[i].text)) == cases[i].bad, "case %zu", i);
    ck_assert_int_eq(wf_utf8_check("a\0b\xff", 4), 3); /* a zero is a character */
}
END_TEST

START_TEST(names_are_quoted)
{
    char out[WF_QUOTE_SIZE], longest[400];
    ck_assert_str_eq(wf_text_quote("a.b \xc3\xa9", out), "\"a.b \xc3\xa9\"");
    ck_assert_str_eq(wf_text_quote("a\n\"\\\x7f\xff", out), "\"a\\x0a\\x22\\x5c\\x7f\\xff\"");
    ck_assert_str_eq(wf_text_quote("\xc2\x85\xe2\x80\xa8", out), "\"\\xc2\\x85\\xe2\\x80\\xa8\"");
    for (int length = 0; length < 399; length++) {
        for (int kind = 0; kind < 3; kind++) {
            memset(longest, 0, sizeof longest);
            for (int i = 0; i + (kind ? 2 : 1) <= length; i += kind ? 2 : 1)
                memcpy(longest + i, kind == 0 ? "x" : kind == 1 ? "\xc3\xa9" : "\x01\xff", kind ? 2 : 1);
            wf_text_quote(longest, out);
            size_t n = strlen(out);
            ck_assert(n < WF_QUOTE_SIZE && out[0] == '"' && out[n - 1] == '"');
            ck_assert_int_eq(wf_utf8_check(out, (int64_t)n), -1);
            bool cut = n > 5 && !memcmp(out + n - 4, "...", 3);
            size_t whole = (kind == 2 ? 4 : 1) * strlen(longest) + 2;
            ck_assert(cut ? whole > WF_QUOTE_SIZE - 6 && n > WF_QUOTE_SIZE - 10 : whole == n);
        }
    }
}
END_TEST

static void check_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1, "1.0"},
                 {-0.0, "-0.0"},
                 {1e-5, "1e-05"},
                 {100000, "100000.0"},
                 {1e22, "1e+22"},
                 {1.0 / 3, "0.3333333333333333"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {5e-324, "4.94065645841247e-324"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"}};
    char out[WF_NUMBER_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double back = 7;
        ck_assert_str_eq(wf_text_double(cases[i].value, out), cases[i].text);
        ck_assert(wf_text_to_double(out, &back));
        ck_assert(!memcmp(&back, &cases[i].value, sizeof back));
    }
    uint64_t bits = 88172645463325252u; /* xorshift: any bits that are a finite number */
    for (int i = 0; i < 100000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double value, back;
        memcpy(&value, &bits, 8);
        if (!isfinite(value))
            continue;
        ck_assert(wf_text_to_double(wf_text_double(value, out), &back));
        ck_assert_msg(!memcmp(&back, &value, sizeof back), "%s", out);
    }
}

START_TEST(numbers_round_trip)
{
    check_numbers();
}
END_TEST

START_TEST(numbers_know_no_locale)
{
    if (use_comma_locale())
        check_numbers();
}
END_TEST

START_TEST(not_every_text_is_a_number)
{
    static const char *const bad[] = {"", " 1", "1 ", "0x10", "nan", "inf", "1e400", "1,5", "1.5.2", "e5", "--1", "1e", "+", "1_0"};
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1", 1}, {"+1.5", 1.5}, {".5", .5}, {"5.", 5}, {"-1e-3", -1e-3}, {"1E3", 1000}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = 7;
        ck_assert_msg(!wf_text_to_double(bad[i], &value), "\"%s\"", bad[i]);
        ck_assert(value == 7);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = 7;
        ck_assert(wf_text_to_double(good[i].text, &value) && value == good[i].value);
    }
}
END_TEST

START_TEST(counts)
{
    static const struct {
        int64_t count;
        const char *text;
    } cases[] = {{0, "0"},          {999, "999"},          {1000, "1,000"},        {28988, "28,988"},
                 {-1000, "-1,000"}, {-123456, "-123,456"}, {1234567, "1,234,567"}, {INT64_MIN, "-9,223,372,036,854,775,808"}};
    char out[WF_NUMBER_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(wf_text_count(cases[i].count, out), cases[i].text);
}
END_TEST

START_TEST(bytes)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},         {999, "999 bytes"},    {1000, "0.98 KiB"},    {1024, "1.00 KiB"},
                 {46080, "45.0 KiB"},    {1040000, "0.99 MiB"}, {1048576, "1.00 MiB"}, {(int64_t)513 << 20, "513 MiB"},
                 {INT64_MAX, "8.00 EiB"}};
    char out[WF_NUMBER_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(wf_text_bytes(cases[i].bytes, out), cases[i].text);
}
END_TEST

START_TEST(times)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } good[] = {{"0:00", 0},
                {"0:59", 59},
                {"1:30", 90},
                {"59:59", 3599},
                {"1:00:00", 3600},
                {"3:55:00", 14100},
                {"23:59:59", 86399},
                {"1-00:00:00", 86400},
                {"1-03:55:00", 100500},
                {"10000-00:00:00", 864000000}}, /* not as they are printed: */
        read[] = {{"0", 0}, {"90", 90}, {"90:00", 5400}, {"100:00:00", 360000}, {"01:30", 90}, {"864000000", 864000000}};
    static const char *const bad[] = {"",
                                      "-5",
                                      "1:5",
                                      "1:60",
                                      "1:60:00",
                                      "1:00:60",
                                      "1:00:00:00",
                                      "1.5",
                                      "5 ",
                                      " 5",
                                      "1:",
                                      ":30",
                                      "1::00",
                                      "5s",
                                      "1-03",
                                      "1-24:00:00",
                                      "1-3:00",
                                      "1-03:00",
                                      "1-3:00:00",
                                      "1-1-00:00",
                                      "864000001",
                                      "99999999999",
                                      "9999999999:00:00",
                                      "NaN",
                                      "+5",
                                      "1:+5",
                                      "1-03:00-00",
                                      "UNLIMITED",
                                      "1:-5",
                                      "10000-00:00:01"};
    char out[WF_NUMBER_SIZE];
    int64_t seconds;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_str_eq(wf_text_seconds((double)good[i].seconds, out), good[i].text);
        ck_assert_msg(wf_text_to_seconds(good[i].text, &seconds) && seconds == good[i].seconds, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        ck_assert_msg(wf_text_to_seconds(read[i].text, &seconds) && seconds == read[i].seconds, "%s", read[i].text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        seconds = 7;
        ck_assert_msg(!wf_text_to_seconds(bad[i], &seconds) && seconds == 7, "\"%s\"", bad[i]);
    }
    ck_assert_str_eq(wf_text_seconds(0.1, out), "0:01");
    ck_assert_str_eq(wf_text_seconds(-1, out), "0:00");
    ck_assert_str_eq(wf_text_seconds(1e300, out), "10000-00:00:00");
}
END_TEST

WF_TEST_MAIN("text", utf8_is_checked, names_are_quoted, numbers_round_trip, numbers_know_no_locale, not_every_text_is_a_number, counts,
             bytes, times)
