# SPDX-License-Identifier: Apache-2.0
"""What check_docs.py and check_names.py read: pages, comments and texts of the code, each line with its number."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
faults: list[str] = []


def fault(path: Path, line: int, what: str) -> None:
    faults.append(f"{path.relative_to(ROOT)}:{line}: {what}")


def files(folder: str, *endings: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in endings)


CODE = files("Services", ".swift") + files("Shared", ".swift")
TESTS = files("Tests", ".swift", ".py")
DOCS = sorted(ROOT.glob("*.md")) + files("docs", ".md")


# What people read


def swift_comments(path: Path) -> Iterator[tuple[int, str]]:
    """The comments, and in tests what texts begin with: tables of tests name their rows by rule."""
    in_text = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if in_text or line.count('"""') % 2:
            in_text ^= line.count('"""') % 2 == 1
            yield number, "\0" + line.strip()
            continue
        if line.lstrip().startswith("//"):
            yield number, line.lstrip().lstrip("/")
            continue
        bare = re.sub(r'#"[^"]*"#|"(?:\\.|[^"\\])*"', '""', line)
        if "//" in bare:
            yield number, bare.split("//", 1)[1]
        for text in re.findall(r'"((?:\\.|[^"\\])*)"', line.split("///")[0]):
            yield number, "\0" + text


def python_comments(path: Path) -> Iterator[tuple[int, str]]:
    source = path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    documentation = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documentation.add(node.value)
            for offset, line in enumerate(node.value.value.splitlines()):
                yield node.lineno + offset, line
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documentation:
            yield node.lineno, "\0" + node.value


def page_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Without blocks of code."""
    in_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("```"):
            in_code = not in_code
        elif not in_code and not line.startswith("    "):
            yield number, line


@cache
def read(path: Path) -> list[tuple[int, str]]:
    """Lines of comments and pages; texts of the code begin with a zero."""
    return list({".swift": swift_comments, ".py": python_comments, ".md": page_lines}[path.suffix](path))


def ticked(page: Path) -> Iterator[tuple[int, str]]:
    for number, line in page_lines(page):
        for code in re.findall(r"`([^`]+)`", line):
            yield number, code


def literals() -> Iterator[tuple[Path, int, str]]:
    for path in CODE:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for text in re.findall(r'"((?:\\.|[^"\\])*)"', line):
                yield path, number, text


def words(page: Path) -> set[str]:
    return {word for code in re.findall(r"`([^`\n]+)`", page.read_text()) for word in re.findall(r"\w+", code)}


@cache
def is_test(name: str) -> bool:
    return name in TEST_FILES or name in TEST_NAMES


TEST_NAMES = " ".join(name for path in TESTS for name in re.findall(r"(?:func|def|struct) (\w+)", path.read_text()))
TEST_FILES = {path.stem.removeprefix("test_").removesuffix("Tests") for path in TESTS} | {path.stem for path in TESTS}
TEST_FILES |= {path.name for path in (ROOT / "Tests").iterdir()}
