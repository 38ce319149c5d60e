/* SPDX-License-Identifier: MIT */
/* The plug-in: a shared library, weft-mpi-NAME.so, that connects Weft to one MPI library. */
#ifndef WEFT_DIST_PLUGIN_H
#define WEFT_DIST_PLUGIN_H

#include <weft/internal/launcher.h>
#include <weft/internal/transport.h>

/* Loads the plug-in for the MPI of the launcher (mpirun, srun) and opens it. Returns NULL and sets *error on failure. */
struct wf_transport *plugin_open(const struct wf_launcher *launcher, wf_error *error);

#endif
