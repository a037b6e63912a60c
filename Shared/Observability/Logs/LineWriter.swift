// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Glibc
import Synchronization

/// Writes whole lines to a file descriptor, one `write(2)` per line.
///
/// Threading: safe from any thread; lines of one writer never mix. Lines of different processes on the same pipe stay
/// whole up to `PIPE_BUF` (4,096 bytes), as POSIX promises.
///
/// Losing log lines is better than stopping the service: when the descriptor is non-blocking and its reader has stopped
/// reading, a line waits at most `patience` for room and is then dropped and counted; further lines are dropped
/// without waiting until one gets through. After a line that was cut off, the next one starts on a line of its own.
/// A blocking descriptor blocks as the kernel decides. SIGPIPE is the caller's business.
public final class LineWriter: Sendable {
    private struct State: Sendable {
        var dropped = 0
        var stalled = false
        var midLine = false
    }

    /// The process's standard error.
    public static let standardError = LineWriter(fileDescriptor: STDERR_FILENO)

    /// Whether the lines go to a terminal whose user has not opted out of colours with `NO_COLOR`.
    let colours: Bool
    private let fileDescriptor: Int32
    private let patience: Duration
    private let state = Mutex(State())

    /// Does not take ownership: the descriptor has to stay open for the life of the writer.
    public init(fileDescriptor: Int32, patience: Duration = .milliseconds(100)) {
        self.fileDescriptor = fileDescriptor
        self.patience = patience
        colours = isatty(fileDescriptor) == 1 && getenv("NO_COLOR") == nil
    }

    /// The number of lines that were dropped or cut off so far.
    public var droppedLines: Int {
        state.withLock(\.dropped)
    }

    /// Writes one line, which has to end in a line feed. Never throws; see the type for when it may be lost.
    func write(_ line: [UInt8]) {
        state.withLock { state in
            let bytes = state.midLine ? [UInt8(ascii: "\n")] + line : line
            let deadline = ContinuousClock.now + (state.stalled ? .zero : patience)
            let written = bytes.withUnsafeBytes { writeAll($0, until: deadline) }
            state.stalled = written < bytes.count
            if state.stalled { state.dropped += 1 }
            if written > 0 { state.midLine = bytes[written - 1] != UInt8(ascii: "\n") }
        }
    }

    /// Returns how many bytes got through before the deadline or an error.
    private func writeAll(_ bytes: UnsafeRawBufferPointer, until deadline: ContinuousClock.Instant) -> Int {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = Glibc.write(fileDescriptor, rest.baseAddress, rest.count)
            if count > 0 {
                written += count
            } else if count < 0, errno == EINTR {
                continue
            } else if count < 0, errno == EAGAIN {
                guard waitForRoom(until: deadline) else { break }
            } else {
                break
            }
        }
        return written
    }

    private func waitForRoom(until deadline: ContinuousClock.Instant) -> Bool {
        while true {
            let left = deadline - .now
            guard left > .zero else { return false }
            let (seconds, attoseconds) = left.components
            // Rounded up: a wait of 0 ms would turn the last millisecond into a busy loop.
            let milliseconds = min(seconds, 60) * 1_000 + attoseconds / 1_000_000_000_000_000 + 1
            var request = pollfd(fd: fileDescriptor, events: Int16(POLLOUT), revents: 0)
            let ready = poll(&request, 1, Int32(milliseconds))
            if ready > 0 { return true }
            if ready < 0, errno != EINTR { return false }
        }
    }
}
