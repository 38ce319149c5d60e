# SPDX-License-Identifier: MIT
# Sourced by scripts that take a sample of their cases.

# some FEW ALL: the first, or with WEFT_TEST_ALL, in the suite slow (tests/meson.build), the second
some() { if [ "${WEFT_TEST_ALL:-}" ]; then echo "$2"; else echo "$1"; fi; }
