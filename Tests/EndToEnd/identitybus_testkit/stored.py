# SPDX-License-Identifier: Apache-2.0
"""What stands in a column as bytes (docs/loop.md, "Columns of bytes"), as far as tests look at it."""


class Stored:
    def __init__(self, bytes_: bytes) -> None:
        assert bytes_[0] == 1, "written in another way"
        self.bytes, self.place = bytes_, 1

    def count(self) -> int:
        number = shift = 0
        while True:
            byte = self.bytes[self.place]
            self.place += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def text(self) -> str:
        end = self.count() + self.place
        text = self.bytes[self.place:end].decode()
        self.place = end
        return text


def identities(bytes_: bytes) -> list[tuple[str, str]]:
    """Type and value of each, in their order."""
    stored = Stored(bytes(bytes_))
    found = []
    for _ in range(stored.count()):
        assert stored.count() == 2
        found.append((stored.text(), stored.text()))
    assert stored.place == len(stored.bytes)
    return found
