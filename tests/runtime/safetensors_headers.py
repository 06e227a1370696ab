#!/usr/bin/env python3
"""Compares safetensors_headers.json with the format's own reader.

pip install safetensors==0.8.0; tests/runtime/safetensors_headers.py
"reader" is whether that reader accepts the header before so many bytes of zeros; "forbidden" says why
tilewright refuses a header that it accepts. Each character of "header" is one byte.
"""
import json
import pathlib
import struct
import sys

import safetensors


def is_accepted(header: bytes, data_bytes: int) -> bool:
    try:
        safetensors.deserialize(struct.pack("<Q", len(header)) + header + bytes(data_bytes))
        return True
    except safetensors.SafetensorError:
        return False


corpus = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
wrong = [
    item["name"]
    for item in corpus
    if is_accepted(item["header"].encode("latin-1"), item["data_bytes"]) != item["reader"]
]
print(f"{len(corpus)} headers, {len(wrong)} with another verdict: {wrong}")
sys.exit(bool(wrong))
