"""Arrays of each dtype that mods read: as they lie, and without a copy."""

import numpy as np
import pytest

import tilewright as tw

NUMBERS = {
    np.int8: [-128, 127, -1, 0],
    np.uint8: [255, 128, 1, 0],
    np.int16: [-32768, 32767, -1, 0],
    np.uint16: [65535, 32768, 255, 0],
    np.int32: [-(2**31), 2**31 - 1, -1, 0],
    np.uint32: [2**32 - 1, 2**31, 65536, 0],
    np.int64: [-(2**62), 2**62, -1, 2**32],
    np.float64: [0.1, -0.9999999, 1e30, 0],
}
ROWS = np.arange(64, dtype=np.float32).reshape(1, 1, 4, 16)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_mask_finds_each_number(dtype):
    numbers = np.array(NUMBERS[dtype], dtype=dtype)
    turned = numbers[::-1].copy()
    mask = tw.create_block_mask(lambda b, h, i, j: numbers[j] == turned[i], None, None, 4, 4)
    out = tw.flex_attention(ROWS, ROWS, ROWS, block_mask=mask)
    assert np.array_equal(out, ROWS[:, :, ::-1])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_bound_arrays_are_read_where_they_lie(dtype):
    short = f"{np.dtype(dtype).kind}{np.dtype(dtype).itemsize * 8}"
    buffers = {"keep": {"dtype": short, "shape": [None]}}
    attention = tw.Attention(
        {"dtype": "f32", "head_dim": 16, "score_mod": "keep[kv_idx] != 0 ? score : -INFINITY", "buffers": buffers},
        device="cpu",
    )
    keep = np.array([0, 1, 0, 0], dtype=dtype)
    bound = attention.bind(keep=keep)
    assert np.array_equal(attention.forward(ROWS, ROWS, ROWS, bindings=bound)[0, 0, 0], ROWS[0, 0, 1])
    keep[:] = [0, 0, 1, 0]
    assert np.array_equal(attention.forward(ROWS, ROWS, ROWS, bindings=bound)[0, 0, 0], ROWS[0, 0, 2])
