/* SPDX-License-Identifier: MIT */
/* Structs and functions that the files of autograd/ share. No file outside autograd/ includes this header.
 *
 * A tensor has a value (a strided array) and, after a backward, perhaps a gradient. The records on the tape point to the tensors that are
 * the operands and the results of ops. Most ops make root tensors: a root is contiguous and has its own memory. A view points into the
 * memory of its base, and usually has no record.
 *
 * Gradients belong to roots. A root's gradient has the layout of its value, and the gradient of a view is written into the matching
 * elements of its root's gradient. So the gradients of slices need not be joined, and a view needs no backward.
 *
 * Views in which an element appears several times (wf_expand) are an exception, because the gradients of the repeated elements must be
 * added up. Such a view is made by an op with .view, has a record, and holds its own gradient. */
#ifndef WEFT_AUTOGRAD_ENGINE_H
#define WEFT_AUTOGRAD_ENGINE_H

#include <stdatomic.h>
#include <string.h>

#include <weft/internal/arena.h>
#include <weft/internal/minmax.h>
#include <weft/internal/parameter.h>
#include <weft/memory.h>
#include <weft/op.h>
#include <weft/tape.h>

/* A block of a tape's memory with a reference count. The block returns to the pool when `refs` becomes 0. */
struct buffer {
    void *data;
    size_t bytes;
    int refs;
    int class;           /* the class of its size: index of the list in pool.free to which the buffer belongs */
    struct buffer *next; /* the next buffer in the pool's list of free buffers, or in a call's list of temporaries */
};

/* The free buffers of a tape, in a list for each class of sizes. */
enum { POOL_CLASSES = 64 * 8 };
struct pool {
    struct buffer *free[POOL_CLASSES];
    uint64_t filled[POOL_CLASSES / 64]; /* bit c of this array is set if free[c] may hold a buffer */
};

/* The state of a value says who may still read the value, and who releases its memory.
 *
 *                        has memory   ops may read it   backwards may read it   released by
 *   VALUE_LIVE           yes          yes               yes                     the user, or a backward when no remaining record reads it
 *   VALUE_KEPT           yes          yes               yes                     the end of the pass, because of wf_keep
 *   VALUE_FOR_BACKWARD   yes          no                yes                     a backward when no remaining record reads it
 *   VALUE_USER_RELEASED  no           no                no                      (was released, after a wf_release)
 *   VALUE_RELEASED       no           no                no                      (was released by a backward or a wf_checkpoint)
 *
 * wf_release of a view forbids later use of that view only. The view changes to VALUE_FOR_BACKWARD and remains there,
 * because it has no memory that could be released, and its root keeps its state. */
enum value_state { VALUE_LIVE, VALUE_KEPT, VALUE_FOR_BACKWARD, VALUE_USER_RELEASED, VALUE_RELEASED };

/* The call that released a value, or that used up the record which made the tensor. */
enum used_by {
    BY_BACKWARD,
    BY_GRADIENTS,
    BY_CHECKPOINT /* the end of a wf_checkpoint: its function made the tensor and did not return it */
};

/* The place in which the gradient of a view is stored. Unless the place is IN_BASE, the view has a record, whose backward adds the view's
 * gradient to that of its base. */
enum gradient_place {
    IN_BASE,      /* in the gradient of the base; roots have this value too */
    OWN_FOR_CALL, /* in a separate buffer while one wf_gradients runs, in the layout of the root */
    OWN,          /* in a separate buffer until the reset (wf_retain_grad), in the layout of the root */
    APART         /* in a separate contiguous buffer, because an op with .view made the view; views of this view are refused */
};

enum tensor_kind {
    TENSOR_INNER,     /* the result of an op, or a view */
    TENSOR_INPUT,     /* a tensor that the user made from data */
    TENSOR_LEAF,      /* stands for a parameter on one tape, in one pass */
    TENSOR_PARAMETER, /* belongs to a registry and to no tape */
    TENSOR_POISON
};

struct wf_tensor {
    wf_array a;
    wf_tape *tape;       /* NULL for a parameter */
    uint64_t generation; /* the tape's number of resets when the tensor was made; 0 after a rewind dropped the tensor */
    uint8_t kind;
    uint8_t value; /* an enum value_state */
    uint8_t by;    /* an enum used_by */
    uint8_t place; /* an enum gradient_place */
    /* These four flags are independent of each other and of the states above. */
    bool needs_grad; /* a gradient can reach this tensor: an input with needs_grad, a trained parameter, or what depends on these */
    bool retain;     /* wf_retain_grad was called: the gradient is kept after wf_backward */
    bool wanted;     /* the running wf_gradients returns the gradient of this tensor */
    bool recorded;   /* this tensor is an operand of a record, or a view of it was made */
    /* For a root: `buffer` holds the value as bf16 (release.c). a.data is no longer the address of anything then, but the addresses of
     * views still tell where they lie in it. */
    bool rounded;
    const char *name;    /* set by wf_name, or the parameter's name; may be NULL */
    const char *made_by; /* the name of the op or function that made the tensor, for messages */
    wf_tensor *base;     /* the tensor of which this is a view; NULL for a root */
    /* If not NULL, a backward from this tensor is refused: the record that made `detached_at`, which is this tensor or one that it depends
     * on, is used up, or was dropped at the end of a wf_checkpoint. */
    wf_tensor *detached_at;
    struct buffer *buffer; /* holds the value; NULL if the value lies elsewhere, as that of a view does */
    int readers;           /* for a root: the number of records whose backward will read the value */
    int rounding;          /* for a root: the number of those readers that may read the value in bf16 (node.rounds) */
    int uses;              /* the number of records whose backward will add to the gradient */
    /* Equal to tape->path if this tensor depends on a tensor that the running wf_gradients wants. */
    uint32_t path;
    wf_tensor *graph;               /* the gradient as a tensor so far, while a wf_gradients with .create_graph runs (create_graph.c) */
    uint32_t number;                /* index of the tensor in the set of this pass (tensors_of_pass); unused for leaves */
    struct wf_parameter_info *info; /* set for parameters and leaves */
    struct buffer *grad_buffer;     /* NULL if the tensor has no gradient */
    void *grad;                     /* the gradient, in the shape of the value and with the strides grad_stride */
    int64_t grad_stride[WF_MAX_DIMS];
};

/* A parameter, or the leaf that stands for a parameter on a tape. In a leaf, `info` is a copy whose member `grads` is the slab of this
 * pass; `grads` is NULL if the parameter needs no gradient. */
struct parameter {
    wf_tensor x;
    struct wf_parameter_info info;
    const wf_grads *own;  /* in a leaf: the registry's own gradients, whose member `updates` counts updates of the values; may be NULL */
    uint64_t updates;     /* in a leaf: the number of updates of the values when the leaf was last used */
    char former_name[64]; /* in a parameter whose registry was freed: the name, for messages */
    /* In a leaf: the tape's number of events when the last update was noticed; records whose `event` is not greater read older values. */
    uint64_t changed_at;
};

/* An array that an op saved for its backward. */
struct saved {
    wf_array array; /* ndim is -1 if this entry is unused */
    struct buffer *buffer;
};

/* The record of one call of an op. The arrays that the members point to, and the attributes, follow the struct in the same block. */
struct node {
    const wf_op *op;
    const void *attr;
    wf_tensor **in, **out;
    struct saved *saved;
    int inputs, outputs, saves;
    /* Bit i is set if input i needs a gradient; with more than WF_MAX_INPUTS inputs, 1 if any input needs one (node_needs). */
    unsigned need;
    unsigned rounds; /* the values that backward may read in bf16: op->rounds, in a pass with products in bf16 */
    uint32_t dropout_call;
    uint64_t first_row; /* tape->options.first_row when the op ran: the index of this pass's first row in the global batch */
    uint64_t event;     /* number of this record, counting all records and backwards of the pass */
    struct node *previous;
};

/* Tensor structs lie apart from the tape's other memory, in TENSOR_SETS sets; successive passes use the sets in turn. So the struct of a
 * tensor from an earlier pass stays intact for 15 resets. The struct of a tensor that a rewind dropped stays intact until rewinds have
 * dropped more than DROPPED tensors. If a caller uses such a tensor within that time, the op can report it. The 16 sets cost memory (a
 * struct has about 300 bytes) but no measurable time. A DROPPED of 768 made the generation of text 3 % slower, 128 did not; so only builds
 * with assertions have 768. */
#ifdef NDEBUG
enum { TENSOR_SETS = 16, DROPPED = 128, TENSORS_PER_CHUNK = 256 };
#else
enum { TENSOR_SETS = 16, DROPPED = 768, TENSORS_PER_CHUNK = 1024 };
#endif
struct tensor_set {
    char **chunk;
    int64_t chunks, capacity, used;
    int64_t live; /* the structs from index `live` to `used` - 1 were dropped by a rewind */
};

/* An entry of the tape's hash table from parameters to their leaves. It is free unless it has the tape's present generation. */
struct leaf_slot {
    const wf_tensor *parameter;
    wf_tensor *leaf;
    uint64_t generation;
};

struct wf_tape {
    uint64_t serial;       /* no other tape of the process has this number */
    wf_tape *next;         /* next in the list of all tapes (threads.c) */
    _Atomic uint64_t user; /* number of the thread that used the tape last; 0 if no thread has used it, or if that thread has ended */
    wf_arena *arena;
    struct pool pool;
    struct tensor_set set[TENSOR_SETS];
    struct tensor_set leaves; /* separate, because leaves survive a rewind */
    uint64_t generation;      /* the number of resets */
    wf_mode mode;
    struct wf_tape_options options; /* the options of this pass, but in WF_TRAIN `seed` is the result of seed_of_pass */
    uint64_t trained_step;          /* the step of the last reset in WF_TRAIN */
    uint64_t trainings;             /* the number of resets in WF_TRAIN since trained_step last changed */
    wf_error error;
    wf_tensor poison;
    const char *doing; /* the name of the op whose forward or backward runs; may be NULL */
    struct node *last; /* the newest record */
    int64_t nodes;
    /* The number of records, backwards and values rounded by wf_release in this pass. If a mark has the same number, nothing that is older
     * needs the memory taken since the mark. */
    uint64_t events;
    bool no_grad; /* set by wf_tape_no_grad: no result needs a gradient, so only calls inside a checkpoint make records */
    uint32_t dropout_calls;
    bool check_finite;
    bool bad_input;      /* the error of check_finite is about a value in an input */
    bool differentiated; /* wf_backward or wf_gradients ran in this pass */
    bool walking;        /* wf_backward or wf_gradients is running */
    bool changed;        /* a parameter was updated since an op read it, and the op's backward will read it again */
    bool in_gradients;   /* wf_gradients is running: it computes the gradients of wanted tensors only, and writes none into a slab */
    bool building;       /* a `gradient` of an op runs (create_graph.c): it may read values that the user released and a backward reads */
    uint32_t path;       /* number of calls of wf_gradients so far; the running call marks tensors with it (wf_tensor.path) */
    int checkpoints;     /* the nesting depth of wf_checkpoint calls whose function is running */
    /* The nesting depth of the running wf_checkpoint calls, without those whose function a backward calls again. Records made meanwhile are
     * replaced by that of the checkpoint, so they don't count as `rounding`. */
    int to_repeat;
    int recomputing; /* the nesting depth of running backwards of wf_checkpoint calls, which call the function a second time */
    /* For gradient checks: a backward releases values of any size; the pool fills a buffer with NaN when it gives it out and when it takes
     * it back, and never gives it out again in the pass. */
    bool erase;
    bool (*cancelled)(void *ctx);
    void *cancel_ctx;
    struct wf_values_use **reading; /* the registries whose parameters this pass has read */
    int64_t readings, reading_capacity;
    struct changes *changes; /* of persistent buffers, for averages_give; NULL before the first one */
    struct leaf_slot *slots; /* a hash table with open addressing; slot_count is a power of two, and at most half of the slots are used */
    int slot_count;
};

/* A tensor from outside a checkpoint: the checkpoint's function uses it but did not make it. */
struct outside {
    wf_tensor *x;
    bool need; /* the use of x needs a gradient */
};
/* The attributes of a wf_checkpoint's record. The record has no operands itself; `operand` lists the tensors from outside instead, once for
 * each use. */
struct checkpoint {
    wf_tensor *(*function)(void *ctx, wf_tensor *x);
    void *ctx;
    wf_tensor *x;
    uint64_t first_row;
    uint64_t trace; /* a hash of the function's records, to be compared with that of the second call */
    uint32_t dropout_calls;
    int64_t records;  /* number of the function's records */
    int64_t operands; /* number of elements of `operand` */
    struct outside *operand;
};
extern const wf_op op_checkpoint;

/* The state of one call of an op's forward or backward. */
struct call_state {
    struct node *node;
    struct buffer *temps;
};

/* The tensor whose memory holds x's value. */
static inline wf_tensor *value_root(wf_tensor *x)
{
    while (x->base)
        x = x->base;
    return x;
}

static inline bool value_is_released(const wf_tensor *x)
{
    return x->value >= VALUE_USER_RELEASED;
}

static inline bool user_released(const wf_tensor *x)
{
    return x->value == VALUE_FOR_BACKWARD || x->value == VALUE_USER_RELEASED;
}

static inline wf_array gradient_of(const wf_tensor *x)
{
    wf_array g = x->a;
    g.data = x->grad;
    memcpy(g.stride, x->grad_stride, sizeof g.stride);
    return g;
}

/* The values that the op's backward reads, as a mask. A descriptor with `reads` 0 declares that backward reads all values. */
static inline unsigned values_read(const wf_op *op)
{
    return op->reads ? op->reads : ~WF_READS_NOTHING;
}

/* The op's name in messages. */
static inline const char *op_name(const wf_op *op, const void *attr)
{
    return op->name_of && attr ? op->name_of(attr) : op->name;
}

static inline bool reads_input(const wf_op *op, int i)
{
    return i < WF_MAX_INPUTS && values_read(op) & WF_READS_INPUT(i); /* the backward of an op with .many reads no operand */
}

/* Whether the record's backward may read input i in bf16. */
static inline bool rounds_input(const struct node *n, int i)
{
    return i < WF_MAX_INPUTS && n->rounds & WF_READS_INPUT(i);
}

static inline bool node_needs(const struct node *n, int i)
{
    return n->inputs <= WF_MAX_INPUTS ? n->need >> i & 1 : n->need && n->in[i] && n->in[i]->needs_grad;
}

static inline struct tensor_set *tensors_of_pass(const wf_tape *tape)
{
    return (struct tensor_set *)&tape->set[tape->generation % TENSOR_SETS];
}

/* Whether a call of an op makes a record now if an operand needs a gradient. */
static inline bool tape_records(const wf_tape *tape)
{
    return tape->mode != WF_INFER && !tape->no_grad;
}

/* threads.c */
void threads_add_tape(wf_tape *tape);
void threads_remove_tape(wf_tape *tape);
/* The tape that this thread used last; NULL if there is no such tape, if it was freed, or if another thread used it since. */
wf_tape *tape_latest(void);
extern wf_tensor tapeless_poison; /* the result of a failed call in a thread that has no tape */

/* Adds a registry to tape->reading, because the tape's pass is about to read the registry's values. READING_REFUSED means that the values
 * are being replaced now. */
enum reading { READING, READING_REFUSED, READING_NO_MEMORY };
enum reading threads_begin_reading(wf_tape *tape, struct wf_values_use *use);
void tape_reads_no_more(wf_tape *tape); /* called at the end of the pass: clears tape->reading */
/* Begins to replace a registry's values. REPLACING_READ means that a pass on a tape of another living thread has read them. REPLACING_BUSY
 * means that another call is replacing them already. */
enum replacing { REPLACING, REPLACING_BUSY, REPLACING_READ };
enum replacing threads_begin_replacing(struct wf_values_use *use);
void threads_end_replacing(struct wf_values_use *use);
/* Reports that `call` on x found no tape. Returns tapeless_poison, and wf_tape_error(NULL) then has the message. */
wf_tensor *fail_without_tape(wf_status code, const char *call, const wf_tensor *x);

/* parameters.c */
bool parameter_has_value(wf_tape *tape, const char *call, const wf_tensor *x); /* if false, the tape has the error */
/* Must be called before a pass reads a parameter's value: notes the registry, so that no other thread replaces its values meanwhile.
 * Returns false, with the error on the tape, if that fails. */
bool tape_reads(wf_tape *tape, const char *call, const wf_tensor *parameter);
bool tape_registry_freed(const wf_tape *tape); /* whether a registry was freed whose parameters this pass has read */

/* tape.c */
wf_tensor *tape_out_of_memory(wf_tape *tape, size_t bytes); /* reports that `bytes` bytes could not be allocated */
/* Asks the user's `cancelled` function, and sets the error WF_ERR_CANCELLED if its answer is yes. False if the tape has this or an earlier
 * error. */
bool tape_goes_on(wf_tape *tape);

/* pool.c */
struct buffer *pool_take(wf_tape *tape, size_t bytes); /* a buffer with refs 1, or NULL with the error on the tape */
void pool_release(wf_tape *tape, struct buffer *b);
/* Forgets the free buffers that lie after the mark; must run before the arena is rewound. */
void pool_rewind(wf_tape *tape, wf_arena_mark mark);

/* operands.c */
wf_tensor *tape_new_tensor(wf_tape *tape);                   /* a tensor without a value; NULL with the error on the tape */
wf_tensor *tape_tensor(const wf_tape *tape, int64_t number); /* the tensor of this pass with that number */
/* Keeps the first `live` tensors of the pass and marks the later ones as dropped. */
void tape_drop_tensors(wf_tape *tape, int64_t live);
wf_tensor *tape_leaf(wf_tape *tape, wf_tensor *parameter);
/* Whether an update changed a parameter after an op whose backward will read its value, or with `all` after any op on it. */
bool tape_parameters_changed(const wf_tape *tape, bool all);
wf_tensor *tape_find_leaf(const wf_tape *tape, const wf_tensor *parameter); /* NULL if the pass has not used the parameter */
/* Whether an op may use x on this tape now. If not, the tape has the error. */
bool tape_accepts(wf_tape *tape, const char *op, const wf_tensor *x);

/* gradients.c */
wf_tensor *gradient_root(wf_tensor *x); /* the tensor that holds the gradient of x */
/* The tensor that counts the uses of x: gradient_root(x), but without regard to views that hold their own gradient only while a
 * wf_gradients runs. */
wf_tensor *uses_root(wf_tensor *x);
void gradient_release(wf_tape *tape, wf_tensor *x);
void gradient_add(wf_call *c, wf_tensor *x, const wf_array *g);
/* The gradient that an earlier backward left in a tensor. It is set aside during the next backward, which must not propagate it again. */
struct earlier {
    wf_tensor *of; /* the tensor whose gradient it is */
    struct buffer *buffer;
    wf_array grad;
    struct earlier *next;
};
void gradient_set_aside(wf_tape *tape, wf_tensor *x, struct earlier **list); /* does nothing if x has no gradient */
void gradients_add_earlier(wf_call *c, struct earlier *list); /* after the backward: adds the gradients in the list to the new ones */
extern const wf_op op_retained_view; /* the op of the record that adds the gradient of a view with its own buffer to that of its base */

/* slab.c */
/* Sets *grads to the slab for the parameter's gradient in this pass, or to NULL if the parameter needs none. Returns false, with the error
 * on the tape, if the slab has no room for this parameter. */
bool slab_of(wf_tape *tape, const struct wf_parameter_info *info, wf_grads **grads);
/* Must be called before a leaf's gradient is written. Returns the address of the gradient in the slab, or NULL with the error on the tape.
 * Sets *valid to the address of a flag: if the flag is true, the slab already holds a gradient of this parameter, and the caller must add
 * to it. */
wf_real *slab_target(wf_tape *tape, const struct wf_parameter_info *info, bool **valid);
/* The gradient, contiguous; NULL if the slab holds no gradient of this parameter. */
wf_real *slab_gradient(const struct wf_parameter_info *info);

/* walk.c: functions that visit all records of a list; `last` is its newest record. */
void records_release_values(wf_tape *tape, struct node *last); /* releases those results that no backward will read */
/* Runs the backward of each record. Unless `retain`, the records are used up. Stops at the first error, which is then on the tape. */
void records_walk(wf_tape *tape, struct node *last, bool retain);
/* node_needs, and the running wf_backward or wf_gradients needs the gradient too. wf_gradients needs it only if the operand depends on a
 * wanted tensor. */
bool node_needs_now(const wf_tape *tape, const struct node *node, int i);
void records_mark_path(wf_tape *tape, struct node *last); /* sets `path` in each result that depends on a wanted tensor */

/* The operands whose gradients the running call computes, as a mask like node.need. In wf_gradients these are only operands that depend on
 * a wanted tensor. */
unsigned node_needs_mask(const wf_tape *tape, const struct node *node);
/* Fails if a parameter that the record's backward reads, or with `all` any parameter among its operands, was updated after the op read it.
 */
wf_status node_unchanged(wf_call *c, const struct node *node, bool all);

/* create_graph.c: the gradients of a wf_gradients with .create_graph, as tensors in `graph` of the wanted tensors. */
void records_build_gradients(wf_tape *tape, wf_tensor *y, wf_tensor *gradient);
/* Adds g to x->graph, or to that of the tensor of which x is a view. */
void graph_add(wf_tape *tape, wf_tensor *x, wf_tensor *g);

/* backward.c */
static inline const char *used_up_by(const wf_tensor *x)
{
    return x->by == BY_GRADIENTS ? "wf_gradients" : "wf_backward";
}
/* Whether a backward from x is allowed now. If not, the tape has an error that names `call`. */
bool backward_valid(wf_tape *tape, const char *call, wf_tensor *x, const struct wf_backward_options *o);
/* Runs the backward from x, with c for its messages and temporaries. The caller must look at the tape's error afterwards. */
void backward_run(wf_call *c, wf_tensor *x, const struct wf_backward_options *o);
wf_tensor *backward_operand(wf_tape *tape, const char *call, wf_tensor *x); /* the leaf if x is a parameter, else x */
struct earlier *gradients_set_aside(wf_tape *tape);                         /* sets aside the gradients of all results that have a record */

/* averages.c */
void averages_forget(wf_tape *tape); /* drops the changes of buffers that the pass has asked for */
void averages_free(wf_tape *tape);
void averages_give(wf_tape *tape); /* after a backward: adds these changes to the gradients, which apply them at the update */

/* with_respect_to.c */
extern const char made_by_gradients[]; /* `made_by` of the results of wf_gradients */

/* release.c: the value of x for a backward that may read it in bf16. */
wf_array value_for_backward(wf_tensor *x);

/* call.c */
void call_begin(wf_call *c, wf_tape *tape, struct node *node, struct call_state *state);
void call_finish(wf_call *c);
void call_describe(const wf_call *c, char *text, size_t size); /* writes for example "matmul(linear [2,3], wte.weight [65,128])" */

/* apply.c */
bool node_record(wf_tape *tape, const struct node *node); /* adds a copy of `node` to the tape; false with the error on the tape */

/* apply_view.c */
bool view_inside(wf_tensor *x, const wf_array *view); /* whether all elements of the view lie in the storage of x */

/* finite.c: if a check fails, the tape has the error. */
wf_status call_check_finite(wf_call *c); /* checks the results after a forward */
/* Checks the gradients of the operands: before the op's backward runs if `before` is true, otherwise after it. */
wf_status call_check_gradients(wf_call *c, bool before);
void gradient_check_given(wf_tape *tape, const wf_array *g); /* checks the .gradient that the user gave to a backward */

/* strided.c: dst += src, for arrays of the same shape. */
void strided_add(const wf_array *dst, const wf_array *src);

#endif
