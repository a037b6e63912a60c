// SPDX-License-Identifier: Apache-2.0

import Messaging
import MessagingTestKit
import Testing

/// Members that have a name of their own in their group (`group.instance.id`).
@Suite(.dedicatedThread) struct StaticMemberTests {
    private struct Member {
        let consumer: KafkaConsumer
        let handler = TestHandler()

        /// - Parameter settings: a session that no busy machine outlasts, unless they say otherwise.
        init(_ name: String, _ broker: TestBroker, _ settings: [String: String] = ["session.timeout.ms": "10000"])
            throws
        {
            let own = settings.merging(["group.instance.id": name]) { $1 }
            consumer = try broker.consumer(["in"], handler: handler, settings: own)
        }

        func poll() throws { _ = try consumer.poll(maxRecords: 10, timeout: .milliseconds(20)) }
    }

    @Test func whoComesBackHasItsPartitionsAndNobodyElseNotices() throws {
        let broker = try TestBroker(["in": 4])
        defer { broker.close() }
        var a = try Member("a", broker)
        let b = try Member("b", broker)
        try wait(until: a.consumer.assignment.count == 2 && b.consumer.assignment.count == 2) {
            try a.poll()
            try b.poll()
        }
        for round in 0..<3 {
            let (mine, changes) = (a.consumer.assignment, b.handler.assigned.count)
            #expect(a.consumer.close(timeout: .seconds(20)))
            a = try Member("a", broker)
            try wait(until: a.consumer.isJoined) {
                try a.poll()
                try b.poll()
            }
            #expect(a.consumer.assignment == mine, "\(round)")
            #expect(a.handler.assigned.count == 1)
            #expect(b.handler.assigned.count == changes && b.handler.revoked.isEmpty && b.handler.lost.isEmpty)
        }
        // What the group agreed on is still in force for both: a heartbeat is taken, and a position is saved.
        let own = try #require(a.consumer.assignment.sorted().first)
        #expect(a.consumer.commit([own: 3], wait: true))
        #expect(try a.consumer.committed([own], timeout: .seconds(30))[own] == 3)
        for member in [a, b] { member.consumer.close(timeout: .seconds(20)) }
    }

    /// Who does not come back loses its partitions to the others when its session is over.
    @Test func whoStaysAwayIsNotWaitedForForEver() throws {
        let broker = try TestBroker(["in": 4])
        defer { broker.close() }
        let (a, b) = (try Member("a", broker, [:]), try Member("b", broker, [:]))
        try wait(until: a.consumer.assignment.count == 2 && b.consumer.assignment.count == 2) {
            try a.poll()
            try b.poll()
        }
        a.consumer.close(timeout: .seconds(20))
        try wait(until: b.consumer.assignment.count == 4) { try b.poll() }
        // It is a new member then.
        let late = try Member("a", broker, [:])
        try wait(until: late.consumer.assignment.count == 2 && b.consumer.assignment.count == 2) {
            try late.poll()
            try b.poll()
        }
        for member in [late, b] { member.consumer.close(timeout: .seconds(20)) }
    }

    @Test(.disabled(if: TestBroker.isEmbedded, "the embedded broker throws nobody out"))
    func theSecondOfOneNameThrowsTheFirstOut() throws {
        let broker = try TestBroker(["in": 4])
        defer { broker.close() }
        let first = try Member("a", broker)
        try wait(until: first.consumer.assignment.count == 4) { try first.poll() }
        let second = try Member("a", broker)
        var refusal: KafkaError?
        try wait(until: refusal != nil && second.consumer.isJoined) {
            try second.poll()
            do { try first.poll() } catch let error as KafkaError { refusal = refusal ?? error }
        }
        #expect(refusal?.code == KafkaError.Code.fencedInstance)
        #expect(refusal?.disposition == .fatal)
        for member in [first, second] { member.consumer.close(timeout: .seconds(20)) }
    }
}
