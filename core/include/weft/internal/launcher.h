/* SPDX-License-Identifier: MIT */
/* The launcher that started this process as one of several (mpirun or srun), by the environment. */
#ifndef WEFT_INTERNAL_LAUNCHER_H
#define WEFT_INTERNAL_LAUNCHER_H

#include <weft/base.h>

WF_BEGIN_DECLS

enum wf_launcher_kind { WF_LAUNCHER_NONE, WF_LAUNCHER_OPENMPI, WF_LAUNCHER_MPICH };
struct wf_launcher {
    enum wf_launcher_kind kind; /* whose MPI the processes speak */
    int rank, size;             /* 0 and 1 without a launcher */
    int local_rank, local_size; /* on this node */
};
/* Open MPI's mpirun sets OMPI_COMM_WORLD_*, MPICH's (hydra) PMI_* and MPI_LOCAL*; srun, with the interface to the MPI, PMIX_RANK or
 * PMI_RANK besides SLURM_*. A plain srun, without one, starts processes that do not know of each other: none. */
struct wf_launcher wf_launcher(void);

WF_END_DECLS

#endif
