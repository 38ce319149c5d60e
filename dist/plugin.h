/* SPDX-License-Identifier: MIT */
#ifndef WEFT_DIST_PLUGIN_H
#define WEFT_DIST_PLUGIN_H

#include <weft/internal/launcher.h>
#include <weft/internal/transport.h>

/* Loads the plug-in for the launcher's MPI and opens it; NULL with *error. */
struct wf_transport *plugin_open(const struct wf_launcher *launcher, wf_error *error);

#endif
