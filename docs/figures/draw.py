"""Draws tiles.svg, pipeline.svg and plan.svg of docs/how_it_works.md: python3 docs/figures/draw.py [--check]"""

import sys
from pathlib import Path

INK, PALE, FULL, PARTIAL, ACCENT = "#24292f", "#eaeef2", "#2f6db5", "#9cc3ec", "#d9822b"


class Drawing:
    def __init__(self, width, height, title):
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
        ]

    def box(self, x, y, width, height, fill=PALE, text="", color=INK):
        self.lines.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" stroke="{INK}" stroke-width="0.6"/>'
        )
        if text:
            self.text(x + width / 2, y + height / 2 + 4.5, text, "middle", color)

    def text(self, x, y, text, anchor="start", color=INK):
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self.lines.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{color}">{text}</text>')

    def arrow(self, x1, y1, x2, y2):
        self.lines.append(f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{INK}" fill="none"/>')
        dx, dy = (1 if x2 > x1 else -1 if x2 < x1 else 0), (1 if y2 > y1 else -1 if y2 < y1 else 0)
        wing = f"M{x2} {y2} l{-7 * dx - 4 * dy} {-7 * dy - 4 * dx} l{8 * dy} {8 * dx} z"
        self.lines.append(f'<path d="{wing}" fill="{INK}"/>')

    def done(self):
        return "\n".join([*self.lines, "</svg>\n"])


def tiles():
    """A window of 3 tiles over 8 x 8 tiles, and one q tile's walk over its row."""
    drawing = Drawing(640, 280, "A block mask, and the walk of one q tile over its row of tiles")
    drawing.text(20, 24, "block mask: one list of tiles for each row of q tiles")
    for row in range(8):
        for column in range(8):
            distance = row - column
            kind = FULL if distance == 1 else PARTIAL if distance in (0, 2) else "white"
            drawing.box(20 + 26 * column, 40 + 26 * row, 26, 26, kind)
    drawing.lines.append(
        f'<rect x="18" y="168" width="212" height="30" fill="none" stroke="{ACCENT}" stroke-width="2.5"/>'
    )
    drawing.arrow(232, 183, 282, 183)
    drawing.box(290, 168, 70, 30, PALE, "Q tile")
    for step, (kind, text) in enumerate([(PARTIAL, "mask_mod"), (FULL, "as it is"), (PARTIAL, "mask_mod")]):
        x = 375 + 84 * step
        drawing.box(x, 168, 76, 30, kind, text, "white" if kind == FULL else INK)
    drawing.text(290, 225, "each: S = Q K^T, score_mod, running maximum")
    drawing.text(290, 243, "and sum, O += P V")
    drawing.text(290, 155, "tiles of K and V that are kept, one after another")
    for index, (kind, text) in enumerate([(FULL, "full"), (PARTIAL, "partial"), ("white", "empty: skipped")]):
        drawing.box(290 + 100 * index, 50, 16, 16, kind)
        drawing.text(312 + 100 * index, 63, text)
    return drawing.done()


def pipeline():
    drawing = Drawing(720, 250, "Hopper's kernel: a producer fills stages, two consumers take turns")
    rows = [("producer: TMA", 40), ("consumer 1: wgmma", 110), ("consumer 2: wgmma", 170)]
    for name, y in rows:
        drawing.text(16, y + 19, name)
    for step in range(4):
        drawing.box(170 + 132 * step, 40, 62, 30, PALE, f"K{step}")
        drawing.box(234 + 132 * step, 40, 62, 30, PALE, f"V{step}")
    for step in range(3):
        x = 222 + 132 * step
        drawing.box(x, 110, 64, 30, FULL, "products", "white")
        drawing.box(x + 66, 110, 64, 30, PARTIAL, "softmax")
        drawing.box(x + 66, 170, 64, 30, FULL, "products", "white")
        drawing.box(x + 132, 170, 64, 30, PARTIAL, "softmax")
    drawing.arrow(228, 72, 228, 107)
    drawing.text(170, 28, "copies run ahead, as many tiles as there are stages in shared memory")
    drawing.text(170, 230, "one consumer computes products while the other computes its softmax")
    return drawing.done()


def plan():
    drawing = Drawing(720, 230, "A plan of packed sequences: lengths become a list of work")
    drawing.text(16, 24, "rows of q, one sequence after another")
    x = 16
    for name, width in [("a: 300 rows", 180), ("b: 1", 40), ("c: 1", 40), ("d: 140 rows", 100)]:
        drawing.box(x, 34, width, 28, PALE, name)
        x += width
    drawing.arrow(196, 68, 196, 96)
    drawing.text(210, 88, "plan or rebuild, on the device: which tiles are kept, in which order")
    x = 16
    for name in ("a, tile 2", "a, tile 1", "d, tile 1", "a, tile 0", "d, tile 0"):
        drawing.box(x, 104, 84, 28, FULL, name, "white")
        x += 88
    drawing.text(470, 122, "prefill: q tiles, taken one by one")
    drawing.box(16, 144, 128, 28, ACCENT, "b, in parts")
    drawing.box(150, 144, 128, 28, ACCENT, "c, in parts")
    drawing.text(470, 162, "decode: K and V cut evenly")
    drawing.text(16, 204, "one plan serves the forward calls of all layers; a graph is replayed with other lengths")
    return drawing.done()


def main():
    folder, stale = Path(__file__).parent, []
    for name, draw in (("tiles", tiles), ("pipeline", pipeline), ("plan", plan)):
        path, text = folder / f"{name}.svg", draw()
        if "--check" in sys.argv:
            stale += [] if path.read_text() == text else [path.name]
        else:
            path.write_text(text)
    if stale:
        sys.exit(f"out of date: {' '.join(stale)}; run python3 docs/figures/draw.py")


if __name__ == "__main__":
    main()
