#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/golden/io/*.safetensors with the Python package `safetensors` (and torch, for the dtypes that NumPy lacks).

Run by hand where these are installed: python3 tests/golden/make_io.py. The tests only read the files.
"""
import json
import os
import struct

import torch
from safetensors.torch import save_file

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "io")
os.makedirs(folder, exist_ok=True)


def path(name):
    return os.path.join(folder, name)


# Every dtype, elements 0 .. 5 (bools: i odd), shape [2,3], names t.DTYPE; with metadata of one key, so that its order is fixed.
dtypes = {
    "F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2, "I8": torch.int8, "U8": torch.uint8, "I16": torch.int16, "U16": torch.uint16, "I32": torch.int32,
    "U32": torch.uint32, "I64": torch.int64, "U64": torch.uint64, "BOOL": torch.bool,
}
counted = torch.arange(6).reshape(2, 3)
tensors = {"t." + name: ((counted % 2 == 1) if name == "BOOL" else counted.to(torch.float32).to(dtype) if dtype.is_floating_point
                         else counted.to(dtype)) for name, dtype in dtypes.items()}
save_file(tensors, path("dtypes.safetensors"), metadata={"format": "pt"})

# Values at the edges of the floating dtypes, each beside what it is in F64. Raw bits, so that nothing is rounded on the way.
f16 = [0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00, 0x3555, 0xc000, 0x7bff, 0xfbff, 0x7c00, 0xfc00]
bf16 = [0x0000, 0x8000, 0x0001, 0x007f, 0x0080, 0x3f80, 0x3eab, 0xc000, 0x7f7f, 0xff7f, 0x7f80, 0xff80]
half = torch.tensor(f16, dtype=torch.int32).to(torch.int16).view(torch.float16)
bfloat = torch.tensor(bf16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
f32 = torch.tensor([0.0, -0.0, 1e-45, 1.1754944e-38, 0.1, 3.4028235e38, float("inf"), float("-inf")], dtype=torch.float32)
save_file({"f16": half, "f16.f64": half.to(torch.float64), "bf16": bfloat, "bf16.f64": bfloat.to(torch.float64),
           "f32": f32, "f32.f64": f32.to(torch.float64),
           "nan.f16": torch.tensor([float("nan")], dtype=torch.float16), "nan.bf16": torch.tensor([float("nan")], dtype=torch.bfloat16)},
          path("floats.safetensors"))

# Shapes: a scalar, nothing at all, six dimensions; names and metadata outside ASCII and with characters that JSON escapes.
save_file({"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4), "six": torch.arange(64, dtype=torch.float32).reshape(2, 2, 2, 2, 2, 2),
           "gr\u00fc\u00df.\u4e16\u754c.\U0001f600": torch.tensor([1.0]), 'quote"back\\slash\ttab\u0001': torch.tensor([2.0])},
          path("names.safetensors"), metadata={"note": 'line one\nline two, "quoted", \u00e9\U0001f600', "format": "pt", "empty": ""})

# What the package itself doesn't write but reads: a header whose length is no multiple of 8, keys in another order, blanks,
# escapes of surrogate pairs, unknown members.
header = (' { "b" : { "shape": [2], "data_offsets":[1,9] , "dtype":"F32", "later": 1 },\n "__metadata__":{"k":"\\ud83d\\ude00"},'
          '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}    ').encode()[1:]
assert len(header) % 8 != 0
with open(path("odd.safetensors"), "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header + b"\x07" + struct.pack("<2f", 1.5, -2.0))

# All of them are files that the package accepts.
from safetensors import safe_open  # noqa: E402

for name in sorted(os.listdir(folder)):
    os.chmod(path(name), 0o644)
    with safe_open(path(name), "pt") as f:
        print(name, os.path.getsize(path(name)), len(list(f.keys())), json.dumps(f.metadata()))
