# SPDX-License-Identifier: Apache-2.0
"""Ports of this machine."""

import random
import socket


def free_port() -> int:
    """None of those that the kernel gives to whoever asks for any: until a server has it, seconds pass."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
