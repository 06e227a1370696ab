import numpy as np
import pytest
import reference

import tilewright as tw

jax = pytest.importorskip("jax")
jnp = jax.numpy


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def test_eager_and_jit(qkv):
    arrays = [jnp.asarray(x) for x in qkv]
    slopes = jnp.asarray([0.5, 0.25, 0.125, 0.0625])

    def mod(score, b, h, q_idx, kv_idx):
        return jnp.tanh(score) + slopes[h] * (kv_idx - q_idx)

    mask = tw.create_block_mask(causal, None, None, 40, 56)

    def call(q, k, v):
        return tw.flex_attention(q, k, v, mod, mask, return_lse=True)

    wanted = reference.attention(*qkv, lambda s, b, h, i, j: np.tanh(s) + np.asarray(slopes)[h] * (j - i), causal)
    for run in (call, jax.jit(call)):
        out, lse = run(*arrays)
        assert isinstance(out, jax.Array) and reference.close(out, wanted[0]) and reference.close(lse, wanted[1])


def test_captured_arguments_of_a_compiled_function(qkv):
    @jax.jit
    def call(q, k, v, doc, gain):
        mask = tw.create_block_mask(lambda b, h, i, j: doc[i] == doc[j], None, None, 40, 56)
        return tw.flex_attention(q, k, v, lambda s, b, h, i, j: s * gain, mask, scale=0.5)

    for width in (5, 9):
        doc = np.arange(56, dtype=np.int32) // width
        out = call(*qkv, jnp.asarray(doc), jnp.float32(width))
        wanted = reference.attention(*qkv, lambda s, b, h, i, j: s * width, lambda b, h, i, j: doc[i] == doc[j], 0.5)
        assert reference.close(out, wanted[0])


def test_attention_and_bfloat16(qkv):
    q, k, v = (jnp.asarray(x, dtype=jnp.bfloat16) for x in qkv)
    attention = tw.Attention({"dtype": "bf16", "head_dim": 16, "mask_mod": "q_idx >= kv_idx"}, device="cpu")
    out = attention.forward(q, k, v, q_offset=2)
    wanted = reference.attention(q, k, v, None, lambda b, h, i, j: i + 2 >= j)[0]
    assert (
        out.dtype == jnp.bfloat16
        and np.abs(np.asarray(out, dtype=np.float64) - wanted).max() < 2**-6 * np.abs(wanted).max()
    )


def test_errors_leave_the_compiled_function(qkv):
    with pytest.raises(tw.Error, match="head_dim.*\n.*\n.*\n.*\n.*query, key and value"):
        tw.flex_attention(*(jnp.asarray(x[..., :5]) for x in qkv))
