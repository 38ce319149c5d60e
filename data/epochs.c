/* SPDX-License-Identifier: MIT */
/* The items of shuffled batches. Each place of an epoch is mapped to its item by a Feistel network, so that no list is kept. */
#include <inttypes.h>

#include <weft/epochs.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/random.h>

enum {
    ROUNDS = 8,    /* rounds of the Feistel network */
    LEAST_BITS = 8 /* minimum width of the network in bits: a narrower one could not produce every order of a few items */
};

struct keys {
    uint64_t round[ROUNDS];
};

static struct keys keys_of(const struct wf_epochs *e, int64_t epoch)
{
    /* The tag in the last counter word separates these random numbers from all others that are drawn under the same seed. */
    static const uint32_t epochs_tag = 0x68637065; /* "epch" in ASCII */
    const uint32_t key[2] = {(uint32_t)e->seed, (uint32_t)(e->seed >> 32)};
    struct keys keys;
    for (uint32_t i = 0; i < ROUNDS / 2; i++) {
        const uint32_t counter[4] = {(uint32_t)epoch, (uint32_t)(epoch >> 32), i, epochs_tag};
        uint32_t word[4];
        wf_philox(counter, key, word);
        keys.round[2 * i] = (uint64_t)word[1] << 32 | word[0];
        keys.round[2 * i + 1] = (uint64_t)word[3] << 32 | word[2];
    }
    return keys;
}

/* The `bits` most significant bits of splitmix64's finaliser. */
static uint64_t mix(uint64_t x, int bits)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) >> (64 - bits);
}

static int64_t shuffled(const struct wf_epochs *e, const struct keys *keys, int64_t place)
{
    uint64_t x = (uint64_t)place;
    do { /* The network permutes the numbers of its width, so no two places meet the same number in this loop. All places together
            therefore take at most as many steps as there are numbers of this width. With at least 128 items these are at most twice as
            many as the items, so a place takes at most 2 steps on average. */
        uint64_t high = x >> e->low, low = x & ((UINT64_C(1) << e->low) - 1);
        for (int i = 0; i < ROUNDS; i += 2) {
            high ^= mix(low + keys->round[i], e->high);
            low ^= mix(high + keys->round[i + 1], e->low);
        }
        x = high << e->low | low;
    } while (x >= (uint64_t)e->items);
    return (int64_t)x;
}

wf_status wf_epochs_init_with(struct wf_epochs *epochs, int64_t items, int64_t batch, uint64_t seed,
                              const struct wf_epochs_options *options, wf_error *error)
{
    const struct wf_epochs_options o = options ? *options : (struct wf_epochs_options){0};
    if (wf_needs(error, "epochs", epochs))
        return WF_ERR_ARGUMENT;
    *epochs = (struct wf_epochs){0};
    if (items < 1 || batch < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "epochs of %" PRId64 " items in batches of %" PRId64 ": both must be at least 1", items,
                            batch);
    if (o.drop_last && items < batch)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "epochs of %" PRId64 " items have no whole batch of %" PRId64 ": use a smaller batch, or keep the last one",
                            items, batch);
    int bits = LEAST_BITS;
    while (bits < 63 && items - 1 >= INT64_C(1) << bits)
        bits++;
    *epochs = (struct wf_epochs){.items = items,
                                 .batch = batch,
                                 .steps = o.drop_last ? items / batch : (items - 1) / batch + 1,
                                 .seed = seed,
                                 .in_order = o.in_order,
                                 .low = bits - bits / 2,
                                 .high = bits / 2};
    return WF_OK;
}

int64_t wf_epochs_batch(const struct wf_epochs *epochs, int64_t step, int64_t *rows)
{
    if (!epochs || !rows || step < 0 || epochs->steps < 1)
        return 0;
    const int64_t first = step % epochs->steps * epochs->batch, left = epochs->items - first;
    const int64_t count = WF_MIN(left, epochs->batch);
    const struct keys keys = keys_of(epochs, step / epochs->steps);
    for (int64_t i = 0; i < count; i++)
        rows[i] = epochs->in_order ? first + i : shuffled(epochs, &keys, first + i);
    return count;
}

int64_t wf_epochs_steps(const struct wf_epochs *epochs)
{
    return epochs ? epochs->steps : 0;
}

int64_t wf_epochs_epoch(const struct wf_epochs *epochs, int64_t step)
{
    return epochs && epochs->steps > 0 && step > 0 ? step / epochs->steps : 0;
}

int64_t wf_epochs_item(const struct wf_epochs *epochs, int64_t epoch, int64_t place)
{
    if (!epochs || epoch < 0 || place < 0 || place >= epochs->items)
        return -1;
    const struct keys keys = keys_of(epochs, epoch);
    return epochs->in_order ? place : shuffled(epochs, &keys, place);
}
