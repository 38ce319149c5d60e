/* SPDX-License-Identifier: MIT */
/* Detects the launcher (mpirun or srun) that started this process as one of several, by its environment variables. */
#ifndef WEFT_INTERNAL_LAUNCHER_H
#define WEFT_INTERNAL_LAUNCHER_H

#include <weft/base.h>

WF_BEGIN_DECLS

enum wf_launcher_kind { WF_LAUNCHER_NONE, WF_LAUNCHER_OPENMPI, WF_LAUNCHER_MPICH };
struct wf_launcher {
    enum wf_launcher_kind kind; /* the MPI implementation of the processes */
    int rank;                   /* 0 without a launcher */
    int size;                   /* number of processes, 1 without a launcher */
    int local_rank;             /* the process's number on this node */
    int local_size;             /* number of processes on this node */
};
/* Open MPI's mpirun sets OMPI_COMM_WORLD_*. MPICH's mpirun (hydra) sets PMI_* and MPI_LOCAL*. srun with an interface to MPI sets
 * PMIX_RANK or PMI_RANK besides SLURM_*. A plain srun without an interface to MPI counts as no launcher, because its processes do not
 * know of each other. */
struct wf_launcher wf_launcher(void);

WF_END_DECLS

#endif
