"""Wrong arguments: tw.Error in the words of the function that was called, and nothing is ignored or rounded in silence."""

import os
import re
import warnings

import numpy as np
import pytest
import reference

import tilewright as tw

Q = np.ones((1, 2, 32, 16), np.float32)
ROWS, POOL = np.ones((32, 2, 16), np.float32), np.ones((4, 8, 2, 16), np.float32)
WRONG = ["a", None, 3, 2.5, True, [1, 2], {}, object(), np.float32(3), np.ones(3), -1, (), float("nan"), b"x"]


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def int32(values):
    return np.array(values, np.int32)


def calls():
    """Functions, arguments that they take, and those that are replaced by all of WRONG."""
    lists = tw.create_block_mask(causal, None, None, 32, 32, BLOCK_SIZE=16).to_flex()
    packed = tw.Attention({"dtype": "f32", "head_dim": 16, "layout": "packed"}, device="cpu")
    gain = {"dtype": "f32", "default": 1}
    dense = tw.Attention(
        {"dtype": "f32", "head_dim": 16, "score_mod": "score * gain", "scalars": {"gain": gain}}, device="cpu"
    )
    yield tw.flex_attention, dict(query=Q, key=Q, value=Q, block_mask=None, scale=None, enable_gqa=False,
                                  return_lse=False, return_aux=None, buffers=None, scalars=None)  # fmt: skip
    yield tw.create_block_mask, dict(mask_mod=causal, B=None, H=None, Q_LEN=32, KV_LEN=32, device=None, BLOCK_SIZE=16,
                                     buffers=None, scalars=None)  # fmt: skip
    names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
    yield tw.BlockMask.from_kv_blocks, dict(zip(names, lists), BLOCK_SIZE=16, mask_mod=causal, seq_lengths=None)
    yield tw.varlen_attention, dict(q=ROWS, k=ROWS, v=ROWS, q_begin=[0, 32], kv_begin=[0, 32], kv_len=None, scale=None,
                                    plan=None, buffers=None, scalars=None)  # fmt: skip
    yield tw.paged_attention, dict(q=ROWS, k_pool=POOL, v_pool=POOL, q_begin=[0, 32], kv_len=[32], scale=None,
                                   page_table=[[0, 1, 2, 3]], page_begin=None, k_new=None, v_new=None, plan=None)  # fmt: skip
    yield packed.plan, dict(q_begin=int32([0, 32]), kv_len=None, num_q_heads=2, num_kv_heads=2, total_q=32,
                            kv_begin=int32([0, 32]), total_kv=32, page_table=None, page_begin=None, page_size=0,
                            pages=None, max_q_len=None, max_kv_len=None, bindings=None)  # fmt: skip
    yield packed.rebuild, dict(plan=None)
    yield dense.bind, dict(gain=1.0)
    yield dense.forward, dict(q=Q, k=Q, v=Q, out=None, lse=None, mask=None, plan=None, bindings=None, scale=None,
                              q_offset=0, kv_offset=0)  # fmt: skip
    yield tw.scalar, dict(name="a", default=3)
    yield tw.render, dict(spec={"dtype": "f32", "head_dim": 16}, target="cpu")
    yield tw.precompile, dict(manifest="absent", targets=["cpu"], bundle=None)
    yield tw.Attention, dict(spec={"dtype": "f32", "head_dim": 16}, device="cpu")


def test_a_seed_is_a_whole_number_that_a_float_holds():
    scalars = {"seed": {"dtype": "i64"}, "x": {"dtype": "f32", "default": 0}}
    attention = tw.Attention({"dtype": "f32", "head_dim": 16, "dropout": "0.5f", "scalars": scalars}, device="cpu")
    for held in (2**53, -(2**53), np.int64(2**53), np.array(7), 1e3):
        attention.bind(seed=held, x=2**53 + 1)
    for rounded in (2**53 + 1, -(2**53) - 1, 2**2000, np.int64(2**53 + 1), np.array(2**53 + 1), 2.0**60):
        with pytest.raises(tw.Error, match="but must be a whole number from -9007199254740992 to"):
            attention.bind(seed=rounded)


def test_wrong_arguments_raise_nothing_else():
    for function, arguments in calls():
        for name in arguments:
            for wrong in WRONG:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)
                    try:
                        function(**{**arguments, name: wrong})
                    except tw.Error as error:
                        assert error.message
                    except Exception as error:  # noqa: BLE001
                        pytest.fail(f"{function.__name__}({name}={wrong!r}): {error!r}")


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint16, np.uint32, np.int64, np.float64])
@pytest.mark.parametrize("name", ["q_begin", "kv_len", "kv_begin", "page_table", "q_offset"])
def test_plans_keep_no_copies(name, dtype):
    attention = tw.Attention({"dtype": "f32", "head_dim": 16, "layout": "packed", "kv_layout": "paged"}, device="cpu")
    arrays = {"q_begin": int32([0, 4]), name: np.array([0, 4]).astype(dtype)}
    with pytest.raises(tw.Error, match=f"{name} has dtype {np.dtype(dtype)}"):
        attention.plan(**arrays, num_q_heads=2, num_kv_heads=2, total_q=4)


def test_what_a_plan_clamps_is_said():
    with pytest.warns(RuntimeWarning, match=r"kv_begin\[1\] is 99"):
        tw.varlen_attention(ROWS, ROWS, ROWS, [0, 32], [0, 99])
    with pytest.warns(RuntimeWarning, match=r"kv_len\[0\] is 77"):
        tw.paged_attention(ROWS, POOL, POOL, [0, 32], [77], [[0, 1, 2, 3]])
    paged = tw.Attention({"dtype": "f32", "head_dim": 16, "layout": "packed", "kv_layout": "paged"}, device="cpu")
    for count_absent in (False, True):
        plan = paged.plan(int32([0, 8]), int32([8]), page_table=int32([[7]]), page_size=8, pages=4, num_q_heads=2,
                          num_kv_heads=2, total_q=8, count_absent=count_absent)  # fmt: skip
        assert ("page_table" in plan.report()) == count_absent


def test_buffers_that_nothing_reads():
    unused, rows = {"unused": np.ones(4, np.float32)}, (ROWS, ROWS, ROWS, [0, 32], [0, 32])
    for call in (
        lambda: tw.flex_attention(Q, Q, Q, buffers=unused),
        lambda: tw.flex_attention(Q, Q, Q, "score + 1", buffers=unused),
        lambda: tw.flex_attention(Q, Q, Q, lambda score, b, h, q_idx, kv_idx: score, buffers=unused),
        lambda: tw.create_block_mask(causal, None, None, 32, 32, buffers=unused),
        lambda: tw.create_block_mask("q_idx >= kv_idx", None, None, 32, 32, buffers=unused),
        lambda: tw.varlen_attention(*rows, buffers=unused),
        lambda: tw.varlen_attention(*rows, mask_mod=causal, buffers=unused),
        lambda: tw.paged_attention(ROWS, POOL, POOL, [0, 32], [32], [[0, 1, 2, 3]], score_mod="score", buffers=unused),
    ):
        with pytest.raises(tw.Error, match='buffers holds "unused"'):
            call()
    with pytest.raises(tw.Error, match='scalars holds "w"'):
        tw.varlen_attention(*rows, scalars={"w": 1})
    with pytest.raises(tw.Error, match='scalars holds "w"'):
        tw.create_block_mask(causal, None, None, 32, 32, scalars={"w": 1})


def test_arguments_have_the_names_of_the_function():
    with pytest.raises(tw.Error, match="v_head_dim is 7") as raised:
        tw.flex_attention(Q, Q, Q[..., :7])
    assert "pad value with zeros to 8" in raised.value.hint
    with pytest.raises(tw.Error, match="head_dim is 7") as raised:
        tw.flex_attention(Q[..., :7], Q[..., :7], Q)
    assert "pad query and key with zeros to 8" in raised.value.hint
    with pytest.raises(tw.Error, match="head_dim is 7") as raised:
        tw.flex_attention(Q[..., :7], Q[..., :7], Q[..., :7])
    assert "query, key and value" in raised.value.hint
    with pytest.raises(tw.Error, match="head_dim is 7") as raised:
        tw.paged_attention(ROWS[..., :7], POOL[..., :7], POOL[..., :7], [0, 8], [8], [[0, 1]])
    assert "q, k_pool and v_pool" in raised.value.hint
    narrow = Q.astype(np.float16)
    with pytest.raises(tw.Error, match="query has dtype float64") as raised:
        tw.flex_attention(Q.astype(float), Q, Q)
    assert raised.value.hint == "convert it to float32, float16 or bfloat16"
    for kwargs, names in (({"v_pool": POOL[:2]}, "v_pool"), ({"k_pool": POOL[:, ::2, :, ::2]}, "k_pool")):
        with pytest.raises(tw.Error) as raised:
            tw.paged_attention(**{**dict(q=ROWS, k_pool=POOL, v_pool=POOL), **kwargs}, q_begin=[0, 8], kv_len=[8],
                               page_table=[[0, 1]])  # fmt: skip
        assert names in raised.value.message and not re.search(r"\b[kv]\b", str(raised.value))
    with pytest.raises(tw.Error) as raised:
        tw.flex_attention(Q, Q.swapaxes(2, 3).copy().swapaxes(2, 3), Q)
    assert "key" in raised.value.message and not re.search(r"\b[qkv]\b", str(raised.value))
    with pytest.raises(tw.Error, match="key has dtype float16, but value float32"):
        tw.flex_attention(Q, narrow, Q)


@pytest.mark.parametrize("size", [16.7, (16,), (16, 16, 16), None, "16", (16, 2.5), True, 0])
def test_block_sizes(size):
    with pytest.raises(tw.Error, match="BLOCK_SIZE"):
        tw.create_block_mask(causal, None, None, 32, 32, BLOCK_SIZE=size)


@pytest.mark.parametrize(
    "code", ["true) || (true", "(q_idx > 0", "q_idx > 0]", "return true; }() || [&] { return true;", "", "/*"]
)
def test_cpp_strings_stay_inside_their_brackets(code):
    with pytest.raises(tw.Error) as raised:
        tw.create_block_mask(tw.and_masks(causal, code), None, None, 32, 32).sparsity()
    assert raised.value.code == "snippet"


@pytest.mark.parametrize(
    "code", ["h < 1 // ) one head", "h < 1 /* ( */", "if (h < 1) return true; return false;", "// \\\n)\nh < 1"]
)
def test_comments_and_bodies_in_cpp_strings(code):
    mask = tw.create_block_mask(tw.or_masks(code, causal), 1, 2, 40, 40, BLOCK_SIZE=16)
    assert (mask.to_dense()[0, 0] == 1).all() and mask.to_dense()[0, 1].sum() == 6


TABLE = np.arange(2 * 4 * 20 * 20, dtype=np.float32).reshape(2, 4, 20, 20)


def test_two_dimensions_that_are_left(qkv):
    q, k, v = qkv
    for name in ("sum", "max", "mean"):
        assert tw.trace(lambda s, b, h, i, j, name=name: getattr(TABLE[b, h], name)()).code.count("TABLE") == 400
    small = TABLE[..., :6, :6].copy()
    out = tw.flex_attention(q, k, v, lambda s, b, h, i, j: s + small[b, h].max() / 1e3 + small[b, h].sum() / 1e4)
    assert reference.close(out, reference.attention(q, k, v)[0])  # equal for all columns
    snippet = tw.trace(lambda s, b, h, i, j: s + TABLE[..., i, 0].sum())
    assert snippet.code.count("q_idx") == 8
    with pytest.raises(tw.Error, match="score_mod returns 4 values"):
        tw.trace(lambda s, b, h, i, j: TABLE[0, ..., i, 0])
    assert (
        tw.trace(lambda s, b, h, i, j: divmod(i, 4)[1] + divmod(9, h + 1)[0]).code == "(float)(q_idx % 4 + 9 / (h + 1))"
    )


ROW = np.random.default_rng(3).standard_normal((4, 200)).astype(np.float32)


def test_long_rows_are_several_statements(qkv):
    out = tw.flex_attention(*qkv, lambda s, b, h, i, j: s * (ROW[h] * (1 + j / 40)).sum())
    sums = ROW.sum(1)
    assert reference.close(out, reference.attention(*qkv, lambda s, b, h, i, j: s * sums[h] * (1 + j / 40))[0])


def chain(score, b, h, q_idx, kv_idx):
    for i in range(5000):
        score = score * 0.5 + i
    return score


@pytest.mark.parametrize(
    "mod, words",
    [
        (lambda s, b, h, i, j: np.round(s, 1), "round"),
        (lambda s, b, h, i, j: round(s), "round"),
        (lambda s, b, h, i, j: np.cbrt(s), "np.cbrt is not among"),
        (lambda s, b, h, i, j: s.cbrt(), ".cbrt is not among"),
        (lambda s, b, h, i, j: np.add.reduce(s), "reduce"),
        (lambda s, b, h, i, j: np.add(s, 1, where=i > j), "where="),
        (lambda s, b, h, i, j: np.exp(s, s, s), "arguments that are not translated"),
        (lambda s, b, h, i, j: s.add_(1), "in place"),
        (lambda s, b, h, i, j: j**9, "to the power 9, which overflows"),
        (lambda s, b, h, i, j: j**-1, "to the power -1"),
        (lambda s, b, h, i, j: i << -1, "shifts by -1 bits"),
        (lambda s, b, h, i, j: i >> 32, "shifts by 32 bits"),
        (lambda s, b, h, i, j: 1 << -1, "shifts by -1 bits"),
        (lambda s, b, h, i, j: {}[3], "raises KeyError"),
        (lambda s, b, h, i, j: s if i in {1, 2} else 0, "in a set or dict"),
        (lambda s, b, h, i, j: {0: 1.0, 1: 2.0}[h], "in a set or dict"),
        (lambda s, b, h, i, j: None, "score_mod returns nothing"),
        (lambda s, b, h, i, j: "s", "score_mod returns a str"),
        (lambda s, b, h, i, j: (s, s), "score_mod returns 2 values"),
        (lambda s, b, h, i, j: s + None, "NoneType"),
        (lambda s, b, h, i, j: TABLE[b, h].sum(7), "dimension 7 of 2"),
        (chain, "too many operations"),
        (lambda s, b, h: s, r"takes \(s, b, h\)"),
        (lambda s, b, h, i, j, k: s, "takes"),
    ],
)
def test_mods_that_are_refused(qkv, mod, words):
    with pytest.raises(tw.Error, match=words) as raised:
        tw.flex_attention(*qkv, mod)
    assert raised.value.place is not None and raised.value.place.file == __file__


def test_numpy_alone_has_no_bfloat16(qkv, monkeypatch):
    attention = tw.Attention({"dtype": "f32", "out_dtype": "bf16", "head_dim": 16}, device="cpu")
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(tw.Error, match="needs ml_dtypes"):
        attention.forward(*qkv)


def test_the_page_names_every_function():
    from tilewright._trace.dispatch import FUNCTIONS

    page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")
    with open(page, encoding="utf-8") as file:
        names = set(re.findall(r"`(\w+)`", file.read()))
    prefixed = {f"{group}_{name}" for group in ("logical", "bitwise", "special") for name in names}
    assert set(FUNCTIONS) - {"round", "rint"} <= names | prefixed  # those two are refused with a form


def test_nothing_that_is_given_is_ignored(tmp_path):
    packed = tw.Attention({"dtype": "f32", "head_dim": 16, "layout": "packed"}, device="cpu")
    plan = packed.plan(int32([0, 32]), kv_begin=int32([0, 32]), num_q_heads=2, num_kv_heads=2, total_q=32)
    dense = tw.Attention({"dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx"}, device="cpu")
    mask = dense.block_mask(q_len=32, kv_len=32, num_q_heads=2)
    window = tw.create_block_mask(lambda b, h, q, kv: q - kv < tw.scalar("window"), None, None, 32, 32)
    for call, words in (
        (lambda: packed.forward(ROWS, ROWS, ROWS, plan=plan, mask=mask), "both mask and plan"),
        (lambda: packed.forward(ROWS, ROWS, ROWS), r"attention.plan\(q_begin, ...\)"),
        (lambda: packed.forward(ROWS, ROWS, ROWS, plan=plan, q_offset=3), "q_offset= and kv_offset= of attention.plan"),
        (
            lambda: tw.varlen_attention(ROWS, ROWS, ROWS, [0, 3, 32], [0, 3, 32], plan=plan),
            "for 1 sequences, but q_begin has 2",
        ),
        (
            lambda: packed.plan(int32([0, 8]), pages=3, num_q_heads=2, num_kv_heads=2, total_q=8),
            "pages is given without page_size",
        ),
        (lambda: tw.flex_attention(Q, Q, Q, kernel_options=3), "kernel_options is 3"),
        (
            lambda: tw.flex_attention(Q, Q, Q, block_mask=tw.create_block_mask(causal, 1, 3, 32, 32)),
            "H 3, but query has 2",
        ),
        (
            lambda: tw.flex_attention(Q, Q, Q, block_mask=tw.create_block_mask(causal, 2, None, 32, 32)),
            "B 2, but query has 1",
        ),
        (lambda: window.sparsity(), r"scalars=\{\"window\": X\}"),
        (lambda: mask.to_string(3), "grid_size is 3"),
        (lambda: tw.record(3).__enter__(), "path is a int"),
    ):
        with pytest.raises(tw.Error, match=words):
            call()
    with pytest.raises(tw.Error, match="cannot write"), tw.record(tmp_path / "absent" / "manifest.json"):
        pass
