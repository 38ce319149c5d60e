/* SPDX-License-Identifier: MIT */
/* Files of other formats are called what they are by each reader; files of Weft that begin alike are read. */
#include "io_test.h"
#include <weft/internal/foreign.h>
#include <weft/internal/json.h>

static const struct {
    const char *bytes;
    int64_t length;
    const char *says;
} files[] = {
#define FILE_OF(bytes, says)                                                                                                               \
    {                                                                                                                                      \
        bytes, sizeof bytes - 1, says                                                                                                      \
    }
    FILE_OF("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer, not the file itself: run git lfs pull"),
    FILE_OF("<!doctype HTML><p>404", "page of HTML"),
    FILE_OF("\xEF\xBB\xBF\r\n<html lang='en'>", "page of HTML"),
    FILE_OF("GGUF\3\0\0\0", "GGUF file"),
    FILE_OF("GGUF\0\0\0\3", "GGUF file"),
    FILE_OF("PK\3\4................model/data.pkl", "pickle of PyTorch: save it as safetensors"),
    FILE_OF("PK\3\4................model/readme", "zip archive"),
    FILE_OF("\x80\2\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19.", "pickle of PyTorch"),
    FILE_OF("\x80\4\x95\0\0\0\0\0\0\0\0}.", "pickle of Python"),
    FILE_OF("\x80\2}q\0.", "pickle of Python"),
    FILE_OF("\x93NUMPY\1\0", "array of NumPy"),
    FILE_OF("\x1F\x8B\x08\0", "gzip"),
};

START_TEST(each_reader_names_them)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = in_folder("file");
        ck_ok(wf_file_save(path, files[i].bytes, files[i].length, error));
        ck_fails_null(wf_safetensors_open(path, error), WF_ERR_FORMAT, files[i].says);
        ck_fails_null(wf_json_load(path, 1000, error), WF_ERR_FORMAT, files[i].says);
        ck_fails_null(wf_file_load(path, 3, NULL, error), WF_ERR_FORMAT, files[i].says); /* larger than its limit */
        ck_says(wf_file_foreign(path), files[i].says);
        for (int64_t n = 0; n < files[i].length; n++) /* within bounds, whatever is missing */
            (void)wf_foreign(files[i].bytes, n);
    }
}
END_TEST

START_TEST(others_are_none_of_them)
{
    /* A header of 0x280 bytes begins like a pickle. */
    char data[8 + 0x280 + 1] = "\x80\2";
    memset(data + 8, ' ', 0x280);
    memcpy(data + 8, "{}", 2);
    ck_ok(wf_file_save(in_folder("a"), data, sizeof data - 1, error));
    wf_safetensors_close(open_tensors(in_folder("a")));
    static const char *const texts[] = {"", "GGUF is a format", "version 1", "PK", "<html>", "BZh", "{}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_ptr_null(wf_foreign_text(texts[i], (int64_t)strlen(texts[i])));
    ck_assert_ptr_null(wf_file_foreign(in_folder("missing")));
    ck_assert_ptr_null(wf_file_foreign("."));
}
END_TEST

WF_TEST_MAIN("foreign", each_reader_names_them, others_are_none_of_them)
