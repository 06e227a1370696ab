"""A tree as C++, with the brackets that it needs and no others."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from .expr import Expr

_LEVELS = {
    "?": 3, "||": 4, "&&": 5, "|": 6, "^": 7, "&": 8, "==": 9, "!=": 9, "<": 10, ">": 10, "<=": 10, ">=": 10,
    "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13,
}  # fmt: skip
_UNARY, _PRIMARY = 15, 16
_SIGNS = {"neg": "-", "!": "!", "~": "~"}
_CHEAP = 6  # operations that are written again rather than named
_LONG = 300  # words and signs of one expression; a statement of a snippet has at most 1024

Text = Tuple[str, int]  # and its level


def number_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))


class Printer:
    """Prints trees; `buffer_name` says what an array is called."""

    def __init__(self, buffer_name: Callable[[Any, str], str] = lambda array, name: name or "x") -> None:
        self._buffer_name = buffer_name
        self._ids: Dict[Any, int] = {}
        self._known: Dict[int, int] = {}  # id(node) to number
        self._uses: Dict[int, int] = {}
        self._weights: Dict[int, int] = {}
        self._lengths: Dict[int, int] = {}  # words and signs, as far as parts have no names
        self._names: Dict[int, str] = {}
        self._statements: List[str] = []
        self._root: Any = None

    def number(self, node: Expr) -> int:
        """Equal trees have one number."""
        if id(node) in self._known:
            return self._known[id(node)]
        parts = tuple(
            ("n", self.number(a))
            if isinstance(a, Expr)
            else ("v", a)
            if isinstance(a, (str, int, float))
            else ("i", id(a))
            for a in node.args
        )
        key = (node.op, node.kind, tuple((type(p[1]).__name__, *p) for p in parts))
        found = self._ids.setdefault(key, len(self._ids))
        self._known[id(node)] = found
        if found not in self._uses:
            self._uses[found] = 0
            children = {self.number(a) for a in node.args if isinstance(a, Expr)}
            self._weights[found] = sum(self._weights[c] for c in children) + self._own_weight(node)
            for a in node.args:
                if isinstance(a, Expr):
                    self._uses[self.number(a)] += 1
        return found

    @staticmethod
    def _own_weight(node: Expr) -> int:
        if node.op in ("literal", "symbol", "scalar", "extent"):
            return 0
        return 4 if node.op in ("load", "call") else 1

    def snippet(self, root: Expr, reserved: Callable[[str], bool]) -> str:
        """An expression, or a body with `return` where parts are used more than once."""
        self.number(root)
        self._root = root
        self._name_shared(root, reserved, set())
        result = self.expression(root)
        return result if not self._statements else "\n".join([*self._statements, f"return {result};"])

    def _name_shared(self, node: Expr, reserved: Callable[[str], bool], seen: Any) -> None:
        found = self.number(node)
        if found in seen:
            return
        seen.add(found)
        for a in node.args:
            if isinstance(a, Expr):
                self._name_shared(a, reserved, seen)
        parts = [self._lengths[self.number(a)] if isinstance(a, Expr) else 1 for a in node.args]
        self._lengths[found] = 2 + 2 * len(parts) + sum(parts)
        shared = self._uses[found] > 1 and self._weights[found] >= _CHEAP
        if shared or (self._lengths[found] > _LONG and node is not self._root):
            self._lengths[found] = 1
            count = len(self._statements)
            while reserved(f"t{count}"):
                count += 1
            text = self.expression(node)
            self._names[found] = f"t{count}"
            self._statements.append(f"const {node.kind} t{count} = {text};")

    def expression(self, node: Expr) -> str:
        return self._text(node)[0]

    def _text(self, node: Expr) -> Text:
        name = self._names.get(self.number(node))
        return (name, _PRIMARY) if name else self._written(node)

    def _operand(self, node: Expr, least: int) -> str:
        text, level = self._text(node)
        return text if level >= least else f"({text})"

    def _written(self, node: Expr) -> Text:
        op, args = node.op, node.args
        if op == "literal":
            text = number_text(args[0])
            return text, _UNARY if text.startswith("-") else _PRIMARY
        if op in ("symbol", "scalar"):
            return args[0], _PRIMARY
        if op == "extent":
            return f"{self._buffer_name(args[0], args[1])}.size({args[2]})", _PRIMARY
        if op == "load":
            return self._load(node), _PRIMARY
        if op == "call":
            return f"{args[0]}({', '.join(self.expression(a) for a in args[1:])})", _PRIMARY
        if op == "cast":
            return f"({node.kind}){self._operand(args[0], _UNARY)}", _UNARY
        if op in _SIGNS:
            inner = self._operand(args[0], _UNARY)
            return _SIGNS[op] + (f"({inner})" if inner.startswith("-") else inner), _UNARY
        if op == "?":
            condition, x, y = (self._operand(a, level) for a, level in zip(args, (4, 4, 4)))
            return f"{condition} ? {x} : {y}", 3
        return self._infix(node)

    def _infix(self, node: Expr) -> Text:
        level = _LEVELS[node.op]
        left, right = level, level + 1
        if level in (9, 10):  # comparisons are not chained
            left = right = 12
        if node.op in ("|", "^", "&", "<<", ">>"):  # easily misread among other operators
            left = right = _UNARY
        if node.op in ("==", "!=") and any(a.kind == "bool" for a in node.args):
            left = right = _UNARY
        a, b = self._operand(node.args[0], left), self._operand(node.args[1], right)
        if level == 4:
            a, b = (f"({t})" if "&&" in t and not t.startswith("(") else t for t in (a, b))
        return f"{a} {node.op} {b}", level

    def _load(self, node: Expr) -> str:
        name = self._buffer_name(node.args[0], node.args[1])
        index = [self.expression(a) for a in node.args[2:]]
        if not index:
            return name
        return f"{name}[{index[0]}]" if len(index) == 1 else f"{name}({', '.join(index)})"
