"""examples/onnxruntime: a node that calls tilewright, by the operator in Python. scripts/python_test.sh checks the one in C++."""

import os
import subprocess
import sys

import pytest


def test_a_node_in_python_equals_double_precision():
    for package in ("onnxruntime", "onnxruntime_extensions", "onnx"):
        pytest.importorskip(package)
    path = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "onnxruntime", "check.py")
    said = subprocess.check_output([sys.executable, path], text=True)
    assert said.count("from double precision") == 2
