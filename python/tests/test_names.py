"""One name for two arrays or two scalars, and numbers that 32 bits do not hold."""

import numpy as np
import pytest
import reference

import tilewright as tw


def test_two_arrays_of_one_name_are_refused(qkv):
    x, other = np.ones(56, np.float32), np.zeros(56, np.float32)
    mask = tw.create_block_mask("x[kv_idx] > 0", None, None, 40, 56, buffers={"x": x})
    with pytest.raises(tw.Error, match='two different arrays are named "x"'):
        tw.flex_attention(*qkv, "score + x[kv_idx]", mask, buffers={"x": other})
    out = tw.flex_attention(*qkv, "score + x[kv_idx]", mask, buffers={"x": x})
    assert reference.close(out, reference.attention(*qkv)[0])
    parts = [tw.Snippet("x[kv_idx] > 0", {"x": array}, {}) for array in (x, other)]
    with pytest.raises(tw.Error, match='two different arrays are named "x"'):
        tw.create_block_mask(tw.and_masks(*parts), None, None, 40, 56).sparsity()
    rows = [qkv[0][0].swapaxes(0, 1), *(a[0].swapaxes(0, 1) for a in qkv[1:])]
    with pytest.raises(tw.Error, match='two different arrays are named "x"'):
        tw.varlen_attention(
            *rows, [0, 40], [0, 56],
            score_mod=tw.Snippet("score + x[kv_idx]", {"x": other}, {}),
            mask_mod=tw.Snippet("x[kv_idx] > 0", {"x": x}, {}),
        )  # fmt: skip


def test_captured_arrays_get_names_of_their_own(qkv):
    given = np.ones(56, np.float32)

    def with_capture():
        x = np.zeros(56, np.float32)
        return lambda b, h, q_idx, kv_idx: x[kv_idx] < 1

    both = tw.and_masks(with_capture(), "x[kv_idx] > 0")
    mask = tw.create_block_mask(both, None, None, 40, 56, buffers={"x": given})
    assert reference.close(tw.flex_attention(*qkv, None, mask), reference.attention(*qkv)[0])


def test_scalars_have_one_default_and_are_read(qkv):
    def score(score, b, h, q_idx, kv_idx):
        return score * tw.scalar("w", 2.0)

    mask = tw.create_block_mask(lambda b, h, q, kv: q - kv < tw.scalar("w", 5), None, None, 40, 56)
    with pytest.raises(tw.Error, match='tw.scalar."w". is given as'):
        tw.flex_attention(*qkv, score, mask)
    with pytest.raises(tw.Error, match='tw.scalar."w". is given as'):
        tw.trace(lambda s, b, h, q, kv: s * tw.scalar("w", 2.0) + tw.scalar("w", 3.0))
    with pytest.raises(tw.Error, match='scalars holds "ww"'):
        tw.flex_attention(*qkv, score, scalars={"ww": 3.0})


@pytest.mark.parametrize("bad", [[0, 2**32 + 40], [0.0, 40.7], [False, True]])
def test_lengths_are_whole_numbers_of_32_bits(qkv, bad):
    rows = [a[0].swapaxes(0, 1) for a in qkv]
    with pytest.raises(tw.Error, match="q_begin (holds|has dtype)"):
        tw.varlen_attention(*rows, bad, [0, 56])
    assert tw.varlen_attention(*rows, np.array([0, 40]), [0, 56]).shape == (40, 4, 16)
