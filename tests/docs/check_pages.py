"""check_pages.py ROOT: links of all pages lead somewhere, no line of prose is longer than 120 columns, and the pages of C
and Python name each public function. (C++'s reference is made from the headers: scripts/site_reference.py.)"""

import re
import subprocess
import sys
from pathlib import Path

MOST_COLUMNS = 120
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?)\)")


def anchor(heading):
    """As GitHub and Python-Markdown make it, for the headings of these pages."""
    text = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", lambda match: match[1] or "", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def without_code(text):
    """The lines of a page, those of fenced blocks emptied."""
    lines, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            lines.append("")
        else:
            lines.append("" if fenced else line)
    return lines


def anchors(page):
    found, counts = set(), {}
    for line in without_code(page.read_text()):
        heading = re.match(r"#+ (.+)", line)
        if not heading:
            continue
        name = anchor(heading[1])
        counts[name] = counts.get(name, -1) + 1
        found.add(name if counts[name] == 0 else f"{name}-{counts[name]}")
    return found


def links(page):
    """(line, link) of each link, also of those that a line break cuts. Code in a line is blanked first."""
    text = "\n".join(without_code(page.read_text()))
    text = re.sub(r"`(?:[^`\n]|\n(?!\n))*`", lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for match in LINK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def faults_of_links(page, root):
    for number, link in links(page):
        if re.match(r"https?://|mailto:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        place = f"{page.relative_to(root)}:{number}"
        if not target.exists():
            yield f"{place}: {link} leads nowhere"
        elif fragment and target.suffix == ".md" and fragment not in anchors(target):
            yield f"{place}: {link}: no heading of that name"


def faults_of_width(page, root):
    for number, line in enumerate(without_code(page.read_text()), 1):
        if len(line) > MOST_COLUMNS and not line.startswith("|"):
            yield f"{page.relative_to(root)}:{number}: {len(line)} columns"


def public_functions(root):
    """(page, name) of each function and class that a page must name."""
    header = (root / "c" / "tilewright.h").read_text()
    for name in re.findall(r"^TW_API [^;(]*?\b(tw_\w+)\(", header, re.M):
        yield "docs/c.md", name
    exported = re.search(r"__all__ = \[(.*?)\]", (root / "python" / "tilewright" / "__init__.py").read_text(), re.S)
    for name in re.findall(r'"(\w+)"', exported[1]):
        yield "docs/python.md", name


def faults_of_functions(root):
    named = list(public_functions(root))
    if len(named) < 60:
        yield f"only {len(named)} public functions were found"
    for page, name in named:
        if not re.search(rf"\b{name}\b", (root / page).read_text()):
            yield f"{page}: {name} is missing"


def pages_of(root):
    """All pages of the repository."""
    names = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=root, check=True,
        text=True, stdout=subprocess.PIPE,
    ).stdout.split()  # fmt: skip
    return [root / name for name in names if (root / name).exists()]


def main():
    root = Path(sys.argv[1]).resolve()
    pages = pages_of(root)
    if len(pages) < 50:
        sys.exit(f"only {len(pages)} pages were found")
    faults = [fault for page in pages for check in (faults_of_links, faults_of_width) for fault in check(page, root)]
    faults += faults_of_functions(root)
    print("\n".join(faults))
    print(f"{len(pages)} pages, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
