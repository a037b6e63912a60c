// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Glibc

/// Wakes the one thread that several clients share when one of them has something for it.
///
/// A client that was made with a `WakeUp` signals it when its queue goes from empty to not empty, and only then. The
/// thread therefore does this, in this order:
///
/// 1. poll every client with a timeout of zero until it gives nothing (fewer records than were asked for, no reports);
/// 2. `wait`, and begin again.
///
/// A client that was not emptied does not signal again: go round once more instead of waiting. That goes for a partition
/// that was paused, resumed or restarted too: librdkafka puts a mark into its queue, behind which nothing signals until
/// the mark is polled. Not everything that a client has to do comes through its queue, so the wait must be bounded (a
/// second or less) in any case.
///
/// Signals do not count: any number of them ends one wait. Signalling is allowed from any thread, waiting and clearing
/// from one. Clients keep the object alive until their last thread is gone.
public final class WakeUp: Sendable {
    private let readEnd: Int32
    private let writeEnd: Int32

    /// - Throws: when the process has no file descriptors left.
    public init() throws(KafkaError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw KafkaError(RD_KAFKA_RESP_ERR__FAIL, message: "no pipe to wake up with (errno \(errno))")
        }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// Ends the current wait, or else the next one at once.
    public func signal() {
        var byte: UInt8 = 1
        // A full pipe takes no more, and wakes the waiter just as well.
        _ = write(writeEnd, &byte, 1)
    }

    /// Blocks this thread until there is a signal, at most `timeout`, and clears it.
    ///
    /// - Returns: whether there was one.
    @discardableResult
    public func wait(timeout: Duration) -> Bool {
        let deadline = Deadline(after: timeout)
        var request = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        var result: Int32
        repeat {
            result = poll(&request, 1, deadline.remaining.kafkaMilliseconds)
        } while result < 0 && errno == EINTR
        if result > 0 { clear() }
        return result > 0
    }

    /// Takes back the signals so far.
    public func clear() {
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            while read(readEnd, buffer.baseAddress, buffer.count) == buffer.count {}
        }
    }

    /// Has librdkafka signal whenever the queue goes from empty to not empty. `self` must outlive the queue's client.
    func watch(_ queue: OpaquePointer) {
        var byte: UInt8 = 1
        rd_kafka_queue_io_event_enable(queue, writeEnd, &byte, 1)
    }

    /// The same, for a queue that the caller was given to keep and does not need.
    func watch(giving queue: OpaquePointer?) {
        guard let queue else { return }
        watch(queue)
        rd_kafka_queue_destroy(queue)
    }
}
