// SPDX-License-Identifier: Apache-2.0

import Contracts
import EmbeddedBroker
import Foundation
import Messaging
import MessagingTestKit
import Testing

@Suite(.dedicatedThread) struct ConsumerCloseTests {
    @Test func closingTwiceIsHarmlessAndPollingAfterwardsIsAnError() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let handler = TestHandler()
        let consumer = try broker.consumer(["in"], handler: handler)
        try consumer.join(1)
        #expect(consumer.close(timeout: patience))
        #expect(consumer.close(timeout: patience))
        let error = #expect(throws: KafkaError.self) { try consumer.poll(maxRecords: 1, timeout: .zero) }
        #expect(error?.code == KafkaError.Code.wrongState)
        #expect(throws: KafkaError.self) { try consumer.committed([broker.partition("in", 0)], timeout: .seconds(1)) }
        #expect(!consumer.commit([broker.partition("in", 0): 1], wait: true))
        #expect(!consumer.isAssignmentLost)
        #expect(handler.revoked.count == 1)
    }

    @Test func aConsumerThatNeverJoinedCloses() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let consumer = try broker.consumer(["in"], handler: TestHandler())
        #expect(consumer.close(timeout: patience))
    }

    @Test(arguments: [true, false])
    func aForgottenConsumerEndsByItself(joined: Bool) throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let handler = TestHandler()
        var assigned = 0
        var client = ClientWatch()
        do {
            let consumer = try broker.consumer(["in"], handler: handler, wakeUp: client.watched())
            if joined { try consumer.join(1) } else { _ = try consumer.poll(maxRecords: 1, timeout: .seconds(1)) }
            assigned = withExtendedLifetime(consumer) { handler.assigned.count }
        }
        #expect(handler.assigned.count == assigned)
        #expect(handler.revoked.isEmpty)
        // librdkafka 2.0.2 cannot end one that never had an assignment.
        if joined { try client.waitForEnd() }
    }

    @Test func aConsumerThatDoesNotCloseInTimeEndsInTheBackground() throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        var client = ClientWatch()
        let handler = TestHandler()
        do {
            let consumer = try broker.consumer(["in"], handler: handler, wakeUp: client.watched())
            try consumer.join(1)
            #expect(!consumer.close(timeout: .zero))
        }
        try client.waitForEnd()
        let next = try broker.consumer(["in"], handler: TestHandler())
        #expect(try time { try next.join(1) } < .seconds(20), "it has left its group")
        next.close(timeout: patience)
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"), arguments: [true, false])
    func closingKeepsItsDeadlineWithoutABroker(joined: Bool) throws {
        let broker = try TestBroker(["in": 1])
        defer { broker.close() }
        let consumer = try broker.consumer(["in"], handler: TestHandler())
        if joined { try consumer.join(1) }
        try broker.faults().setBroker(up: false)
        let elapsed = time { consumer.close(timeout: .seconds(2)) }
        #expect(elapsed < .seconds(30))
    }

    @Test(.enabled(if: TestBroker.isEmbedded, "needs the embedded broker's faults"))
    func closingDuringARebalanceEnds() throws {
        let broker = try TestBroker(["in": 4])
        defer { broker.close() }
        let first = try broker.consumer(["in"], handler: TestHandler())
        try first.join(4)
        let second = try broker.consumer(["in"], handler: TestHandler())
        // The second has asked to join and the first has not answered yet.
        let end = ContinuousClock.now.advanced(by: .milliseconds(700))
        while ContinuousClock.now < end { _ = try second.poll(maxRecords: 1, timeout: .milliseconds(50)) }
        #expect(time { first.close(timeout: .seconds(20)) } < .seconds(50))
        #expect(time { second.close(timeout: .seconds(20)) } < .seconds(50))
    }
}

/// Sees a client's end: librdkafka's last thread lets go of what it writes to.
private struct ClientWatch {
    private weak var wakeUp: WakeUp?

    mutating func watched() throws -> WakeUp {
        let wakeUp = try WakeUp()
        self.wakeUp = wakeUp
        return wakeUp
    }

    /// What is left of one that does not end would keep a core busy.
    func waitForEnd(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try wait(until: wakeUp == nil, sourceLocation: sourceLocation) { Thread.sleep(forTimeInterval: 0.05) }
    }
}
