// SPDX-License-Identifier: Apache-2.0

package import Contracts
package import Messaging
package import Metrics
import Observability
import Storage

/// What became of a message that was handed to Kafka.
package struct SendAttempt: Hashable, Sendable {
    var topic: String
    /// Kafka's name of it; `nil` when the message stands on its topic.
    var error: String?
    /// From handing it over to the answer.
    var took: Duration

    package init(topic: String, _ error: KafkaError?, took: Duration) {
        self.topic = topic
        self.error = error?.name
        self.took = took
    }
}

/// Messages under the names of OpenTelemetry's semantic conventions (docs/operations.md "Under OpenTelemetry's names"). Told
/// of a batch at a time. Confined to one thread: it keeps its series.
package final class MessagingMetrics {
    /// What the series of a metric differ in.
    private struct Place: Hashable {
        var destination: String
        var isTemplate = false
        var group: String?
        var error: String?
    }

    private let topics: Topics
    private let factory: any MetricsFactory
    private var sends: [Place: (count: Counter, duration: RepeatedTimer)] = [:]
    private var polls: [Place: Counter] = [:]
    private var processes: [Place: RepeatedTimer] = [:]

    package init(_ topics: Topics, factory: any MetricsFactory = MetricsSystem.factory) {
        self.topics = topics
        self.factory = factory
    }

    // MARK: Kinds of operations

    /// Messages that Kafka has taken or refused. Each attempt counts.
    package func sent(_ attempts: [SendAttempt]) {
        for (attempt, count) in attempts.reduce(into: [SendAttempt: Int](), { $0[$1, default: 0] += 1 }) {
            var place = place(of: attempt.topic)
            place.error = attempt.error
            let series =
                sends[place]
                ?? (
                    counter(SemanticNames.sentMessages, SemanticNames.send, place),
                    timer(SemanticNames.operationDuration, SemanticNames.send, place, type: SemanticNames.send)
                )
            sends[place] = series
            series.count.increment(by: count)
            series.duration.record(attempt.took, times: count)
        }
    }

    /// Records that Kafka has given out.
    /// - Parameter group: that reads a topic; `nil` where it is read outside of groups.
    package func consumed(_ records: [KafkaRecord], group: (String) -> String? = { _ in nil }) {
        for (topic, count) in records.reduce(into: [String: Int](), { $0[$1.topicPartition.topic, default: 0] += 1 }) {
            let place = place(of: topic, group(topic))
            let series = polls[place] ?? counter(SemanticNames.consumedMessages, SemanticNames.poll, place)
            polls[place] = series
            series.increment(by: count)
        }
    }

    /// Records that were decided together: each took as long as all of them, as its span says.
    func processed(_ entries: [Entry], took: Duration, group: (String) -> String?) {
        var counts: [[String?]: Int] = [:]
        for entry in entries {
            counts[[entry.place.topic, entry.errorType], default: 0] += 1
        }
        for (key, count) in counts {
            let topic = key[0] ?? ""
            var place = place(of: topic, group(topic))
            place.error = key[1]
            let series = processes[place] ?? timer(SemanticNames.processDuration, SemanticNames.process, place)
            processes[place] = series
            series.record(took, times: count)
        }
    }

    // MARK: Series

    /// The name of a reply topic is the choice of whoever sends a command, and may be anything, or anybody's.
    private func place(of topic: String, _ group: String? = nil) -> Place {
        let isOutsiders =
            topic.hasPrefix(topics.anyReplies) && topic != topics.replies && !topics.isOwn(replyTopic: topic)
        if isOutsiders { return Place(destination: "\(topics.anyReplies){name}", isTemplate: true, group: group) }
        return Place(destination: topic, group: group)
    }

    private func counter(_ name: String, _ operation: String, _ place: Place) -> Counter {
        Counter(label: name, dimensions: dimensions(operation, place, type: nil), factory: factory)
    }

    private func timer(_ name: String, _ operation: String, _ place: Place, type: String? = nil) -> RepeatedTimer {
        RepeatedTimer(label: name, dimensions: dimensions(operation, place, type: type), factory: factory)
    }

    /// An empty value is none.
    private func dimensions(_ operation: String, _ place: Place, type: String?) -> [(String, String)] {
        [
            (SemanticNames.system, SemanticNames.kafka), (SemanticNames.operation, operation),
            (SemanticNames.operationType, type ?? ""),
            (place.isTemplate ? SemanticNames.destinationTemplate : SemanticNames.destination, place.destination),
            (SemanticNames.group, place.group ?? ""), (SemanticNames.errorType, place.error ?? ""),
        ]
    }
}

extension Entry {
    /// As OpenTelemetry's conventions name what went wrong; `nil` of what was answered, whatever the answer.
    var errorType: String? { outcome == .deadLettered ? reason ?? SemanticNames.otherError : nil }
}
