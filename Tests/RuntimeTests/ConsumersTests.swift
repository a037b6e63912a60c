// SPDX-License-Identifier: Apache-2.0

import Contracts
import Messaging
import Testing

@testable import Runtime

@Suite struct ConsumersTests {
    /// A member of a group whose topic has so many records left.
    private final class Member: RecordConsumer {
        let topic: String
        var left: Int
        var assignment: Set<TopicPartition> { [] }
        var isJoined: Bool { true }
        var unreadable: [String: KafkaError] = [:]
        var hasSettled = true
        /// How often it is asked to leave until it has left.
        var leaves = 0
        var isClosed = false

        init(_ topic: String, _ left: Int) { (self.topic, self.left) = (topic, left) }

        func poll(maxRecords: Int, timeout: Duration) -> [KafkaRecord] {
            let count = min(maxRecords, left)
            left -= count
            return (0..<count).map { offset in
                KafkaRecord(
                    topicPartition: TopicPartition(topic: topic, partition: 0), offset: Int64(offset), timestampMs: 0,
                    key: nil, value: nil, headers: [])
            }
        }

        func poll(_ partitions: Set<TopicPartition>, upTo share: Int) -> [KafkaRecord] { [] }
        func takeEnds() -> Set<TopicPartition> { [] }
        func takeOutOfRange() -> [TopicPartition] { [] }
        func takeVanished() -> Set<String> { [] }
        func restart(_ starts: [TopicPartition: Int64]) {}
        func pause(_ partitions: [TopicPartition]) {}
        func resume(_ partitions: [TopicPartition]) {}
        func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool { true }
        func leave() -> Bool {
            leaves -= 1
            return leaves <= 0
        }
        func close(timeout: Duration) -> Bool {
            isClosed = true
            return true
        }
    }

    /// A backlog of commands holds up neither answers nor events, and the other way round.
    @Test func noTopicWaitsForAnother() throws {
        let left = ["commands": 100_000, "replies": 20, "events": 500]
        let consumers = Consumers(
            left.keys.sorted().map { Consumers.Source(topic: $0, group: $0) },
            make: { Member($0.topic, left[$0.topic] ?? 0) }, wait: { _ in })
        try consumers.join()
        let records = try consumers.poll(limit: 1000, timeout: .zero)
        let counts = Dictionary(grouping: records, by: \.topicPartition.topic).mapValues(\.count)
        #expect(counts == ["replies": 20, "commands": 490, "events": 490])
    }

    /// An app's own topic is one of the topics: its backlog takes an equal share, and so does the others'.
    @Test(arguments: [("commands", 990, 10), ("commands.demo", 10, 990)])
    func aTopicThatIsJoinedLaterHasItsShare(_ backlog: String, _ shared: Int, _ own: Int) throws {
        let left = ["commands": 10, "commands.demo": 10].merging([backlog: 100_000]) { $1 }
        let consumers = Consumers(
            [Consumers.Source(topic: "commands", group: "commands")], make: { Member($0.topic, left[$0.topic] ?? 0) },
            wait: { _ in })
        try consumers.join()
        try consumers.join([Consumers.Source(topic: "commands.demo", group: "commands.demo")])
        let records = try consumers.poll(limit: 1000, timeout: .zero)
        let counts = Dictionary(grouping: records, by: \.topicPartition.topic).mapValues(\.count)
        #expect(counts == ["commands": shared, "commands.demo": own])
        #expect(consumers.all.map(\.group) == ["commands", "commands.demo"])
    }

    @Test func aGroupThatHasNotGivenItsShareIsNamed() throws {
        let (settled, waiting) = (Member("commands", 0), Member("replies", 0))
        let consumers = Consumers(
            [Consumers.Source(topic: "commands", group: "g"), Consumers.Source(topic: "replies", group: "g.replies")],
            make: { $0.topic == "commands" ? settled : waiting }, wait: { _ in })
        try consumers.join()
        #expect(consumers.unsettled == nil)
        waiting.hasSettled = false
        #expect(consumers.unsettled == "waits for its share of the group g.replies")
        #expect(consumers.problem == nil, "it is a member all the same")
    }

    /// A group that is in a rebalance lets nobody go before that is over. All are asked meanwhile, and none is waited for
    /// longer than some seconds.
    @Test(arguments: [(1, 0), (5, 4), (Int.max, 200)])
    func whoLeavesWaitsUntilTheGroupsLetItGo(leaves: Int, waits: Int) throws {
        let (first, second) = (Member("commands", 0), Member("replies", 0))
        (first.leaves, second.leaves) = (1, leaves)
        var (time, waited) = (ContinuousClock.now, 0)
        let consumers = Consumers(
            [Consumers.Source(topic: "commands", group: "g"), Consumers.Source(topic: "replies", group: "g.replies")],
            make: { $0.topic == "commands" ? first : second },
            wait: {
                time += $0
                waited += 1
            }, now: { time })
        try consumers.join()
        #expect(consumers.leave(timeout: .seconds(1), turned: {}))
        #expect(waited == waits && first.leaves == 0 && first.isClosed && second.isClosed)
    }

    @Test func whatTheGroupsGaveAndCannotBeReadIsNamed() throws {
        let member = Member("commands", 0)
        let consumers = Consumers(
            [Consumers.Source(topic: "commands", group: "g")], make: { _ in member }, wait: { _ in })
        try consumers.join()
        #expect(consumers.unreadable == nil)
        member.unreadable = ["commands": KafkaError(code: KafkaError.Code.topicAuthorizationFailed)]
        #expect(consumers.unreadable == "no right to read (Read) the topic commands")
        member.unreadable = ["commands": KafkaError(code: 2, message: "bad checksum")]
        #expect(consumers.unreadable?.hasPrefix("topic commands cannot be read: ") == true)
        #expect(consumers.problem == nil, "the group has given its share")
    }

    /// Events come to be decided together; commands and answers do not wait for them.
    @Test func eventsAreGathered() throws {
        var time = ContinuousClock.now
        var waits: [Duration] = []
        let members = ["commands": Member("commands", 0), "events": Member("events", 3)]
        let consumers = Consumers(
            members.keys.sorted().map { Consumers.Source(topic: $0, group: $0, mayGather: $0 == "events") },
            make: { source in members[source.topic] ?? Member(source.topic, 0) },
            wait: {
                waits.append($0)
                time += $0
            }, now: { time })
        try consumers.join()
        func poll(_ timeout: Duration) throws -> Int { try consumers.poll(limit: 10, timeout: timeout).count }
        #expect(try poll(.seconds(1)) == 3)
        members["events"]?.left = 2
        members["commands"]?.left = 1
        time += .milliseconds(5)
        #expect(try poll(.seconds(1)) == 1, "the command")
        // It is not forgotten, and not waited for in circles.
        #expect(try poll(.seconds(1)) == 2)
        #expect(waits == [.milliseconds(45)])
        // A backlog does not wait: there is no more to be gathered.
        time += .seconds(1)
        members["events"]?.left = 25
        #expect(try [poll(.zero), poll(.zero), poll(.zero), poll(.zero)] == [10, 10, 5, 0])
    }

    /// A member of a group whose topic has one partition with records of these times.
    private final class Past: RecordConsumer {
        let place: TopicPartition
        var times: [Int64]
        var read = 0
        var isJoined = false
        var assignment: Set<TopicPartition> { isJoined ? [place] : [] }
        /// The most records that it was asked for at once.
        var mostAsked = 0

        init(_ topic: String, _ times: [Int64]) {
            place = TopicPartition(topic: topic, partition: 0)
            self.times = times
        }

        func poll(maxRecords: Int, timeout: Duration) -> [KafkaRecord] { take(maxRecords) }

        func poll(_ partitions: Set<TopicPartition>, upTo share: Int) -> [KafkaRecord] {
            mostAsked = max(mostAsked, share)
            return partitions.contains(place) ? take(share) : []
        }

        private func take(_ count: Int) -> [KafkaRecord] {
            let end = min(times.count, read + count)
            defer { read = end }
            return (read..<end).map { offset in
                KafkaRecord(
                    topicPartition: place, offset: Int64(offset), timestampMs: times[offset], key: nil, value: nil,
                    headers: [])
            }
        }

        func takeEnds() -> Set<TopicPartition> { isJoined && read == times.count ? [place] : [] }
        func takeOutOfRange() -> [TopicPartition] { [] }
        func takeVanished() -> Set<String> { [] }
        func restart(_ starts: [TopicPartition: Int64]) { read = Int(starts[place] ?? 0) }
        func pause(_ partitions: [TopicPartition]) {}
        func resume(_ partitions: [TopicPartition]) {}
        func commit(_ offsets: [TopicPartition: Int64], wait: Bool) -> Bool { true }
        func close(timeout: Duration) -> Bool { true }
    }

    private func consumers(_ members: [Past]) throws -> Consumers {
        let consumers = Consumers(
            members.map { Consumers.Source(topic: $0.place.topic, group: $0.place.topic) },
            replayingUntil: Timestamp(milliseconds: 5000),
            make: { source in members.first { $0.place.topic == source.topic } ?? members[0] }, wait: { _ in })
        try consumers.join()
        return consumers
    }

    /// A group that gives its share later than the others may have older records.
    @Test func aReplayBeginsWhenAllGroupsHaveGiven() throws {
        let members = [Past("commands", (0..<2000).map { 2 * $0 }), Past("replies", (0..<1000).map { 3 * $0 })]
        let consumers = try consumers(members)
        members[0].isJoined = true
        #expect(try consumers.poll(limit: 1000, timeout: .milliseconds(1)).isEmpty)
        #expect(consumers.isReplaying)
        members[1].isJoined = true
        var records: [KafkaRecord] = []
        for _ in 0..<100 { records += try consumers.poll(limit: 700, timeout: .milliseconds(1)) }
        #expect(records.count == 3000)
        let order = records.map { ($0.timestampMs, $0.topicPartition) }
        #expect(zip(order, order.dropFirst()).allSatisfy { $0 < $1 })
        #expect(!consumers.isReplaying)
        #expect(members.allSatisfy { $0.mostAsked < 1000 }, "not more is read ahead than is needed")
    }

    @Test func whatHasToWaitIsNotOvertaken() throws {
        let members = [Past("commands", [1, 2, 3]), Past("replies", [])]
        let consumers = try consumers(members)
        for member in members { member.isJoined = true }
        #expect(try consumers.poll(limit: 10, timeout: .milliseconds(1), mayReplay: { false }).isEmpty)
        #expect(try consumers.poll(limit: 2, timeout: .zero).map(\.timestampMs) == [1, 2])
        // Read anew, after the database was away.
        try consumers.restart([members[0].place: 1])
        #expect(try consumers.poll(limit: 10, timeout: .milliseconds(1)).map(\.timestampMs) == [2, 3])
    }

    /// It is decided at one time, and so a replay puts it in this order.
    @Test func aBatchIsInTheOrderOfItsPartitions() throws {
        let members = [Past("replies", [1, 2]), Past("commands", [3, 4])]
        let consumers = Consumers(
            members.map { Consumers.Source(topic: $0.place.topic, group: $0.place.topic) },
            make: { source in members.first { $0.place.topic == source.topic } ?? members[0] }, wait: { _ in })
        try consumers.join()
        for member in members { member.isJoined = true }
        #expect(try consumers.poll(limit: 10, timeout: .zero).map(\.timestampMs) == [3, 4, 1, 2])
    }

    @Test func afterAReplayTopicsHaveTheirSharesAgain() throws {
        let members = [Past("commands", [1]), Past("replies", [2])]
        let consumers = try consumers(members)
        for member in members { member.isJoined = true }
        _ = try consumers.poll(limit: 10, timeout: .milliseconds(1))
        _ = try consumers.poll(limit: 10, timeout: .milliseconds(1))
        #expect(!consumers.isReplaying)
        members[0].times += [10, 11, 12]
        members[1].times += [3]
        let later = try consumers.poll(limit: 10, timeout: .zero)
        #expect(later.count == 4)
        // The group is joined anew, and what was read may be somebody else's now.
        _ = consumers.leave(timeout: .zero) {}
        #expect(consumers.isReplaying)
    }
}
