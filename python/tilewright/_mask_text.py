"""Pictures of block masks: characters for terminals, SVG for notebooks."""

from __future__ import annotations

from typing import Any, List, Tuple

_MARKS = ("  ", "░░", "██")
_COLORS = ("#f4f4f4", "#9ecae1", "#3182bd")


def _coarse(tiles: Any, rows: int, columns: int) -> Any:
    """At most rows x columns cells: 2 where all tiles are full, 0 where all are empty, else 1."""
    import numpy

    def edges(size: int, cells: int) -> Any:
        return numpy.linspace(0, size, min(size, cells) + 1).astype(int)

    down, right = edges(tiles.shape[0], rows), edges(tiles.shape[1], columns)
    cells = numpy.ones((len(down) - 1, len(right) - 1), dtype=numpy.uint8)
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            part = tiles[down[i] : down[i + 1], right[j] : right[j + 1]]
            cells[i, j] = part.flat[0] if (part == part.flat[0]).all() else 1
    return cells


def _lists(mask: Any, limit: int) -> List[Tuple[int, int]]:
    batch, heads = mask.shape[:2]
    return [(b, h) for b in range(batch) for h in range(heads)][:limit]


def text(mask: Any, grid_size: Tuple[int, int], limit: int) -> str:
    tiles = mask.tiles()
    rows, columns = (size if size > 0 else 10**9 for size in grid_size)
    lines: List[str] = []
    for b, h in _lists(mask, limit):
        lines.append(f"({b}, {h})")
        lines += ["".join(_MARKS[cell] for cell in row) for row in _coarse(tiles[b, h], rows, columns)]
    left = mask.shape[0] * mask.shape[1] - limit
    return "\n".join(lines + [f"... and {left} more"] * (left > 0))


def svg(mask: Any, limit: int = 4, side: int = 240) -> str:
    tiles = mask.tiles()
    shown = _lists(mask, limit)
    width, height = len(shown) * (side + 16), side + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
    ]
    for place, (b, h) in enumerate(shown):
        cells = _coarse(tiles[b, h], 64, 64)
        w, tall, left = side / cells.shape[1], side / cells.shape[0], place * (side + 16)
        parts.append(f'<text x="{left}" y="12">batch {b}, head {h}</text>')
        parts.append(f'<rect x="{left}" y="18" width="{side}" height="{side}" fill="{_COLORS[0]}"/>')
        for i, row in enumerate(cells):
            parts += [
                f'<rect x="{left + j * w:.2f}" y="{18 + i * tall:.2f}" width="{w:.2f}" height="{tall:.2f}" fill="{_COLORS[cell]}"/>'
                for j, cell in enumerate(row)
                if cell
            ]
    core = mask._core_mask()
    words = f"{core.full_tiles} full, {core.partial_tiles} partial, {core.empty_tiles} empty; {mask.sparsity():.1f} % skipped"
    parts.append(f'<text x="0" y="{height - 6}">{words}</text></svg>')
    return "".join(parts)
