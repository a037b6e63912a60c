# SPDX-License-Identifier: Apache-2.0
"""Keeps rooms small enough to be seen at once: the lines of a function and what may vary in a class, an actor or a machine of
the product, and the lines of every file. Run by check_docs.py.

It reads Swift as `swift format` leaves it: what begins on a line ends with a brace at the same indentation."""

import re
from collections.abc import Iterator

from pages import CODE, TESTS, fault

FUNCTION_LINES = 60
FILE_LINES = 460
VARIABLES = 12

WORDS = r"(?:@\w+(?:\([^)]*\))? |(?:public|package|private|fileprivate|internal|final|static|mutating|override|nonisolated|convenience|required)(?:\(set\))? )*"
FUNCTION = re.compile(rf"( *){WORDS}(?:func [^ (<]+|init[?]?)[(<]")
TYPE = re.compile(rf"( *){WORDS}(class|actor|struct) (\w+)")
VARIABLE = re.compile(rf"{WORDS}(?:weak |lazy |unowned )*var (\w+|\()")


def blocks(lines: list[str], start: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int, list[str]]]:
    """What begins with a line of this form: the match, the line's number, all lines up to the closing brace."""
    for number, line in enumerate(lines, 1):
        match = start.match(line)
        if not match:
            continue
        for end in range(number - 1, len(lines)):
            text = lines[end]
            if text == f"{match[1]}}}" or end > number - 1 and text.startswith(f"{match[1]}}}"):
                yield match, number, lines[number - 1:end + 1]
                break
            # A requirement of a protocol, or all of it on one line.
            if end == number - 1 and (text.rstrip().endswith("}") or not opens(lines[end:])):
                break


def opens(lines: list[str]) -> bool:
    """Whether a body begins before the next declaration."""
    for line in lines[:20]:
        if line.rstrip().endswith("{"):
            return True
        if not line.strip():
            return False
    return False


def variables(body: list[str], indent: str) -> list[str]:
    """The stored variables of a type. A computed one opens a brace before anything is assigned."""
    names = []
    for line in body[1:]:
        if not line.startswith(indent + "    ") or line[len(indent) + 4:len(indent) + 5] == " ":
            continue
        text = line.strip()
        match = VARIABLE.match(text)
        if match and "static " not in text[:match.end()] and "{" not in text.split(" = ")[0]:
            names.append(match[1])
    return names


def check_limits() -> None:
    for path in [*CODE, *TESTS]:
        if path.suffix != ".swift" or "Generated" in path.parts:
            continue
        lines = path.read_text().splitlines()
        if len(lines) > FILE_LINES:
            fault(path, 1, f"the file has {len(lines)} lines, more than {FILE_LINES}: split it")
        if path in TESTS:
            continue
        for _, number, body in blocks(lines, FUNCTION):
            if len(body) > FUNCTION_LINES:
                fault(path, number, f"the function has {len(body)} lines, more than {FUNCTION_LINES}: split it")
        for match, number, body in blocks(lines, TYPE):
            if match[2] == "struct" and not any("mutating func handle(" in line for line in body):
                continue
            names = variables(body, match[1])
            if len(names) > VARIABLES:
                fault(
                    path, number, f"{match[2]} {match[3]} has {len(names)} variables, more than {VARIABLES}: make those "
                    f"that belong together a value ({', '.join(names)})")
