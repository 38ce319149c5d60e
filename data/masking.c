/* SPDX-License-Identifier: MIT */
/* Hides tokens of a batch for masked-language modelling. */
#include <weft/internal/encode.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/masking.h>

#include <string.h>

#include <weft/memory.h>
#include <weft/random.h>

static void mark(struct wf_masking *m, int32_t id)
{
    if (id >= 0 && id < m->vocab_size)
        m->special[id] = true;
}

wf_status wf_masking_init(struct wf_masking *m, const wf_tokenizer *tokenizer, double rate, uint64_t seed, wf_error *error)
{
    if (wf_needs(error, "masking, tokenizer", m, tokenizer))
        return WF_ERR_ARGUMENT;
    static const enum wf_special part[] = {WF_SPECIAL_BOS, WF_SPECIAL_EOS, WF_SPECIAL_PAD, WF_SPECIAL_UNKNOWN, WF_SPECIAL_MASK};
    *m = (struct wf_masking){.mask = wf_tokenizer_special(tokenizer, WF_SPECIAL_MASK),
                             .begin = wf_tokenizer_special(tokenizer, WF_SPECIAL_BOS),
                             .end = wf_tokenizer_special(tokenizer, WF_SPECIAL_EOS),
                             .vocab_size = wf_tokenizer_vocab_size(tokenizer)};
    if (!(rate > 0 && rate < 1))
        return wf_error_set(error, WF_ERR_ARGUMENT, "the masking rate %g is out of range: it must be above 0 and below 1", rate);
    if (m->mask < 0)
        return wf_error_set(
            error, WF_ERR_FORMAT,
            "the tokenizer has no mask token: it must have one named <mask> or [MASK]; the command `tokenizer train --type word "
            "--specials '<pad>,<unk>,<mask>'` makes one that has it");
    m->special = wf_alloc_zero((size_t)m->vocab_size, sizeof *m->special);
    m->ordinary = wf_alloc((size_t)m->vocab_size * sizeof *m->ordinary);
    bool enough = m->special && m->ordinary;
    int32_t special;
    for (int64_t i = 0; enough && wf_tokenizer_special_at(tokenizer, i, &special); i++)
        mark(m, special);
    for (size_t i = 0; enough && i < sizeof part / sizeof *part; i++)
        mark(m, wf_tokenizer_special(tokenizer, part[i]));
    for (int64_t id = 0; enough && id < m->vocab_size; id++)
        if (!m->special[id])
            m->ordinary[m->ordinary_count++] = (int32_t)id;
    if (m->ordinary_count == 0) {
        long long vocab_size = (long long)m->vocab_size;
        wf_masking_free(m);
        return enough ? wf_error_set(error, WF_ERR_FORMAT, "the vocabulary has only special tokens, which are never masked")
                      : wf_error_set(error, WF_ERR_MEMORY, "no memory for the tokens of a vocabulary of %lld", vocab_size);
    }
    m->threshold = (uint64_t)(rate * 4294967296.0);
    /* A key derived from the seed, so that masking draws other random numbers than crops and dropout do under the same seed. */
    static const uint32_t tag[4] = {0x6B73616D}; /* "mask" in ASCII */
    uint32_t word[4];
    wf_philox(tag, (const uint32_t[2]){(uint32_t)seed, (uint32_t)(seed >> 32)}, word);
    m->key[0] = word[0];
    m->key[1] = word[1];
    return WF_OK;
}

void wf_masking_free(struct wf_masking *m)
{
    if (!m)
        return;
    wf_free(m->ordinary);
    wf_free(m->special);
    *m = (struct wf_masking){0};
}

int64_t wf_masking_hide(const struct wf_masking *m, int64_t step, int64_t first_row, int64_t rows, int64_t cols, int32_t *ids,
                        int32_t *places, int32_t *targets)
{
    if (!m || !ids || !places || !targets)
        return 0;
    static const uint32_t masked = 0xCCCCCCCD, drawn = 0xE6666667; /* 0.8 and 0.9 of 2^32, rounded up */
    int64_t count = 0;
    for (int64_t i = 0; i < rows * cols; i++) {
        if (m->special[ids[i]])
            continue;
        uint32_t word[4];
        wf_philox((const uint32_t[4]){(uint32_t)step, (uint32_t)(step >> 32), (uint32_t)(first_row + i / cols), (uint32_t)(i % cols)},
                  m->key, word);
        if (word[0] >= m->threshold)
            continue;
        places[count] = (int32_t)i;
        targets[count++] = ids[i];
        /* Maps a random 64-bit u to floor(u n / 2^64), where n is the number of ordinary tokens. The probabilities of two tokens differ
         * by at most one part in 2^64 / n. */
        uint64_t u = (uint64_t)word[3] << 32 | word[2];
        if (word[1] < masked)
            ids[i] = m->mask;
        else if (word[1] < drawn)
            ids[i] = m->ordinary[(unsigned __int128)u * (uint64_t)m->ordinary_count >> 64];
    }
    return count;
}

wf_status wf_masking_frame(const struct wf_masking *m, int64_t rows, int64_t cols, int32_t *ids, wf_error *error)
{
    if (wf_needs(error, "masking, ids", m, wf_some(ids, rows)))
        return WF_ERR_ARGUMENT;
    if (m->begin < 0 || m->end < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_masking_frame: the tokenizer has no %s token (%s) to put around rows",
                            m->begin < 0 ? "start" : "end", m->begin < 0 ? "[CLS] or <s>" : "[SEP] or </s>");
    if (rows < 0 || cols < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_masking_frame: %lld rows of %lld ids: neither may be negative", (long long)rows,
                            (long long)cols);
    for (int64_t r = rows - 1; r >= 0; r--) { /* the last row moves first, because rows move to higher addresses and must not
                                                 overwrite a row that has not moved yet */
        int32_t *row = ids + r * (cols + 2);
        memmove(row + 1, ids + r * cols, (size_t)cols * sizeof *ids);
        row[0] = m->begin;
        row[cols + 1] = m->end;
    }
    return WF_OK;
}

int64_t wf_masking_ordinary(const struct wf_masking *m, struct wf_id_view ids)
{
    if (!m)
        return 0;
    enum { PIECE = 1024 };
    int32_t id[PIECE];
    int64_t n = 0;
    for (int64_t at = 0, count; at < ids.count; at += count) {
        count = WF_MIN(ids.count - at, PIECE);
        wf_id_view_copy(ids, at, count, id);
        for (int64_t i = 0; i < count; i++)
            n += !m->special[id[i]];
    }
    return n;
}
