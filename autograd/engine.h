/* SPDX-License-Identifier: MIT */
/* Structs and functions shared by the files of the engine; nothing outside autograd/ includes it.
 *
 * A tensor is a value (strided array) and its place in the record. Ops make root tensors: contiguous, one buffer each. A view
 * points into its base's buffer and has no record. Gradients belong to roots: the gradient of a view is written into the same
 * place of its root's gradient, which has the layout of the root's value. So slices of one parent need no assembling, and a
 * view needs no backward. The exception is a view that shows elements more than once (wf_expand), because their gradients must
 * be added up: an op with .view records it, and it holds its own gradient. */
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

/* Memory of a tape, counted by its users; it returns to the pool after the last of them. */
struct buffer {
    void *data;
    size_t bytes;
    int refs;
    int class;
    struct buffer *next; /* in the pool's list of free buffers of this class, or in a call's list of temporaries */
};

enum { POOL_CLASSES = 64 * 8 };
struct pool {
    struct buffer *free[POOL_CLASSES];
    uint64_t filled[POOL_CLASSES / 64]; /* bit: the list may hold something */
};

/* The state of a value decides who may still use it.
 *
 *                        memory   ops read it   backwards read it   released by
 *   VALUE_LIVE           yes      yes           yes                 the engine, after its last reader in a backward; the user
 *   VALUE_KEPT           yes      yes           yes                 the end of the pass only (wf_keep)
 *   VALUE_FOR_BACKWARD   yes      no            yes                 the engine, after its last reader in a backward
 *   VALUE_USER_RELEASED  no       no            no
 *   VALUE_RELEASED       no       no            no
 *
 * wf_release of a view only bars the view: its value stays VALUE_FOR_BACKWARD, and its root is as it was. */
enum value_state { VALUE_LIVE, VALUE_KEPT, VALUE_FOR_BACKWARD, VALUE_USER_RELEASED, VALUE_RELEASED };

/* The call that released a value or used up the record that made it. */
enum used_by { BY_BACKWARD, BY_GRADIENTS, BY_CHECKPOINT /* at its end: the tensor was made in it and is not its result */ };

/* The place of a view's gradient. A view in any other place than IN_BASE has a record, whose backward adds to the base's gradient. */
enum gradient_place {
    IN_BASE,
    OWN_FOR_CALL, /* during a wf_gradients, in the layout of the root */
    OWN,          /* wf_retain_grad, in the layout of the root */
    APART         /* a view recorded by an op: contiguous, so that there can be no views of it */
};

enum tensor_kind { TENSOR_INNER, TENSOR_INPUT, TENSOR_LEAF /* of a parameter */, TENSOR_PARAMETER, TENSOR_POISON };

struct wf_tensor {
    wf_array a;
    wf_tape *tape;       /* NULL: a parameter */
    uint64_t generation; /* the tape's reset number when it was made; 0: of no pass */
    uint8_t kind;
    uint8_t value; /* enum value_state */
    uint8_t by;    /* enum used_by */
    uint8_t place; /* enum gradient_place; of roots IN_BASE */
    /* Independent of each other and of the states above: a record sets needs_grad, the user asks for each kind of result. */
    bool needs_grad;
    bool retain;                    /* its gradient stays after a wf_backward: wf_retain_grad */
    bool wanted;                    /* its gradient stays after the wf_gradients that is running */
    bool recorded;                  /* a record or a view has it as an operand */
    const char *name;               /* given by the user or the parameter; may be NULL */
    const char *made_by;            /* op */
    wf_tensor *base;                /* a view's parent */
    wf_tensor *detached_at;         /* NULL, or the operand with a used-up record, at which no gradient flows on */
    struct buffer *buffer;          /* of a root made by an op */
    int readers;                    /* records whose backward will read the value (roots) */
    int uses;                       /* records that will add to the gradient */
    uint32_t path;                  /* equal to the tape's: a wanted tensor's gradient depends on this one */
    uint32_t number;                /* in the order in which tensors were made in the pass; not of leaves */
    struct wf_parameter_info *info; /* of parameters and leaves */
    struct buffer *grad_buffer;     /* NULL: it has no gradient */
    void *grad;                     /* the gradient, whose shape is that of the value, in any strides */
    int64_t grad_stride[WF_MAX_DIMS];
};

/* A parameter; or its leaf on a tape, where info is a copy in which grads is the slab of this pass, NULL without a gradient. */
struct parameter {
    wf_tensor x;
    struct wf_parameter_info info;
    const wf_grads *own;  /* of a leaf: the registry's gradients, which count the updates of its values; or NULL */
    uint64_t updates;     /* the number of updates when the leaf was last used */
    char former_name[64]; /* of a parameter whose registry was freed */
    uint64_t changed_at;  /* the tape's number of events when the last update was noticed: records up to it are older */
};

/* An array that an op saved for its backward. */
struct saved {
    wf_array array; /* ndim -1: not used */
    struct buffer *buffer;
};

/* One application of an op. Its arrays and attributes lie behind it. */
struct node {
    const wf_op *op;
    const void *attr;
    wf_tensor **in, **out;
    struct saved *saved;
    int inputs, outputs, saves;
    unsigned need; /* bit i: input i needs a gradient; of an op with more than WF_MAX_INPUTS: not 0 if any does. See node_needs */
    uint32_t dropout_call;
    uint64_t first_row; /* that of the forward */
    uint64_t event;     /* the tape's number of events in the forward */
    struct node *previous;
};

/* Structs of tensors lie apart from other memory, in sets that take turns. So a stale tensor is still a tensor when a caller uses it, and
 * the mistake can be reported: up to 15 resets later, and until rewinds have dropped DROPPED other structs. 16 sets of some 300 bytes a
 * tensor cost memory, but no time that could be measured; leaving 768 structs alone made generation 3 % slower, 128 did not. */
#ifdef NDEBUG
enum { TENSOR_SETS = 16, DROPPED = 128, TENSORS_PER_CHUNK = 256 };
#else
enum { TENSOR_SETS = 16, DROPPED = 768, TENSORS_PER_CHUNK = 1024 };
#endif
struct tensor_set {
    char **chunk;
    int64_t chunks, capacity, used;
    int64_t live; /* structs from here on were dropped by rewinds */
};

struct leaf_slot {
    const wf_tensor *parameter;
    wf_tensor *leaf;
    uint64_t generation;
};

struct wf_tape {
    uint64_t serial;       /* no other tape of the process has it */
    wf_tape *next;         /* in the list of all */
    _Atomic uint64_t user; /* number of the thread that used the tape last; 0: none, or the thread has ended */
    wf_arena *arena;
    struct pool pool;
    struct tensor_set set[TENSOR_SETS], leaves; /* leaves survive a rewind */
    uint64_t generation;                        /* number of resets */
    wf_mode mode;
    struct wf_tape_options options;   /* of this pass; the seed is that of seed_of_pass */
    uint64_t trained_step, trainings; /* resets in WF_TRAIN since the step became this one */
    wf_error error;
    wf_tensor poison;
    const char *doing; /* the op whose forward or backward runs; may be NULL */
    struct node *last;
    int64_t nodes;
    uint64_t events; /* number of records and backwards in this pass: if it is that of a mark, nothing needs what was made since */
    bool no_grad;    /* ops are not recorded */
    uint32_t dropout_calls;
    bool check_finite;
    bool bad_input;      /* the value that it found is in an input */
    bool differentiated; /* wf_backward ran in this pass */
    bool walking;        /* wf_backward is running */
    bool changed;        /* an update changed a parameter that the backward of a record will read */
    bool in_gradients;   /* wf_gradients is running: gradients of wanted tensors only, and never into a slab */
    uint32_t path;       /* number of the last wf_gradients */
    int checkpoints;     /* nested wf_checkpoint whose function is running */
    int recomputing;     /* those of them that run again in a backward */
    bool erase; /* for gradient checks: values of any size are released; the pool fills memory with NaN as it gives it out and takes it
                   back, and gives none out twice in a pass */
    bool (*cancelled)(void *ctx);
    void *cancel_ctx;
    struct wf_values_use **reading; /* registries whose parameters this pass has read */
    int64_t readings, reading_capacity;
    struct leaf_slot *slots; /* open addressing; a power of two, at most half of them used */
    int slot_count;
};

/* A record of wf_checkpoint: its attributes. Instead of operands it has those of all records that its function made. */
struct outside {
    wf_tensor *x;
    bool need;
};
struct checkpoint {
    wf_tensor *(*function)(void *ctx, wf_tensor *x);
    void *ctx;
    wf_tensor *x;
    uint64_t first_row, trace;
    uint32_t dropout_calls;
    int64_t records, operands;
    struct outside *operand;
};
extern const wf_op op_checkpoint;

/* State of one call of forward or backward. */
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

/* The mask of values that the op's backward reads; 0 stands for all. */
static inline unsigned values_read(const wf_op *op)
{
    return op->reads ? op->reads : ~WF_READS_NOTHING;
}

/* For messages. */
static inline const char *op_name(const wf_op *op, const void *attr)
{
    return op->name_of && attr ? op->name_of(attr) : op->name;
}

static inline bool reads_input(const wf_op *op, int i)
{
    return i < WF_MAX_INPUTS && values_read(op) & WF_READS_INPUT(i); /* with .many none is read */
}

static inline bool node_needs(const struct node *n, int i)
{
    return n->inputs <= WF_MAX_INPUTS ? n->need >> i & 1 : n->need && n->in[i] && n->in[i]->needs_grad;
}

static inline struct tensor_set *tensors_of_pass(const wf_tape *tape)
{
    return (struct tensor_set *)&tape->set[tape->generation % TENSOR_SETS];
}

/* Whether ops whose operands need gradients are recorded now. */
static inline bool tape_records(const wf_tape *tape)
{
    return tape->mode != WF_INFER && !tape->no_grad;
}

/* threads.c */
void threads_add_tape(wf_tape *tape);
void threads_remove_tape(wf_tape *tape);
wf_tape *tape_latest(void);       /* the tape that this thread used last; NULL: none, it was freed, or another thread uses it now */
extern wf_tensor tapeless_poison; /* of ops on parameters alone where the thread has no tape */

/* A tape's pass begins to read a registry's values, unless they are being replaced; tape->reading has it once. */
enum reading { READING, READING_REFUSED, READING_NO_MEMORY };
enum reading threads_begin_reading(wf_tape *tape, struct wf_values_use *use);
void tape_reads_no_more(wf_tape *tape); /* at the end of the pass */
/* Begins to replace a registry's values, unless a pass of another living thread's tape reads them. */
enum replacing { REPLACING, REPLACING_BUSY, REPLACING_READ };
enum replacing threads_begin_replacing(struct wf_values_use *use);
void threads_end_replacing(struct wf_values_use *use);
/* Of `call` on x, without a tape: gives tapeless_poison; wf_tape_error(NULL) has the message. */
wf_tensor *fail_without_tape(wf_status code, const char *call, const wf_tensor *x);

/* parameters.c */
bool parameter_has_value(wf_tape *tape, const char *call, const wf_tensor *x); /* else the tape has the error */
/* To be called before a parameter's value is read in a pass: notes the registry, so that no other thread replaces its values. False: the
 * tape has the error. */
bool tape_reads(wf_tape *tape, const char *call, const wf_tensor *parameter);
bool tape_registry_freed(const wf_tape *tape); /* one whose parameters this pass has read */

/* tape.c */
wf_tensor *tape_out_of_memory(wf_tape *tape, size_t bytes); /* that were asked for */
bool tape_goes_on(wf_tape *tape);                           /* false: an error is on it, or it was cancelled just now */

/* pool.c */
struct buffer *pool_take(wf_tape *tape, size_t bytes); /* refs 1; NULL: the tape has the error */
void pool_release(wf_tape *tape, struct buffer *b);
void pool_rewind(wf_tape *tape, wf_arena_mark mark); /* before the arena: forgets free buffers from behind the mark */

/* operands.c */
wf_tensor *tape_new_tensor(wf_tape *tape);                   /* without a value yet; NULL: the tape has the error */
wf_tensor *tape_tensor(const wf_tape *tape, int64_t number); /* of this pass */
void tape_drop_tensors(wf_tape *tape, int64_t live);         /* all of the pass but the first */
wf_tensor *tape_leaf(wf_tape *tape, wf_tensor *parameter);
bool tape_parameters_changed(const wf_tape *tape);                          /* changed by an update after ops whose backward will read it */
wf_tensor *tape_find_leaf(const wf_tape *tape, const wf_tensor *parameter); /* NULL: not used in this pass */
/* True when x may be used on tape now; else records the error. */
bool tape_accepts(wf_tape *tape, const char *op, const wf_tensor *x);

/* gradients.c */
wf_tensor *gradient_root(wf_tensor *x);
wf_tensor *uses_root(wf_tensor *x); /* the same, but independent of a running wf_gradients: for counting uses */
void gradient_release(wf_tape *tape, wf_tensor *x);
void gradient_add(wf_call *c, wf_tensor *x, const wf_array *g);
/* The gradient of an earlier backward, which must not flow again in this one. */
struct earlier {
    wf_tensor *of;
    struct buffer *buffer;
    wf_array grad;
    struct earlier *next;
};
void gradient_set_aside(wf_tape *tape, wf_tensor *x, struct earlier **list); /* nothing where x has none */
void gradients_add_earlier(wf_call *c, struct earlier *list);
extern const wf_op op_retained_view; /* whether it is the record of a view whose gradient is held apart */

/* slab.c */
/* The slab for the parameter's gradient in this pass, or NULL if it has none. False: it does not fit; the tape has the error. */
bool slab_of(wf_tape *tape, const struct wf_parameter_info *info, wf_grads **grads);
/* To be called before a leaf's gradient is written: its place in the slab, and whether to add to it. NULL: the tape has the error. */
wf_real *slab_target(wf_tape *tape, const struct wf_parameter_info *info, bool **valid);
wf_real *slab_gradient(const struct wf_parameter_info *info); /* contiguous; NULL where the slab holds none */

/* walk.c: over records, newest first. */
void records_release_values(wf_tape *tape, struct node *last); /* the values of results that no backward reads */
/* Runs the backwards of records; without retain they are used up. Ends at the first error, which the tape has. */
void records_walk(wf_tape *tape, struct node *last, bool retain);
bool node_needs_now(const wf_tape *tape, wf_tensor *operand); /* in wf_gradients: the operand depends on a wanted tensor */
void records_mark_path(wf_tape *tape, struct node *last);     /* sets `path` of what depends on a tensor that has it */

/* backward.c */
static inline const char *used_up_by(const wf_tensor *x)
{
    return x->by == BY_GRADIENTS ? "wf_gradients" : "wf_backward";
}
/* Whether a backward from x is allowed now; the tape has the error otherwise, with the name of the call. */
bool backward_valid(wf_tape *tape, const char *call, wf_tensor *x, const struct wf_backward_options *o);
void backward_run(wf_call *c, wf_tensor *x, const struct wf_backward_options *o); /* the tape may have an error afterwards */
wf_tensor *backward_operand(wf_tape *tape, const char *call, wf_tensor *x);       /* x, or its leaf */
struct earlier *gradients_set_aside(wf_tape *tape);                               /* of all results that are recorded */

/* with_respect_to.c */
extern const char made_by_gradients[]; /* wf_tensor.made_by of the results of wf_gradients */

/* call.c */
void call_begin(wf_call *c, wf_tape *tape, struct node *node, struct call_state *state);
void call_finish(wf_call *c);
void call_describe(const wf_call *c, char *text, size_t size); /* "matmul(linear [2,3], wte.weight [65,128])" */

/* apply.c */
bool node_record(wf_tape *tape, const struct node *node); /* a copy of it; false: the tape has the error */

/* apply_view.c */
bool view_inside(wf_tensor *x, const wf_array *view); /* all its elements lie in the storage of x */

/* finite.c: the tape has the error. */
wf_status call_check_finite(wf_call *c);                     /* after a forward */
wf_status call_check_gradients(wf_call *c, bool before);     /* before a backward, and after it: of the operands */
void gradient_check_given(wf_tape *tape, const wf_array *g); /* .gradient */

/* strided.c: dst += src for the same shape */
void strided_add(const wf_array *dst, const wf_array *src);

#endif
