"""Context parallel: one sequence that several ranks share (docs/context_parallel.md)."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _core
from ._arguments import real, require_module, scalars_of, whole
from ._arrays import empty_like, framework, readable, require_array, shape_of, stream_of
from ._attention import Attention, Bindings
from ._error import Error
from ._spec import SpecLike, spec_text

_NAMES = ("batch", "num_q_heads", "num_kv_heads", "q_len", "kv_len", "q_offset", "kv_offset")


class TorchTransport:
    """The ranks of a torch.distributed group that sends tensors of CPUs, as gloo does.

    Any object with rank, size, all_gather and exchange serves context_parallel() in its place. A peer that is gone must
    end in an exception: here the group's time-out sees to that.
    """

    def __init__(self, group: Any = None) -> None:
        self._torch, self._distributed = _torch_distributed()
        self._group = group
        self.rank: int = self._distributed.get_rank(group)
        self.size: int = self._distributed.get_world_size(group)

    def all_gather(self, mine: bytes) -> bytes:
        """What each rank gives, as many bytes from each, those of rank 0 first."""
        if not mine:
            return b""
        everything = bytearray(len(mine) * self.size)
        places = list(self._bytes(everything).split(len(mine)))
        self._distributed.all_gather(places, self._bytes(bytearray(mine)), group=self._group)
        return bytes(everything)

    def exchange(self, sends: Sequence[Tuple[int, memoryview]], receives: Sequence[Tuple[int, memoryview]]) -> None:
        """Sends and receives as one group. Messages between two ranks meet in the order in which both list them."""
        works = [
            start(self._bytes(memory), self._global_rank(peer), group=self._group, tag=tag)
            for start, messages in ((self._distributed.isend, sends), (self._distributed.irecv, receives))
            for tag, (peer, memory) in _tagged(messages)
        ]
        for work in works:
            work.wait()

    def _bytes(self, memory: Any) -> Any:
        return self._torch.frombuffer(memory, dtype=self._torch.uint8)

    def _global_rank(self, peer: int) -> int:
        return peer if self._group is None else self._distributed.get_global_rank(self._group, peer)


def _tagged(messages: Sequence[Tuple[int, memoryview]]) -> List[Tuple[int, Tuple[int, memoryview]]]:
    """Messages with their number among those of the same peer."""
    counts: Dict[int, int] = {}
    tagged = []
    for peer, memory in messages:
        counts[peer] = counts.get(peer, 0) + 1
        tagged.append((counts[peer], (peer, memory)))
    return tagged


def _torch_distributed() -> Tuple[Any, Any]:
    torch = require_module("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        raise Error(
            "usage",
            "torch.distributed has no group yet",
            "call torch.distributed.init_process_group(...) first, or pass a transport as group",
        )
    return torch, torch.distributed


def _communicator(group: Any, device: str, timeout: float) -> _core.Communicator:
    if hasattr(group, "all_gather") and hasattr(group, "exchange"):
        if device != "cpu":
            raise Error("usage", "a transport in Python serves ranks on CPUs", "pass a group of torch.distributed")
        return _core.transport_communicator(group)
    if device == "cpu":
        return _core.transport_communicator(TorchTransport(group))
    _, distributed = _torch_distributed()
    rank, size = distributed.get_rank(group), distributed.get_world_size(group)
    ids = [_core.nccl_id() if rank == 0 else None]
    first = 0 if group is None else distributed.get_global_rank(group, 0)
    distributed.broadcast_object_list(ids, src=first, group=group)
    return _core.nccl_communicator(ids[0], rank, size, device, int(1000 * timeout))


class ContextPlan:
    """Who computes and sends what, for sequences of one length: ContextParallel.plan."""

    def __init__(self, core: _core.ContextPlan, bindings: Optional[Bindings]) -> None:
        self._core = core
        self._bindings = bindings  # keeps the arrays
        self._bound = None if bindings is None else bindings._core
        self._memory: Dict[Tuple[bool, bool], Any] = {}  # workspaces, by whether they are backward's, and deterministic
        self.sharding: str = core.sharding
        self.shards: List[Tuple[int, int, int, int]] = core.shards  # (q_begin, q_len, kv_begin, kv_len), rising
        self.q_rows: int = core.q_rows
        self.kv_rows: int = core.kv_rows
        self.traffic: Dict[str, Any] = core.traffic

    def __repr__(self) -> str:
        return f"tilewright.ContextPlan({self.sharding}, shards={self.shards})"


class ContextParallel:
    """Attention over a sequence that the ranks of a group share: context_parallel(). Every rank makes one with the same
    spec, and makes the same calls in the same order."""

    def __init__(self, spec: SpecLike, communicator: _core.Communicator, device: str) -> None:
        text, file = spec_text(spec)
        self._core = _core.ContextParallel(text, file, device, communicator)
        self._spec: Dict[str, Any] = json.loads(self._core.spec)
        self.device: str = self._core.device
        self.rank: int = communicator.rank
        self.size: int = communicator.size
        self._gradients: Tuple[str, ...] = tuple(self._spec.get("gradients", ()))
        self.named_gradients: List[str] = [name for name in self._gradients if name not in ("q", "k", "v")]
        self._lse = "lse" in self._spec.get("outputs", ())
        self._v_head_dim: int = self._spec.get("v_head_dim", self._spec["head_dim"])
        self._out_dtype: str = self._spec.get("out_dtype", self._spec["dtype"])
        layout = self._spec.get("layout", "bhsd")
        self._packed = layout == "packed"
        self._rows = _row_axis(layout)
        self._kv_rows = _row_axis(self._spec.get("kv_layout", layout))

    @property
    def spec(self) -> Dict[str, Any]:
        """The canonical spec."""
        return json.loads(self._core.spec)  # type: ignore[no-any-return]

    def plan(
        self,
        *,
        num_q_heads: int,
        num_kv_heads: Optional[int] = None,
        q_len: Optional[int] = None,
        kv_len: Optional[int] = None,
        batch: int = 1,
        q_begin: Sequence[int] = (),
        kv_begin: Sequence[int] = (),
        q_offset: Union[int, Sequence[int]] = 0,
        kv_offset: Union[int, Sequence[int]] = 0,
        sharding: str = "automatic",
        q_lengths: Sequence[int] = (),
        kv_lengths: Sequence[int] = (),
        **arrays_and_scalars: Any,
    ) -> ContextPlan:
        """Shards sequences of q_len and kv_len over the ranks, for this rank's batch and heads.

        q_begin: of a packed spec, in place of q_len, kv_len and batch: the first row of each sequence, from 0, then the
        number of rows, as integers of the host. kv_begin: likewise of k and v; none: q_begin. q_offset, kv_offset: then one
        number for each sequence; 0: the last row and the last column have one position, and columns count from 0.
        sharding: "automatic", "contiguous" or "zigzag". q_lengths, kv_lengths: of contiguous shards, one for each rank.
        arrays_and_scalars: the spec's buffers, whole on each rank, and scalars. Contents that mask_mod reads are part of
        the plan.
        """
        heads = num_q_heads if num_kv_heads is None else num_kv_heads
        sizes: Any
        if self._packed:
            sizes = _sequences(num_q_heads, heads, q_len, kv_len, q_begin, kv_begin, q_offset, kv_offset)
        else:
            if len(q_begin) or len(kv_begin):
                raise Error("usage", "q_begin or kv_begin is given for a dense spec", "pass q_len and kv_len")
            sizes = [batch, num_q_heads, heads, q_len, kv_len, q_offset, kv_offset]
            for name, size in zip(_NAMES[:5], sizes):
                whole(name, size)
        bind, plan = (
            (self._core.bind_packed, self._core.plan_packed) if self._packed else (self._core.bind, self._core.plan)
        )
        scalar_names = self._spec.get("scalars", {})
        arrays: Dict[str, Any] = {}
        scalars: Dict[str, float] = {}
        named: Dict[str, Any] = {}
        for name, value in arrays_and_scalars.items():
            if name in self._gradients and framework(value) == "torch":
                named[name] = value
                value = value.detach()
            if name in scalar_names or isinstance(value, (bool, int, float)):
                scalars.update(scalars_of({name: value}, scalar_names))
            else:
                arrays[name] = readable(value) if framework(value) == "jax" else value
        stream = next((stream_of(array) for array in arrays.values()), 0)
        bindings: Optional[Bindings] = None
        if arrays or scalars or scalar_names or self._spec.get("buffers"):
            bindings = Bindings(bind(sizes, arrays, scalars), arrays, scalars, named)
        core = plan(
            sizes, None if bindings is None else bindings._core, sharding, list(q_lengths), list(kv_lengths), stream
        )  # fmt: skip
        return ContextPlan(core, bindings)

    def take(self, plan: ContextPlan, array: Any, *, of: str = "q") -> Any:
        """This rank's rows of a whole sequence's q, k, v, dout ("q", "k", "v") or lse ("lse"), as one array."""
        if of not in ("q", "k", "v", "lse"):
            raise Error("usage", f'of is "{of}"', 'give "q", "k", "v" or "lse"')
        axis = {"q": self._rows, "lse": 1 if self._packed else 2}.get(of, self._kv_rows)
        parts = []
        for q_begin, q_len, kv_begin, kv_len in plan.shards:
            begin, count = (kv_begin, kv_len) if of in ("k", "v") else (q_begin, q_len)
            parts.append(array[(slice(None),) * axis + (slice(begin, begin + count),)])
        if framework(array) == "torch":
            return sys.modules["torch"].cat(parts, dim=axis)
        return require_module("numpy").concatenate(parts, axis=axis)

    def forward(
        self, q: Any, k: Any, v: Any, plan: ContextPlan, *, out: Any = None, lse: Any = None,
        scale: Optional[float] = None,
    ) -> Any:  # fmt: skip
        """Attention of this rank's rows over the whole sequence: out, or (out, lse) if the spec's outputs name lse.

        Where torch wants gradients of q, k or v, or of tensors that plan() was given, `out.backward()` runs backward(),
        which exchanges tensors too: all ranks ask for gradients, and of their calls in the same order.
        """
        _require_plan(plan)
        for name, array in (("q", q), ("k", k), ("v", v)):
            require_array(name, array, 3 if self._packed else 4)
        if self._gradients and self._is_differentiated(q, k, v, plan):
            if out is not None or lse is not None:
                raise Error("usage", "out= or lse= is given, but gradients are wanted", "use what forward returns")
            from . import _context_torch

            return _context_torch.differentiable(self, q, k, v, plan, scale)
        shape = shape_of(q)
        if out is None:
            out = empty_like(q, (*shape[:-1], self._v_head_dim), self._out_dtype)
        if lse is None and self._lse:
            rows = (shape[1], shape[0]) if self._packed else (shape[0], shape[3 - self._rows], shape[self._rows])
            lse = empty_like(q, rows, "f32")
        self._core.forward(
            plan._core, q, k, v, out, lse, plan._bound, real("scale", scale), stream_of(q),
            self._workspace(plan, q, False, False),
        )  # fmt: skip
        return out if lse is None else (out, lse)

    def backward(
        self, q: Any, k: Any, v: Any, out: Any, lse: Any, dout: Any, plan: ContextPlan, *, dlse: Any = None,
        scale: Optional[float] = None, deterministic: bool = False,
    ) -> Dict[str, Any]:  # fmt: skip
        """The gradients that the spec names, by those names: {"q": ..., "slopes": ...}. Those of q, k and v have this rank's
        rows; those of buffers and scalars are whole, with equal bits on all ranks.
        """
        _require_plan(plan)
        if not self._gradients:
            raise Error("usage", "the spec names no gradients", 'add "gradients": ["q", "k", "v"] to it')
        inputs = {"q": q, "k": k, "v": v, "out": out, "lse": lse, "dout": dout}
        if dlse is not None:
            inputs["dlse"] = dlse
        for name, array in inputs.items():
            require_array(name, array, (3 if self._packed else 4) - name.endswith("lse"))
        dtypes = {"q": self._spec["dtype"]}
        kv_dtype = self._spec.get("kv_dtype", self._spec["dtype"])
        results = {
            name: empty_like(inputs[name], shape_of(inputs[name]), dtypes.get(name, kv_dtype))
            for name in self._gradients
            if name in inputs
        }
        arrays = {} if plan._bindings is None else plan._bindings.arrays
        for name in self.named_gradients:
            dtype = self._spec["buffers"][name]["dtype"] if name in arrays else "f32"
            shape = shape_of(arrays[name]) if name in arrays else (1,)
            results[name] = empty_like(q, shape, "f32" if dtype == "f64" else dtype)
        self._core.backward(
            plan._core, inputs, results, plan._bound, real("scale", scale), stream_of(q),
            self._workspace(plan, q, True, bool(deterministic)), bool(deterministic),
        )  # fmt: skip
        return results

    def _is_differentiated(self, q: Any, k: Any, v: Any, plan: ContextPlan) -> bool:
        """Whether torch wants gradients of the call; refuses those that the spec does not name."""
        if framework(q) != "torch":
            return False
        from . import _torch

        named = {} if plan._bindings is None else plan._bindings.named
        if not _torch.wants_gradients(q, k, v, *named.values()):
            return False
        _torch.refuse_unnamed_gradients(self._gradients, q, k, v)
        return True

    def wait(self, stream: int = 0) -> None:
        """Waits for the calls in a stream of a GPU, at most for the time-out: a plain wait would last for ever where a
        peer is gone."""
        self._core.wait(stream)

    def _workspace(self, plan: ContextPlan, array: Any, backward: bool, deterministic: bool) -> Any:
        """Memory of the plan, which serves one call at a time."""
        use = (backward, deterministic)
        found = plan._memory.get(use)
        if found is None:
            size = self._core.workspace_size(plan._core, *use)
            memory = empty_like(array, (size + 256,), "u8")
            address = memory.data_ptr() if framework(array) == "torch" else memory.ctypes.data
            after = -address % 256
            found = plan._memory[use] = memory[after : after + size]
        return found if found.shape[0] > 0 else None


def _row_axis(layout: str) -> int:
    return {"packed": 0, "bhsd": 2}.get(layout, 1)


def _sequences(
    num_q_heads: int, num_kv_heads: int, q_len: Any, kv_len: Any, q_begin: Sequence[int], kv_begin: Sequence[int],
    q_offset: Union[int, Sequence[int]], kv_offset: Union[int, Sequence[int]],
) -> List[List[int]]:  # fmt: skip
    """SharedSequences as lists."""
    if q_len is not None or kv_len is not None:
        raise Error("usage", "q_len or kv_len is given for a packed spec", "pass q_begin, the first row of each sequence")
    if not len(q_begin):
        raise Error("usage", "the spec is packed, and plan was given no q_begin", "pass the first row of each sequence")
    lists = [[whole("num_q_heads", num_q_heads), whole("num_kv_heads", num_kv_heads)]]
    for name, numbers in (
        ("q_begin", q_begin), ("kv_begin", kv_begin), ("q_offset", q_offset), ("kv_offset", kv_offset),
    ):  # fmt: skip
        if isinstance(numbers, int):
            if numbers != 0:
                raise Error("usage", f"{name} is {numbers}", "pass one for each sequence")
            numbers = ()
        lists.append([int(number) for number in numbers])
    return lists


def _require_plan(plan: Any) -> None:
    if not isinstance(plan, ContextPlan):
        raise Error("usage", f"plan is a {type(plan).__name__}", "pass what context.plan(...) returns")


def context_parallel(
    attention: Union[Attention, SpecLike], group: Any = None, *, device: str = "auto", timeout: float = 60.0
) -> ContextParallel:
    """Attention over a sequence that the ranks of a group share. Each rank calls it, with the same spec.

    attention: an Attention, whose spec and device count, or a spec. group: of torch.distributed; None: its default one.
    On GPUs the ranks meet over NCCL, on CPUs over the group itself, for example gloo; or a transport (TorchTransport
    says what it has). timeout: seconds that a rank on a GPU waits for its peers.
    """
    if isinstance(attention, Attention):
        spec: SpecLike = attention.spec
        device = attention.device
    else:
        spec = attention
    device = _core.device_name(device)
    return ContextParallel(spec, _communicator(group, device, timeout), device)
