"""Tests of torch tensors on a GPU: scripts/python_gpu.sh. TILEWRIGHT_TEST_TORCH_DEVICE=cpu tries what needs none."""

import os

import pytest
import torch

DEVICE = os.environ.get("TILEWRIGHT_TEST_TORCH_DEVICE", "cuda")


@pytest.fixture
def device():
    return DEVICE


@pytest.fixture
def qkv():
    """bf16 q [2, 8, 257, 128], k and v [2, 2, 511, 128]."""
    torch.manual_seed(7)
    return [torch.randn(2, h, n, 128, device=DEVICE).bfloat16() for h, n in ((8, 257), (2, 511), (2, 511))]
