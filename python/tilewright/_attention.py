"""Attention: one variant, compiled and loaded, ready for calls."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _core, _recorder
from ._arguments import flag, real, scalars_of, whole
from ._arrays import (
    dtype_name,
    dense_like,
    empty_like,
    framework,
    readable,
    require_array,
    shape_of,
    stream_of,
    zeroed_workspace,
)
from ._error import Error
from ._mask import BlockMask
from ._plan import Plan
from ._registry import enroll
from ._spec import SpecLike, spec_text


_torch: Any = None  # the module of the custom op, where torch is loaded


def load_torch_op() -> None:
    """Registers the custom op once torch is there."""
    global _torch
    if _torch is None and "torch" in sys.modules:
        from . import _torch as module

        _torch = module


class Bindings:
    """Arrays and numbers for the names in a spec's snippets (Attention.bind). Arrays are viewed, not copied."""

    def __init__(
        self,
        core: _core.Bindings,
        arrays: Dict[str, Any],
        scalars: Dict[str, float],
        named: Optional[Dict[str, Any]] = None,
    ) -> None:
        self._core = core
        self.named = named or {}  # tensors of torch that may want gradients
        self.arrays = arrays
        self.scalars = scalars
        self._number = enroll(self)


class Attention:
    """One attention variant. Making it checks the spec (docs/spec.md) and compiles kernels that no cache holds.

    spec: a dict, JSON text, or the path of a JSON file. device: "auto", "cpu", "cuda" or "cuda:N". merge, append,
    quantise: makes the kernels of these calls too. decode: makes kernels for dense calls with few rows or q tiles too, which
    a GPU splits over their columns (docs/paged.md#dense-calls).
    """

    def __init__(
        self,
        spec: SpecLike,
        device: str = "auto",
        *,
        merge: bool = False,
        append: bool = False,
        decode: bool = False,
        quantise: bool = False,
        takes_block_mask: bool = False,
    ) -> None:
        text, file = spec_text(spec)
        self._merges, self._appends = flag("merge", merge), flag("append", append)
        decodes, self._quantises = flag("decode", decode), flag("quantise", quantise)
        self._core = _core.Attention(
            text, file, str(device), takes_block_mask=takes_block_mask, merge=self._merges, append=self._appends,
            decode=decodes, quantise=self._quantises,
        )  # fmt: skip
        self._spec: Dict[str, Any] = json.loads(self._core.spec)
        self.device: str = self._core.device
        self.target: str = self._core.target
        self._packed = self._spec.get("layout") == "packed"
        self._decodes = decodes and not self._packed and self.device != "cpu"
        self._workspaces: Dict[Tuple[Any, Any], int] = {}  # bytes, by the shapes of q and k
        self._gradients: Tuple[str, ...] = tuple(self._spec.get("gradients", ()))
        buffers, scalars = self._spec.get("buffers", {}), self._spec.get("scalars", {})
        named = [[name for name in sorted(names) if name in self._gradients] for names in (buffers, scalars)]
        self.named_gradients: List[str] = named[0] + named[1]
        self._lse = "lse" in self._spec.get("outputs", ())
        self._max_scores = "max_scores" in self._spec.get("outputs", ())
        self._weights = "weights" in self._spec.get("outputs", ())
        self._masked = "mask_mod" in self._spec and not self._packed
        self._v_head_dim: int = self._spec.get("v_head_dim", self._spec["head_dim"])
        self._out_dtype: str = self._spec.get("out_dtype", self._spec["dtype"])
        self._heads = 2 if self._spec.get("layout", "bhsd") == "bshd" else 1
        self._kv_heads = 2 if self._spec.get("kv_layout", self._spec.get("layout", "bhsd")) == "bshd" else 1
        self._number = enroll(self)
        _recorder.note(self._spec)
        load_torch_op()

    @property
    def spec(self) -> Dict[str, Any]:
        """The canonical spec: docs/spec.md's order of keys, defaults left out."""
        return json.loads(self._core.spec)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"tilewright.Attention({json.dumps(self._spec)}, device={self.device!r})"

    def builds(self) -> List[Dict[str, Any]]:
        """How each kernel came to be: kernel, source ("memory", "disk", "built", ...), compile_ms, ..."""
        return self._core.builds()

    def explain(self) -> Dict[str, Any]:
        """Which fast paths the kernel takes, and why not the others: the keys of `tilewright explain --json`."""
        return json.loads(_core.explain(self._core.spec, "spec", self.target))  # type: ignore[no-any-return]

    def bind(self, **arrays_and_scalars: Any) -> Bindings:
        """Resolves the spec's buffers (arrays) and scalars (numbers) by name, once for many calls."""
        scalar_names = self._spec.get("scalars", {})
        arrays: Dict[str, Any] = {}
        scalars: Dict[str, float] = {}
        named: Dict[str, Any] = {}
        for name, value in arrays_and_scalars.items():
            kind = framework(value)
            if name in self._gradients and kind == "torch":
                named[name] = value
                value = value.detach()
            if name in scalar_names or isinstance(value, (bool, int, float)):
                scalars.update(scalars_of({name: value}, scalar_names))
            else:
                arrays[name] = readable(value) if kind == "jax" else value
        return Bindings(self._core.bind(arrays, scalars), arrays, scalars, named)

    def _named(self, bindings: Bindings) -> List[Any]:
        """The tensors of the buffers and scalars that the spec's gradients name."""
        if not self.named_gradients:
            return []
        import torch

        values = {**bindings.arrays, **bindings.scalars, **bindings.named}
        return [torch.as_tensor(values.get(name, 0.0)) for name in self.named_gradients]

    def block_mask(
        self,
        *,
        q_len: int,
        kv_len: int,
        batch: int = 1,
        num_q_heads: int = 1,
        num_kv_heads: Optional[int] = None,
        q_offset: int = 0,
        kv_offset: int = 0,
        bindings: Optional[Bindings] = None,
    ) -> BlockMask:
        """Lists the tiles of q_len x kv_len that the spec's mask_mod keeps something of."""
        heads = num_q_heads if num_kv_heads is None else num_kv_heads
        for name, size in (
            ("batch", batch),
            ("num_q_heads", num_q_heads),
            ("num_kv_heads", heads),
            ("q_len", q_len),
            ("kv_len", kv_len),
        ):
            whole(name, size)
        _require_offsets(q_offset, kv_offset)
        _require(bindings, Bindings, "bindings", "attention.bind(...)")
        bound = None if bindings is None else bindings._core
        stream = self._stream(bindings)

        def build() -> _core.BlockMask:
            return self._core.block_mask(
                batch, num_q_heads, heads, q_len, kv_len, q_offset, kv_offset, bound, None, stream
            )

        return BlockMask._of_attention(build, (batch, num_q_heads, q_len, kv_len))

    def _stream(self, bindings: Optional[Bindings]) -> int:
        for array in () if bindings is None else bindings.arrays.values():
            return stream_of(array)
        return 0

    def plan(
        self,
        q_begin: Any,
        kv_len: Any = None,
        *,
        num_q_heads: int,
        num_kv_heads: int,
        total_q: int,
        kv_begin: Any = None,
        total_kv: Optional[int] = None,
        page_table: Any = None,
        page_begin: Any = None,
        page_size: int = 0,
        pages: Optional[int] = None,
        q_offset: Any = None,
        kv_offset: Any = None,
        max_q_len: Optional[int] = None,
        max_kv_len: Optional[int] = None,
        bindings: Optional[Bindings] = None,
        count_absent: bool = False,
    ) -> Plan:
        """Plans calls of packed sequences (docs/packed.md, docs/paged.md). Arrays are int32, on the attention's device.
        They are viewed: rebuild() reads them again.

        q_begin [batch + 1] and kv_len [batch]; packed K and V: kv_begin [batch + 1] (or [batch] with kv_len); K and V in
        pages: page_table. The rows of k are total_kv, or page_size (k_pool.shape[1]) times pages (k_pool.shape[0]);
        where they are left out, the first call says them. count_absent: the plan's report counts entries of the page
        table that are neither a page nor -1, for tests and tools.
        """
        arrays = {"q_begin": q_begin, "kv_len": kv_len, "kv_begin": kv_begin, "page_table": page_table}
        arrays.update(page_begin=page_begin, q_offset=q_offset, kv_offset=kv_offset)
        arrays = {
            name: _lengths(name, array) for name, array in arrays.items() if array is not None or name == "q_begin"
        }
        common = {"batch": shape_of(q_begin)[0] - 1, "num_q_heads": whole("num_q_heads", num_q_heads)}
        common.update(num_kv_heads=whole("num_kv_heads", num_kv_heads), total_q=whole("total_q", total_q, 0))
        common.update(
            max_q_len=whole("max_q_len", 0 if max_q_len is None else max_q_len, 0),
            max_kv_len=whole("max_kv_len", 0 if max_kv_len is None else max_kv_len, 0),
        )
        _require(bindings, Bindings, "bindings", "attention.bind(...)")

        def build(attention: "Attention", sizes: Dict[str, int], bound: Optional[Bindings]) -> _core.Plan:
            sizes = {**common, **sizes}
            workspace = None
            if attention.device != "cpu":
                workspace = empty_like(q_begin, (attention._core.workspace_size(sizes),), "u8")
            core = None if bound is None else bound._core
            return attention._core.plan(sizes, arrays, core, workspace, stream_of(q_begin), bool(count_absent))

        plan = Plan(self._spec, build, bindings, common["batch"])
        page_size = whole("page_size", page_size, 0)
        if pages is not None and (page_size == 0 or total_kv is not None):
            raise Error(
                "usage", "pages is given without page_size, or with total_kv", "give page_size and pages, or total_kv"
            )
        rows = page_size * whole("pages", pages, 0) if pages is not None else total_kv
        if rows is not None:
            plan._for(self, whole("total_kv", rows, 0), page_size)
        return plan

    def rebuild(self, plan: Plan, bindings: Optional[Bindings] = None, *, stream: Optional[int] = None) -> None:
        """Plans the next step, after the contents of the plan's arrays, of buffers, or scalars have changed."""
        if not isinstance(plan, Plan):
            raise Error("usage", f"plan is a {type(plan).__name__}", "pass what attention.plan(...) returns")
        _require(bindings, Bindings, "bindings", "attention.bind(...)")
        if stream is None:
            stream = 0 if self.device == "cpu" else _current_stream(self.device)
        plan._rebuild(bindings, stream)

    def forward(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        out: Any = None,
        lse: Any = None,
        mask: Optional[BlockMask] = None,
        plan: Optional[Plan] = None,
        bindings: Optional[Bindings] = None,
        scale: Optional[float] = None,
        q_offset: int = 0,
        kv_offset: int = 0,
        k_new: Any = None,
        v_new: Any = None,
    ) -> Any:
        """softmax(mask_mod(score_mod(q k^T * scale))) v: out, or (out, lse, max_scores, weights) as outputs say.

        Shapes as in the spec's layout; outputs are allocated by the framework of q where they are not given. A spec
        with mask_mod makes its mask where none is given. k_new and v_new: of a spec with kv_new (docs/paged.md).
        """
        if _torch is not None and _torch.is_compiling():
            self._refuse_other_outputs("torch.compile")
            if out is not None or lse is not None:
                raise Error("usage", "torch.compile takes no out= or lse=", "use what forward returns")
            return _torch.compiled_forward(self, q, k, v, mask, plan, bindings, scale, q_offset, kv_offset)
        if framework(q) == "jax":
            from . import _jax

            self._refuse_other_outputs("jax")
            return _jax.forward(self, q, k, v, mask, bindings, scale, q_offset, kv_offset)
        kinds = type(mask), type(plan), type(bindings)
        if not (kinds[0] in _MASKS and kinds[1] in _PLANS and kinds[2] in _BINDINGS) or type(scale) not in _SCALES:
            scale = self._require(mask, plan, bindings, scale)
        if plan is not None and mask is not None:
            raise Error("usage", "both mask and plan are given", "packed calls take a plan alone, dense ones a mask")
        if self._masked and mask is None:
            mask = self._mask_of(q, k, q_offset, kv_offset, bindings)
        if self._gradients and self._is_differentiated(q, k, v, bindings):
            self._refuse_other_outputs("autograd", ", or call it under torch.no_grad()")
            if out is not None or lse is not None:
                raise Error("usage", "out= or lse= is given, but gradients are wanted", "use what forward returns")
            return _torch.differentiable(self, q, k, v, mask, plan, bindings, scale, q_offset, kv_offset)
        return self._run(
            q, k, v, out, lse,
            None if mask is None else mask._built or mask._core_mask(),
            None if plan is None else plan._for_call(self, k),
            None if bindings is None else bindings._core,
            scale, q_offset, kv_offset, k_new, v_new,
        )  # fmt: skip

    def _run(
        self, q: Any, k: Any, v: Any, out: Any, lse: Any, mask: Any, plan: Any, bindings: Any,
        scale: Any, q_offset: Any, kv_offset: Any, k_new: Any, v_new: Any,
    ) -> Any:  # fmt: skip
        """forward, where mask, plan and bindings are the module's."""
        if _recorder.recordings:
            _recorder.note(self._spec)
        try:
            if out is None:
                shape = q.shape
                if shape[-1] != self._v_head_dim:
                    shape = (*shape[:-1], self._v_head_dim)
                out = empty_like(q, shape, self._out_dtype)
            if lse is None and self._lse:
                lse = empty_like(q, self._lse_shape(q), "f32")
            stream = stream_of(q)
            workspace = self._workspace(q, k, stream) if self._decodes else None
            if self._max_scores or self._weights:
                max_scores = empty_like(q, self._lse_shape(q), "f32") if self._max_scores else None
                weights = empty_like(q, self._weights_shape(q, k), self._out_dtype) if self._weights else None
                self._core.forward(
                    q, k, v, out, lse, mask, plan, bindings, scale, q_offset, kv_offset, stream, k_new, v_new,
                    workspace, max_scores, weights,
                )  # fmt: skip
                return (out, *(array for array in (lse, max_scores, weights) if array is not None))
            self._core.forward(
                q, k, v, out, lse, mask, plan, bindings, scale, q_offset, kv_offset, stream, k_new, v_new, workspace
            )
        except (TypeError, AttributeError, IndexError):
            self._refuse_arrays(q, k, v, q_offset, kv_offset)
            raise
        return out if lse is None else (out, lse)

    def _workspace(self, q: Any, k: Any, stream: int) -> Any:
        """Memory with which a call with few rows is split; None for other calls."""
        shapes = (tuple(q.shape), tuple(k.shape))
        size = self._workspaces.get(shapes)
        if size is None:
            heads, kv_heads = self._heads, self._kv_heads
            size = self._core.dense_workspace_size(
                shapes[0][0], shapes[0][heads], shapes[1][kv_heads], shapes[0][3 - heads], shapes[1][3 - kv_heads]
            )
            if len(self._workspaces) >= 4096:
                self._workspaces.clear()
            self._workspaces[shapes] = size
        return zeroed_workspace(q, size, self.device, stream) if size > 0 else None

    def _refuse_other_outputs(self, where: str, remedy: str = "") -> None:
        for name, wanted in (("max_scores", self._max_scores), ("weights", self._weights)):
            if wanted:
                hint = f'leave "{name}" out of the spec\'s outputs{remedy}'
                raise Error("usage", f"{where} takes no {name} yet", hint)

    def _require(self, mask: Any, plan: Any, bindings: Any, scale: Any) -> Optional[float]:
        _require(mask, BlockMask, "mask", "attention.block_mask(...) or create_block_mask(...)")
        _require(plan, Plan, "plan", "attention.plan(...)")
        _require(bindings, Bindings, "bindings", "attention.bind(...)")
        return real("scale", scale)

    def _refuse_arrays(self, q: Any, k: Any, v: Any, q_offset: Any, kv_offset: Any) -> None:
        """Why Python refused a call."""
        require_array("q", q, 3 if self._packed else 4)
        require_array("k", k)
        require_array("v", v)
        _require_offsets(q_offset, kv_offset)

    def _is_differentiated(self, q: Any, k: Any, v: Any, bindings: Optional[Bindings]) -> bool:
        """Whether torch wants gradients of the call; refuses those that the spec does not name."""
        if framework(q) != "torch":
            return False
        load_torch_op()  # torch may have come after the attention
        if not _torch.wants_gradients(q, k, v, *(() if bindings is None else bindings.named.values())):
            return False
        _torch.refuse_unnamed_gradients(self._gradients, q, k, v)
        return True

    def backward(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        dout: Any,
        *,
        dlse: Any = None,
        mask: Optional[BlockMask] = None,
        plan: Optional[Plan] = None,
        bindings: Optional[Bindings] = None,
        scale: Optional[float] = None,
        q_offset: int = 0,
        kv_offset: int = 0,
        deterministic: bool = False,
    ) -> Dict[str, Any]:
        """The gradients that the spec names (docs/gradients.md), by those names: {"q": ..., "slopes": ...}.

        out and lse: what forward returned for the same call; dout and dlse (None: zeros): the gradients of a number by
        them. torch's autograd calls this by itself. Gradients have the dtypes of what they belong to, float32 of float64; a
        scalar's is [1].
        plan: of a packed spec, the forward call's; rows of no sequence get 0. deterministic: equal bits over runs on a GPU
        too.
        """
        if not self._gradients:
            raise Error("usage", "the spec names no gradients", 'add "gradients": ["q", "k", "v"] to it')
        scale = self._require(mask, plan, bindings, scale)
        if self._packed and plan is None:
            raise Error("usage", "the spec is packed, and backward was given no plan", "pass the forward call's plan")
        if plan is not None and mask is not None:
            raise Error("usage", "both mask and plan are given", "packed calls take a plan alone, dense ones a mask")
        _require_offsets(q_offset, kv_offset)
        inputs = {"q": q, "k": k, "v": v, "out": out, "lse": lse, "dout": dout}
        if dlse is not None:
            inputs["dlse"] = dlse
        rank = 3 if self._packed else 4
        for name, array in inputs.items():
            require_array(name, array, rank - 1 if name.endswith("lse") else rank)
        if self._masked and mask is None:
            mask = self._mask_of(q, k, q_offset, kv_offset, bindings)
        results = self._empty_gradients(q, k, v, bindings)
        if self._packed and "q" in results:
            results["q"][...] = 0
        self._core.backward(
            inputs, {f"d{name}" if name in "qkv" else f"d_{name}": array for name, array in results.items()},
            None if mask is None else mask._core_mask(), None if plan is None else plan._for_call(self, k),
            None if bindings is None else bindings._core, scale, q_offset, kv_offset, stream_of(q),
            self._backward_workspace(q, k, plan, bindings, deterministic), deterministic,
        )  # fmt: skip
        return results

    def _backward_workspace(
        self, q: Any, k: Any, plan: Optional[Plan], bindings: Optional[Bindings], deterministic: bool
    ) -> Any:
        """Memory of a GPU for sums; None on a CPU."""
        flag("deterministic", deterministic)
        if self.device == "cpu":
            return None
        if plan is not None:
            sizes = {"batch": plan.batch, "num_q_heads": q.shape[1], "num_kv_heads": k.shape[1]}
            sizes.update(total_q=q.shape[0], total_kv=k.shape[0])
            bound = None if bindings is None else bindings._core
            size = self._core.packed_backward_workspace_size(sizes, bound, deterministic)
            return dense_like(q, (max(size, 1),), "u8")
        heads, kv_heads = self._heads, self._kv_heads
        size = self._core.backward_workspace_size(
            q.shape[0], q.shape[heads], k.shape[kv_heads], q.shape[3 - heads], k.shape[3 - kv_heads],
            None if bindings is None else bindings._core, deterministic,
        )  # fmt: skip
        return dense_like(q, (max(size, 1),), "u8")

    def merge(self, outs: Sequence[Any], lses: Sequence[Any], *, out: Any = None, lse: Any = None) -> Tuple[Any, Any]:
        """Joins calls over different columns of the same rows: (out, lse) of attention over all of them.

        outs and lses: of 2 to 16 calls of forward. A part whose lse is -inf does not count. out and lse may be a part's
        own arrays. Needs merge=True (docs/packed.md#merging-parts-of-the-columns).
        """
        if not self._merges:
            raise Error("usage", "this Attention does not merge", "make it with tilewright.Attention(spec, merge=True)")
        for name, arrays in (("outs", outs), ("lses", lses)):
            if not isinstance(arrays, (list, tuple)) or not arrays:
                raise Error("usage", f"{name} is a {type(arrays).__name__}", f"pass a list: {name}=[first, second]")
            for place, array in enumerate(arrays):
                require_array(f"{name}[{place}]", array)
        if len(outs) != len(lses):
            raise Error("usage", f"there are {len(outs)} outs, but {len(lses)} lses", "pass one of each for each part")
        out = dense_like(outs[0], outs[0].shape, self._out_dtype) if out is None else out
        lse = dense_like(lses[0], lses[0].shape, "f32") if lse is None else lse
        self._core.merge(list(outs), list(lses), out, lse, stream_of(outs[0]))
        return out, lse

    def append(
        self,
        k_new: Any,
        v_new: Any,
        k_pool: Any,
        v_pool: Any,
        *,
        slots: Any = None,
        plan: Optional[Plan] = None,
        bindings: Optional[Bindings] = None,
    ) -> None:
        """Copies a step's rows of K and V [rows, HKV, D and DV] into pages (docs/paged.md#new-rows), before forward.

        slots: page * page_size + row of the page for each row, int32 or int64; or a plan, whose sequences end with these
        rows. Other rows of the pools stay as they are. Needs append=True.
        """
        if not self._appends:
            raise Error(
                "usage", "this Attention does not append", "make it with tilewright.Attention(spec, append=True)"
            )
        self._require(None, plan, bindings, None)
        for name, array in (("k_new", k_new), ("v_new", v_new), ("k_pool", k_pool), ("v_pool", v_pool)):
            pool_rank = 5 if name == "k_pool" and self._spec.get("kv_layout") == "paged_x" else 4
            require_array(name, array, pool_rank if name.endswith("pool") else 3)
        if slots is not None:
            require_array("slots", slots, 1)
        self._core.append(
            k_new, v_new, k_pool, v_pool, slots, None if plan is None else plan._for_call(self, k_pool),
            None if bindings is None else bindings._core, stream_of(k_new),
        )  # fmt: skip

    def quantise(
        self,
        array: Any,
        operand: str,
        *,
        out: Any = None,
        plan: Optional[Plan] = None,
        shape: Optional[Tuple[int, int, int, int, int]] = None,
        q_offset: int = 0,
        kv_offset: int = 0,
        bindings: Optional[Bindings] = None,
    ) -> Any:
        """Stores q, k or v as numbers of one byte (docs/quantised.md): value / scale, rounded and clamped.

        array: float32, float16 or bfloat16, in the layout of a call. operand: "q", "k" or "v". plan: its sequences' rows are
        stored, others stay as they are; without one all rows. shape: of a dense call, (batch, num_q_heads, num_kv_heads,
        q_len, kv_len), where q_scale names h_kv or offsets are not 0. Needs quantise=True. Returns out.
        """
        if not self._quantises:
            raise Error(
                "usage", "this Attention does not quantise", "make it with tilewright.Attention(spec, quantise=True)"
            )
        if operand not in ("q", "k", "v"):
            raise Error("usage", f"operand is {operand!r}", 'pass "q", "k" or "v"')
        self._require(None, plan, bindings, None)
        _require_offsets(q_offset, kv_offset)
        require_array("array", array)
        if shape is None and (q_offset or kv_offset):
            raise Error("usage", "quantise was given an offset without a shape", "pass shape=(batch, ...) too")
        if plan is not None and shape is not None:
            raise Error("usage", "quantise was given a plan and a shape", "a packed call has a plan, a dense one a shape")
        if shape is not None and (len(shape) != 5 or not all(isinstance(size, int) for size in shape)):
            raise Error("usage", f"shape is {shape!r}", "pass (batch, num_q_heads, num_kv_heads, q_len, kv_len)")
        if out is None:
            out = dense_like(array, array.shape, self._spec.get("kv_dtype", self._spec["dtype"]))
        core_plan = None
        if plan is not None:
            core_plan = plan._for_q(self) if operand == "q" else plan._for_call(self, out)
        self._core.quantise(
            array, out, operand, core_plan,
            [] if shape is None else [*shape, q_offset, kv_offset],
            None if bindings is None else bindings._core, stream_of(array),
        )  # fmt: skip
        return out

    def _empty_gradients(self, q: Any, k: Any, v: Any, bindings: Optional[Bindings]) -> Dict[str, Any]:
        kv_dtype = self._spec.get("kv_dtype", self._spec["dtype"])
        results = {}
        for name, array, dtype in (("q", q, self._spec["dtype"]), ("k", k, kv_dtype), ("v", v, kv_dtype)):
            if name in self._gradients:
                results[name] = dense_like(q, array.shape, dtype)
        arrays = {} if bindings is None else bindings.arrays
        for name in self.named_gradients:
            if name in arrays:
                dtype = self._spec["buffers"][name]["dtype"]
                results[name] = dense_like(q, arrays[name].shape, "f32" if dtype == "f64" else dtype)
            else:
                results[name] = dense_like(q, (1,), "f32")
        return results

    def _lse_shape(self, q: Any) -> Tuple[int, ...]:
        shape = shape_of(q)
        if self._packed:
            return (shape[1], shape[0])
        return (shape[0], shape[self._heads], shape[3 - self._heads])

    def _weights_shape(self, q: Any, k: Any) -> Tuple[int, ...]:
        return (*self._lse_shape(q), shape_of(k)[3 - self._kv_heads])

    def _mask_of(self, q: Any, k: Any, q_offset: int, kv_offset: int, bindings: Optional[Bindings]) -> BlockMask:
        heads, kv_heads = self._heads, self._kv_heads
        require_array("k", k, 4)
        return self.block_mask(
            batch=q.shape[0], num_q_heads=q.shape[heads], num_kv_heads=k.shape[kv_heads],
            q_len=q.shape[3 - heads], kv_len=k.shape[3 - kv_heads],
            q_offset=q_offset, kv_offset=kv_offset, bindings=bindings,
        )  # fmt: skip


_NONE = type(None)
_MASKS, _PLANS, _BINDINGS, _SCALES = (BlockMask, _NONE), (Plan, _NONE), (Bindings, _NONE), (float, _NONE)


def _require(value: Any, kind: type, name: str, form: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise Error("usage", f"{name} is a {type(value).__name__}", f"pass what {form} returns")


def _require_offsets(*offsets: Any) -> None:
    for name, offset in zip(("q_offset", "kv_offset"), offsets):
        if type(offset) is not int:
            whole(name, offset, -(2**62))


def _lengths(name: str, array: Any) -> Any:
    """int32 as it lies: a copy of another dtype would keep its numbers at the next rebuild."""
    require_array(name, array)
    if dtype_name(array) != "int32":
        raise Error(
            "tensor", f"{name} has dtype {dtype_name(array)}", "pass int32, which the plan reads at each rebuild"
        )
    if name == "q_begin" and (len(array.shape) != 1 or array.shape[0] < 1):
        raise Error("tensor", f"q_begin has the shape {list(shape_of(array))}", "pass [batch + 1]")
    return readable(array)


def _current_stream(device: str) -> int:
    import torch

    return int(torch._C._cuda_getCurrentRawStream(int(device.partition(":")[2] or 0)))
