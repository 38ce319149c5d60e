/* SPDX-License-Identifier: MIT */
/* The command `weft`, with Weft's own model families only. */
#include <weft/main.h>

int main(int argc, char **argv)
{
    return wf_main(argc, argv);
}
