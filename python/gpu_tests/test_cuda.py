"""torch's tensors, streams, graphs and compiler on a GPU, against double precision."""

import pytest
import torch

import tilewright as tw

# Weights and the result are rounded to bf16, 2^-8 of a number each, and results are of order 1.
TOLERANCE = 2**-6


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def softcap(score, b, h, q_idx, kv_idx):
    return 20.0 * torch.tanh(score / 20.0)


def reference(q, k, v, keep=None, score=lambda s: s):
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = score(q @ k.mT * q.shape[-1] ** -0.5)
    if keep is not None:
        i, j = (torch.arange(n, device=q.device) for n in scores.shape[2:])
        scores = scores.where(keep(0, 0, i[:, None], j[None]), -float("inf"))
    return torch.nan_to_num(scores.softmax(-1)) @ v


def close(out, wanted):
    error = (out.double() - wanted).abs().max().item()
    return out.dtype == torch.bfloat16 and error <= TOLERANCE * wanted.abs().max().item()


def ready(qkv, device):
    """An Attention with slopes and a mask, its keyword arguments, and the expected result of a q."""
    q, k, v = qkv
    slopes = torch.exp2(-torch.arange(1.0, 9.0, device=device))
    spec = {"dtype": "bf16", "head_dim": 128, "score_mod": "score + slopes[h] * (kv_idx - q_idx)", "mask_mod": "q_idx >= kv_idx",
            "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}}  # fmt: skip
    attention = tw.Attention(spec, device=device)
    bindings = attention.bind(slopes=slopes)
    mask = attention.block_mask(batch=2, num_q_heads=8, q_len=257, kv_len=511, bindings=bindings)
    away = torch.arange(511, device=device)[None] - torch.arange(257, device=device)[:, None]

    def wanted(q):
        return reference(q, k, v, causal, lambda s: s + slopes.double()[:, None, None] * away)

    return attention, {"mask": mask, "bindings": bindings}, wanted


def test_bf16(qkv, device):
    out, lse = tw.flex_attention(*qkv, softcap, enable_gqa=True, return_lse=True)
    assert out.device.type == lse.device.type == device and lse.dtype == torch.float32
    assert close(out, reference(*qkv, score=lambda s: 20 * torch.tanh(s / 20)))


def test_mask_and_strides(qkv, device):
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in qkv]
    mask = tw.create_block_mask(causal, None, None, 257, 511, device=device)
    assert close(tw.flex_attention(*turned, block_mask=mask, enable_gqa=True), reference(*qkv, causal))


def test_opcheck(qkv, device):
    attention = tw.Attention({"dtype": "bf16", "head_dim": 128, "outputs": ["out", "lse"]}, device=device)
    torch.library.opcheck(torch.ops.tilewright.forward, (*qkv, attention._number, -1, -1, -1, None, 0, 0, None))


def test_compile_forward_in_one_graph(qkv, device):
    attention, options, wanted = ready(qkv, device)

    @torch.compile(fullgraph=True)
    def call(q, k, v):
        return attention.forward(q * 2, k, v, **options) + 1

    assert close(call(*qkv) - 1, wanted(qkv[0] * 2))


def test_compile_flex_attention_in_one_graph(qkv, device):
    mask = tw.create_block_mask(causal, None, None, 257, 511, device=device)

    @torch.compile(fullgraph=True)
    def call(q, k, v):
        return tw.flex_attention(q, k, v, softcap, mask, enable_gqa=True) * 2

    assert close(call(*qkv), 2 * reference(*qkv, causal, lambda s: 20 * torch.tanh(s / 20)))


def test_gradients(device):
    torch.manual_seed(3)
    inputs = [torch.randn(1, 2, 96, 64, device=device).bfloat16().requires_grad_() for _ in range(3)]
    doubles = [x.detach().double().requires_grad_() for x in inputs]
    mask = tw.create_block_mask(causal, None, None, 96, 96, device=device)
    dout = torch.randn(1, 2, 96, 64, device=device).bfloat16()
    tw.flex_attention(*inputs, block_mask=mask).backward(dout)
    reference(*doubles, causal).backward(dout.double())
    for ours, theirs in zip(inputs, doubles):
        assert close(ours.grad, theirs.grad)


def test_another_device_is_named(qkv):
    q, k, v = qkv
    elsewhere = k.cpu() if k.is_cuda else k.to("meta")
    with pytest.raises(tw.Error, match="key"):
        tw.flex_attention(q, elsewhere, v, enable_gqa=True)


def test_side_stream(qkv, device):
    """A call runs in the current stream: after what is before it there, and not after what other streams do."""
    attention, options, wanted = ready(qkv, device)
    q, k, v = qkv
    side, long = torch.cuda.Stream(), 10**9  # clock cycles: about half a second

    def calls(cycles):
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)
            doubled = q * 2
            return attention.forward(doubled, k, v, **options), tw.flex_attention(doubled, k, v, softcap, enable_gqa=True)

    calls(1)  # compiles, and takes memory
    torch.cuda.synchronize()
    torch.cuda._sleep(long)
    busy = torch.cuda.Event()
    busy.record()
    out, flexed = calls(long // 10)
    side.synchronize()
    assert not busy.query(), "the call waited for another stream"
    torch.cuda.synchronize()
    assert close(out, wanted(q * 2))
    assert close(flexed, reference(q * 2, k, v, score=lambda s: 20 * torch.tanh(s / 20)))


def test_cuda_graph(qkv, device):
    """torch captures calls; a replay sees the contents that its inputs have then."""
    attention, options, wanted = ready(qkv, device)
    q, k, v = qkv
    given = torch.empty_like(q)
    mask = tw.create_block_mask(causal, None, None, 257, 511, device=device)

    def calls():
        attention.forward(q, k, v, out=given, **options)
        made = attention.forward(q, k, v, **options)
        return made, tw.flex_attention(q, k, v, softcap, mask, enable_gqa=True)

    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made, flexed = calls()
    for seed in range(3):
        torch.manual_seed(seed)
        q.normal_()
        given.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert close(given, wanted(q)) and close(made, wanted(q))
        assert close(flexed, reference(q, k, v, causal, lambda s: 20 * torch.tanh(s / 20)))
