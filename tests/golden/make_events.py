#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Event files by TensorBoard's own writer and arrays by numpy.save, for tests/io/events.c and tests/io/npy.c.

Run with: tensorboard 2.21.0, protobuf 7.36.2, numpy 2.4.6.
"""

import glob
import os
import shutil
import tempfile
import time

import numpy as np
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "io")


def write_events(name, events):
    folder = tempfile.mkdtemp()
    clock, time.time = time.time, lambda: 1700000000.25
    try:
        writer = EventFileWriter(folder)
        for event in events:
            writer.add_event(event)
        writer.close()
    finally:
        time.time = clock
    (path,) = glob.glob(os.path.join(folder, "*"))
    shutil.copyfile(path, os.path.join(HERE, name))
    shutil.rmtree(folder)


def scalar(tag, step, wall, value):
    return event_pb2.Event(wall_time=wall, step=step, summary=summary_pb2.Summary(
        value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)]))


def text(tag, step, wall, value):
    summary = text_pb(tag, value)
    summary.value[0].metadata.data_class = summary_pb2.DATA_CLASS_TENSOR
    return event_pb2.Event(wall_time=wall, step=step, summary=summary)


# What Weft writes: the same calls in tests/io/events.c must give these bytes.
write_events("weft.tfevents", [
    scalar("loss/train", 0, 1700000001.5, 0.1),
    scalar("loss/train", 1, 1700000002.5, 0.0),
    scalar("lr", 1 << 40, 1700000003.5, -1e-30),
    scalar("größe", 7, 1700000003.75, 1e39),
    text("sample", 1 << 40, 1700000004.5, "ROMEO:\nO, “schön” 猫 \x01"),
    text("sample", 1 << 41, 1700000005.5, "x" * 5000),
    text("empty", 1 << 41, 1700000005.5, ""),
])

# What others write beside that, in no order: steps 0, 30, 10, 20, 40, -1.
histogram = summary_pb2.Summary(value=[summary_pb2.Summary.Value(
    tag="weights", histo=summary_pb2.HistogramProto(min=-1, max=1, num=3, sum=0.5, bucket_limit=[0, 1], bucket=[1, 2]))])
write_events("others.tfevents", [
    event_pb2.Event(wall_time=1.0, step=0, graph_def=b"\x0a\x00graph"),
    event_pb2.Event(wall_time=2.0, step=30, summary=histogram),
    event_pb2.Event(wall_time=3.0, step=10, log_message=event_pb2.LogMessage(level=event_pb2.LogMessage.INFO, message="hello")),
    scalar("loss", 20, 4.0, 2.5),
    event_pb2.Event(wall_time=5.0, step=40, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)),
    scalar("loss", -1, 6.0, 3.5),
])

whole = np.arange(24).reshape(2, 3, 4)
for name, array in {
    "f4": whole.astype("<f4"),
    "f8_transposed": np.ascontiguousarray(whole.transpose(2, 0, 1)).astype("<f8"),
    "i4": np.arange(-3, 4, dtype="<i4"),
    "b1": whole % 3 == 0,
    "scalar": np.array(2.5, dtype="<f4"),
    "empty": np.zeros((0, 12345), dtype="<f4"),
}.items():
    path = os.path.join(HERE, name + ".npy")
    np.save(path, array)
    print(name, array.shape, os.path.getsize(path) - array.nbytes)
