# SPDX-License-Identifier: Apache-2.0
"""A page's blocks of commands, to be run as they stand."""

import os
import subprocess

from .places import REPOSITORY, binary, clean_environment

Block = tuple[str, int]


class Page:
    """One of docs; it knows which of its blocks were run."""

    def __init__(self, name: str) -> None:
        self.blocks = _blocks((REPOSITORY / "docs" / name).read_text())
        self.run_ones: set[Block] = set()

    def run(self, heading: str, number: int, environment: dict[str, str], timeout: float = 90,
            owner: str | None = None) -> subprocess.CompletedProcess[str]:
        """- owner: of the files, where it is root that runs the tests."""
        self.run_ones.add((heading, number))
        environment = clean_environment() | environment
        environment["PATH"] = f"{binary('identitybus').parent}:{os.environ['PATH']}"
        who = ["runuser", "-u", owner, "--"] if owner and os.getuid() == 0 else []
        return subprocess.run(
            [*who, "bash", "-c", self.blocks[heading, number]], env=environment, capture_output=True, text=True,
            timeout=timeout, cwd="/" if who else None)


def _blocks(text: str) -> dict[Block, str]:
    """By heading and number."""
    found: dict[Block, str] = {}
    heading, block = "", None
    for line in text.splitlines():
        if line.startswith("#") and block is None:
            heading = line.lstrip("#").strip()
        elif line == "```bash":
            block = []
        elif line.startswith("```"):
            assert block is not None and line == "```", f"what kind of block is {line}?"
            found[heading, sum(known == heading for known, _ in found)] = "\n".join(block)
            block = None
        elif block is not None:
            block.append(line)
    return found
