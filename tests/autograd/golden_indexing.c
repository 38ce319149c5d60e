/* SPDX-License-Identifier: MIT */
/* index_select, index_add, gather and scatter_add against PyTorch: tests/golden/make_indexing.py. */
#include "../golden/golden.h"

static struct rig begin(const char *name)
{
    struct rig r = rig_open("indexing", name);
    rig_start(&r, WF_GRADIENTS, 1);
    return r;
}

START_TEST(slices)
{
    struct rig r = begin("index_select");
    rig_check(&r, wf_index_select(rig_input(&r, "x", WF_SHAPE(3, 7, 5), 1), 1, rig_ids_of(&r, "ids", WF_SHAPE(11), 7)));
    r = begin("index_select_last");
    rig_check(&r, wf_index_select(rig_input(&r, "x", WF_SHAPE(4, 6), 1), -1, rig_ids_of(&r, "ids", WF_SHAPE(9), 6)));
    r = begin("index_add");
    wf_tensor *x = rig_input(&r, "x", WF_SHAPE(7, 5), 1), *s = rig_input(&r, "s", WF_SHAPE(11, 5), 1);
    rig_check(&r, wf_index_add(x, 0, rig_ids_of(&r, "ids", WF_SHAPE(11), 7), s));
}
END_TEST

START_TEST(elements)
{
    struct rig r = begin("gather");
    rig_check(&r, wf_gather(rig_input(&r, "x", WF_SHAPE(3, 7, 5), 1), 1, rig_ids_of(&r, "ids", WF_SHAPE(2, 9, 4), 7)));
    r = begin("gather_last");
    rig_check(&r, wf_gather(rig_input(&r, "x", WF_SHAPE(6, 8), 1), -1, rig_ids_of(&r, "ids", WF_SHAPE(6, 3), 8)));
    r = begin("scatter_add");
    wf_tensor *x = rig_input(&r, "x", WF_SHAPE(3, 7, 5), 1), *s = rig_input(&r, "s", WF_SHAPE(2, 9, 4), 1);
    rig_check(&r, wf_scatter_add(x, 1, rig_ids_of(&r, "ids", WF_SHAPE(2, 9, 4), 7), s));
}
END_TEST

WF_TEST_MAIN("golden_indexing", slices, elements)
