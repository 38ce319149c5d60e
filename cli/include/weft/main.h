/* SPDX-License-Identifier: MIT */
/* The whole command `weft` as one function, for programs that register additional model families or optimisers. */
#ifndef WEFT_MAIN_H
#define WEFT_MAIN_H

#include <weft/base.h>

WF_BEGIN_DECLS

/* Runs the command line as the command `weft` does: `PROGRAM train MODEL --train FILE --out RUN`, and likewise generate, translate,
 * evaluate, attention, plot, bench and all other commands. The commands accept Weft's own model families and optimisers, and those that the
 * program has registered with wf_family_register and wf_optimizer_register. Messages and help use the file name in argv[0] as the name of
 * the program; the printed version is Weft's.
 *
 * Returns the exit code: 0 success, 1 failure, 2 wrong usage, 124 if training saved and ended because of --max-time, 130 after Ctrl-C, and
 * 143 after SIGTERM.
 *
 * Unlike the other functions of the library, wf_main acts for the whole process: it writes to standard output and standard error, catches
 * SIGINT, SIGTERM, SIGUSR1, SIGHUP and SIGALRM, ignores SIGXFSZ, ends the process at a second Ctrl-C, and initializes the library (option
 * --threads). Call it in main, from one thread; only wf_family_register and wf_optimizer_register may be called before it. */
WF_API int wf_main(int argc, char **argv);

WF_END_DECLS

#endif
