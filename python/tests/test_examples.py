"""examples/torch and examples/jax learn what they say."""

import importlib.util
import os

import pytest


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_training_reduces_the_loss(framework):
    pytest.importorskip(framework)
    path = os.path.join(os.path.dirname(__file__), "..", "..", "examples", framework, "train.py")
    spec = importlib.util.spec_from_file_location(f"train_{framework}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    losses, _ = module.train(steps=30)
    assert losses[-1] < 0.5 * losses[0]
