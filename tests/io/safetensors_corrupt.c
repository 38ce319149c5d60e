/* SPDX-License-Identifier: MIT */
/* Wrong files, each with the reader's message: from the disk, mapped and from memory. */
#include <fcntl.h>

#include "io_test.h"

enum { LENGTH_IS_RIGHT = -1 };

static int make(unsigned char *out, int64_t length, const char *header, int data)
{
    int bytes = (int)strlen(header);
    uint64_t n = length == LENGTH_IS_RIGHT ? (uint64_t)bytes : (uint64_t)length;
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(n >> 8 * i);
    memcpy(out + 8, header, (size_t)bytes);
    memset(out + 8 + bytes, 0, (size_t)data);
    return 8 + bytes + data;
}

/* Each way to open a file refuses it with this message; NULL: each reads it. */
static void expect(const unsigned char *data, int bytes, const char *message)
{
    const char *path = in_folder("x");
    write_file(path, data, (size_t)bytes);
    unsigned char *copy = malloc((size_t)bytes + 1); /* of the exact size, so that a sanitizer sees a read past the end */
    memcpy(copy, data, (size_t)bytes);
    for (int way = 0; way < 3; way++) {
        wf_error bad = {0};
        wf_safetensors *file = way == 2 ? wf_safetensors_view(copy, bytes, path, &bad) : wf_safetensors_open(path, &bad, .map = way == 1);
        wf_safetensors_close(file);
        ck_assert_msg((file != NULL) == !message, "\"%s\" instead of \"%s\"", bad.message, message ? message : "");
        assert_message(&bad, message ? WF_ERR_FORMAT : WF_OK, message ? message : "");
        ck_assert(!message || strncmp(bad.message, path, strlen(path)) == 0);
        ck_assert_int_eq(wf_alloc_live(), 0);
    }
    free(copy);
}

#define ENTRY(rest) "{\"a\":{" rest "}}"
#define A4 "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"

static const struct {
    const char *header;
    int data;
    const char *message; /* NULL: fine */
} cases[] = {
    /* Valid. */
    {"{}", 0, NULL},
    {"{" A4 "}", 4, NULL},
    {"{" A4 "}   \n", 4, NULL},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, NULL},
    {"{\"__metadata__\":{}," A4 "}", 4, NULL},
    {"{" A4
     ",\"e\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[4,4]},\"f\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     4, NULL},
    {"{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}," A4 "}", 6, NULL},
    /* JSON. */
    {" {}", 0, "the header at byte 8 does not begin with {"},
    {"[]", 0, "does not begin with {"},
    {"\"a\"", 0, "does not begin with {"},
    {"{", 0, "a header of 1 bytes"},
    {"{\"a\"", 0, "invalid header near byte 12: "},
    {"{}x", 0, "near byte 11: end of file expected"},
    {"{" A4 "," A4 "}", 4, "duplicate object key near '\"a\"'"},
    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "duplicate object key"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "duplicate object key"},
    {"{\"a\":[[[[0]]]]}", 0, "near byte 15: nested more than 3 deep"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[[1]],\"data_offsets\":[0,4]}}", 4, "nested more than 3 deep"},
    {"{\"a\xff\":1}", 0, "the header is not UTF-8 at byte 11"},
    {"{\"a\xed\xa0\x80\":1}", 0, "not UTF-8 at byte 11"},
    {"{\"\\ud800\":1}", 0, "invalid header near byte"},
    {"{\"a\\u0000\":1}", 0, "invalid header near byte"},
    {"{'a':1}", 0, "invalid header near byte"},
    {"{\"a\":1,}", 0, "invalid header near byte"},
    {"{\"a\nb\":1}", 0, "invalid header near byte 11: unexpected newline"},
    {"{\"a\":NaN}", 0, "invalid header near byte"},
    {"{\"a\":01}", 0, "invalid header near byte"},
    /* Metadata. */
    {"{\"__metadata__\":1}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":[\"k\"]}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "__metadata__: \"k\" is not a string"},
    {"{\"__metadata__\":{\"k\":null}}", 0, "__metadata__: \"k\" is not a string"},
    /* Entries. */
    {"{\"a\":1}", 0, "tensor \"a\": its description is not a JSON object"},
    {"{\"a\":[]}", 0, "tensor \"a\": its description is not a JSON object"},
    {"{\"a\\n\\u001b[2J\":null}", 0, "tensor \"a\\x0a\\x1b[2J\": its description is not a JSON object"},
    {ENTRY(""), 0, "tensor \"a\": \"dtype\" is missing or not a string"},
    {ENTRY("\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]"), 4, "\"dtype\" is missing or not a string"},
    {ENTRY("\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]"), 4, "tensor \"a\": unknown dtype \"F99\""},
    {ENTRY("\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]"), 4, "unknown dtype \"f32\""},
    {ENTRY("\"dtype\":\"\",\"shape\":[1],\"data_offsets\":[0,4]"), 4, "unknown dtype \"\""},
    {ENTRY("\"dtype\":\"F32\",\"data_offsets\":[0,4]"), 4, "\"shape\" is missing or not an array"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]"), 4, "\"shape\" is missing or not an array"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), 4, "\"shape\" must contain non-negative integers only"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, "\"shape\" must contain non-negative integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]"), 4, "\"shape\" must contain non-negative integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[null],\"data_offsets\":[0,4]"), 4, "\"shape\" must contain non-negative integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), 4, "tensor \"a\": 7 dimensions, at most 6 are supported"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), 4, "too many elements"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[4294967296,2147483648,2],\"data_offsets\":[0,0]"), 0, "too many elements"},
    {ENTRY("\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]"), 0, "too many elements"},
    {ENTRY("\"dtype\":\"U8\",\"shape\":[9223372036854775807],\"data_offsets\":[0,9223372036854775807]"), 0, "after the end of the file"},
    {ENTRY("\"dtype\":\"U8\",\"shape\":[9223372036854775808],\"data_offsets\":[0,0]"), 0, "too big integer"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1]"), 4, "\"data_offsets\" is missing or not two integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":4"), 4, "\"data_offsets\" is missing or not two integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]"), 4, "\"data_offsets\" is missing or not two integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]"), 4, "\"data_offsets\" is missing or not two integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.0]"), 4, "\"data_offsets\" is missing or not two integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[\"0\",4]"), 4, "\"data_offsets\" is missing or not two integers"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]"), 4, "the byte range -4 to 0 is negative or reversed"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]"), 4, "the byte range 4 to 0 is negative or reversed"},
    {ENTRY("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-9223372036854775807,9223372036854775807]"), 4, "is negative or reversed"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,3]"), 3, "tensor \"a\": the byte range has 3 bytes, but F32 [1] takes 4"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,28]"), 28, "the byte range has 28 bytes, but F32 [2,3] takes 24"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,4]"), 4, "the byte range has 4 bytes, but F32 [0] takes 0"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 3,
     "tensor \"a\": ends 1 bytes after the end of the file (byte 65): is it truncated?"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[9223372036854775807,9223372036854775807]"), 3, "after the end of the file"},
    /* Byte ranges. */
    {"{}", 1, "1 bytes after the last tensor, from byte 10 on, belong to no tensor"},
    {"{" A4 "}", 7, "3 bytes after the last tensor"},
    {ENTRY("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]"), 8,
     "4 bytes before tensor \"a\", from byte 62 on, belong to no tensor"},
    {"{" A4 ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[5,6]}}", 6,
     "1 bytes before tensor \"b\", from byte 118 on, belong to no tensor"},
    {"{" A4 ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}", 4, "the tensors \"a\" and \"b\" overlap at byte"},
    {"{" A4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "overlap at byte"},
    {"{" A4 ",\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}", 4, "the tensors \"a\" and \"b\" overlap"},
};

START_TEST(each_is_refused_with_its_reason)
{
    static unsigned char data[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(data, make(data, LENGTH_IS_RIGHT, cases[i].header, cases[i].data), cases[i].message);
}
END_TEST

START_TEST(lengths_of_the_header_are_checked)
{
    static unsigned char data[1024];
    static const struct {
        int64_t length;
        const char *header, *message;
    } lengths[] = {{0, "", "a header of 0 bytes"},
                   {0, "{}", "a header of 0 bytes"},
                   {3, "{}", "the header takes 3 bytes from byte 8 on, but the file ends at byte 10: is it truncated?"},
                   {1, "{}", "a header of 1 bytes"},
                   {100000000, "{}", "the file ends at byte 10"},
                   {100000001, "{}", "a header of 100000001 bytes, at most 100000000 are allowed"},
                   {INT64_MAX, "{}", "a header of 9223372036854775807 bytes"},
                   {INT64_MIN, "{}", "a header of 9223372036854775808 bytes"},
                   {-2, "{}", "a header of 18446744073709551614 bytes"}};
    expect(data, 0, "not a safetensors file: 0 bytes");
    expect(data, 7, "not a safetensors file: 7 bytes");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        expect(data, make(data, lengths[i].length, lengths[i].header, 0), lengths[i].message);
    expect((const unsigned char *)"PK\x03\x04 a zip file, as torch.save writes", 36, "is a zip archive");
}
END_TEST

START_TEST(every_truncation_is_seen)
{
    static const char *const names[] = {"dtypes.safetensors", "floats.safetensors", "names.safetensors", "odd.safetensors"};
    for (int f = 0; f < 4; f++) {
        int64_t bytes;
        char *data = load_file(golden(names[f]), &bytes);
        unsigned char *copy = malloc((size_t)bytes + 1);
        memcpy(copy, data, (size_t)bytes);
        copy[bytes] = 0;
        wf_free(data);
        expect(copy, (int)bytes, NULL);
        for (int64_t length = 0; length < bytes; length++)
            expect(copy, (int)length, length < 8 ? "not a safetensors file" : "truncated?");
        expect(copy, (int)bytes + 1, "1 bytes after the last tensor");
        free(copy);
    }
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    static const struct {
        const char *path, *message;
    } files[] = {{"none", "none: cannot be opened: No such file or directory"},
                 {"folder", "folder: is a folder, not a regular file"},
                 {"pipe", "pipe: is a device or a pipe, not a regular file"},
                 {"text/below", "Not a directory"}};
    ck_assert_int_eq(mkdir(in_folder("folder"), 0777), 0);
    ck_assert_int_eq(mkfifo(in_folder("pipe"), 0666), 0);
    write_text(in_folder("text"), "some text");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ck_fails_null(wf_safetensors_open(in_folder(files[i].path), error), WF_ERR_IO, files[i].message);
        ck_assert_ptr_null(wf_safetensors_open(in_folder(files[i].path), NULL, .map = true));
    }
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

WF_TEST_MAIN("safetensors_corrupt", each_is_refused_with_its_reason, lengths_of_the_header_are_checked, every_truncation_is_seen,
             what_is_no_file_is_refused)
