/* SPDX-License-Identifier: MIT */
/* The whole command `weft` as one function, for programs that register families of models or optimisers. */
#ifndef WEFT_MAIN_H
#define WEFT_MAIN_H

#include <weft/base.h>

WF_BEGIN_DECLS

/* Runs the command line as `weft` does: `PROGRAM train MODEL --train FILE --out RUN`, generate, translate, evaluate, attention, plot, bench
 * and all others, for the families of the zoo and those registered with wf_family_register, and the optimisers registered with
 * wf_optimizer_register. Returns the exit code: 0 done, 1 failed, 2 wrong usage, 124 ended before the limit of --max-time, 130 and 143
 * stopped by Ctrl-C or SIGTERM. Messages and help name the program as argv[0] does; the version is that of
 * Weft.
 *
 * Unlike all other functions of the library it acts for the whole process: it writes to standard output and standard error, catches SIGINT,
 * SIGTERM, SIGHUP and SIGALRM, ignores SIGXFSZ, ends the process at a second Ctrl-C, and initializes the library (--threads). So call it
 * first in main, after wf_family_register and wf_optimizer_register, and from one thread. */
WF_API int wf_main(int argc, char **argv);

WF_END_DECLS

#endif
