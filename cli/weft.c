/* SPDX-License-Identifier: MIT */
/* The command `weft`: the families of the zoo and no others. */
#include <weft/main.h>

int main(int argc, char **argv)
{
    return wf_main(argc, argv);
}
