"""k and v of one byte: numpy's int8, float8 of ml_dtypes and torch."""

import numpy as np
import pytest

import tilewright as tw


def _rows(seed):
    return np.random.default_rng(seed).standard_normal((1, 2, 12, 16)).astype(np.float32)


def _spec(kv_dtype):
    return {"dtype": "f32", "head_dim": 16, "kv_dtype": kv_dtype, "k_scale": "1.0f", "v_scale": "1.0f"}


def _wanted(q, k, v):
    plain = tw.Attention({"dtype": "f32", "head_dim": 16}, device="cpu")
    return plain.forward(q, k.astype(np.float32), v.astype(np.float32))


@pytest.mark.parametrize("name, kv_dtype", [("float8_e4m3fn", "f8e4m3"), ("float8_e5m2", "f8e5m2")])
def test_float8_of_ml_dtypes(name, kv_dtype):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    q, k, v = _rows(1), _rows(2).astype(dtype), _rows(3).astype(dtype)
    found = tw.Attention(_spec(kv_dtype), device="cpu").forward(q, k, v)
    np.testing.assert_allclose(found, _wanted(q, k, v), rtol=1e-6, atol=1e-6)


def test_int8_of_numpy():
    q, k, v = _rows(1), (_rows(2) * 3).astype(np.int8), (_rows(3) * 30).astype(np.int8)
    found = tw.Attention(_spec("i8"), device="cpu").forward(q, k, v)
    np.testing.assert_allclose(found, _wanted(q, k, v), rtol=1e-6, atol=1e-5)


def test_float8_of_torch():
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(_rows(seed)) for seed in (1, 2, 3))
    k, v = k.to(torch.float8_e4m3fn), v.to(torch.float8_e4m3fn)
    found = tw.Attention(_spec("f8e4m3"), device="cpu").forward(q, k, v)
    wanted = _wanted(q.numpy(), k.float().numpy(), v.float().numpy())
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6, atol=1e-6)


def test_a_spec_without_scales_is_refused():
    with pytest.raises(tw.Error, match="k_scale is missing"):
        tw.Attention({"dtype": "f32", "head_dim": 16, "kv_dtype": "i8"}, device="cpu")
