"""The attention functions of vLLM's Triton kernels, with their arguments, over tilewright.

Tensors of torch, on a CPU or a GPU. Pages are [page, row, head, dim], as vLLM's FlashAttention layout has them. fp8 caches and
their scales are not there yet: caches of such dtypes are refused."""

import torch

import tilewright as tw


def up_to_itself(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def within(window):
    """up_to_itself, and less than `window` columns back, where it is not 0; a run-time value."""

    def mask(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx < tw.scalar("window", 0))

    return (mask, {"window": window}) if window > 0 else (up_to_itself, {})


def score_of(softcap=0, alibi_slopes=None):
    """Capped, then biased by distance; None where neither is wanted."""

    def score_mod(score, b, h, q_idx, kv_idx):
        if softcap > 0:
            score = softcap * torch.tanh(score / softcap)
        return (
            score
            if alibi_slopes is None
            else score + alibi_slopes[h] * (kv_idx - q_idx)
        )

    return score_mod if softcap > 0 or alibi_slopes is not None else None


def attention(
    q, k, v, o, cu_seqlens_q, cu_seqlens_k, max_seqlens_q, max_seqlens_k, causal=False, sm_scale=1.0, bias=None,
    fp8_scales=None, fp8_out_scale=None,
):  # fmt: skip
    """triton_flash_attention's: bias [1 or batch, heads, rows, columns], of which the first batch is read. (o, None)."""
    if fp8_scales is not None or fp8_out_scale is not None:
        raise NotImplementedError("fp8 is not there yet")
    o = tw.varlen_attention(
        q, k, v, cu_seqlens_q, cu_seqlens_k, out=o, scale=sm_scale,
        mask_mod=up_to_itself if causal else None,
        score_mod=None if bias is None else "score + bias(h, q_idx - kv_len + q_len, kv_idx)",
        buffers=None if bias is None else {"bias": bias[0]},
    )  # fmt: skip
    return o, None


def blocksparse_flash_attn_varlen_fwd(
    q,
    k,
    v,
    cu_seqlens_k,
    cu_seqlens_q,
    sm_scale,
    sparse_layout,
    *,
    block_size=64,
    q_block_size=None,
    max_seqlen=None,
):
    """sparse_layout: crow [heads, rows + 1] and col [heads, n], blocks of positions that each row of blocks sees."""
    if cu_seqlens_q is None:
        decodes = q.shape[0] == cu_seqlens_k.shape[0] - 1
        cu_seqlens_q = (
            torch.arange(q.shape[0] + 1, device=q.device, dtype=torch.int32)
            if decodes
            else cu_seqlens_k
        )
    crow, col = (x.cpu() for x in sparse_layout)
    rows, columns = crow.shape[1] - 1, int(col.max()) + 1
    seen = torch.zeros(
        crow.shape[0], rows, columns + 1, dtype=torch.bool, device=crow.device
    )  # the last column: no block, for reads outside
    for head in range(crow.shape[0]):
        row = torch.repeat_interleave(torch.arange(rows, device=crow.device), crow[head].diff())
        seen[head, row, col[head, : len(row)].long()] = True
    seen, q_block = seen.to(q.device), q_block_size or block_size

    def mask(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & seen[h, q_idx // q_block, kv_idx // block_size]

    return tw.varlen_attention(
        q, k, v, cu_seqlens_q, cu_seqlens_k, mask_mod=mask, scale=sm_scale
    )


def context_attention_fwd(
    q, k, v, o, kv_cache_dtype, k_cache, v_cache, b_loc, b_start_loc, b_seq_len, max_seq_len, max_input_len, k_scale,
    v_scale, alibi_slopes=None, sliding_window=None, sm_scale=None, skip_decode=False,
):  # fmt: skip
    """Prefill with a context in pages: k_cache [page, head, dim / x, row, x], v_cache [page, head, dim, row], which are
    copied to [page, row, head, dim] first. Rows of sequences of one row stay as they are with skip_decode."""
    if "fp8" in kv_cache_dtype:
        raise NotImplementedError("fp8 is not there yet")
    pages = (
        k_cache.permute(0, 3, 1, 2, 4).flatten(3),
        v_cache.permute(0, 3, 1, 2).contiguous(),
    )
    mask, scalars = within(sliding_window or 0)
    out = tw.paged_attention(
        q, *pages, b_start_loc, b_seq_len, b_loc, k_new=k, v_new=v, score_mod=score_of(0, alibi_slopes), mask_mod=mask,
        scale=sm_scale, scalars=scalars,
    )  # fmt: skip
    lengths = b_start_loc.diff()
    written = torch.repeat_interleave(
        lengths != 1 if skip_decode else lengths > 0, lengths.long()
    )
    o[: len(written)][written] = out[: len(written)][written]


def unified_attention(
    q, k, v, out, cu_seqlens_q, max_seqlen_q, seqused_k, max_seqlen_k, softmax_scale, causal, window_size, block_table,
    softcap, q_descale, k_descale, v_descale, alibi_slopes=None,
):  # fmt: skip
    """Prefill and decoding over k and v [page, row, head, dim]; window_size (left, right), left -1: all."""
    assert causal, "only causal attention is supported"
    assert q_descale is None, "scales of q are not supported"
    mask, scalars = within(1 + window_size[0])
    tw.paged_attention(
        q, k, v, cu_seqlens_q, seqused_k, block_table, out=out, scale=softmax_scale, mask_mod=mask, scalars=scalars,
        score_mod=score_of(softcap, alibi_slopes),
    )  # fmt: skip


flex_attention = (
    tw.flex_attention
)  # the same arguments as torch.nn.attention.flex_attention's
