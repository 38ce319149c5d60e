/* SPDX-License-Identifier: MIT */
/* A program that mpirun starts several times (tests/dist/world.sh): what the processes do together, and wf_fit in it.
 *
 *   together sums            checks wf_dist_* against what each process can compute by itself
 *   together fails RANK      RANK fails, and all get its message
 *   together share           checks work in items, results of any length, a rank that fails among them
 *   together rest            checks that processes sleep while they wait for one
 *   together watch           checks that a long wait is reported
 *   together fit OUT STEPS [bad | steep | held | seed | phases | unequal | lost | nowhere | settings | fixed | flag | full | norm]   a task
 * of two registries and two optimisers; bad: a NaN in one process's part; steep: in its gradient; held: in rank 0's validation; seed:
 * weights that differ from process to process; phases: each optimiser has a phase; unequal: validations that differ, and decide; lost:
 * a process without a folder; nowhere: all; settings, fixed, flag: rank 1 has others; full: after step 2 rank 0 can write no file, and next
 * exchanges messages; norm: batch normalisation, whose running statistics
 * must be the same on all ranks */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <weft/internal/dist.h>
#include <weft/internal/string.h>
#include <weft/weft.h>

static wf_error error;
static wf_dist *dist;
static int rank, size;

#define CHECK(what)                                                                                                                        \
    do {                                                                                                                                   \
        if (!(what)) {                                                                                                                     \
            fprintf(stderr, "FAILED: %s (%s)\n", #what, error.message);                                                                    \
            exit(9);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

/* The values of a rank are of sizes so different that the order of the additions shows. */
static wf_real value(int from, int64_t i)
{
    wf_real x;
    wf_fill_normal(&x, 1, 0, from % 2 ? 1 : 1000, 11, (uint64_t)(from * 1000003 + i));
    return x;
}

static wf_real tree(int first, int ranks, int64_t i)
{
    int left = 1;
    if (ranks == 1)
        return value(first, i);
    while (2 * left < ranks)
        left *= 2;
    return tree(first, left, i) + tree(first + left, ranks - left, i);
}

static void sums(void)
{
    enum { MANY = 70001 }; /* more than goes at a time */
    wf_real *x = malloc(MANY * sizeof *x);
    for (int64_t i = 0; i < MANY; i++)
        x[i] = value(rank, i);
    CHECK(wf_dist_sum(dist, x, MANY, &error) == WF_OK);
    for (int64_t i = 0; i < MANY; i++)
        CHECK(x[i] == tree(0, size, i));
    CHECK(wf_dist_sum(dist, NULL, 0, &error) == WF_OK);
    free(x);
    int64_t mine[2] = {rank, -rank}, *all = calloc((size_t)size, sizeof mine);
    CHECK(wf_dist_all_gather(dist, mine, sizeof mine, all, &error) == WF_OK);
    for (int r = 0; r < size; r++)
        CHECK(all[2 * r] == r && all[2 * r + 1] == -r);
    free(all);
    for (int root = 0; root < size; root++) {
        char text[32] = "nobody";
        if (rank == root)
            snprintf(text, sizeof text, "rank %d", rank);
        CHECK(wf_dist_broadcast(dist, text, sizeof text, root, &error) == WF_OK);
        CHECK(atoi(text + 5) == root);
    }
    CHECK(wf_dist_barrier(dist, &error) == WF_OK);
    CHECK(wf_dist_agree(dist, WF_OK, &error) == WF_OK);
    CHECK(error.code == WF_OK);
    CHECK(wf_dist_broadcast(dist, mine, 8, size, &error) == WF_ERR_ARGUMENT && strstr(error.message, "root"));
    error = (wf_error){0};
    CHECK(wf_dist_sum(NULL, NULL, 1, &error) == WF_ERR_ARGUMENT && strstr(error.message, "dist is NULL"));
    error = (wf_error){0};
    if (rank == 0)
        printf("%d processes add\n", size);
}

static void fails(int failing)
{
    wf_status status = WF_OK;
    if (rank == failing)
        status = wf_error_set(&error, WF_ERR_IO, "no file here");
    CHECK(wf_dist_agree(dist, status, &error) == WF_ERR_IO);
    CHECK(strstr(error.message, "no file here") && (failing == 0) == !strstr(error.message, "rank"));
    if (rank == 0)
        printf("%s\n", error.message);
}

/* `text`: a part of the message if the comparison must fail; % stands for the last rank. */
static void compare(const char *mine, bool fits, const char *text)
{
    struct wf_string words = {0}, want = {0};
    wf_error why = {0};
    wf_string_text(&words, mine);
    for (const char *c = text; *c; c++)
        *c == '%' ? wf_string_format(&want, "%d", size - 1) : wf_string_char(&want, *c);
    CHECK(wf_dist_compare(dist, &words, &why) == (fits || size == 1 ? WF_OK : WF_ERR_ARGUMENT));
    error = why;
    CHECK(fits || size == 1 || strstr(why.message, want.data));
    error = (wf_error){0};
    wf_string_free(&want);
}

static void share(void)
{
    enum { ITEMS = 23 };
    char text[ITEMS + 1];
    for (int failing = -1; failing < size; failing++) { /* -1: none */
        struct wf_share s = {.dist = dist};
        wf_status status = failing == rank ? wf_error_set(&error, WF_ERR_IO, "no file here") : WF_OK;
        int mine = 0, all = 0;
        for (int i = 0; i < ITEMS; i++)
            if (wf_share_mine(&s, i)) { /* i bytes, item 0 none */
                memset(text, 'a' + i, (size_t)i);
                wf_share_add(&s, text, i);
                mine++;
            }
        status = wf_share_gather(&s, status, &error);
        CHECK(status == (failing < 0 ? WF_OK : WF_ERR_IO));
        CHECK(failing < 0 || strstr(error.message, "no file here"));
        for (int i = 0; i < ITEMS && status == WF_OK; i++) {
            CHECK(wf_share_take(&s, i, text, i, &error) == WF_OK);
            for (int k = 0; k < i; k++)
                CHECK(text[k] == 'a' + i);
        }
        CHECK(status != WF_OK || wf_share_take(&s, 0, text, 1, &error) == WF_ERR_STATE);
        wf_share_free(&s);
        error = (wf_error){0};
        int each[64]; /* each item is done once, and the shares are about equal */
        CHECK(size <= 64 && wf_dist_all_gather(dist, &mine, sizeof mine, each, &error) == WF_OK);
        for (int r = 0; r < size; r++) {
            CHECK(each[r] >= ITEMS / size && each[r] <= ITEMS / size + 1);
            all += each[r];
        }
        CHECK(all == ITEMS);
    }
    const bool last = rank == size - 1;
    compare("same=7 other=1 ", true, "");
    compare(last ? "same=7 other=1" : "same=7 other=0", false, "rank 0 has other=0, rank % has other=1;");
    compare(last ? "same=7 other=2 more" : "same=7 #other=1 more", false, "rank 0 has #other=1, rank % has no #other;");
    compare(last ? "same=7 #the-other=2" : "same=7 #the-other=1", false, "rank 0 and rank % do not have the same the other;");
    compare(last ? "a=1 c=2" : "a=1 b=1 c=2", false, "rank 0 has b=1, rank % has no b;");
    compare(last ? "a=1 new b=1" : "a=1 b=1", false, "rank 0 has no new, rank % has new;");
    compare(last ? "a=1" : "a=1 b", false, "rank 0 has b, rank % has no b;");
    compare(last ? "" : "a=1", false, "rank 0 has a=1, rank % has no a;");
    compare(last ? "b=1 a=1" : "a=1 b=1", false, "rank 0 has a=1, rank % has b=1;");
    if (rank == 0)
        printf("%d processes share\n", size);
}

/* --- wf_fit ---------------------------------------------------------------------------------------------------------- */

enum { ROWS = 24, IN = 6, HIDDEN = 16 };
struct program {
    wf_registry *body, *head;
    struct wf_linear up, down;
    struct wf_batch_norm norm[2]; /* of the body, and of the head */
    struct wf_optimizer adam, sgd;
    wf_real x[ROWS][IN];
    int32_t label[ROWS];
    int validations;
};

/* The last argument of `together fit`. */
static const char *how;

static bool is(const char *name)
{
    return strcmp(how, name) == 0;
}

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *why)
{
    struct program *p = ctx;
    int64_t all[16];
    if (is("full") && wf_dist_all_gather(dist, &step, sizeof step, all, why))
        return why->code;
    for (int i = 0; i < ROWS; i++) {
        wf_fill_normal(p->x[i], IN, 0, 1, 7, (uint64_t)(step * ROWS + i));
        p->label[i] = p->x[i][0] + p->x[i][1] > 0;
    }
    *weight = step % 3 == 2 ? ROWS / 2 : ROWS; /* then the later parts are empty */
    return WF_OK;
}

static wf_tensor *normal(const struct wf_batch_norm *m, wf_tensor *x)
{
    return is("norm") ? wf_batch_norm_forward(m, x) : x;
}

static wf_tensor *loss(void *ctx, struct wf_micro_batch *part)
{
    struct program *p = ctx;
    const int64_t rows = (int64_t)part->weight, first = ROWS * part->index / part->count;
    int64_t count = ROWS * (part->index + 1) / part->count - first;
    count = first + count > rows ? rows - first : count;
    if (count <= 0)
        return NULL;
    wf_tape_first_row(part->tape, (uint64_t)first);
    wf_tensor *x = wf_input(part->tape, p->x[first], WF_SHAPE(count, IN), false);
    wf_tensor *hidden = wf_dropout(wf_tanh(normal(&p->norm[0], wf_linear_forward(&p->up, x))), 0.2);
    wf_tensor *logits = normal(&p->norm[1], wf_linear_forward(&p->down, hidden));
    const bool middle = part->step == 1 && part->index == part->count / 2;
    if (middle && is("bad"))
        logits = wf_name(wf_log(wf_scale(logits, 0)), "logarithm");
    if (middle && is("steep"))
        logits = wf_sqrt(wf_name(wf_scale(logits, 0), "flattened"));
    return wf_cross_entropy(logits, wf_ids_of(part->tape, p->label + first, WF_SHAPE(count)), .normalizer = part->weight);
}

static wf_status validate(void *ctx, wf_tape *tape, double *out, wf_error *why)
{
    struct program *p = ctx;
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *x = wf_input(tape, p->x[0], WF_SHAPE(ROWS, IN), false);
    wf_tensor *y = wf_linear_forward(&p->down, wf_tanh(normal(&p->norm[0], wf_linear_forward(&p->up, x))));
    y = normal(&p->norm[1], y);
    if (rank == 0 && is("held"))
        y = wf_add(y, wf_name(wf_input(tape, &(wf_real){(wf_real)NAN}, WF_SHAPE(1), false), "noise"));
    if (wf_item(wf_cross_entropy(y, wf_ids_of(tape, p->label, WF_SHAPE(ROWS))), out))
        return wf_tape_status(tape, why);
    if (is("unequal"))
        *out = rank == 0 ? 1 : 1.0 / (double)++p->validations;
    return WF_OK;
}

static void warn(void *ctx, const struct wf_fit_event *e)
{
    (void)ctx;
    if (e->kind == WF_EVENT_WARNING)
        printf("warning: %s\n", e->text);
    if (is("full") && e->kind == WF_EVENT_STEP && e->step == 2) { /* as a full disk */
        signal(SIGXFSZ, SIG_IGN);
        CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1, 1}) == 0);
    }
}

static int fit(int argc, char **argv)
{
    static struct program p;
    how = argc > 4 ? argv[4] : "";
    const bool phases = is("phases"), lost = is("lost"), nowhere = is("nowhere"), saves = !lost && !nowhere, unequal = is("unequal");
    const char *settings = rank == 1 && is("settings") ? "name=a  rate=2"
                           : rank == 1 && is("flag")   ? "name=a rate=1 fast=1"
                                                       : "name=a rate=1";
    static const char *const names[] = {"body", "head", NULL};
    p.body = wf_registry_new(NULL);
    p.head = wf_registry_new(NULL);
    wf_linear_init(wf_sub(wf_root(p.body), "up"), &p.up, IN, HIDDEN);
    wf_linear_init(wf_sub(wf_root(p.head), "down"), &p.down, HIDDEN, 2);
    if (is("norm")) {
        wf_batch_norm_init(wf_sub(wf_root(p.body), "norm"), &p.norm[0], HIDDEN);
        wf_batch_norm_init(wf_sub(wf_root(p.head), "norm"), &p.norm[1], 2, .momentum = 0.3);
    }
    CHECK(wf_registry_build(p.body, is("seed") ? (uint64_t)rank : 1, &error) == WF_OK);
    CHECK(wf_registry_build(p.head, 2, &error) == WF_OK);
    CHECK(wf_adamw_init(&p.adam, p.body, &error, .lr = 0.01) == WF_OK);
    CHECK(wf_sgd_init(&p.sgd, p.head, &error, .lr = 0.1, .momentum = 0.9) == WF_OK);
    static const struct wf_metric metric[] = {{"loss"}};
    const struct wf_task task = {WF_TASK_ABI,      .name = "together",  .phases = phases ? names : NULL,
                                 .metric = metric, .metrics = 1,        .next = next,
                                 .loss = loss,     .validate = validate};
    const struct wf_fit_registry registry[] = {{"body", p.body}, {"head", p.head}};
    const struct wf_fit_optimizer optimizer[] = {
        {"adam", &p.adam, .schedule = {.kind = WF_SCHEDULE_COSINE, .peak = 0.01, .warmup = 2, .steps = 10}},
        {"sgd", &p.sgd, .phase = phases}};
    const char *parts = getenv("PARTS");
    const struct wf_fit_options options = {.out = nowhere || (lost && rank == 1) ? NULL : argv[2],
                                           .registry = registry,
                                           .registries = 2,
                                           .optimizer = optimizer,
                                           .optimizers = 2,
                                           .steps = atoi(argv[3]),
                                           .accumulate = parts ? atoi(parts) : 1,
                                           .clip = 0.5,
                                           .save_every = saves ? 3 : 0,
                                           .valid_every = unequal ? 1 : 4,
                                           .patience = unequal ? 3 : 0,
                                           .keep = saves,
                                           .log_every = 1,
                                           .seed = 3,
                                           .resume = saves,
                                           .settings = settings,
                                           .fixed = rank == 1 && is("fixed") ? NULL : "width=5",
                                           .event = warn,
                                           .values_by_ops = is("full"),
                                           .ctx = &p};
    wf_status status = wf_fit(&task, &options, NULL, &error);
    if (status != WF_OK && rank == 0)
        fprintf(stderr, "%s\n", error.message);
    for (int i = 0; i < 4 && is("norm") && status == WF_OK; i++) {
        const struct wf_batch_norm *m = &p.norm[i / 2];
        const wf_array *a = &wf_parameter_info(i % 2 ? m->running_var : m->running_mean)->value;
        wf_real of_rank_0[HIDDEN];
        CHECK(wf_array_count(a) <= HIDDEN && ((wf_real *)a->data)[0] != (wf_real)(i % 2));
        memcpy(of_rank_0, a->data, (size_t)wf_array_count(a) * sizeof *of_rank_0);
        CHECK(wf_dist_broadcast(dist, of_rank_0, wf_array_count(a) * (int64_t)sizeof *of_rank_0, 0, &error) == WF_OK);
        CHECK(memcmp(of_rank_0, a->data, (size_t)wf_array_count(a) * sizeof *of_rank_0) == 0);
    }
    wf_optimizer_free(&p.adam);
    wf_optimizer_free(&p.sgd);
    wf_registry_free(p.body);
    wf_registry_free(p.head);
    return status == WF_OK ? 0 : 1;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct told {
    int count;
    char text[160];
};
static void waits(void *ctx, const char *text)
{
    struct told *told = ctx;
    told->count++;
    snprintf(told->text, sizeof told->text, "%s", text);
}

/* A wait for the last, who is late: told once, in one that keeps the processor busy, and in one that does not. */
static void watch(void)
{
    const int last = size - 1;
    struct told told = {0};
    char want[96];
    const struct wf_dist_watch mine = {.seconds = 0.2, .waits = waits, .ctx = &told};
    wf_dist_watch(dist, &mine);
    for (int way = 0; way < 2; way++) {
        const struct timespec pause = {.tv_nsec = 900000000};
        told.count = 0;
        CHECK(wf_dist_barrier(dist, &error) == WF_OK); /* all soon: not told */
        CHECK(told.count == 0);
        if (rank == last)
            nanosleep(&pause, NULL);
        CHECK((way ? wf_dist_rest(dist, &error) : wf_dist_barrier(dist, &error)) == WF_OK);
        snprintf(want, sizeof want, "waiting for rank %d since 0 s: is its process stopped?", last);
        CHECK(rank > 0 || last == 0 || (told.count == 1 && strcmp(told.text, want) == 0));
        CHECK(rank < last || told.count == 0);
    }
    const struct wf_dist_watch former = wf_dist_watch(dist, NULL);
    CHECK(former.waits == waits && former.ctx == &told && former.seconds == 0.2 && wf_dist_watch(dist, NULL).waits == NULL);
    if (rank == 0)
        printf("%d processes watch\n", size);
}

/* Nobody leaves before the last has come, in any turn; who waits uses a small part of a processor. */
static void rest(void)
{
    const struct timespec pause = {.tv_nsec = 700000000};
    for (int turn = 0; turn < 20; turn++)
        CHECK(wf_dist_rest(dist, &error) == WF_OK);
    double processor = seconds(CLOCK_PROCESS_CPUTIME_ID), came = 0;
    double *all = malloc((size_t)size * sizeof *all);
    if (rank == size - 1)
        nanosleep(&pause, NULL);
    came = seconds(CLOCK_MONOTONIC);
    CHECK(wf_dist_rest(dist, &error) == WF_OK);
    double left = seconds(CLOCK_MONOTONIC);
    processor = seconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
    CHECK(wf_dist_all_gather(dist, &came, sizeof came, all, &error) == WF_OK);
    for (int r = 0; r < size; r++)
        CHECK(left >= all[r]); /* one machine, one clock */
    CHECK(processor < 0.2);
    free(all);
    if (rank == 0)
        printf("%d processes rest\n", size);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } checks[] = {{"sums", sums}, {"share", share}, {"rest", rest}, {"watch", watch}};
    const char *what = argc > 1 ? argv[1] : "";
    if (!(dist = wf_dist_world(&error))) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    rank = wf_dist_rank(dist);
    size = wf_dist_size(dist);
    if (strcmp(what, "fit") == 0 && argc > 3)
        return fit(argc, argv);
    if (strcmp(what, "fails") == 0 && argc > 2)
        return fails(atoi(argv[2])), 0;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (strcmp(what, checks[i].name) == 0)
            return checks[i].run(), 0;
    return 2;
}
