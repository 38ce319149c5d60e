/* SPDX-License-Identifier: MIT */
/* A hash table from names to numbers (weft/internal/name_table.h). */
#include <string.h>

#include <weft/internal/hash.h>
#include <weft/internal/name_table.h>
#include <weft/memory.h>

static int64_t first_place(const struct wf_name_table *table, uint64_t hash)
{
    return (int64_t)(hash & (uint64_t)(table->room - 1));
}

static void enter(struct wf_name_table *table, struct wf_name_slot entry)
{
    int64_t i = first_place(table, entry.hash);
    while (table->slot[i].name)
        i = (i + 1) & (table->room - 1);
    table->slot[i] = entry;
}

static bool make_room(struct wf_name_table *table)
{
    struct wf_name_table larger = {.room = table->room > 0 ? 2 * table->room : 64, .count = table->count, .key = table->key};
    if (table->room == 0)
        larger.key = wf_hash_key();
    larger.slot = wf_alloc_zero((size_t)larger.room, sizeof *larger.slot);
    if (!larger.slot)
        return false;
    for (int64_t i = 0; i < table->room; i++)
        if (table->slot[i].name)
            enter(&larger, table->slot[i]);
    wf_free(table->slot);
    *table = larger;
    return true;
}

bool wf_name_table_add(struct wf_name_table *table, const char *name, int64_t number)
{
    if (2 * table->count >= table->room && !make_room(table))
        return false;
    enter(table, (struct wf_name_slot){name, wf_hash(name, (int64_t)strlen(name), table->key), number});
    table->count++;
    return true;
}

int64_t wf_name_table_find(const struct wf_name_table *table, const char *name, size_t length)
{
    if (table->count == 0)
        return -1;
    uint64_t hash = wf_hash(name, (int64_t)length, table->key);
    for (int64_t i = first_place(table, hash); table->slot[i].name; i = (i + 1) & (table->room - 1))
        if (table->slot[i].hash == hash && strlen(table->slot[i].name) == length && memcmp(table->slot[i].name, name, length) == 0)
            return table->slot[i].number;
    return -1;
}

void wf_name_table_free(struct wf_name_table *table)
{
    wf_free(table->slot);
    *table = (struct wf_name_table){0};
}
