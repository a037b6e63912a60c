# SPDX-License-Identifier: Apache-2.0
"""A wall clock for one process, which jumps when the test says so. Pauses and deadlines go by another clock, as they do on
a machine whose time is set."""

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

# Adds the seconds that stand at the beginning of the file $TEST_CLOCK to the time of day, whoever asks for it.
_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *ahead;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *place = mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    if (place != MAP_FAILED) ahead = place;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (!result && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += *ahead;
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
"""


class Clock:
    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("clang")
        if compiler is None:
            pytest.skip("no C compiler: a process's clock cannot be set")
        self._library = directory / "clock.so"
        source = directory / "clock.c"
        source.write_text(_LIBRARY)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self._library, source, "-ldl"], check=True)
        self._path = directory / "clock"
        self._path.write_bytes(struct.pack("l", 0))
        with self._path.open("r+b") as file:
            self._ahead = mmap.mmap(file.fileno(), 8)

    def set(self, ahead: float) -> None:
        """Seconds before or behind everybody else's."""
        self._ahead[:8] = struct.pack("l", int(ahead))

    @property
    def environment(self) -> dict[str, str]:
        """For the process whose clock it is."""
        return {"LD_PRELOAD": str(self._library), "TEST_CLOCK": str(self._path)}
