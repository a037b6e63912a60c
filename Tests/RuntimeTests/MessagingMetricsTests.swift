// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Storage
import TestKit
import Testing

@testable import Observability
@testable import Runtime

/// docs/operations.md "Under OpenTelemetry's names".
@Suite struct MessagingMetricsTests {
    private let registry = PrometheusRegistry(configuration: .identityBus)
    private let topics = Topics(prefix: "t.")

    private func metrics() -> MessagingMetrics { MessagingMetrics(topics, factory: registry) }

    /// What the registry has of messages, without the buckets and what the machine adds.
    private var lines: [String] {
        registry.exposition().split(separator: "\n").map(String.init)
            .filter { $0.hasPrefix("messaging_") && !$0.contains("_bucket{") }
    }

    private func attempt(_ topic: String, _ error: KafkaError? = nil, _ took: Duration = .milliseconds(250))
        -> SendAttempt
    {
        SendAttempt(topic: topic, error, took: took)
    }

    private func records(_ count: Int, _ topic: String) throws -> [KafkaRecord] {
        try (0..<count).map { try Fixture.record(offset: Int64($0), topic: topic) }
    }

    @Test func eachAttemptToSendCounts() {
        let metrics = metrics()
        let refused = KafkaError(code: KafkaError.Code.topicAuthorizationFailed)
        metrics.sent([attempt("t.identity.link.events.v1"), attempt("t.identity.link.events.v1", refused)])
        metrics.sent([attempt("t.identity.link.events.v1"), attempt("t.identity.link.events.v1", nil, .seconds(2))])
        let labels = [
            "messaging_destination_name=\"t.identity.link.events.v1\",messaging_operation_name=\"send\"",
            "messaging_system_name=\"kafka\"",
        ]
        let sent = labels.joined(separator: ",")
        let timed = labels.joined(separator: ",messaging_operation_type=\"send\",")
        let error = "error_type=\"TOPIC_AUTHORIZATION_FAILED\","
        #expect(
            lines == [
                "messaging_client_operation_duration_seconds_sum{\(error)\(timed)} 0.25",
                "messaging_client_operation_duration_seconds_count{\(error)\(timed)} 1",
                "messaging_client_operation_duration_seconds_sum{\(timed)} 2.5",
                "messaging_client_operation_duration_seconds_count{\(timed)} 3",
                "messaging_client_sent_messages_total{\(error)\(sent)} 1",
                "messaging_client_sent_messages_total{\(sent)} 3",
            ])
    }

    /// Whoever sends a command chooses where its reply goes: the name may be a person's, and there may be any number of them.
    @Test func aTopicThatSomebodyElseNamesIsNotNamed() throws {
        let metrics = metrics()
        let own = [topics.replies, topics.gatewayReplies, topics.replies(to: "user")]
        metrics.sent((own + ["t.identity.replies.hush.ada", "t.identity.replies.hush-bob"]).map { attempt($0) })
        metrics.consumed(try records(1, "t.identity.replies.hush"))
        let text = registry.exposition()
        #expect(!text.contains("hush"))
        for name in own { #expect(text.contains("messaging_destination_name=\"\(name)\"")) }
        #expect(
            lines.contains(
                "messaging_client_sent_messages_total{messaging_destination_template=\"t.identity.replies.{name}\","
                    + "messaging_operation_name=\"send\",messaging_system_name=\"kafka\"} 2"))
    }

    @Test func whatKafkaGivesOutCountsByTopicAndGroup() throws {
        let metrics = metrics()
        let commands = try records(3, "t.identity.link.commands.v1")
        metrics.consumed(try commands + records(2, "t.identity.user.events.v1")) { _ in "t.identity.link" }
        metrics.consumed(commands) { _ in "t.identity.link" }
        metrics.consumed(try records(1, topics.gatewayReplies))
        let end = "messaging_operation_name=\"poll\",messaging_system_name=\"kafka\"}"
        let group = "{messaging_consumer_group_name=\"t.identity.link\","
        #expect(
            lines == [
                "messaging_client_consumed_messages_total\(group)messaging_destination_name=\"t.identity.link.commands.v1\",\(end) 6",
                "messaging_client_consumed_messages_total\(group)messaging_destination_name=\"t.identity.user.events.v1\",\(end) 2",
                "messaging_client_consumed_messages_total{messaging_destination_name=\"t.identity.replies.gateway.v1\",\(end) 1",
            ])
    }

    @Test func eachRecordTookAsLongAsItsBatch() throws {
        let entries = try [
            (Verdict.succeeded, nil), (.rejected, "INSTALL_NOT_FOUND"), (.deadLettered, "NOT_JSON"),
            (.deadLettered, nil),
        ].map { verdict, reason in
            Entry(try Fixture.record(), incarnation: 0, type: "", outcome: verdict, reason: reason, [])
        }
        metrics().processed(entries, took: .milliseconds(30)) { _ in "g" }
        let labels =
            "messaging_consumer_group_name=\"g\",messaging_destination_name=\"\(Fixture.topic)\","
            + "messaging_operation_name=\"process\",messaging_system_name=\"kafka\"}"
        let counts = lines.filter { $0.contains("_count{") }
        #expect(
            counts == [
                "messaging_process_duration_seconds_count{error_type=\"NOT_JSON\",\(labels) 1",
                "messaging_process_duration_seconds_count{error_type=\"_OTHER\",\(labels) 1",
                "messaging_process_duration_seconds_count{\(labels) 2",
            ])
        let buckets = registry.exposition().split(separator: "\n")
            .filter { $0.contains("_bucket{messaging_consumer") }
            .compactMap { $0.split(separator: "le=\"").last?.split(separator: "\"").first }
        let conventions = [
            "0.005", "0.01", "0.025", "0.05", "0.075", "0.1", "0.25", "0.5", "0.75", "1", "2.5", "5", "7.5",
        ]
        #expect(buckets.map(String.init) == conventions + ["10", "+Inf"])
        #expect(registry.exposition().contains("# HELP messaging_process_duration_seconds "))
    }

    @Test func thereAreNoneUnlessSomebodyAsks() throws {
        func read(_ list: String?) throws -> ServiceConfiguration {
            var environment = ["KAFKA_BOOTSTRAP_SERVERS": "k:9092", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef"]
            environment["OTEL_SEMCONV_STABILITY_OPT_IN"] = list
            return try ServiceConfiguration(environment: environment, service: "fake")
        }
        #expect(try read(nil).messagingMetrics == nil && read("http").messagingMetrics == nil)
        #expect(try read("messaging").messagingMetrics != nil && read("http,messaging/dup").messagingMetrics != nil)
        #expect(try read("nonsense").conventions.ignored == ["nonsense"])
    }
}
