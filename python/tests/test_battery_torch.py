"""The battery against PyTorch's uncompiled flex_attention: scripts/python_test.sh --with-torch."""

import warnings

import pytest

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")

# Runs mods as they are, without a trace of the whole call.
flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True

import battery_masks  # noqa: E402
import battery_scores  # noqa: E402
import reference  # noqa: E402

import tilewright as tw  # noqa: E402

SIZES = B, H, L, S = 2, 2, 40, 48
DEVICE = torch.get_default_device().type
SCORES = {**battery_scores.score_mods(torch, *SIZES), **battery_scores.torch_score_mods(torch, *SIZES)}
MASKS = battery_masks.mask_mods(torch, *SIZES)


def tensors():
    torch.manual_seed(1)
    return [torch.randn(B, H, n, 16) for n in (L, S, S)]


errors = {"ours": [], "PyTorch's": []}


def compare(score_mod, their_score_mod, their_mask, our_mask):
    """Each result is close to double precision; test_worst_error compares how close."""
    q, k, v = tensors()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gold, lse = flex.flex_attention(
            q.double(), k.double(), v.double(), their_score_mod, their_mask, return_lse=True
        )
        plain = flex.flex_attention(q, k, v, their_score_mod, their_mask)
    out, our_lse = tw.flex_attention(q, k, v, score_mod, our_mask, return_lse=True)
    assert isinstance(out, torch.Tensor) and reference.close(out, gold) and reference.close(our_lse, lse)
    errors["ours"].append(float((out - gold).abs().max()))
    errors["PyTorch's"].append(float((plain - gold).abs().max()))


@pytest.mark.parametrize("name", SCORES)
def test_score_mod(name):
    # PyTorch takes no number that is the same for all scores.
    theirs = (lambda s, *_: torch.ones_like(s)) if name == "constant" else SCORES[name]
    compare(SCORES[name], theirs, None, None)


@pytest.mark.parametrize("name", MASKS)
def test_mask_mod(name):
    def as_bool(b, h, q, k):  # FlexAttention takes tensors of bool alone
        kept = MASKS[name](b, h, q, k)
        return kept.bool() if isinstance(kept, torch.Tensor) else torch.full_like(q, kept, dtype=torch.bool)

    theirs = flex.create_block_mask(as_bool, B, H, L, S, device=DEVICE, BLOCK_SIZE=16)
    ours = tw.create_block_mask(MASKS[name], B, H, L, S, device=DEVICE, BLOCK_SIZE=16)
    assert (torch.as_tensor(ours.to_dense()).cpu() == theirs.to_dense().cpu()).all()
    # PyTorch 2.15's sparsity() counts tiles too; 2.11's counts elements, those past the ends of ragged tiles among them.
    visited = theirs.to_dense().float().mean().item()
    assert ours.sparsity() == pytest.approx(100 * (1 - visited), abs=1e-4)
    compare(None, None, theirs, ours)


def test_worst_error():
    assert max(errors["ours"]) <= 2 * max(errors["PyTorch's"])
