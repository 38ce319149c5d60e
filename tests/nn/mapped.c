/* SPDX-License-Identifier: MIT */
/* Parameters that stay in the memory of a mapped file. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <weft/weft.h>

#include "io/io_test.h"
#include "nn_test.h"

enum { V = 37, D = 24, HIDDEN = 40, B = 2, T = 5 };
static const char *path;

/* Embedding, norm, gated pair, and a map whose weight the file has as a transpose. */
struct net {
    wf_registry *registry;
    struct wf_embedding embedding;
    struct wf_layer_norm norm;
    struct wf_linear gate, up, joined, down;
};

static struct net declare(void)
{
    struct net n = {.registry = new_registry()};
    const wf_scope root = wf_root(n.registry);
    wf_embedding_init(wf_sub(root, "embedding"), &n.embedding, V, D);
    wf_layer_norm_init(wf_sub(root, "norm"), &n.norm, D);
    wf_linear_init(wf_sub(root, "gate"), &n.gate, D, HIDDEN, .no_bias = true);
    wf_linear_init(wf_sub(root, "up"), &n.up, D, HIDDEN, .no_bias = true);
    wf_linear_init(wf_sub(root, "joined"), &n.joined, D, HIDDEN, .no_bias = true);
    wf_linear_init(wf_sub(root, "down"), &n.down, HIDDEN, D, .no_bias = true);
    return n;
}

static const struct wf_load_rule rule[] = {
    {"gate.weight", {"both"}, .part = 0, .parts = 2},
    {"up.weight", {"both"}, .part = 1, .parts = 2},
    {"joined.weight", {"first", "second"}},
    {"down.weight", {"turned"}, .transposed = true},
};

static void put(wf_safetensors_writer *w, const char *name, const wf_shape *shape, wf_dtype dtype)
{
    static char memory[16][V * HIDDEN * 4 * sizeof(double)];
    static int used;
    wf_real *values = (wf_real *)(void *)memory[used++ % 16];
    char *place = memory[used++ % 16];
    const int64_t count = wf_shape_count(shape);
    wf_fill_normal(values, count, 0, 0.3, 7, wf_stream_of(name));
    ck_assert(wf_convert(dtype, place, WF_REAL, values, count));
    const wf_array a = wf_array_contiguous(place, dtype, shape);
    wf_safetensors_put(w, name, &a);
}

/* Writes the file at `path`; `before` bytes come before the tensors. */
static void write_net(wf_dtype dtype, int before)
{
    path = in_folder("model.safetensors");
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    const uint8_t bytes[8] = {0};
    const wf_array odd = wf_array_contiguous((void *)bytes, WF_U8, WF_SHAPE(before));
    if (before > 0)
        wf_safetensors_put(w, "odd", &odd);
    put(w, "embedding.weight", WF_SHAPE(V, D), dtype);
    put(w, "norm.weight", WF_SHAPE(D), dtype);
    put(w, "norm.bias", WF_SHAPE(D), dtype);
    put(w, "both", WF_SHAPE(2 * HIDDEN, D), dtype);
    put(w, "first", WF_SHAPE(HIDDEN / 2, D), dtype);
    put(w, "second", WF_SHAPE(HIDDEN / 2, D), dtype);
    put(w, "turned", WF_SHAPE(HIDDEN, D), dtype);
    ck_ok(wf_safetensors_commit(w, path, error));
}

static wf_safetensors *opened(bool map)
{
    wf_error error = {0};
    wf_safetensors *file = wf_safetensors_open(path, &error, .map = map);
    ck_assert_msg(file != NULL, "%s", error.message);
    return file;
}

static struct wf_load_options options_of(enum wf_stored stored, bool map)
{
    static const char *const ignored[] = {"odd", NULL};
    return (struct wf_load_options){.rule = rule, .rules = 4, .ignored = ignored, .stored = stored, .map = map};
}

/* Loads the net and closes the file. */
static struct net load(enum wf_stored stored, bool map)
{
    struct net n = declare();
    wf_safetensors *file = opened(map);
    const struct wf_load_options o = options_of(stored, map);
    ck_ok(wf_registry_load_with(n.registry, file, &o, error));
    wf_safetensors_close(file);
    return n;
}

static bool is_mapped(const struct net *n, const wf_tensor *parameter)
{
    return wf_registry_is_mapped(n->registry, wf_parameter_info(parameter)->index);
}

static void compute(const struct net *n, wf_real out[B * T * D])
{
    static const int32_t ids[B * T] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 36};
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *x = wf_layer_norm_forward(&n->norm, wf_embedding_forward(&n->embedding, wf_ids(tape, ids, B, T)));
    wf_tensor *y = wf_mul(wf_silu(wf_linear_forward(&n->gate, x)), wf_linear_forward(&n->up, x));
    ck_read(wf_linear_forward(&n->down, wf_add(y, wf_linear_forward(&n->joined, x))), out, B * T * D);
    wf_tape_free(tape);
}

/* Loaded and mapped, the net computes the same; the file's handle is closed meanwhile. What is one tensor of the right dtype is mapped, and
 * frozen; what is stacked, transposed, converted or not aligned is read. */
START_TEST(the_same_bits)
{
    static const struct {
        wf_dtype dtype;
        enum wf_stored stored;
        int before;
        bool linear, norm; /* what is mapped */
    } row[] = {
        {WF_REAL, WF_STORED_REAL, 0, true, true},
        {WF_REAL, WF_STORED_REAL, 1, false, false},
        {WF_REAL == WF_F32 ? WF_F64 : WF_F32, WF_STORED_REAL, 0, false, false},
        {WF_F16, WF_STORED_AS_FILE, 0, false, false},
        {WF_BF16, WF_STORED_REAL, 0, false, false},
        {WF_BF16, WF_STORED_AS_FILE, 0, WF_REAL == WF_F32, false},
        {WF_BF16, WF_STORED_AS_FILE, 1, false, false},
        {WF_BF16, WF_STORED_AS_FILE, 2, WF_REAL == WF_F32, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        write_net(row[i].dtype, row[i].before);
        struct net read = load(row[i].stored, false), mapped = load(row[i].stored, true);
        const wf_tensor *const linear[] = {mapped.embedding.weight, mapped.gate.weight, mapped.up.weight};
        for (int j = 0; j < 3; j++)
            ck_assert_msg(is_mapped(&mapped, linear[j]) == row[i].linear, "row %zu, %d", i, j);
        ck_assert_int_eq(is_mapped(&mapped, mapped.norm.weight), row[i].norm);
        ck_assert(!is_mapped(&mapped, mapped.joined.weight) && !is_mapped(&mapped, mapped.down.weight));
        ck_assert(!is_mapped(&read, read.up.weight) && !wf_registry_is_mapped(mapped.registry, 99));
        ck_assert(wf_parameter_info(mapped.norm.bias)->frozen == row[i].norm);
        wf_real one[B * T * D], other[B * T * D];
        compute(&read, one);
        compute(&mapped, other);
        ck_assert_mem_eq(one, other, sizeof one);
        ck_ok(wf_registry_intact(mapped.registry, error));
        wf_registry_free(read.registry);
        wf_registry_free(mapped.registry);
    }
}
END_TEST

/* A file that is not open with .map, or a second load, is read. */
START_TEST(read_where_it_must_be)
{
    write_net(WF_REAL, 0);
    struct net n = declare();
    wf_safetensors *plain = opened(false), *file = opened(true);
    const struct wf_load_options o = options_of(WF_STORED_REAL, true);
    ck_ok(wf_registry_load_with(n.registry, plain, &o, error));
    ck_assert(!is_mapped(&n, n.up.weight));
    ck_ok(wf_registry_load_with(n.registry, file, &o, error));
    ck_assert(!is_mapped(&n, n.up.weight));
    wf_registry_free(n.registry);
    n = declare();
    ck_ok(wf_registry_load_with(n.registry, file, &o, error));
    wf_real first[V * D], second[V * D];
    ck_read(n.embedding.weight, first, V * D);
    memset(second, 0, sizeof second);
    ck_ok(wf_parameter_set(n.embedding.weight, second, V * D, error));
    ck_ok(wf_registry_load_with(n.registry, plain, &o, error));
    ck_read(n.embedding.weight, second, V * D);
    ck_assert_mem_eq(first, second, sizeof first);
    wf_registry_free(n.registry);
    wf_safetensors_close(plain);
    wf_safetensors_close(file);
}
END_TEST

/* A mapped parameter may be set, and is saved with its new values; the file keeps the old ones. */
START_TEST(set_and_saved)
{
    write_net(WF_REAL, 0);
    struct net n = load(WF_STORED_REAL, true), again;
    wf_real values[V * D], was[V * D], now[V * D];
    wf_fill_normal(values, V * D, 0, 1, 1, 1);
    ck_read(n.embedding.weight, was, V * D);
    ck_ok(wf_parameter_set(n.embedding.weight, values, V * D, error));
    ck_read(n.embedding.weight, now, V * D);
    ck_assert_mem_eq(now, values, sizeof now);
    again = load(WF_STORED_REAL, true);
    ck_read(again.embedding.weight, now, V * D);
    ck_assert_mem_eq(now, was, sizeof now);
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_registry_save(n.registry, w, "");
    wf_safetensors *saved = written(w);
    ck_ok(wf_safetensors_read(saved, "embedding.weight", WF_REAL, now, V * D, error));
    ck_assert_mem_eq(now, values, sizeof now);
    /* the file may be replaced */
    write_net(WF_REAL, 1);
    ck_read(again.embedding.weight, now, V * D);
    ck_assert_mem_eq(now, was, sizeof now);
    wf_safetensors_close(saved);
    wf_registry_free(n.registry);
    wf_registry_free(again.registry);
}
END_TEST

START_TEST(not_trained)
{
    write_net(WF_REAL, 0);
    struct net n = load(WF_STORED_REAL, true);
    ck_ok(wf_registry_freeze_matching(n.registry, "joined.*", false, error));
    ck_fails(wf_registry_freeze_matching(n.registry, "up.*", false, error), WF_ERR_ARGUMENT,
             "'up.weight' is mapped from a file, and so has no gradient: load it without .map, or give a pattern without it");
    ck_ok(wf_registry_gradients(n.registry, error));
    wf_registry_freeze(n.registry, n.up.weight, true);
    wf_registry_freeze(n.registry, n.up.weight, false);
    ck_fails(wf_registry_gradients(n.registry, error), WF_ERR_ARGUMENT, "'up.weight' is mapped from a file");
    wf_registry_free(n.registry);
}
END_TEST

static int64_t own_memory(void)
{
    char line[256];
    long long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kib < 0 && fgets(line, sizeof line, f))
        (void)sscanf(line, "RssAnon: %lld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* Mapped weights take no memory of the process's own, and not even the time to read them. */
START_TEST(takes_no_memory)
{
    enum { ROWS = 16384, WIDTH = 512 };
    const int64_t bytes = (int64_t)ROWS * WIDTH * (int64_t)sizeof(wf_real);
    path = in_folder("model.safetensors");
    wf_real *values = wf_alloc_zero(ROWS * WIDTH, sizeof *values);
    const wf_array a = wf_array_contiguous(values, WF_REAL, WF_SHAPE(ROWS, WIDTH));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, "w", &a);
    ck_ok(wf_safetensors_commit(w, path, error));
    wf_free(values);
    wf_registry *r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(ROWS, WIDTH), .storable = true);
    wf_safetensors *file = opened(true);
    const int64_t before = own_memory();
    ck_ok(wf_registry_load_with(r, file, &(struct wf_load_options){.map = true}, error));
    wf_safetensors_close(file);
    ck_assert(before < 0 || own_memory() - before < bytes / 1024 / 8);
    ck_assert_int_eq(wf_registry_slab(r), 0);
    wf_registry_free(r);
}
END_TEST

static void write_at(int64_t at, const void *data, size_t bytes)
{
    const int fd = open(path, O_WRONLY);
    ck_assert(fd >= 0 && pwrite(fd, data, bytes, at) == (ssize_t)bytes);
    close(fd);
}

/* Another process truncates the file, by whole pages or within the last one, or rewrites it in place. */
START_TEST(harmed)
{
    wf_safetensors_guard();
    wf_safetensors_guard();
    const long page = sysconf(_SC_PAGESIZE);
    for (int how = 0; how < 4; how++) {
        write_net(WF_REAL, 0);
        struct net n = load(WF_STORED_REAL, true), other = load(WF_STORED_REAL, false);
        wf_real out[B * T * D];
        struct stat info;
        ck_assert_int_eq(stat(path, &info), 0);
        compute(&n, out);
        ck_ok(wf_registry_intact(n.registry, error));
        const off_t left[] = {page, 0, info.st_size - 1};
        if (how < 3)
            ck_assert_int_eq(truncate(path, left[how]), 0);
        else
            write_at(info.st_size - 4, "abcd", 4);
        compute(&n, out);
        ck_fails(wf_registry_intact(n.registry, error), WF_ERR_IO,
                 how < 3 ? "was truncated while its weights" : "was changed while its weights");
        ck_ok(wf_registry_intact(other.registry, error));
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_registry_save(n.registry, w, "");
        ck_fails(wf_safetensors_commit(w, in_folder("saved"), error), WF_ERR_IO, "while its weights were in use: restore it");
        ck_assert(!wf_file_exists(in_folder("saved")));
        wf_registry_free(n.registry);
        wf_registry_free(other.registry);
    }
    ck_ok(wf_registry_intact(NULL, error));
}
END_TEST

/* Several threads meet the lost pages. */
static void *compute_often(void *net)
{
    wf_real out[B * T * D];
    for (int i = 0; i < 50; i++)
        compute(net, out);
    return NULL;
}

START_TEST(harmed_in_threads)
{
    wf_safetensors_guard();
    write_net(WF_REAL, 0);
    struct net n = load(WF_STORED_REAL, true);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, compute_often, &n), 0);
    ck_assert_int_eq(truncate(path, 0), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    ck_fails(wf_registry_intact(n.registry, error), WF_ERR_IO, "was truncated");
    wf_registry_free(n.registry);
}
END_TEST

/* Of several registries only one has a file's memory; and two parameters of one tensor are two. */
START_TEST(not_shared)
{
    write_net(WF_REAL, 0);
    wf_safetensors *file = opened(true);
    struct net n[2] = {declare(), declare()};
    const struct wf_load_options o = options_of(WF_STORED_REAL, true);
    for (int i = 0; i < 2; i++)
        ck_ok(wf_registry_load_with(n[i].registry, file, &o, error));
    ck_assert(is_mapped(&n[0], n[0].up.weight) && !is_mapped(&n[1], n[1].up.weight));
    wf_real was[V * D], now[V * D], other[V * D] = {0};
    ck_read(n[1].embedding.weight, was, V * D);
    ck_ok(wf_parameter_set(n[0].embedding.weight, other, V * D, error));
    ck_read(n[1].embedding.weight, now, V * D);
    ck_assert_mem_eq(was, now, sizeof was);
    wf_registry *r = new_registry();
    wf_tensor *a = wf_parameter(wf_root(r), "a", WF_SHAPE(V, D)), *b = wf_parameter(wf_root(r), "b", WF_SHAPE(V, D));
    static const struct wf_load_rule twice[] = {{"a", {"embedding.weight"}}, {"b", {"embedding.weight"}}};
    static const char *const rest[] = {"*", NULL};
    wf_safetensors *again = opened(true);
    ck_ok(wf_registry_load_with(r, again, &(struct wf_load_options){.rule = twice, .rules = 2, .ignored = rest, .map = true}, error));
    ck_ok(wf_parameter_set(a, other, V * D, error));
    ck_read(b, now, V * D);
    ck_assert_mem_eq(was, now, sizeof was);
    wf_registry_free(r);
    for (int i = 0; i < 2; i++)
        wf_registry_free(n[i].registry);
    wf_safetensors_close(again);
    wf_safetensors_close(file);
}
END_TEST

/* A file in the caller's memory is read: the caller may free it. */
START_TEST(views_are_read)
{
    write_net(WF_REAL, 0);
    int64_t bytes;
    char *text = wf_file_load(path, 1 << 20, &bytes, NULL);
    wf_safetensors *file = wf_safetensors_view(text, bytes, "memory", NULL);
    struct net n = declare();
    const struct wf_load_options o = options_of(WF_STORED_REAL, true);
    ck_ok(wf_registry_load_with(n.registry, file, &o, error));
    ck_assert(!is_mapped(&n, n.up.weight));
    wf_safetensors_close(file);
    memset(text, 0xff, (size_t)bytes);
    wf_free(text);
    struct net want = load(WF_STORED_REAL, false);
    wf_real one[B * T * D], other[B * T * D];
    compute(&n, one);
    compute(&want, other);
    ck_assert_mem_eq(one, other, sizeof one);
    wf_registry_free(n.registry);
    wf_registry_free(want.registry);
}
END_TEST

static volatile sig_atomic_t seen;

static void note(int number)
{
    seen = number;
    _exit(EXIT_SUCCESS);
}

/* A lost page of memory that is not guarded is left to the handler of the program. */
START_TEST(other_causes)
{
    signal(SIGBUS, note);
    wf_safetensors_guard();
    const int fd = open(in_folder("other"), O_RDWR | O_CREAT, 0600);
    ck_assert(fd >= 0 && ftruncate(fd, 10000) == 0);
    const volatile char *memory = mmap(NULL, 10000, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(memory != MAP_FAILED);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_msg(memory[5000] == 1, "the handler that was there before is called");
    ck_abort_msg("the page was lost");
}
END_TEST

/* As many files can be mapped as the guard watches; beyond that the next is refused. */
START_TEST(many_files)
{
    enum { MOST = 1024 };
    static wf_safetensors *file[MOST];
    write_net(WF_REAL, 0);
    wf_error error = {0};
    for (int times = 0; times < 2; times++) {
        for (int i = 0; i < MOST; i++)
            file[i] = opened(true);
        ck_assert(!wf_safetensors_open(path, &error, .map = true) && error.code == WF_ERR_MEMORY);
        ck_says(error.message, "1024 files are mapped already");
        wf_error_clear(&error);
        for (int i = 0; i < MOST; i++)
            wf_safetensors_close(file[i]);
    }
}
END_TEST

WF_TEST_MAIN("mapped", the_same_bits, read_where_it_must_be, set_and_saved, not_trained, takes_no_memory, harmed, harmed_in_threads,
             not_shared, views_are_read, other_causes, many_files)
