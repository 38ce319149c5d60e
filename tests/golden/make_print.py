# SPDX-License-Identifier: MIT
"""Tensors as PyTorch prints them, for wf_array_print. usage: python3 make_print.py      writes tests/golden/print.h
Run with PyTorch 2.13.0.

Each case: dtype, shape, and its elements, given in full, or element i as (i * step) % modulus + first; then the text of torch's formatter
without "tensor(", with true and false for True and False. Where torch gives nan and inf less room than they take, Weft aligns them: such
cases are left out here."""
import pathlib
import torch
from torch._tensor_str import _tensor_str

INF, NAN = float('inf'), float('nan')
NAMES = {torch.float32: 'WF_F32', torch.float64: 'WF_F64', torch.float16: 'WF_F16', torch.bfloat16: 'WF_BF16',
         torch.float8_e4m3fn: 'WF_F8_E4M3', torch.float8_e5m2: 'WF_F8_E5M2', torch.int8: 'WF_I8', torch.uint8: 'WF_U8', torch.int16: 'WF_I16',
         torch.int32: 'WF_I32', torch.int64: 'WF_I64', torch.bool: 'WF_BOOL'}
LISTS = [
    (torch.float32, (2, 3), [1, -2.5, 3, 0.1, 1000, -0.00390625]),
    (torch.float32, (2, 3), [1, -2.5, 3, 0.25, 10, -0.125]),
    (torch.float32, (2, 2), [1, NAN, -0.5, INF]),
    (torch.float32, (4,), [NAN, INF, -INF, 0.5]),
    (torch.float32, (3,), [0, 0, 0]),
    (torch.float32, (3,), [1e-5, 1, 0]),
    (torch.float32, (3,), [1, 2, 2000]),
    (torch.float32, (2, 2), [100, -20, 3, 0]),
    (torch.float32, (2,), [3e9, 4e9]),
    (torch.float32, (), [1.5]),
    (torch.float32, (), [-3]),
    (torch.float32, (0, 3), []),
    (torch.float32, (2, 1, 2, 2), [i / 4 for i in range(8)]),
    (torch.float32, (1, 2, 1, 1, 3), [i - 2 for i in range(6)]),
    (torch.float64, (3,), [1e300, -1e-300, 1]),
    (torch.float64, (2,), [0.12345678901, 9.99995]),
    (torch.float16, (3,), [0.1, 65504, -2]),
    (torch.bfloat16, (3,), [0.1, 3, -2]),
    (torch.float8_e4m3fn, (6,), [0.1015625, 448, -2, 0.001953125, 1.125, 0]),
    (torch.float8_e5m2, (4,), [0.09375, 57344, -2, 0.0000152587890625]),
    (torch.int32, (2, 3), [1, -20, 300, 4, 0, -65536]),
    (torch.int8, (3,), [-128, 127, 0]),
    (torch.uint8, (3,), [255, 0, 7]),
    (torch.int16, (2, 1), [-300, 5]),
    (torch.int64, (2,), [-9007199254740992, 3]),
    (torch.bool, (2, 2), [1, 0, 0, 1]),
    (torch.bool, (), [1]),
]
FORMULAS = [ # dtype, shape, step, modulus, first
    (torch.float32, (30,), 7, 31, -9), (torch.float32, (5, 30), 7, 31, -9.5), (torch.float32, (1000,), 1, 100, 0),
    (torch.float32, (1001,), 1, 100, 0.5), (torch.float32, (40, 50), 3, 101, -7.25), (torch.float32, (5, 4, 100), 11, 97, 0),
    (torch.float32, (9, 8, 7, 3), 11, 97, 0.125), (torch.int32, (2000,), 37, 991, -100), (torch.int32, (100, 20), 37, 991, -100),
    (torch.float64, (3, 7, 50), 13, 5000, 1), (torch.bool, (1500,), 1, 2, 0), (torch.float32, (7, 0, 5), 1, 2, 0),
    (torch.int64, (6, 6, 6, 6), 5, 7, 0), (torch.float32, (2, 3, 4, 2, 3, 8), 5, 7, -3),
]

rows, values = [], []


def add(tensor, formula):
    text = _tensor_str(tensor, 0).replace('True', 'true').replace('False', 'false').replace('\n', '\\n')
    lines = [text[i:i + 100] for i in range(0, len(text), 100)]
    for i in range(len(lines) - 1): # no escape is cut
        if lines[i].endswith('\\'):
            lines[i], lines[i + 1] = lines[i][:-1], '\\' + lines[i + 1]
    quoted = '\n     '.join(f'"{line}"' for line in lines)
    shape = ', '.join(map(str, tensor.shape))
    rows.append(f'    {{{NAMES[tensor.dtype]}, {{{tensor.dim()}{", {" + shape + "}" if shape else ""}}}, {formula},\n     {quoted}}},')


def c_number(x):
    return 'NAN' if x != x else 'INFINITY' if x == INF else '-INFINITY' if x == -INF else repr(x)


for dtype, shape, numbers in LISTS:
    add(torch.tensor(numbers, dtype=torch.float64).to(dtype).reshape(shape), f'{len(values)}, 0, 0, 0')
    values += numbers
for dtype, shape, step, modulus, first in FORMULAS:
    count = 1
    for n in shape:
        count *= n
    tensor = torch.tensor([i * step % modulus + first for i in range(count)], dtype=torch.float64).to(dtype).reshape(shape)
    add(tensor, f'-1, {step}, {modulus}, {first}')

numbers = ', '.join(map(c_number, values))
pathlib.Path(__file__).with_name('print.h').write_text(f'''/* SPDX-License-Identifier: MIT */
/* Written by make_print.py, which says what this is. */
/* clang-format off */
#include <math.h>

#include <weft/array.h>

static const double print_values[] = {{{numbers}}};
static const struct print_case {{
    wf_dtype dtype;
    wf_shape shape;
    int first_value; /* in print_values; -1: element i is (i * step) % modulus + first */
    int64_t step, modulus;
    double first;
    const char *text;
}} print_cases[] = {{
{chr(10).join(rows)}
}};
''')
