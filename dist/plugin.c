/* SPDX-License-Identifier: MIT */
/* Finds and loads the plug-in for an MPI (plugin.h). Looks in the folder that WEFT_PLUGINS names, then near this library or program, then
 * in the folder of the installation. */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/memory.h>
#include <weft/strings.h>

/* Sets `path` to the folder of the library or program that contains this function. Returns false if the folder is unknown. */
static bool own_folder(char *path, size_t size)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)plugin_open, &info) || !info.dli_fname)
        return false;
    /* For a statically linked program dli_fname is argv[0], which has no folder if the program was found through PATH. */
    char program[4000] = "";
    const char *name = strchr(info.dli_fname, '/') ? info.dli_fname : program;
    ssize_t length = name == program ? readlink("/proc/self/exe", program, sizeof program - 1) : 1;
    const char *slash = length > 0 ? strrchr(name, '/') : NULL;
    return slash && (size_t)snprintf(path, size, "%.*s", (int)(slash - name), name) < size;
}

/* Loads a plug-in from the folder `below` of `folder`. Returns NULL if the file is missing or does not load. In the second case, stores the
 * loader's reason in `why`, unless `why` holds a reason already. */
static void *load(const char *folder, const char *below, const char *name, char *why, size_t size)
{
    char *path = wf_format("%s%s/weft-mpi-%s.so", folder, below, name);
    void *handle = NULL;
    if (path && access(path, R_OK) == 0) {
        handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* RTLD_GLOBAL: components that Open MPI loads later use MPI's symbols */
        const char *reason = handle ? NULL : dlerror();
        if (reason && !why[0])
            snprintf(why, size, "%s", reason);
    }
    wf_free(path);
    return handle;
}

static void *find(const char *name, char *why, size_t size)
{
    static const char *const below[] = {"/weft", "/../lib/weft", "", "/.."};
    const char *given = getenv("WEFT_PLUGINS");
    char folder[4000];
    void *handle = given && given[0] ? load(given, "", name, why, size) : NULL;
    for (size_t i = 0; !handle && i < sizeof below / sizeof *below && own_folder(folder, sizeof folder); i++)
        handle = load(folder, below[i], name, why, size);
    return handle ? handle : load(WF_PLUGIN_FOLDER, "", name, why, size);
}

struct wf_transport *plugin_open(const struct wf_launcher *launcher, wf_error *error)
{
    const bool mpich = launcher->kind == WF_LAUNCHER_MPICH;
    const char *name = mpich ? "mpich" : "openmpi", *called = mpich ? "MPICH" : "Open MPI";
    char why[600] = "";
    void *handle = find(name, why, sizeof why);
    if (!handle) {
        wf_error_set(
            error, WF_ERR_STATE,
            "%s started %d processes, and its plug-in weft-mpi-%s.so %s%s: build Weft where the headers of %s are installed, or name the "
            "folder of the plug-in in WEFT_PLUGINS",
            called, launcher->size, name, why[0] ? "does not load: " : "was not found", why, called);
        return NULL;
    }
    wf_transport_open_function *open;
    *(void **)&open = dlsym(handle, "wf_transport_open");
    struct wf_transport *t = open ? open(error) : NULL;
    if (!open)
        wf_error_set(error, WF_ERR_STATE, "weft-mpi-%s.so is not a plug-in of Weft", name);
    if (!t)
        return NULL;
    if (t->abi == WF_TRANSPORT_ABI && t->size == launcher->size)
        return t;
    if (t->abi != WF_TRANSPORT_ABI)
        wf_error_set(error, WF_ERR_STATE, "weft-mpi-%s.so is of another version of Weft: install both anew", name);
    else
        wf_error_set(error, WF_ERR_STATE, "the launcher started %d processes, and %s knows of %d: start the program with the mpirun of %s",
                     launcher->size, called, t->size, called);
    t->close(t);
    return NULL;
}
