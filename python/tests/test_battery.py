"""The battery against double precision: a score_mod and a mask_mod in each call."""

import os

import battery_masks
import battery_scores
import numpy as np
import pytest
import reference

import tilewright as tw

SIZES = B, H, L, S = 2, 2, 20, 24
SCORES = battery_scores.score_mods(np, *SIZES)
MASKS = battery_masks.mask_mods(np, *SIZES)
# Each score_mod with the next mask_mod: twice as many calls would test no more.
PAIRS = [(name, list(MASKS)[i % len(MASKS)]) for i, name in enumerate(SCORES)]
if (
    os.environ.get("TILEWRIGHT_TEST_FULL") == "1"
):  # scripts/test.sh --full: the day's half, as each is a kernel to compile
    PAIRS = PAIRS[int(os.environ.get("TILEWRIGHT_TEST_SEED", 0)) % 2 :: 2]


def elementwise(mod):
    """The mod on whole arrays, one number after the other, as PyTorch's vmap does."""

    def run(*arrays):
        numbers = np.broadcast_arrays(*arrays)
        values = [mod(*at) for at in zip(*(x.flat for x in numbers))]
        return np.array(values, dtype=float).reshape(numbers[0].shape)

    return run


@pytest.mark.parametrize("name, mod", [*SCORES.items(), *MASKS.items()])
def test_every_mod_is_traced(name, mod):
    assert tw.trace(mod).code


@pytest.mark.parametrize("score, mask", PAIRS)
def test_pair(score, mask, rng):
    q, k, v = (rng.standard_normal((B, H, n, 16)).astype(np.float32) for n in (L, S, S))
    block_mask = tw.create_block_mask(MASKS[mask], B, H, L, S, BLOCK_SIZE=16)
    out, lse = tw.flex_attention(q, k, v, SCORES[score], block_mask, return_lse=True)
    with np.errstate(all="ignore"):
        wanted = reference.attention(
            q, k, v, elementwise(SCORES[score]), lambda *at: elementwise(MASKS[mask])(*at) != 0
        )
    assert reference.close(out, wanted[0]) and reference.close(lse, wanted[1])
