"""Pages of reference that the sources say themselves: public headers with their comments, and the help of each verb."""

import re
import subprocess


def public_headers(root):
    """<tilewright.hpp> and what it includes, in the order of cmake/PublicHeaders.cmake, and the C header."""
    listed = re.findall(r"[\w/]+\.hpp", (root / "cmake" / "PublicHeaders.cmake").read_text())
    headers = [root / name for name in dict.fromkeys(listed) if (root / name).exists()]
    return [*headers, root / "c" / "tilewright.h"]


def declarations(text):
    """A header without its first lines of #include and #pragma."""
    lines = [line for line in text.splitlines() if not re.match(r"#(pragma once|include)", line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def page_of_header(header, root):
    name = header.relative_to(root)
    return f"# {name}\n\n```cpp\n{declarations(header.read_text())}\n```\n"


def verbs(tilewright):
    text = subprocess.run([tilewright, "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return re.findall(r"^  (\w+) +\S", text.partition("Verbs:")[2].partition("\nOptions:")[0], re.M)


def page_of_help(tilewright):
    parts = ["# tilewright --help", ""]
    for verb in verbs(tilewright):
        text = subprocess.run([tilewright, verb, "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
        parts += [f"## {verb}", "", "```text", text.strip(), "```", ""]
    return "\n".join(parts)


def write(root, folder, tilewright):
    """The pages below docs/reference, and an index of them."""
    target = folder / "docs" / "reference"
    target.mkdir(parents=True, exist_ok=True)
    index = ["# Reference from the sources", "", "* [tilewright --help](cli.md)"]
    (target / "cli.md").write_text(page_of_help(tilewright))
    headers = public_headers(root)
    for header in headers:
        name = str(header.relative_to(root)).replace("/", "_").rsplit(".", 1)[0] + ".md"
        (target / name).write_text(page_of_header(header, root))
        index.append(f"* [{header.relative_to(root)}]({name})")
    (target / "README.md").write_text("\n".join(index) + "\n")
    return len(headers)
