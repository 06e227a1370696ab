"""torch tensors, the custom op and torch.compile: scripts/python_test.sh --with-torch."""

import numpy as np
import pytest
import reference

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402


@pytest.fixture
def tensors(qkv):
    return [torch.from_numpy(x) for x in qkv]


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def test_tensors_in_and_out(tensors, qkv):
    out, lse = tw.flex_attention(*tensors, return_lse=True)
    assert isinstance(out, torch.Tensor) and isinstance(lse, torch.Tensor)
    assert reference.close(out, reference.attention(*qkv)[0])


def test_bfloat16_and_strides(qkv):
    q, k, v = (torch.from_numpy(x).bfloat16().transpose(1, 2).contiguous().transpose(1, 2) for x in qkv)
    out = tw.flex_attention(q, k, v)
    wanted = reference.attention(q.double(), k.double(), v.double())[0]
    assert out.dtype == torch.bfloat16 and np.abs(out.double().numpy() - wanted).max() < 2**-6 * np.abs(wanted).max()


def test_ready_calls_of_other_devices_are_others(tensors):
    """The meta device stands in for a GPU."""
    from tilewright import _calls

    elsewhere = [x.to("meta") for x in tensors]
    assert _calls.key_of(*tensors, None, None, ()) != _calls.key_of(*elsewhere, None, None, ())
    tw.flex_attention(*tensors)
    with pytest.raises(tw.Error, match="meta"):
        tw.flex_attention(*elsewhere)


def test_tensors_without_memory_are_refused(tensors):
    q, k, v = tensors
    with pytest.raises(tw.Error, match="query has no memory"):
        tw.flex_attention(q.to_sparse(), k, v)
    batches = [x[None].repeat(3, 1, 1, 1, 1) for x in tensors]
    with pytest.raises(tw.Error, match="query has no memory"):
        torch.vmap(lambda a, b, c: tw.flex_attention(a, b, c))(*batches)


def test_torch_block_masks_are_taken(tensors, qkv):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    mask = flex.create_block_mask(causal, None, None, 40, 56, device="cpu", BLOCK_SIZE=16)
    out = tw.flex_attention(*tensors, block_mask=mask)
    assert reference.close(out, reference.attention(*qkv, None, causal)[0])


def test_opcheck(tensors):
    attention = tw.Attention({"dtype": "f32", "head_dim": 16, "outputs": ["out", "lse"]}, device="cpu")
    torch.library.opcheck(torch.ops.tilewright.forward, (*tensors, attention._number, -1, -1, -1, None, 0, 0, None))


def test_compile_without_a_break(tensors, qkv):
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    spec = {"dtype": "f32", "head_dim": 16, "score_mod": "score + slopes[h]", "mask_mod": "q_idx >= kv_idx",
            "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}}  # fmt: skip
    attention = tw.Attention(spec, device="cpu")
    bindings = attention.bind(slopes=slopes)
    mask = attention.block_mask(batch=2, num_q_heads=4, q_len=40, kv_len=56, bindings=bindings)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def call(q, k, v):
        return attention.forward(q * 2, k, v, mask=mask, bindings=bindings) + 1

    wanted = reference.attention(2 * qkv[0], *qkv[1:], lambda s, b, h, i, j: s + slopes.numpy()[h], causal)[0] + 1
    assert reference.close(call(*tensors), wanted)


def test_compile_flex_attention(tensors, qkv):
    mask = tw.create_block_mask(causal, None, None, 40, 56)
    tw.Attention({"dtype": "f32", "head_dim": 16}, device="cpu")

    @torch.compile(fullgraph=True, backend="aot_eager")
    def call(q, k, v):
        return tw.flex_attention(q, k, v, capped, mask) * 2

    wanted = reference.attention(*qkv, lambda s, b, h, i, j: 2 * np.tanh(s / 2), causal)[0] * 2
    assert reference.close(call(*tensors), wanted)


def capped(score, b, h, q_idx, kv_idx):
    return 2 * torch.tanh(score / 2)
