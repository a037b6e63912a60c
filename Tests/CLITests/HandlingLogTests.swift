// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Messaging
import Supervision
import Testing

@testable import CLI

/// Whose a letter is follows from Kafka alone.
@Suite struct HandlingLogTests {
    private static let topic = Topics(prefix: "").deadLetterActions("link")
    private static let hour: Int64 = 3_600_000

    /// Two operators claim a letter, and write the time of their machines into the records.
    /// - Parameters:
    ///   - isDated: whether the broker dates the topic's records itself.
    ///   - check: gets the logs of both, that of the first to claim first.
    private func claim(_ letter: Letter, isDated: Bool, _ shifts: [Int64], _ check: ([HandlingLog]) throws -> Void)
        throws
    {
        let broker = try EmbeddedBroker(
            topics: [TopicSpec(name: Self.topic, partitions: 1)], dating: { _ in isDated })
        defer { broker.close() }
        let kafka = KafkaAccess(KafkaConfiguration(bootstrapServers: broker.bootstrapServers))
        let reached = try kafka.reach()
        defer { reached.admin.close(timeout: .seconds(5)) }
        let post = try RecordPost(kafka)
        let logs = try shifts.indices.map {
            try HandlingLog(kafka, reached.admin, Topics(prefix: ""), services: ["link"], run: "run \($0)")
        }
        for (number, shift) in shifts.enumerated() {
            let claim = LetterHandling(.claimed, letter.place, id: "\(number)", run: "run \(number)", by: "\(number)")
            #expect(logs[number].now(letter) == nil)
            var record = try logs[number].record(claim, of: letter)
            record.timestampMs = Timestamp.now.milliseconds + shift
            let token = try post.send(record)
            post.flush()
            _ = try #require(post.outcome(token)).get()
        }
        for log in logs {
            let deadline = ContinuousClock.now + .seconds(20)
            while !log.hasRead(log.run.suffix(1).description), .now < deadline { try log.poll(.milliseconds(50)) }
        }
        try check(logs)
    }

    @Test(arguments: [[hour, -hour], [-hour, hour], [0, hour], [0, -hour]])
    func noClockOfAnOperatorsCounts(_ shifts: [Int64]) throws {
        let letter = try letter(0, 0)
        try claim(letter, isDated: true, shifts) { logs in
            for log in logs {
                #expect(log[letter].claim?.run == "run 0" && log[letter].inDoubt == nil)
                let now = try #require(log.now(letter))
                #expect(abs(now - Timestamp.now.milliseconds) < 5000)
            }
        }
    }

    @Test func nothingIsSentWhereClocksOfOperatorsCount() throws {
        let problem = #expect(throws: Problem.self) {
            try claim(try letter(0, 0), isDated: false, [0]) { _ in }
        }
        #expect(problem?.status == .refused && problem?.what.contains(Self.topic) == true)
        #expect(problem?.advice.last?.contains("message.timestamp.type=LogAppendTime") == true)
    }
}
