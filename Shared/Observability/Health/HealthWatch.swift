// SPDX-License-Identifier: Apache-2.0

internal import Contracts
public import Logging
internal import Metrics
public import ServiceLifecycle
internal import Synchronization

/// Looks at a process's checks twice a second, with or without traffic: knows since when each of them fails, says it in
/// the log when that begins, once a minute while it lasts and when it is over, and shows it in the metrics.
///
/// Threading: every member may be called from any thread.
public final class HealthWatch: Service {
    /// What waits to be decided.
    public struct Backlog: Sendable, Equatable {
        public var count: Int64
        /// How long the oldest has waited, in seconds, where that is known.
        public var oldest: Double?

        public init(count: Int64, oldest: Double?) {
            self.count = count
            self.oldest = oldest
        }
    }

    /// The label of its metrics.
    public let service: String
    private let current: @Sendable () -> HealthReport
    private let backlog: @Sendable () -> Backlog?
    private let logger: Logger
    private let history: Mutex<HealthHistory>

    /// - Parameters:
    ///   - service: the label of its metrics.
    ///   - backlog: what waits, where it is known.
    ///   - report: takes the report of the moment.
    public init(
        service: String, logger: Logger, backlog: @escaping @Sendable () -> Backlog? = { nil },
        report: @escaping @Sendable () -> HealthReport
    ) {
        self.service = service
        self.logger = logger
        self.backlog = backlog
        current = report
        history = Mutex(HealthHistory(now: .now))
    }

    /// The report of this moment, with the times since when checks fail.
    public var report: HealthReport {
        let report = current()
        return history.withLock { $0.dated(report, time: .now) }
    }

    /// Brings the metrics to this moment. A check is 0 from the line in the log that it is down to the one that it is well
    /// again: who is called for each that is 0 is not called for what follows from another fault, or passes by itself.
    public func measure() {
        let report = current()
        Gauge(label: "identity_ready", dimensions: [("service", service)]).record(report.isReady ? 1 : 0)
        for check in report.ready {
            Gauge(label: "identity_check_ok", dimensions: [("service", service), ("check", check.name)])
                .record(!check.ok && history.withLock { $0.hasTold(of: check.name) } ? 0 : 1)
        }
    }

    /// Looks until graceful shutdown or cancellation.
    public func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                self.look()
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }

    private func look() {
        let report = current()
        let lines = history.withLock { $0.look(at: report, backlog: backlog(), now: .now, time: .now) }
        for line in lines { logger.log(level: line.level, "\(line.text)", metadata: line.metadata) }
    }
}

extension HealthCheck {
    /// When it began to fail.
    fileprivate func began(_ now: Timestamp) -> Timestamp {
        Timestamp(milliseconds: now.milliseconds - hasLasted.inMilliseconds)
    }
}

/// What became of checks: since when each fails, and which of that is in the log. A pure value.
struct HealthHistory {
    struct Line: Equatable {
        var event: String
        var level: Logger.Level
        var text: String
        var seconds: Double?

        var metadata: Logger.Metadata {
            var metadata: Logger.Metadata = ["event": "\(event)"]
            if let seconds { metadata["seconds"] = .stringConvertible(seconds) }
            return metadata
        }
    }

    private struct Episode {
        let since: Timestamp
        let began: ContinuousClock.Instant
        /// When it was last said, and what; `nil` while it was not.
        var said: ContinuousClock.Instant?
        var detail: String?
    }

    private var episodes: [String: Episode] = [:]
    /// When a check last failed of which others are consequences.
    private var rootFailed: ContinuousClock.Instant?
    private let started: ContinuousClock.Instant
    private var hasBeenReady = false
    /// What is caught up on after an outage, and since when.
    private var catching: (count: Int64, since: ContinuousClock.Instant)?

    private static let period = Duration.seconds(60)

    init(now: ContinuousClock.Instant) { started = now }

    /// Whether it was said that this check fails.
    func hasTold(of name: String) -> Bool { episodes[name]?.said != nil }

    /// The report with the times since when its checks fail.
    mutating func dated(_ report: HealthReport, time: Timestamp) -> HealthReport {
        var report = report
        for place in report.ready.indices where !report.ready[place].ok {
            report.ready[place].since = episodes[report.ready[place].name]?.since ?? report.ready[place].began(time)
        }
        return report
    }

    /// Takes in how the checks are now.
    /// - Returns: what is to be said.
    mutating func look(
        at report: HealthReport, backlog: HealthWatch.Backlog?, now: ContinuousClock.Instant, time: Timestamp
    ) -> [Line] {
        var lines: [Line] = []
        for check in report.ready where !check.ok && check.isRequired {
            // What is not known for long, and was said, holds up the rest as well.
            if check.patience == .zero || check.after.isEmpty && hasTold(of: check.name) { rootFailed = now }
        }
        for check in report.ready {
            if check.ok {
                // What nothing waits for has held nothing up.
                if let line = end(check.name, check.isRequired ? backlog : nil, now) { lines.append(line) }
            } else {
                var episode =
                    episodes[check.name] ?? Episode(since: check.began(time), began: now - check.hasLasted)
                if let line = say(check, &episode, backlog, now) { lines.append(line) }
                episodes[check.name] = episode
            }
        }
        if !hasBeenReady, report.isReady {
            hasBeenReady = true
            let lasted = started.duration(to: now)
            lines.append(
                Line(
                    event: "service.ready", level: .info, text: "ready after \(lasted.inWords)",
                    seconds: lasted.inTenths))
        }
        if let catching, let backlog, backlog.count == 0 {
            let lasted = catching.since.duration(to: now)
            self.catching = nil
            lines.append(
                Line(
                    event: "service.caught-up", level: .info,
                    text: "caught up on \(Self.commands(catching.count)) in \(lasted.inWords)", seconds: lasted.inTenths
                ))
        }
        return lines
    }

    /// A check that others are consequences of is said at once; a consequence only when it lasts without its cause.
    private func say(
        _ check: HealthCheck, _ episode: inout Episode, _ backlog: HealthWatch.Backlog?, _ now: ContinuousClock.Instant
    ) -> Line? {
        guard let patience = check.patience else { return nil }
        let detail = check.detail ?? "not well"
        // What nothing waits for is mended by trying: each try is told what came of it.
        let isTried = !check.isRequired && episode.detail != detail
        if let said = episode.said, !isTried {
            guard said.duration(to: now) >= Self.period else { return nil }
            episode.said = now
            let lasts = episode.began.duration(to: now)
            return Line(
                event: "\(check.name).still", level: .warning,
                text: "still, for \(lasts.inWords): \(detail)\(Self.waiting(backlog))", seconds: lasts.inTenths)
        }
        var calm = episode.began
        if patience > .zero, let rootFailed { calm = max(calm, rootFailed) }
        guard calm.duration(to: now) >= patience else { return nil }
        episode.said = now
        episode.detail = detail
        return Line(
            event: "\(check.name).down", level: check.isRequired ? .warning : .error, text: detail)
    }

    private mutating func end(
        _ name: String, _ backlog: HealthWatch.Backlog?, _ now: ContinuousClock.Instant
    ) -> Line? {
        guard let episode = episodes.removeValue(forKey: name), episode.said != nil else { return nil }
        let lasted = episode.began.duration(to: now)
        var text = "well again after \(lasted.inWords)"
        if let backlog, backlog.count > 0 {
            text += "; catching up on \(Self.commands(backlog.count))"
            catching = (max(backlog.count, catching?.count ?? 0), catching?.since ?? now)
        }
        return Line(event: "\(name).up", level: .info, text: text, seconds: lasted.inTenths)
    }

    private static func waiting(_ backlog: HealthWatch.Backlog?) -> String {
        guard let backlog, backlog.count > 0 else { return "" }
        let age = backlog.oldest.map { ", the oldest for \(Duration.seconds(Int64($0)).inWords)" } ?? ""
        return "; \(commands(backlog.count)) \(backlog.count == 1 ? "waits" : "wait")\(age)"
    }

    private static func commands(_ count: Int64) -> String { count == 1 ? "1 command" : "\(count) commands" }
}
