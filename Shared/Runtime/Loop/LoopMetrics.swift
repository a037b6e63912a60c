// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Metrics
import Storage

/// The loop's metrics, updated once per batch. No user ids in labels.
struct LoopMetrics {
    let service: String
    private let batchSize: Recorder
    private let commit: Metrics.Timer
    private let pending: Gauge
    /// The same under OpenTelemetry's names; `nil` where nobody asks for it.
    let messaging: MessagingMetrics?

    /// - Parameter client: the loop's `client.id`, which no other loop of the process has.
    init(service: String, client: String, messaging: MessagingMetrics? = nil) {
        self.service = service
        self.messaging = messaging
        batchSize = Recorder(label: "identity_batch_size", dimensions: [("service", service)])
        commit = Metrics.Timer(label: "identity_batch_duration", dimensions: [("service", service)])
        pending = Gauge(label: "identity_outbox_pending", dimensions: [("service", service), ("client", client)])
    }

    /// - Parameter apps: whose the records of the batch were, as far as that is known.
    /// - Returns: how many decisions there were of each type, outcome and reason.
    func committed(_ entries: [Entry], of apps: [AppID?], duration: Duration) -> [[String]: Int] {
        spent(duration, on: apps)
        batchSize.record(entries.count)
        commit.recordNanoseconds(duration.inNanoseconds)
        var counts: [[String]: Int] = [:]
        for entry in entries {
            counts[
                [entry.key == nil ? "" : entry.type, entry.outcome.rawValue, entry.reason ?? ""], default: 0] +=
                1
        }
        for (labels, count) in counts {
            Counter(
                label: "identity_commands",
                dimensions: [
                    ("service", service), ("type", labels[0]), ("outcome", labels[1]), ("reason", labels[2]),
                ]
            ).increment(by: count)
        }
        return counts
    }

    /// What each app costs: its records have their part of the batch's time, for one transaction decides all of them.
    private func spent(_ duration: Duration, on apps: [AppID?]) {
        let each = duration.inNanoseconds / Int64(max(1, apps.count))
        for (app, count) in apps.reduce(into: [AppID?: Int](), { $0[$1, default: 0] += 1 }) {
            let dimensions = [("service", service), ("app", app?.text ?? "")]
            Counter(label: "identity_app_commands", dimensions: dimensions).increment(by: count)
            FloatingPointCounter(label: "identity_app_seconds", dimensions: dimensions)
                .increment(by: Double(each * Int64(count)) / 1e9)
        }
    }

    /// How the apps file is doing, and when its keys end. What is no longer in it is not shown for long.
    func apps(_ source: AppsSource) {
        Gauge(label: "identity_apps_file_valid", dimensions: [("service", service)])
            .record(source.problem == nil ? 1 : 0)
        for (app, key, expires) in source.apps.expiries {
            Gauge(
                label: "identity_api_key_expires_timestamp_seconds",
                dimensions: [("service", service), ("app", app.text), ("key", key.text)]
            ).record(Double(expires.milliseconds) / 1000)
        }
    }

    func outbox(_ count: Int) { pending.record(count) }

    func conflicted() { count("identity_conflicts") }
    func fenced() { count("identity_fenced") }
    func waited() { count("identity_database_waits") }

    func gaveUp() { count("identity_replies_given_up") }
    func askedAgain(_ number: Int) { count("identity_forwards_asked_again", by: number) }

    /// Records that the log lost before they were read.
    func missed(_ number: Int, _ partition: TopicPartition) {
        Counter(
            label: "identity_log_gap_records",
            dimensions: [("topic", partition.topic), ("partition", String(partition.partition))]
        ).increment(by: number)
    }

    private func count(_ label: String, by number: Int = 1) {
        Counter(label: label, dimensions: [("service", service)]).increment(by: number)
    }
}
