/* SPDX-License-Identifier: MIT */
/* Recognises files of another format by the marks with which they begin (weft/internal/foreign.h). */
#include <string.h>
#include <strings.h>

#include <weft/internal/foreign.h>
#include <weft/internal/minmax.h>

struct magic {
    const char *bytes;
    int64_t length;
    const char *says;
};
#define MAGIC(bytes, says)                                                                                                                 \
    {                                                                                                                                      \
        bytes, sizeof bytes - 1, says                                                                                                      \
    }

#define PYTORCH "is a pickle of PyTorch: save it as safetensors"
static const struct magic magics[] = {
    MAGIC("version https://git-lfs.github.com/spec/v1", "is a Git LFS pointer, not the file itself: run git lfs pull"),
    MAGIC("\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19", PYTORCH), /* from PyTorch before version 1.6 */
    MAGIC("\x93NUMPY", "is an array of NumPy (.npy)"),
    MAGIC("\x89HDF\r\n\x1A\n", "is an HDF5 file: save it as safetensors"),
    MAGIC("\x1F\x8B\x08", "is compressed with gzip: unpack it with gunzip"),
    MAGIC("\x28\xB5\x2F\xFD", "is compressed with zstd: unpack it with unzstd"),
    MAGIC("\xFD\x37zXZ\0", "is compressed with xz: unpack it with unxz"),
    MAGIC("7z\xBC\xAF\x27\x1C", "is an archive of 7-Zip: unpack it"),
};

static bool begins(const char *head, int64_t bytes, const char *with, int64_t length)
{
    return bytes >= length && memcmp(head, with, (size_t)length) == 0;
}

const char *wf_foreign_text(const char *head, int64_t bytes)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (begins(head, bytes, magics[i].bytes, magics[i].length))
            return magics[i].says;
    /* Bytes 4 to 7 of a GGUF file are its version, in either byte order. The version is a small number, so the first or the last of these
     * bytes is 0. */
    if (begins(head, bytes, "GGUF", 4) && bytes >= 8 && (head[7] == 0 || head[4] == 0))
        return "is a GGUF file, which is not read: use the model's safetensors";
    if (begins(head, bytes, "BZh", 3) && bytes >= 10 && !memcmp(head + 4, "1AY&SY", 6))
        return "is compressed with bzip2: unpack it with bunzip2";
    if (begins(head, bytes, "PK\3\4", 4)) {
        int64_t look = WF_MIN(bytes, WF_FOREIGN_HEAD);
        return memmem(head, (size_t)look, "/data.pkl", 9) ? PYTORCH : "is a zip archive: unpack it with unzip";
    }
    /* The second byte of a pickle of Python is the number of its protocol, 2 to 5. In protocols 4 and 5 the third byte is 0x95, which
     * begins a frame. In the others it is an instruction with which a pickle can begin. */
    if (bytes >= 3 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 && (head[1] < 4 || head[2] == '\x95') &&
        memchr("}]()c\x95\x8A", head[2], 7))
        return "is a pickle of Python: save what it holds in a format that cannot hold programs, such as safetensors";
    return NULL;
}

const char *wf_foreign(const char *head, int64_t bytes)
{
    static const char *const pages[] = {"<!doctype html", "<html"};
    const char *says = wf_foreign_text(head, bytes);
    int64_t at = 0;
    while (at < bytes && at < WF_FOREIGN_HEAD && strchr(" \t\r\n\xEF\xBB\xBF", head[at]) && head[at])
        at++;
    for (size_t i = 0; !says && i < sizeof pages / sizeof *pages; i++)
        if (bytes - at >= (int64_t)strlen(pages[i]) && strncasecmp(head + at, pages[i], strlen(pages[i])) == 0)
            says = "is a page of HTML, as a download that failed leaves it: download it again";
    return says;
}
