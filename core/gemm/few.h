/* SPDX-License-Identifier: MIT */
/* For kernels with a function for each small number of rows of A: what(1) what(2) ... what(FEW_ROWS). */
#ifndef WEFT_GEMM_FEW_H
#define WEFT_GEMM_FEW_H

#define ROWS_UP_TO_8(what) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8)
#if defined WF_ISA_AVX512
#define EACH_FEW_ROWS(what) ROWS_UP_TO_8(what) what(9) what(10) what(11) what(12)
#else
#define EACH_FEW_ROWS(what) ROWS_UP_TO_8(what)
#endif

#endif
