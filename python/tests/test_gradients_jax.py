"""Gradients of jax, against those of the plain formula."""

import numpy as np
import pytest

import tilewright as tw

jax = pytest.importorskip("jax")
jnp = jax.numpy


def naive(q, k, v, score_mod=None, mask_mod=None):
    """out and lse in float32; the mods on whole arrays."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, precision="highest") * q.shape[-1] ** -0.5
    at = jnp.ogrid[: scores.shape[0], : scores.shape[1], : scores.shape[2], : scores.shape[3]]
    if score_mod is not None:
        scores = score_mod(scores, *at)
    if mask_mod is not None:
        scores = jnp.where(mask_mod(*at), scores, -jnp.inf)
    lse = jax.nn.logsumexp(scores, axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v, precision="highest"), lse


def close(a, b):
    """Both are float32 sums of some thousand products of order 1."""
    assert a.shape == b.shape and np.allclose(a, b, rtol=2e-4, atol=2e-4), np.abs(np.asarray(a) - b).max()


def causal(b, h, q_idx, kv_idx):
    return q_idx + 16 >= kv_idx


@pytest.mark.parametrize("compiled", [False, True])
def test_of_arrays_and_captured_parameters(qkv, compiled):
    arrays = [jnp.asarray(x) for x in qkv]
    parameters = {"slopes": jnp.asarray([0.5, 0.25, 0.125, 0.0625]), "gain": jnp.float32(0.7)}
    groups = jnp.arange(56, dtype=jnp.int32) // 9

    def mod(p):
        return lambda s, b, h, i, j: jnp.tanh(s * p["gain"]) + p["slopes"][h] * (j - i) + groups[j] * 0.1

    def loss(attention):
        def run(q, k, v, p):
            out, lse = attention(q, k, v, p)
            return (out * jnp.cos(jnp.arange(out.size).reshape(out.shape))).sum() + (lse**2).sum()

        return run

    def mine(q, k, v, p):
        mask = tw.create_block_mask(causal, None, None, 40, 56)
        return tw.flex_attention(q, k, v, mod(p), mask, return_lse=True)

    gradient = jax.grad(loss(mine), argnums=(0, 1, 2, 3))
    found = (jax.jit(gradient) if compiled else gradient)(*arrays, parameters)
    wanted = jax.grad(loss(lambda q, k, v, p: naive(q, k, v, mod(p), causal)), argnums=(0, 1, 2, 3))(
        *arrays, parameters
    )
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
        close(a, b)


def test_without_lse_and_value_and_grad(qkv):
    arrays = [jnp.asarray(x) for x in qkv]
    value, found = jax.value_and_grad(lambda q: (tw.flex_attention(q, *arrays[1:]) ** 2).sum())(arrays[0])
    wanted, gradient = jax.value_and_grad(lambda q: (naive(q, *arrays[1:])[0] ** 2).sum())(arrays[0])
    close(value, wanted)
    close(found, gradient)


def test_attention(qkv):
    arrays = [jnp.asarray(x) for x in qkv]
    spec = {"dtype": "f32", "head_dim": 16, "score_mod": "score + bias[kv_idx]", "outputs": ["out", "lse"],
            "buffers": {"bias": {"dtype": "f32", "shape": ["kv_len"]}}, "gradients": ["k", "bias"]}  # fmt: skip
    attention = tw.Attention(spec, device="cpu")
    bindings = attention.bind(bias=np.linspace(-1, 1, 56, dtype=np.float32))

    def loss(q, k, v):
        return (attention.forward(q, k, v, bindings=bindings)[0] ** 2).sum()

    dq, dk = jax.grad(loss, argnums=(0, 1))(*arrays)
    bias = jnp.linspace(-1, 1, 56)
    wanted = jax.grad(lambda k: (naive(arrays[0], k, arrays[2], lambda s, b, h, i, j: s + bias[j])[0] ** 2).sum())(
        arrays[1]
    )
    close(dk, wanted)
    assert (dq == 0).all()  # the spec does not name it


def test_a_score_mod_without_derivative(qkv):
    arrays = [jnp.asarray(x) for x in qkv]
    code = "float x = score; for (int i = 0; i < 2; ++i) x += bias[i]; return x;"
    buffers = {"bias": jnp.ones(2)}
    tw.flex_attention(*arrays, code, buffers=buffers)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no derivative of this snippet"):
        jax.grad(lambda q: tw.flex_attention(q, *arrays[1:], code, buffers=buffers).sum())(arrays[0])
