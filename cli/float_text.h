/* SPDX-License-Identifier: MIT */
#ifndef WEFT_CLI_FLOAT_TEXT_H
#define WEFT_CLI_FLOAT_TEXT_H

/* The shortest decimal that reads back as the same float, of these the nearest one: "0.1", "-12.5", "3", "1e-07", as JSON takes it.
 * Returns its length. The value must be finite. Hundreds of millions are printed, so printf is too slow. */
enum { FLOAT_TEXT = 24 };
int float_text(float value, char text[FLOAT_TEXT]);

#endif
