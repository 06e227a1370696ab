import numpy as np
import pytest
import reference

import tilewright as tw


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def tile_reference(mod, size, block):
    """1 where something of a tile is kept, and 2 where all is."""
    dense = np.broadcast_to(mod(*reference.indices(*size)), size)
    rows, columns = -(-size[2] // block[0]), -(-size[3] // block[1])
    tiles = np.zeros((*size[:2], rows, columns), dtype=int)
    for i in range(rows):
        for j in range(columns):
            part = dense[:, :, i * block[0] : (i + 1) * block[0], j * block[1] : (j + 1) * block[1]]
            tiles[:, :, i, j] = part.any((2, 3)).astype(int) + part.all((2, 3))
    return tiles


def test_tiles_sparsity_and_pictures():
    mask = tw.create_block_mask(causal, None, 2, 200, 200, BLOCK_SIZE=(16, 32))
    tiles = tile_reference(causal, (1, 2, 200, 200), (16, 32))
    assert mask.shape == (1, 2, 200, 200)
    assert (mask.to_dense() == (tiles > 0)).all() and (mask.tiles() == tiles).all()
    assert mask.sparsity() == pytest.approx(100 * (tiles == 0).mean())
    assert "██" in mask.to_string() and mask._repr_svg_().startswith("<svg") and "sparsity" in str(mask)


def test_lists_convert_both_ways(qkv):
    mask = tw.create_block_mask(causal, 2, 4, 40, 56, BLOCK_SIZE=16)
    again = tw.BlockMask.from_kv_blocks(*mask.to_flex(), BLOCK_SIZE=16, mask_mod=causal, seq_lengths=(40, 56))
    assert (again.to_dense() == mask.to_dense()).all()
    out = tw.flex_attention(*qkv, block_mask=again)
    assert reference.close(out, reference.attention(*qkv, None, causal)[0])


def test_lists_without_a_mod():
    counts, indices = np.array([[[1, 2]]], dtype=np.int32), np.array([[[[1, 0], [0, 1]]]], dtype=np.int32)
    mask = tw.BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=16)
    assert mask.shape == (1, 1, 32, 32) and mask.to_dense().tolist() == [[[[0, 1], [1, 1]]]]
    with pytest.raises(tw.Error) as raised:
        tw.BlockMask.from_kv_blocks(counts, indices + 5, BLOCK_SIZE=16)
    assert raised.value.code == "block_mask"


def test_rebuild_sees_new_contents():
    doc = np.zeros(64, dtype=np.int32)
    mask = tw.create_block_mask(lambda b, h, q, kv: doc[q] == doc[kv], None, None, 64, 64, BLOCK_SIZE=32)
    assert mask.sparsity() == 0
    doc[32:] = 1
    assert mask.sparsity() == 0 and mask.rebuild().sparsity() == 50


def test_combinations(qkv):
    def local(b, h, q_idx, kv_idx):
        return abs(q_idx - kv_idx) <= 4

    both = tw.and_masks(causal, local, "h != 1")
    one = tw.or_masks(both, lambda b, h, q, kv: kv == 0)

    def wanted(b, h, q, kv):
        return (q >= kv) & (abs(q - kv) <= 4) & (h != 1) | (kv == 0)

    mask = tw.create_block_mask(one, 1, 4, 40, 56)
    assert reference.close(tw.flex_attention(*qkv, block_mask=mask), reference.attention(*qkv, None, wanted)[0])
    with pytest.raises(tw.Error, match="at least one"):
        tw.and_masks()


def test_one_list_for_all_of_a_mod_that_reads_the_head(qkv):
    def mod(b, h, q_idx, kv_idx):
        return (h > b) | (q_idx >= kv_idx)

    mask = tw.create_block_mask(mod, None, None, np.int64(40), 56)
    assert reference.close(tw.flex_attention(*qkv, block_mask=mask), reference.attention(*qkv, None, mod)[0])
