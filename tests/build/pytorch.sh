#!/bin/sh
# SPDX-License-Identifier: MIT
# docs/pytorch.md: each call of Weft in a table is compiled, against the installed headers, with the operands that the page names.
. "$(dirname "$0")/common.sh"
install_weft
page=$root/docs/pytorch.md

cat >"$tmp/calls.c" <<'END_OF_C'
#include <math.h>
#include <weft/weft.h>

enum { B = 4, T = 5, D = 6, V = 7, C = 3, F = 4, K = 3 };
static wf_tape *tape;
static wf_tensor *x, *y, *a, *b, *h, *q, *k, *v, *ids, *mask, *weight, *bias, *logits, *targets, *loss, *parts[2];
static wf_array array;
static wf_shape shape;
static wf_real data[B * T * D];
static int32_t id[B * T], order[D];
static bool flags[T * T];
static double value;
static int64_t step, rows[64], length;
static uint64_t seed;
static wf_error error;
static wf_registry *registry;
static wf_scope scope;
static struct wf_init_rules rules;
static struct wf_linear m_linear;
static struct wf_convolution m_conv, m_up;
static struct wf_group_norm m_groups;
static struct wf_batch_norm m_batch;
static struct wf_embedding m_embedding;
static struct wf_layer_norm m_norm;
static struct wf_rms_norm m_rms;
static struct wf_mha m_mha;
static struct wf_ffn m_ffn;
static struct wf_positions m_positions;
static struct wf_moe m_moe;
static struct wf_recurrent m_lstm;
static struct wf_ssm m_ssm;
static struct wf_optimizer opt;
static const struct wf_optimizer_rule rule;
static struct wf_packed packed;
static struct wf_schedule schedule;
static struct wf_epochs epochs;
static struct wf_crops crops;
static struct wf_text_lines lines;
static wf_pair_batches *pair_batches;
static struct wf_pairs pairs;
static wf_tokenizer *tokenizer;
static struct wf_sampler sampler;
static struct wf_generate_options generate;
static wf_model *model;
static struct wf_run run;
static struct wf_task task;
static struct wf_fit_options options;
static wf_safetensors *file;
static wf_safetensors_writer *writer;
static wf_events *events;
static wf_dist *dist;
static wf_rng rng;
static wf_op op;
wf_tensor *function(void *ctx, wf_tensor *in);
wf_tensor *fn(void *ctx, wf_tape *t, wf_tensor *const in[]);
bool match(void *ctx, const char *name, const wf_tensor *parameter);

END_OF_C

# The second column: what stands between backquotes, is a call of a function or sets opt.lr or writer, and is no pattern ("...").
awk -F '|' '
    /^\|/ && NF >= 4 {
        count = split($3, piece, "`")
        for (i = 2; i <= count; i += 2)
            if (piece[i] ~ /^(wf_[a-z0-9_]*\(|opt\.lr =|writer =)/)
                printf "#line %d \"docs/pytorch.md\"\nvoid call%d(void); void call%d(void) { %s; }\n", FNR, ++calls, calls, piece[i]
    }
    END { exit calls < 150 }' "$page" >>"$tmp/calls.c" || wrong "$page: fewer calls than it had"
# shellcheck disable=SC2046,SC2086
$cc -std=gnu11 -Wall -Wextra -Werror -Wno-unused -Wno-unused-result -fsyntax-only $(flags --cflags weft) "$tmp/calls.c" ||
    wrong "$page: a call does not compile"
finish
