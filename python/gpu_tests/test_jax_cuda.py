"""jax's arrays on a GPU, inside jax.jit: scripts/python_gpu.sh jax."""

import numpy as np

jax = __import__("jax")
import jax.numpy as jnp  # noqa: E402

import tilewright as tw  # noqa: E402


def test_jit_on_a_gpu():
    random = np.random.default_rng(5)
    host = [random.standard_normal((1, 4, n, 64)).astype(np.float32) for n in (100, 200, 200)]
    q, k, v = (jax.device_put(x, jax.devices("gpu")[0]) for x in host)

    @jax.jit
    def call(q, k, v):
        return tw.flex_attention(q, k, v, lambda s, b, h, i, j: 20.0 * jnp.tanh(s / 20.0)) + 1

    q64, k64, v64 = (x.astype(np.float64) for x in host)
    scores = 20 * np.tanh(q64 @ k64.swapaxes(2, 3) / 8 / 20)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ v64 + 1
    out = call(q, k, v)
    assert out.devices() == {jax.devices("gpu")[0]}
    assert np.abs(np.asarray(out) - wanted).max() < 2e-5 * np.abs(wanted).max()
