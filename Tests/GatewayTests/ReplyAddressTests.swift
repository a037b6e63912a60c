// SPDX-License-Identifier: Apache-2.0

import Messaging
import Observability
import Testing

@testable import Gateway

/// Which key a replica's replies have, and which partitions it reads.
@Suite struct ReplyAddressTests {
    private let kafka = KafkaConfiguration(bootstrapServers: "nowhere:1")

    /// As the gateway makes it.
    private func address(among count: Int, after before: ReplyAddress? = nil, _ number: Int = 0) -> ReplyAddress {
        var next = number
        return ReplyAddress(among: count, after: before) { key in
            partition(key, count)
        } newKey: {
            next += 1
            return "replica-\(number)-\(next)"
        }
    }

    private func partition(_ key: String, _ count: Int) -> Int32? {
        kafka.partition(of: Array(key.utf8), among: count)
    }

    @Test(arguments: [2, 3, 12, 50]) func aReplicaReadsItsOwnPartitionAndTheSharedOne(_ count: Int) throws {
        let shared = try #require(partition(ReplyAddress.sharedKey, count))
        for number in 0..<200 {
            let address = address(among: count, number)
            let own = try #require(partition(address.ownKey, count))
            #expect(own != shared)
            #expect(address.partitions == [shared, own].sorted() && address.count == count)
        }
    }

    @Test func replicasAreSpread() {
        #expect(Set((0..<200).map { address(among: 12, $0).partitions }).count == 11)
    }

    @Test func oneOfAnotherReplicaIsDifferent() {
        #expect(address(among: 12, 1).ownKey != address(among: 12, 2).ownKey)
    }

    @Test func aTopicOfOnePartitionIsReadWhole() {
        #expect(address(among: 1).partitions == [0])
    }

    /// With another partitioner nobody knows where replies come.
    @Test func withoutAKnownPartitionerAllPartitionsAreRead() {
        let address = ReplyAddress(among: 4, partition: { _ in nil }, newKey: { "x" })
        #expect(address.partitions == [0, 1, 2, 3] && address.ownKey == "x")
    }

    /// Services learn of new partitions sooner or later than a gateway: both where the key lay and where it lies is read.
    /// What was sent under the key before is so found, too.
    @Test(arguments: 0..<50) func afterPartitionsWereAddedTheOldOnesAreReadToo(_ number: Int) throws {
        let before = address(among: 4, number)
        let after = address(among: 6, after: before, number)
        let shared = try #require(partition(ReplyAddress.sharedKey, 6))
        let own = try #require(partition(after.ownKey, 6))
        #expect(own != shared && after.count == 6)
        #expect(after.partitions == Set(before.partitions + [shared, own]).sorted())
        // Kept where it can be: requests wait for replies under it.
        #expect(after.ownKey == before.ownKey || partition(before.ownKey, 6) == shared)
    }

    @Test func aTopicThatWasMadeAgainWithFewer() {
        let after = address(among: 1, after: address(among: 12))
        #expect(after.partitions == [0] && after.count == 1)
    }

    // MARK: When it is used

    @Test func noCommandIsSentWhileNoReplyIsRead() {
        let health = BusHealth("kafka:9092", replyTopic: "replies")
        let address = address(among: 3)
        #expect(health.askable == nil)
        health.tailing(address)
        #expect(health.askable == address)
        health.tailing(nil)
        #expect(health.askable == nil)
        health.tailing(address)
        health.broker("gone")
        #expect(health.askable == address, "one probe that was late does not count")
        health.broker("gone")
        #expect(health.askable == nil)
        health.broker(nil)
        health.stop()
        #expect(health.askable == nil)
    }

    @Test func anotherNumberOfPartitionsIsNoticed() {
        let health = BusHealth("kafka:9092", replyTopic: "replies")
        health.replyTopic(has: 5)
        #expect(!health.hasMoved)
        health.tailing(address(among: 3))
        #expect(!health.hasMoved, "what was heard before does not count")
        health.replyTopic(has: 3)
        #expect(!health.hasMoved)
        health.replyTopic(has: 5)
        #expect(health.hasMoved)
        health.tailing(nil)
        health.tailing(address(among: 5))
        #expect(!health.hasMoved)
    }

    /// One that is missing for a moment is what a rolling restart of a cluster looks like.
    @Test func aReplyTopicThatIsGoneIsNoticed() {
        let health = BusHealth("kafka:9092", replyTopic: "replies")
        health.tailing(address(among: 3))
        health.broker(nil)
        health.replyTopic(has: 3)
        #expect(health.hearsReplies)
        health.replyTopic(has: 0)
        #expect(!health.hasMoved && !health.hearsReplies)
        health.replyTopic(has: 3)
        #expect(health.hearsReplies)
        health.replyTopic(has: 0)
        health.replyTopic(has: 0)
        #expect(health.hasMoved && !health.hearsReplies)
        health.tailing(nil)
        health.tailing(address(among: 3))
        #expect(!health.hasMoved)
    }

    @Test func whoMayNotReadRepliesSendsNoCommand() {
        let health = BusHealth("kafka:9092", replyTopic: "replies")
        let address = address(among: 3)
        health.tailing(address)
        health.broker(nil)
        health.replies("no right to read")
        #expect(health.askable == nil && !health.hearsReplies)
        let failing = health.report.ready.filter { !$0.ok }
        #expect(failing.map(\.name) == ["topics"])
        #expect(failing.first?.detail == "Kafka at kafka:9092: no right to read")
        health.replies(nil)
        #expect(health.askable == address && health.hearsReplies)
        health.commands("no right to write")
        #expect(health.askable == address, "others may be written to")
        #expect(health.report.ready.filter { !$0.ok }.map(\.detail) == ["Kafka at kafka:9092: no right to write"])
    }
}
