/* SPDX-License-Identifier: MIT */
#include "../data/data_test.h"
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

/* The offset at which decoding stops, -1 at the end. */
static int64_t first_bad(const char *data, int64_t length)
{
    for (int64_t at = 0; at < length;) {
        uint32_t point;
        int size = wf_utf8_decode(data + at, length - at, &point);
        if (size == 0)
            return at;
        at += size;
    }
    return -1;
}

START_TEST(every_code_point_round_trips)
{
    int64_t valid = 0;
    for (uint32_t point = 0; point <= 0x10FFFF; point++) {
        if (point >= 0xD800 && point <= 0xDFFF)
            continue;
        char bytes[4];
        uint32_t back = ~point;
        int size = wf_utf8_encode(point, bytes);
        bool good = size == (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);
        good = good && wf_utf8_decode(bytes, 4, &back) == size && back == point;
        for (int cut = 1; cut < size; cut++)
            good = good && wf_utf8_decode(bytes, cut, &back) == 0;
        if (!good)
            ck_abort_msg("U+%04X", (unsigned)point);
        valid++;
    }
    ck_assert_int_eq(valid, 0x110000 - 0x800);
}
END_TEST

/* Of the 2^16 two-byte and a grid of three- and four-byte strings exactly the canonical encodings are accepted. */
START_TEST(only_the_shortest_forms)
{
    static const unsigned char third[] = {0x00, 0x41, 0x7F, 0x80, 0xA5, 0xBF, 0xC0, 0xFF};
    int64_t accepted = 0;
    for (int a = 0x80; a < 0x100; a++)
        for (int b = 0; b < 0x100; b++)
            for (size_t c = 0; c < sizeof third; c++)
                for (size_t d = 0; d < sizeof third; d++) {
                    char in[4] = {(char)a, (char)b, (char)third[c], (char)third[d]}, out[4];
                    uint32_t point;
                    int size = wf_utf8_decode(in, 4, &point);
                    if (size == 0)
                        continue;
                    /* An assertion of Check's writes to a pipe: too slow for each. */
                    if (point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF) || wf_utf8_encode(point, out) != size ||
                        memcmp(in, out, (size_t)size) != 0)
                        ck_abort_msg("%02X %02X %02X %02X gives U+%04X", a, b, third[c], third[d], (unsigned)point);
                    accepted++;
                }
    /* 30 x 64 pairs x 64 tails; (16 x 64 - 32 - 32) x 3 thirds x 8; (48 + 3 x 64 + 16) x 3 x 3. */
    ck_assert_int_eq(accepted, 30 * 64 * 64 + (16 * 64 - 64) * 3 * 8 + (48 + 3 * 64 + 16) * 9);
}
END_TEST

/* The place of the first bad byte is Python's, for every edge of the table of well-formed sequences and for random damage. */
START_TEST(places_of_bad_bytes)
{
    int64_t bytes;
    char *cases = golden("utf8.cases", &bytes), *line = cases;
    int count = 0, bad = 0;
    while (*line) {
        char data[64];
        int length = 0, used;
        unsigned value;
        for (; sscanf(line, "%2x", &value) == 1 && line[0] != ' '; line += 2)
            data[length++] = (char)value;
        long expected;
        ck_assert_int_eq(sscanf(line, " %ld\n%n", &expected, &used), 1);
        line += used;
        ck_assert_int_eq(first_bad(data, length), expected);
        ck_assert_int_eq(wf_utf8_check(data, length), expected);
        if (expected >= 0)
            ck_assert_ptr_nonnull(wf_utf8_fault(data + expected, length - expected));
        count++;
        bad += expected >= 0;
    }
    ck_assert_int_gt(count, 2000);
    ck_assert(bad > 1000 && count - bad > 300);
    wf_free(cases);
}
END_TEST

START_TEST(faults_have_names)
{
    static const struct {
        const char *bytes, *fault;
    } cases[] = {
        {"\xC0\x80", "overlong"},
        {"\xC1\xBF", "overlong"},
        {"\xE0\x9F\xBF", "overlong"},
        {"\xF0\x8F\xBF\xBF", "overlong"},
        {"\xED\xA0\x80", "surrogate"},
        {"\xED\xBF\xBF", "surrogate"},
        {"\xF4\x90\x80\x80", "above U+10FFFF"},
        {"\xF5\x80\x80\x80", "above U+10FFFF"},
        {"\xF8\x88\x80\x80", "never"},
        {"\xFF", "never"},
        {"\x80", "continuation"},
        {"\xBF", "continuation"},
        {"\xC3", "truncated"},
        {"\xE2\x82", "truncated"},
        {"\xE2\x82\x41", "truncated"},
        {"\xF0\x9F\x98", "truncated"},
        {"\xC3(", "truncated"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t length = (int64_t)strlen(cases[i].bytes);
        ck_assert_int_eq(first_bad(cases[i].bytes, length), 0);
        const char *fault = wf_utf8_fault(cases[i].bytes, length);
        ck_assert_msg(strstr(fault, cases[i].fault), "case %zu: %s", i, fault);
    }
}
END_TEST

START_TEST(names_of_characters)
{
    static const struct {
        uint32_t point;
        const char *name;
    } cases[] = {
        {0xE9, "U+00E9 'é'"}, {0x41, "U+0041 'A'"}, {0xA, "U+000A"},    {0x7F, "U+007F"},       {0x301, "U+0301"},
        {0x202E, "U+202E"},   {0x200D, "U+200D"},   {0xFEFF, "U+FEFF"}, {0x1FFFE, "U+1FFFE"},   {0x1F44D, "U+1F44D '👍'"},
        {0x20, "U+0020 ' '"}, {0x85, "U+0085"},     {0xE000, "U+E000"}, {0x10FFFF, "U+10FFFF"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[WF_UTF8_NAME];
        ck_assert_str_eq(wf_utf8_name(cases[i].point, name, sizeof name), cases[i].name);
    }
}
END_TEST

WF_TEST_MAIN("utf8", every_code_point_round_trips, only_the_shortest_forms, places_of_bad_bytes, faults_have_names, names_of_characters)
