// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Glibc
import Synchronization

/// Writes whole lines to a file descriptor, from a thread of its own.
///
/// Whoever logs never waits for the reader: lines go into a queue, and what does not fit there is dropped and counted.
/// Losing log lines is better than stopping the service. Lines are whole and in order; those of different processes on
/// the same pipe stay whole up to `PIPE_BUF` (4,096 bytes), as POSIX promises. SIGPIPE is the caller's business.
///
/// Threading: safe from any thread.
public final class LineWriter: Sendable {
    /// The process's standard error.
    public static let standardError = LineWriter(fileDescriptor: STDERR_FILENO)

    /// Whether the lines go to a terminal whose user has not opted out of colours with `NO_COLOR`.
    let colours: Bool
    private let queue: LineQueue

    /// Does not take ownership: the descriptor has to stay open for the life of the writer.
    /// - Parameter capacity: how many bytes may wait.
    public init(fileDescriptor: Int32, capacity: Int = 4 << 20) {
        queue = LineQueue(fileDescriptor: fileDescriptor, capacity: capacity)
        colours = isatty(fileDescriptor) == 1 && (getenv("NO_COLOR")?.pointee ?? 0) == 0
    }

    deinit {
        flush(within: .milliseconds(100))
        queue.end()
    }

    /// The number of lines that were dropped so far.
    public var droppedLines: Int { queue.dropped }

    /// Hands over one line, which has to end in a line feed. Never throws or waits; see the type for when it is lost.
    public func write(_ line: [UInt8]) { queue.add(line) }

    /// Waits until everything is written, for the time given at most. To be called before the process ends.
    public func flush(within patience: Duration = .seconds(1)) {
        let deadline = ContinuousClock.now + patience
        while !queue.isIdle, ContinuousClock.now < deadline { usleep(500) }
    }
}

/// Lines on their way to the thread that writes them.
private final class LineQueue: Sendable {
    private struct State {
        var lines: [[UInt8]] = []
        var bytes = 0
        var dropped = 0
        var hasThread = false
        /// The thread has lines in its hands.
        var isWriting = false
        var isEnding = false
    }

    private let state = Mutex(State())
    private let filled = DispatchSemaphore(value: 0)
    private let fileDescriptor: Int32
    private let capacity: Int

    init(fileDescriptor: Int32, capacity: Int) {
        self.fileDescriptor = fileDescriptor
        self.capacity = capacity
    }

    var dropped: Int { state.withLock(\.dropped) }

    var isIdle: Bool { state.withLock { $0.lines.isEmpty && !$0.isWriting } }

    func add(_ line: [UInt8]) {
        let (wasEmpty, isFirst) = state.withLock { state in
            guard state.bytes + line.count <= capacity else {
                state.dropped += 1
                return (false, false)
            }
            let isFirst = !state.hasThread
            state.hasThread = true
            state.lines.append(line)
            state.bytes += line.count
            return (state.lines.count == 1, isFirst)
        }
        if isFirst { start() }
        if wasEmpty { filled.signal() }
    }

    func end() {
        state.withLock { $0.isEnding = true }
        filled.signal()
    }

    private func start() {
        let thread = Thread { [self] in run() }
        thread.name = "log-writer"
        thread.start()
    }

    private func run() {
        while true {
            let (lines, isEnding) = state.withLock { state in
                defer {
                    state.isWriting = !state.lines.isEmpty
                    state.lines = []
                }
                return (state.lines, state.isEnding)
            }
            guard lines.isEmpty else {
                for line in lines {
                    let isWritten = write(line)
                    // The room is free again line by line: a reader that is slow costs only what does not fit.
                    state.withLock { state in
                        state.bytes -= line.count
                        if !isWritten { state.dropped += 1 }
                    }
                }
                continue
            }
            if isEnding { return }
            filled.wait()
        }
    }

    /// Waits for the reader as long as it takes.
    /// - Returns: false when the descriptor takes no more.
    private func write(_ line: [UInt8]) -> Bool {
        line.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                let count = Glibc.write(fileDescriptor, rest.baseAddress, rest.count)
                if count > 0 {
                    written += count
                } else if count < 0, errno == EAGAIN {
                    var request = pollfd(fd: fileDescriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&request, 1, 1000)
                } else if count < 0, errno == EINTR {
                    continue
                } else {
                    return false
                }
            }
            return true
        }
    }
}
