# SPDX-License-Identifier: MIT
"""Arrays by numpy.save for tests/io/npy_read.c: tests/golden/io/read_*.npy. usage: python3 make_npy.py"""
import pathlib
import numpy as np
from numpy.lib import format

OUT = pathlib.Path(__file__).parent / 'io'
whole = np.arange(24).reshape(2, 3, 4)
for name in ('f2', 'i1', 'u1', 'i2', 'u2', 'u4', 'i8', 'u8'):
    np.save(OUT / f'read_{name}.npy', whole.astype(name))
np.save(OUT / 'read_fortran.npy', np.asfortranarray(whole.astype('<f8')))
for version in (2, 3):
    with open(OUT / f'read_v{version}.npy', 'wb') as file:
        format.write_array(file, whole.astype('<f4'), version=(version, 0))
# refused
np.save(OUT / 'read_object.npy', np.array([{}, None], dtype=object), allow_pickle=True)
np.save(OUT / 'read_big.npy', whole.astype('>f4'))
np.save(OUT / 'read_records.npy', np.zeros(2, dtype=[('a', '<f4'), ('b', '<i4')]))
np.save(OUT / 'read_complex.npy', np.zeros(2, dtype='<c8'))
np.save(OUT / 'read_text.npy', np.array(['ab', 'c']))
np.save(OUT / 'read_dims.npy', np.zeros((1,) * 7, dtype='<f4'))
print('numpy', np.__version__)
