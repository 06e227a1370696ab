"""BlockMask: which tiles of q_len x kv_len a call visits."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _core, _mask_text
from ._arguments import whole, whole_pair
from ._error import Error
from ._registry import enroll

Size = Tuple[int, int, int, int]  # B, H, Q_LEN, KV_LEN


class BlockMask:
    """Which tiles are empty, partial (mask_mod decides) or full. Lazy: tiles are listed when they are first needed.

    Lists stay as they are when captured arrays change; rebuild() lists them anew."""

    def __init__(
        self, build: Callable[["BlockMask"], _core.BlockMask], size: Size, block: Tuple[int, int], mask_mod: Any
    ):
        self._build, self._size, self.BLOCK_SIZE, self.mask_mod = build, size, block, mask_mod
        self._built: Optional[_core.BlockMask] = None
        self._snippet: Any = None  # of a mask that a mod made
        self._device = "cpu"
        self._scalars: Dict[str, float] = {}
        self._framework = "numpy"
        self._from_lists = False
        self._wider: Dict[Size, "BlockMask"] = {}
        self._number = enroll(self)

    @classmethod
    def _of_attention(cls, build: Callable[[], _core.BlockMask], size: Size) -> "BlockMask":
        mask = cls(lambda _: build(), size, (0, 0), None)
        mask._built = build()
        mask.BLOCK_SIZE = mask._built.block
        return mask

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None,
        BLOCK_SIZE: Any = 128,
        mask_mod: Any = None,
        seq_lengths: Optional[Tuple[int, int]] = None,
        compute_q_blocks: bool = True,
    ) -> "BlockMask":
        """A mask from FlexAttention's lists: [B, H, rows] and [B, H, rows, columns]. Which tiles are full is believed.

        mask_mod decides in partial tiles; without one they are kept whole. seq_lengths (Q_LEN, KV_LEN) defaults to
        whole tiles. compute_q_blocks is taken for FlexAttention's sake and ignored."""
        from ._create_mask import mask_from_lists

        lists = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        return mask_from_lists(lists, BLOCK_SIZE, mask_mod, seq_lengths)

    def _core_mask(self) -> _core.BlockMask:
        if self._built is None:
            self._built = self._build(self)
        return self._built

    def _build_with(self, attention: Any, heads: Tuple[int, int, int], bindings: Any, stream: int) -> None:
        """Lists the tiles with the kernel of an attention whose mask_mod is this mask's, so that no other is compiled.

        heads: batch, query heads and key heads of a call."""
        fits = self._size[0] in (1, heads[0]) and self._size[1] in (1, heads[1])
        if self._built is None and not self._from_lists and fits:
            q_len, kv_len = self._size[2:]
            bound = None if bindings is None else bindings._core
            self._built = attention._core.block_mask(*heads, q_len, kv_len, 0, 0, bound, None, stream)

    def _for(self, attention: Any) -> _core.BlockMask:
        return self._core_mask()

    def rebuild(self) -> "BlockMask":
        """Lists the tiles anew, after in-place changes of what mask_mod captures."""
        self._built = None
        self._wider.clear()
        self._core_mask()
        return self

    @property
    def shape(self) -> Size:
        """(B, H, Q_LEN, KV_LEN)."""
        return self._size

    @property
    def seq_lengths(self) -> Tuple[int, int]:
        return self._size[2:]

    def numel(self) -> int:
        b, h, q, kv = self._size
        return b * h * q * kv

    def sparsity(self) -> float:
        """Percent of the tiles that no call visits. Ragged tiles at the ends count as one."""
        return 100.0 * (1.0 - self._core_mask().density)

    def tiles(self) -> Any:
        """uint8 [B, H, rows, columns]: 0 empty, 1 partial, 2 full. A numpy array."""
        import numpy

        core = self._core_mask()
        tiles = numpy.frombuffer(core.tiles(), dtype=numpy.uint8)
        tiles = tiles.reshape(core.batch, core.heads, core.q_blocks, core.kv_blocks)
        return numpy.broadcast_to(tiles, (*self._size[:2], core.q_blocks, core.kv_blocks))

    def to_dense(self) -> Any:
        """int32 [B, H, rows, columns]: 1 where a tile is visited; of torch where the mask is torch's, else numpy."""
        import numpy

        dense = (self.tiles() != 0).astype(numpy.int32)
        return self._as_arrays([dense])[0]

    def to_flex(self) -> Tuple[Any, Any, Any, Any]:
        """kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices as FlexAttention's create_block_mask has them."""
        import numpy

        core = self._core_mask()
        counts = (core.batch, core.heads, core.q_blocks)
        shapes = (counts, (*counts, core.kv_blocks)) * 2
        arrays = [
            numpy.broadcast_to(numpy.frombuffer(data, dtype=numpy.int32).reshape(shape), (*self._size[:2], *shape[2:]))
            for data, shape in zip(core.flex_lists(), shapes)
        ]
        a, b, c, d = self._as_arrays(arrays)
        return a, b, c, d

    def _as_arrays(self, arrays: List[Any]) -> List[Any]:
        if self._framework != "torch":
            return arrays
        import torch

        return [torch.tensor(array, device=self._device) for array in arrays]

    def to_string(self, grid_size: Tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the tiles in characters, for the first `limit` batches and heads."""
        return _mask_text.text(self, whole_pair("grid_size", grid_size, -1), whole("limit", limit, 0))

    def __str__(self) -> str:
        return f"BlockMask(shape={self._size}, sparsity={self.sparsity():.2f}%)\n{self.to_string()}"

    def __repr__(self) -> str:
        return f"BlockMask(shape={self._size}, BLOCK_SIZE={self.BLOCK_SIZE}, mask_mod={self.mask_mod!r})"

    def _repr_svg_(self) -> str:
        return _mask_text.svg(self)

    def _for_batch_and_heads(self, batch: int, heads: int) -> "BlockMask":
        """A mask with one list for all, whose mod reads b or h: with the lists that it means for a call of this size."""
        if self._from_lists or self._snippet is None or not self._snippet.reads(("b", "h")):
            return self
        size = (max(self._size[0], batch), max(self._size[1], heads), *self._size[2:])
        if size == self._size:
            return self
        from ._create_mask import create_block_mask

        if size not in self._wider:
            self._wider[size] = create_block_mask(
                self.mask_mod,
                *size,
                self._device,
                self.BLOCK_SIZE,
                buffers=self._snippet.buffers,
                scalars=self._scalars,
            )
        return self._wider[size]

    def require_lists(self, batch: int, heads: int) -> None:
        """Refuses calls of another batch or number of heads; one list serves all."""
        for name, size, wanted in (("B", self._size[0], batch), ("H", self._size[1], heads)):
            if size not in (1, wanted):
                raise Error(
                    "block_mask",
                    f"block_mask was made for {name} {size}, but query has {wanted}",
                    f"pass {name} {wanted}, or None",
                )

    def require_lengths(self, q_len: int, kv_len: int) -> None:
        """Refuses calls of other lengths."""
        if (q_len, kv_len) != self._size[2:]:
            raise Error(
                "block_mask",
                f"block_mask was made for Q_LEN {self._size[2]} and KV_LEN {self._size[3]}, "
                f"but query has {q_len} rows and key has {kv_len}",
                f"create_block_mask(mask_mod, B, H, {q_len}, {kv_len})",
            )
