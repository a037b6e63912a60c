// SPDX-License-Identifier: Apache-2.0

import Contracts
import Dispatch
import Foundation
package import Logging
import Metrics
import ServiceLifecycle
import Synchronization

/// Sends spans to a collector, from a thread of its own: whoever ends a span never waits. What does not fit into the queue is
/// dropped and counted. So a collector that is away costs spans and nothing else.
package final class SpanExporter: Service, Sendable {
    private struct State {
        var waiting: [SpanRecord] = []
        var dropped = 0
        /// When the process shall end.
        var deadline: ContinuousClock.Instant?
        var hasEnded = false
        var atEnd: CheckedContinuation<Void, Never>?
    }

    /// Why spans were dropped: the label of the metric.
    private enum Loss: String {
        /// More came than could be sent.
        case queue
        /// The collector does not want them.
        case refused
        /// The process ended.
        case end
    }

    /// For what is on its way when the process ends.
    private static let patience = Duration.seconds(3)
    private static let pauses = (first: Duration.seconds(1), longest: Duration.seconds(5))

    private let settings: TraceSettings
    private let logger: Logger
    private let state = Mutex(State())
    private let wakeUp = DispatchSemaphore(value: 0)
    private let sent = Counter(label: "process_spans_sent")
    private let queueLosses = Counter(label: "process_spans_dropped", dimensions: [("reason", Loss.queue.rawValue)])

    package init(_ settings: TraceSettings, logger: Logger) {
        self.settings = settings
        self.logger = logger
        for counter in [sent, queueLosses] { counter.increment(by: 0) }
    }

    /// Those that wait.
    var waiting: [SpanRecord] { state.withLock(\.waiting) }
    /// How many were lost so far.
    var dropped: Int { state.withLock(\.dropped) }

    /// Hands over a span that has ended.
    func add(_ span: SpanRecord) {
        let waiting: Int? = state.withLock { state in
            guard state.waiting.count < settings.queueSize, !state.hasEnded else {
                state.dropped += 1
                return nil
            }
            state.waiting.append(span)
            return state.waiting.count
        }
        if waiting == settings.batchSize { wakeUp.signal() }
        if waiting == nil { queueLosses.increment() }
    }

    /// Sends spans until the process is asked to end, and then those that wait, for some seconds at most.
    package func run() async throws {
        let thread = Thread { [self] in work() }
        thread.name = "traces"
        thread.start()
        try? await gracefulShutdown()
        state.withLock { $0.deadline = .now + Self.patience }
        wakeUp.signal()
        // A look-up of a name may take longer than all limits.
        let last = DispatchTime.now() + .milliseconds(Int(Self.patience.inMilliseconds) + 500)
        DispatchQueue.global().asyncAfter(deadline: last) { [self] in end() }
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.atEnd = continuation }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    private func end() {
        let continuation = state.withLock { state in
            defer { state.atEnd = nil }
            state.hasEnded = true
            return state.atEnd
        }
        continuation?.resume()
    }

    // MARK: The thread

    private func work() {
        var trouble: Trouble?
        var isEnding = false
        while !isEnding {
            _ = wakeUp.wait(timeout: .now() + .milliseconds(Int(settings.delay.inMilliseconds)))
            isEnding = deadline != nil
            while let batch = take() { deliver(batch, &trouble) }
        }
        end()
    }

    private var deadline: ContinuousClock.Instant? { state.withLock(\.deadline) }

    private func take() -> [SpanRecord]? {
        state.withLock { state in
            let batch = Array(state.waiting.prefix(settings.batchSize))
            state.waiting.removeFirst(batch.count)
            return batch.isEmpty ? nil : batch
        }
    }

    /// Spans are not taken, since then.
    private struct Trouble {
        var since = ContinuousClock.now
        /// How many had been dropped before.
        var dropped: Int
    }

    /// Tries until the batch is taken, or given up.
    private func deliver(_ batch: [SpanRecord], _ trouble: inout Trouble?) {
        let body = OTLPRequest.encode(batch, of: settings.resource)
        var pause = Self.pauses.first
        while true {
            let left = deadline.map { $0 - .now }
            if let left, left <= .zero { return drop(batch, .end) }
            let answer = settings.receiver.post(body, within: min(settings.timeout, left ?? settings.timeout))
            if case .status(200..<300) = answer {
                sent.increment(by: batch.count)
                return recovered(&trouble)
            }
            say(answer, &trouble)
            guard Self.isWorthAnother(answer) else { return drop(batch, .refused) }
            if deadline != nil { return drop(batch, .end) }
            // The end of the process ends it too.
            _ = wakeUp.wait(timeout: .now() + .milliseconds(Int(pause.inMilliseconds)))
            pause = min(pause * 2, Self.pauses.longest)
        }
    }

    private static func isWorthAnother(_ answer: OTLPReceiver.Answer) -> Bool {
        switch answer {
        case .silence: true
        case .status(let status): [429, 502, 503, 504].contains(status)
        }
    }

    private func drop(_ batch: [SpanRecord], _ loss: Loss) {
        state.withLock { $0.dropped += batch.count }
        Counter(label: "process_spans_dropped", dimensions: [("reason", loss.rawValue)]).increment(by: batch.count)
    }

    /// Once for all that follow from it.
    private func say(_ answer: OTLPReceiver.Answer, _ trouble: inout Trouble?) {
        guard trouble == nil else { return }
        trouble = Trouble(dropped: dropped)
        let words =
            switch answer {
            case .silence(let words): words
            case .status(let status): "status \(status)"
            }
        logger.warning(
            "spans are not taken; at most \(settings.queueSize) of them wait, and what is more is dropped",
            metadata: ["event": "traces.refused", "receiver": "\(settings.receiver.place)", "error": "\(words)"])
    }

    private func recovered(_ trouble: inout Trouble?) {
        guard let past = trouble else { return }
        trouble = nil
        let lost = dropped - past.dropped
        logger.info(
            "spans are taken again, after \((.now - past.since).inWords)",
            metadata: [
                "event": "traces.accepted", "receiver": "\(settings.receiver.place)",
                "dropped": .stringConvertible(lost),
            ])
    }
}
