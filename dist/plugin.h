/* SPDX-License-Identifier: MIT */
#ifndef WEFT_DIST_PLUGIN_H
#define WEFT_DIST_PLUGIN_H

#include <weft/internal/launcher.h>
#include <weft/internal/transport.h>

/* Loads the plug-in for the launcher's MPI and opens it. Returns NULL and sets *error on failure. */
struct wf_transport *plugin_open(const struct wf_launcher *launcher, wf_error *error);

#endif
