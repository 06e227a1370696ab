"""Inputs and the reference in double precision."""

import os
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(__file__))
os.environ.setdefault("TILEWRIGHT_DEVICE", "cpu")
# scripts/python_gpu.sh: where torch's functions put what they make.
if device := os.environ.get("TILEWRIGHT_TEST_TORCH_DEVICE"):
    import torch

    torch.set_default_device(device)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def qkv(rng):
    """float32 [2, 4, 40, 16] and, of K and V, 56 rows."""
    lengths = (40, 56, 56)
    return tuple(rng.standard_normal((2, 4, n, 16)).astype(np.float32) for n in lengths)
