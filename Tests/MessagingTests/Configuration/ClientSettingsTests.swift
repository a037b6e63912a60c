// SPDX-License-Identifier: Apache-2.0

import Contracts
import MessagingTestKit
import Testing

@testable import Messaging

@Suite struct ClientSettingsTests {
    private func settings(_ configuration: KafkaConfiguration, _ role: ClientRole) throws -> [String: String] {
        let all = try configuration.settings(for: role, groupID: role.isConsumer ? "g" : nil)
        return Dictionary(all.map { ($0.key, $0.value) }) { $1 }
    }

    @Test func theRoleOutranksTheCommonSettingAndThatTheDefault() throws {
        let configuration = KafkaConfiguration(
            bootstrapServers: "a:1", common: ["reconnect.backoff.ms": "1", "fetch.wait.max.ms": "1"],
            consumer: ["fetch.wait.max.ms": "2"])
        let consumer = try settings(configuration, .consumer)
        #expect(consumer["reconnect.backoff.ms"] == "1")
        #expect(consumer["fetch.wait.max.ms"] == "2")
        #expect(consumer["queued.min.messages"] == "2500")
    }

    @Test func theGuaranteesAreAlwaysThere() throws {
        let consumer = try settings(KafkaConfiguration(bootstrapServers: "a:1"), .consumer)
        #expect(consumer["partition.assignment.strategy"] == "cooperative-sticky")
        #expect(consumer["enable.auto.commit"] == "false")
        #expect(consumer["enable.auto.offset.store"] == "false")
        #expect(consumer["enable.partition.eof"] == "false")
        #expect(consumer["isolation.level"] == "read_committed")
        #expect(consumer["auto.offset.reset"] == "error")
        #expect(consumer["group.id"] == "g")
        let producer = try settings(KafkaConfiguration(bootstrapServers: "a:1"), .producer)
        #expect(producer["enable.idempotence"] == "true")
        #expect(producer["acks"] == "all")
        #expect(producer["allow.auto.create.topics"] == "false")
        #expect(producer["message.timeout.ms"] == "0")
    }

    @Test func endsAreReportedToWhoAsksForThem() throws {
        var configuration = KafkaConfiguration(bootstrapServers: "a:1")
        configuration.reportsEnds = true
        #expect(try settings(configuration, .consumer)["enable.partition.eof"] == "true")
        #expect(try settings(configuration, .tail)["enable.partition.eof"] == "false")
    }

    @Test func onlyAReaderOutsideTheGroupsGoesOnByItself() throws {
        let tail = try settings(KafkaConfiguration(bootstrapServers: "a:1"), .tail)
        #expect(tail["auto.offset.reset"] == "earliest")
        #expect(tail["enable.auto.commit"] == "false")
    }

    /// A killed replica's partitions wait for the end of its session. A broker allows no shorter one by default.
    @Test func theSessionIsShort() throws {
        let configuration = KafkaConfiguration(bootstrapServers: "a:1")
        let consumer = try settings(configuration, .consumer)
        #expect(consumer["session.timeout.ms"] == "6000")
        #expect(configuration.sessionTimeout == .seconds(6))
        let given = KafkaConfiguration(bootstrapServers: "a:1", consumer: ["session.timeout.ms": "9500"])
        #expect(given.sessionTimeout == .milliseconds(9500))
        #expect(consumer["heartbeat.interval.ms"] == "1000")
    }

    @Test func combinationsThatLibrdkafkaRefusesAreConfigurationErrors() {
        let configuration = KafkaConfiguration(bootstrapServers: "a:1", producer: ["max.in.flight": "100"])
        let logs = LogRecorder()
        let error = #expect(throws: KafkaConfigurationError.self) {
            try KafkaProducer(configuration: configuration, logger: logs.logger)
        }
        #expect(error?.variable == "KAFKA_PRODUCER_MAX_IN_FLIGHT")
        #expect(error?.message.contains("max.in.flight") == true)
    }
}
