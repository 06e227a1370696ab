"""Plan: the work of packed or paged calls."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from . import _core
from ._arrays import shape_of
from ._error import Error
from ._registry import enroll

Build = Callable[[Any, Dict[str, int], Any], _core.Plan]


class Plan:
    """Made by Attention.plan(); serves all calls of equal spec and bounds, those of varlen_attention and paged_attention
    too. Where the sizes of k are not told, it is built by the first call."""

    def __init__(self, spec: Dict[str, Any], build: Build, bindings: Any, batch: int) -> None:
        self.batch = batch  # sequences
        self._spec, self._build, self._bindings = spec, build, bindings
        self._built: Dict[Tuple[int, int, int], Tuple[Any, _core.Plan]] = {}
        self._number = enroll(self)

    def report(self) -> str:
        """What was clamped when the plan was last built, in words; "" where nothing was. Waits for a GPU."""
        return next((text for text in (plan.report() for _, plan in self._built.values()) if text), "")

    def _for(self, attention: Any, total_kv: int, page_size: int) -> _core.Plan:
        """The plan for calls of an attention of the same spec, whose k has this many rows."""
        key = (id(attention), total_kv, page_size)
        if key not in self._built:
            if attention._spec != self._spec:
                raise Error(
                    "usage",
                    "plan was made by an Attention of another spec",
                    "make it with attention.plan(), from the spec of this call",
                )
            sizes = {"total_kv": total_kv, "page_size": page_size}
            self._built[key] = (attention, self._build(attention, sizes, self._bindings))
        return self._built[key][1]

    def _for_call(self, attention: Any, k: Any) -> _core.Plan:
        shape = shape_of(k)
        if len(shape) == 5 or self._spec.get("kv_layout") == "paged_x":  # v has rank 4 there
            return self._for(attention, shape[0] * shape[3], shape[3])
        if len(shape) == 4:
            return self._for(attention, shape[0] * shape[1], shape[1])
        return self._for(attention, shape[0] if shape else 0, 0)

    def _for_q(self, attention: Any) -> _core.Plan:
        """A plan for rows of q, which are the same whatever rows k has."""
        for made_by, plan in self._built.values():
            if made_by is attention:
                return plan
        raise Error(
            "usage",
            "the plan does not know the rows of k yet",
            "give total_kv, or page_size and pages, to attention.plan()",
        )

    def _rebuild(self, bindings: Any, stream: int) -> None:
        self._bindings = bindings
        for attention, plan in self._built.values():
            attention._core.rebuild_plan(plan, None if bindings is None else bindings._core, stream)
