/* SPDX-License-Identifier: MIT */
/* Detects the launcher that started this process (weft/internal/launcher.h). */
#include <stdlib.h>

#include <weft/internal/launcher.h>

/* The value of an environment variable if it is a whole number in low .. 2^30, else `missing`. */
static int number(const char *name, int low, int missing)
{
    const char *text = getenv(name);
    char *end;
    long value = text ? strtol(text, &end, 10) : 0;
    return text && end != text && !*end && value >= low && value <= 1 << 30 ? (int)value : missing;
}

/* The number of tasks on the first node of a job of Slurm, from a list for all nodes such as "2(x3),1". It is a guess for this process's
 * node. */
static int slurm_local_size(void)
{
    const char *text = getenv("SLURM_STEP_TASKS_PER_NODE");
    text = text ? text : getenv("SLURM_TASKS_PER_NODE");
    long value = text ? strtol(text, NULL, 10) : 1;
    return value >= 1 && value <= 1 << 20 ? (int)value : 1;
}

struct wf_launcher wf_launcher(void)
{
    struct wf_launcher l = {.rank = 0, .size = 1, .local_rank = 0, .local_size = 1};
    const int slurm_size = number("SLURM_STEP_NUM_TASKS", 1, number("SLURM_NTASKS", 1, 1));
    if (number("OMPI_COMM_WORLD_SIZE", 1, 0) > 0) {
        l.kind = WF_LAUNCHER_OPENMPI;
        l.size = number("OMPI_COMM_WORLD_SIZE", 1, 1);
        l.rank = number("OMPI_COMM_WORLD_RANK", 0, 0);
        l.local_size = number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, 1);
        l.local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK", 0, 0);
    } else if (number("PMI_SIZE", 1, 0) > 0 || (number("PMI_RANK", 0, -1) >= 0 && slurm_size > 1)) {
        l.kind = WF_LAUNCHER_MPICH;
        l.size = number("PMI_SIZE", 1, slurm_size);
        l.rank = number("PMI_RANK", 0, 0);
        l.local_size = number("MPI_LOCALNRANKS", 1, slurm_local_size());
        l.local_rank = number("MPI_LOCALRANKID", 0, number("SLURM_LOCALID", 0, 0));
    } else if (number("PMIX_RANK", 0, -1) >= 0 && slurm_size > 1) {
        l.kind = WF_LAUNCHER_OPENMPI;
        l.size = slurm_size;
        l.rank = number("PMIX_RANK", 0, 0);
        l.local_size = slurm_local_size();
        l.local_rank = number("SLURM_LOCALID", 0, 0);
    }
    if (l.rank >= l.size) /* no launcher sets such values */
        return (struct wf_launcher){.size = 1, .local_size = 1};
    if (l.local_size <= l.local_rank)
        l.local_size = l.local_rank + 1;
    return l;
}
