#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the event files of runs with TensorBoard's own reader and compares them with metrics.jsonl.

    tests/golden/check_events.py RUN...

Every scalar of every line, at its step, as the nearest float, and no other; every text sample. Needs tensorboard (tried with 2.21.0).
Exit code 1 when anything differs.
"""

import glob
import json
import os
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2

NOT_CURVES = {"event", "step", "seconds", "text"}


def as_float(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def of_lines(run):
    scalars, texts = {}, []
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    # The sum of the batches' weights, like the seconds, is an axis and no curve.
    units = {key[: -len("_per_second")] for event in events for key in event if key.endswith("_per_second")}
    for event in events:
        if event["event"] in ("step", "valid"):
            for key in event.keys() - NOT_CURVES - units:
                scalars.setdefault(key, []).append((event["step"], as_float(event[key])))
        elif event["event"] == "sample":
            texts.append((event["step"], event["text"]))
    return scalars, texts


def check(run):
    problems = []
    paths = sorted(glob.glob(os.path.join(run, "*tfevents*")))
    if len(paths) != 1:
        return ["%d event files" % len(paths)], ""
    # The loader checks the checksums and stops quietly at the first that is wrong: all bytes must have been read.
    raw = list(RawEventFileLoader(paths[0]).Load())
    size, read = os.path.getsize(paths[0]), sum(len(record) + 16 for record in raw)
    if read != size:
        problems.append("the reader stops at byte %d of %d" % (read, size))
    events = [event_pb2.Event.FromString(record) for record in raw]
    walls = [event.wall_time for event in events]
    if events[0].file_version != "brain.Event:2" or walls != sorted(walls):
        problems.append("no version, or times that go back")

    accumulator = EventAccumulator(run, size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    tags = accumulator.Tags()
    scalars, texts = of_lines(run)
    if sorted(tags["scalars"]) != sorted(scalars):
        problems.append("tags %s, in metrics.jsonl %s" % (sorted(tags["scalars"]), sorted(scalars)))
    for tag in scalars.keys() & set(tags["scalars"]):
        seen = [(event.step, event.value) for event in accumulator.Scalars(tag)]
        if seen != scalars[tag]:
            at = next((i for i, pair in enumerate(zip(seen, scalars[tag])) if pair[0] != pair[1]), min(len(seen), len(scalars[tag])))
            problems.append("%s: %d values, in metrics.jsonl %d; the first that differs is number %d: %s, %s"
                            % (tag, len(seen), len(scalars[tag]), at, seen[at:at + 1], scalars[tag][at:at + 1]))
    seen = []
    if "sample" in tags["tensors"]:
        seen = [(event.step, event.tensor_proto.string_val[0].decode("utf-8")) for event in accumulator.Tensors("sample")]
        if accumulator.SummaryMetadata("sample").plugin_data.plugin_name != "text":
            problems.append("the samples are no texts")
    if seen != texts:
        problems.append("%d samples, in metrics.jsonl %d, or they differ" % (len(seen), len(texts)))
    if not scalars:
        problems.append("no scalars")
    return problems, "%d tags, %d scalars, %d samples, %d bytes" % (len(scalars), sum(map(len, scalars.values())), len(texts), size)


failed = False
for folder in sys.argv[1:]:
    wrong, summary = check(folder)
    for problem in wrong:
        print("%s: %s" % (folder, problem))
    print("%s: %s (%s)" % (folder, "DIFFERS" if wrong else "equal", summary))
    failed |= bool(wrong)
sys.exit(failed or len(sys.argv) < 2)
