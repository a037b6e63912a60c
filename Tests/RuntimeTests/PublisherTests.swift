// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import EmbeddedBroker
import Glibc
import Messaging
import Synchronization
import TestKit
import Testing

@testable import Runtime

/// Publishing against a real (embedded) broker.
@Suite struct PublisherTests {
    private let broker: TestBroker
    private static let lane = Lane(
        partition: TopicPartition(topic: Fixture.topic, partition: 0), incarnation: 0)
    private static let other = Lane(
        partition: TopicPartition(topic: Fixture.topic, partition: 1), incarnation: 0)
    private static let events = "identity.fake.events.v1"

    init() throws { broker = try TestBroker() }

    /// What the hooks did, and a clock that can be put forward.
    private final class Notes: Sendable {
        let gaveUp = Atomic(0)
        let producers = Atomic(0)
        let attempts = Mutex<[SendAttempt]>([])
        let ahead = Mutex(Duration.zero)
    }

    private func publisher(_ notes: Notes = Notes(), room: Int? = nil) throws -> Publisher {
        let writer = MessageWriter(service: "fake", topics: Topics(), keys: .none)
        let broker = broker
        let hooks = Publisher.Hooks(
            makeProducer: {
                notes.producers.add(1, ordering: .relaxed)
                guard let room else { return try broker.producer($0) }
                return try broker.producer($0, room: room)
            },
            substitute: { writer.undeliverable($0, $1, now: .now) },
            gaveUp: { notes.gaveUp.add(1, ordering: .relaxed) },
            reported: { attempts in notes.attempts.withLock { $0 += attempts } },
            now: { .now + notes.ahead.withLock { $0 } })
        return try Publisher(logger: .quiet, hooks: hooks)
    }

    private func messages(
        _ numbers: Range<Int>, topic: String = events, role: OutboxRecord.Role = .event, isOutside: Bool = false
    ) -> [OutboxRecord] {
        numbers.map {
            OutboxRecord(
                role,
                Record(
                    topic: topic, key: Array("k".utf8), value: Array("\($0)".utf8),
                    headers: [Header("h", "v"), Header("n", nil)]), mayBeGivenUp: isOutside)
        }
    }

    /// Polls until nothing is pending.
    private func settle(_ publisher: Publisher, until isDone: (() -> Bool)? = nil) -> [Lane: Int64] {
        var through: [Lane: Int64] = [:]
        let deadline = ContinuousClock.now + .seconds(180)
        repeat {
            through.merge(publisher.poll(timeout: .milliseconds(20))) { _, later in later }
        } while !(isDone?() ?? (publisher.pending == 0)) && ContinuousClock.now < deadline
        return through
    }

    private func texts(_ records: [KafkaRecord]) -> [String] {
        records.map { String(decoding: $0.value ?? [], as: UTF8.self) }
    }

    private func firsts(_ texts: [String]) -> [String] {
        texts.reduce(into: []) { firsts, text in if !firsts.contains(text) { firsts.append(text) } }
    }

    @Test func everythingArrivesInOrderAndProgressFollows() throws {
        let publisher = try publisher()
        publisher.publish(messages(0..<50), in: Self.lane, through: 4)
        publisher.publish(messages(50..<120), in: Self.lane, through: 9)
        #expect(publisher.pending == 120)
        #expect(settle(publisher) == [Self.lane: 9])
        #expect(publisher.pending == 0)
        let records = try broker.read(Self.events, 120)
        #expect(texts(records) == (0..<120).map(String.init))
        #expect(
            records.first?.headers == [
                Header("h", Array("v".utf8)), Header("n", nil),
            ])
        publisher.close(timeout: .seconds(1))
    }

    /// Each attempt once, with the time since the batch was handed over.
    @Test func whatKafkaTakesOrRefusesIsReported() throws {
        let notes = Notes()
        let publisher = try publisher(notes)
        publisher.publish(messages(0..<3), in: Self.lane, through: 4)
        notes.ahead.withLock { $0 = .seconds(60) }
        _ = settle(publisher)
        #expect(notes.attempts.withLock { $0 }.map(\.error) == [nil, nil, nil])
        broker.broker.failNext(
            .produce, with: [Int32](repeating: KafkaError.Code.topicAuthorizationFailed, count: 1000))
        publisher.publish(messages(3..<4), in: Self.lane, through: 5)
        _ = settle(publisher) { notes.attempts.withLock { $0.count > 3 } }
        broker.broker.clearFailures(.produce)
        _ = settle(publisher)
        let attempts = notes.attempts.withLock { $0 }
        #expect(attempts.count { $0.error == nil } == 4)
        #expect(attempts.compactMap(\.error).first == "TOPIC_AUTHORIZATION_FAILED")
        #expect(attempts.allSatisfy { $0.topic == Self.events })
        #expect(attempts.prefix(3).allSatisfy { $0.took >= .seconds(60) })
        publisher.close(timeout: .seconds(1))
    }

    @Test func anEmptyStepIsProgressToo() throws {
        let publisher = try publisher()
        publisher.publish([], in: Self.lane, through: 3)
        #expect(publisher.poll(timeout: .zero) == [Self.lane: 3])
        publisher.close(timeout: .seconds(1))
    }

    /// While the broker is away nothing counts as published; an empty step behind waits for what is in front of it.
    @Test func progressOnlyAfterDelivery() throws {
        let publisher = try publisher()
        publisher.publish(messages(0..<1))
        #expect(settle(publisher).isEmpty)
        broker.broker.setBroker(up: false)
        publisher.publish(messages(1..<5), in: Self.lane, through: 7)
        publisher.publish([], in: Self.lane, through: 8)
        for _ in 0..<5 { #expect(publisher.poll(timeout: .milliseconds(50)).isEmpty) }
        #expect(publisher.pending == 4)
        #expect(publisher.handed(Self.lane, publishedThrough: 2) == 8)
        broker.broker.setBroker(up: true)
        #expect(settle(publisher) == [Self.lane: 8])
        #expect(texts(try broker.read(Self.events, 5)).suffix(4) == ["1", "2", "3", "4"])
        publisher.close(timeout: .seconds(1))
    }

    /// Each step counts for itself, and only when nothing of it is left.
    @Test func aStepWithAnythingUndeliveredIsNoProgress() {
        var progress = LaneProgress(handedThrough: 0)
        let steps = [2, 1].enumerated().map { place, count in
            LaneProgress.Step(
                lane: Self.lane, through: Int64(place + 5), messages: messages(0..<count), since: .now)
        }
        for step in steps { progress.append(step) }
        steps[1].undelivered = 0
        #expect(progress.advance() == nil)
        steps[0].undelivered = 1
        #expect(progress.advance() == nil)
        steps[0].undelivered = 0
        #expect(progress.advance() == 6)
        #expect(progress.advance() == nil)
    }

    /// What is new stays behind what the producer had no room for, also when it has room again.
    @Test func aFullQueueKeepsTheOrder() throws {
        let publisher = try publisher(room: 10)
        broker.broker.setBroker(up: false)
        publisher.publish(messages(0..<30), in: Self.lane, through: 0)
        broker.broker.setBroker(up: true)
        for number in 30..<90 {
            publisher.publish(messages(number..<number + 1), in: Self.lane, through: Int64(number))
            _ = publisher.poll(timeout: .milliseconds(5))
        }
        _ = settle(publisher)
        #expect(publisher.pending == 0)
        #expect(texts(try broker.read(Self.events, 90)) == (0..<90).map(String.init))
        publisher.close(timeout: .seconds(1))
    }

    /// A lane that is stuck holds up no other, fills up, and lets go of nothing.
    @Test func aStuckLaneStopsOnlyItself() throws {
        let publisher = try publisher()
        broker.broker.setTopicError("identity.replies.v1", code: KafkaError.Code.unknownTopicOrPartition)
        publisher.publish(messages(0..<6000, topic: "identity.replies.v1", role: .reply), in: Self.lane, through: 1)
        for step in 0..<20 {
            publisher.publish(messages(step * 10..<step * 10 + 10), in: Self.other, through: Int64(step))
        }
        var through = settle(publisher) {
            publisher.pending == 6000 && publisher.problem?.contains("identity.replies.v1") == true
        }
        #expect(through == [Self.other: 19])
        #expect(publisher.isFull(Self.lane))
        #expect(!publisher.isFull(Self.other))
        #expect(publisher.problem?.contains("identity.replies.v1") == true)
        broker.broker.setTopicError("identity.replies.v1", code: 0)
        through = settle(publisher)
        #expect(through == [Self.lane: 1])
        #expect(publisher.problem == nil)
        #expect(texts(try broker.read("identity.replies.v1", 6000)) == (0..<6000).map(String.init))
        publisher.close(timeout: .seconds(1))
    }

    /// What a topic of ours refuses waits, in order, whatever the broker says; nothing of it becomes a dead letter.
    @Test func aTopicThatIsMissingRefusesNothingForGood() throws {
        let notes = Notes()
        let publisher = try publisher(notes)
        publisher.publish(messages(0..<10), in: Self.lane, through: 1)
        #expect(settle(publisher) == [Self.lane: 1])
        broker.broker.setTopicError(Self.events, code: KafkaError.Code.unknownTopicOrPartition)
        // Until the producer has heard of it, it goes on.
        var number = 10
        while publisher.problem?.contains(Self.events) != true, number < 20_000 {
            publisher.publish(messages(number..<number + 1), in: Self.lane, through: Int64(number))
            number += 1
            _ = publisher.poll(timeout: .zero)
            usleep(5000)
        }
        publisher.publish(messages(number..<number + 20), in: Self.lane, through: Int64(number))
        number += 20
        notes.ahead.withLock { $0 = .seconds(3600) }
        let deadline = ContinuousClock.now + .seconds(2)
        _ = settle(publisher) { ContinuousClock.now > deadline }
        #expect(publisher.pending > 20)
        #expect(publisher.problem?.contains(Self.events) == true)
        broker.broker.setTopicError(Self.events, code: 0)
        publisher.publish(messages(number..<number + 10), in: Self.lane, through: Int64(number + 10))
        #expect(settle(publisher) == [Self.lane: Int64(number + 10)])
        #expect(firsts(texts(try broker.read(Self.events, number + 10))) == (0..<number + 10).map(String.init))
        #expect(notes.gaveUp.load(ordering: .relaxed) == 0)
        #expect(try broker.read("identity.fake.dlq.v1", 1, within: .milliseconds(300)).isEmpty)
        publisher.close(timeout: .seconds(1))
    }

    /// Rights that were taken away by mistake: a broker refuses each request until they are back.
    @Test func aTopicThatIsForbiddenRefusesNothingForGood() throws {
        let notes = Notes()
        let publisher = try publisher(notes)
        broker.broker.failNext(
            .produce, with: [Int32](repeating: KafkaError.Code.topicAuthorizationFailed, count: 1000))
        publisher.publish(messages(0..<20), in: Self.lane, through: 1)
        let early = settle(publisher) { publisher.problem?.contains(Self.events) == true }
        #expect(early.isEmpty)
        let deadline = ContinuousClock.now + .seconds(3)
        #expect(settle(publisher) { ContinuousClock.now > deadline }.isEmpty)
        #expect(publisher.problem?.contains(Self.events) == true)
        #expect(publisher.pending == 20)
        broker.broker.clearFailures(.produce)
        publisher.publish(messages(20..<30), in: Self.lane, through: 2)
        #expect(settle(publisher) == [Self.lane: 2])
        #expect(firsts(texts(try broker.read(Self.events, 30))) == (0..<30).map(String.init))
        #expect(notes.producers.load(ordering: .relaxed) <= 4, "finding out ends no producer")
        #expect(try broker.read("identity.fake.dlq.v1", 1, within: .milliseconds(300)).isEmpty)
        publisher.close(timeout: .seconds(1))
    }

    /// The dead-letter topic may refuse too: nothing counts as delivered by failing.
    @Test func deadLettersWaitToo() throws {
        let letters = "identity.fake.dlq.v1"
        let publisher = try publisher()
        broker.broker.setTopicError(letters, code: KafkaError.Code.unknownTopicOrPartition)
        publisher.publish(messages(0..<3, topic: letters, role: .deadLetter), in: Self.lane, through: 1)
        let deadline = ContinuousClock.now + .seconds(2)
        #expect(settle(publisher) { ContinuousClock.now > deadline }.isEmpty)
        #expect(publisher.pending == 3)
        broker.broker.setTopicError(letters, code: 0)
        #expect(settle(publisher) == [Self.lane: 1])
        #expect(texts(try broker.read(letters, 3)) == ["0", "1", "2"])
        publisher.close(timeout: .seconds(1))
    }

    /// Only replies to topics that outsiders named are given up, and only after a while.
    @Test(arguments: [OutboxRecord.Role.reply, .confidentialReply])
    func aReplyToAnOutsidersTopicIsGivenUpAfterAWhile(_ role: OutboxRecord.Role) throws {
        let gone = "identity.replies.gone"
        broker.broker.setTopicError(gone, code: KafkaError.Code.unknownTopicOrPartition)
        let notes = Notes()
        let publisher = try publisher(notes)
        publisher.publish(
            messages(0..<1) + messages(7..<8, topic: gone, role: role, isOutside: true) + messages(1..<2),
            in: Self.lane, through: 2)
        #expect(settle(publisher) { publisher.pending == 1 }.isEmpty)
        let deadline = ContinuousClock.now + .seconds(2)
        #expect(settle(publisher) { ContinuousClock.now > deadline }.isEmpty)
        #expect(publisher.pending == 1)
        #expect(publisher.problem == nil, "an outsider's topic is not the service's problem")
        notes.ahead.withLock { $0 = Publisher.grace + .seconds(1) }
        #expect(settle(publisher) == [Self.lane: 2])
        #expect(notes.gaveUp.load(ordering: .relaxed) == 1)
        let letter = try #require(try broker.read("identity.fake.dlq.v1", 1).first)
        #expect(letter.key == Array("k".utf8))
        #expect(letter.value == (role == .reply ? Array("7".utf8) : nil), "a secret stands in no dead letter")
        #expect(letter.header("dlq_reason") == Array("UNDELIVERABLE".utf8))
        #expect(letter.header("dlq_step") == Array("publish".utf8))
        #expect(letter.header("dlq_original_topic") == Array(gone.utf8))
        #expect(texts(try broker.read(Self.events, 2)) == ["0", "1"])
        publisher.close(timeout: .seconds(1))
    }

    /// Nobody can fill a lane with replies to topics that do not exist.
    @Test func onlySoManyRepliesWaitForOutsidersTopics() throws {
        let gone = "identity.replies.gone"
        broker.broker.setTopicError(gone, code: KafkaError.Code.unknownTopicOrPartition)
        let notes = Notes()
        let publisher = try publisher(notes)
        let count = Publisher.maxWaitingReplies + 200
        let early = ContinuousClock.now + .seconds(5)
        publisher.publish(
            messages(0..<count, topic: gone, role: .reply, isOutside: true), in: Self.lane, through: 2)
        _ = settle(publisher) {
            // From then on its clock is slow: none of them is given up because it has waited for so long.
            notes.ahead.withLock { $0 = min(.zero, (early - ContinuousClock.now) * 9 / 10) }
            return notes.gaveUp.load(ordering: .relaxed) >= 199 && publisher.pending <= 1001
        }
        #expect(notes.gaveUp.load(ordering: .relaxed) >= 199)
        #expect(publisher.pending <= Publisher.maxWaitingReplies + 1)
        let letters = try broker.read("identity.fake.dlq.v1", 199)
        #expect(Array(texts(letters).prefix(50)) == (1...50).map(String.init) || texts(letters).first == "0")
        publisher.close(timeout: .zero)
    }

    @Test func passingErrorsAreTriedAgainInOrder() throws {
        let publisher = try publisher()
        let codes = [KafkaError.Code.notLeader, KafkaError.Code.notEnoughReplicas, KafkaError.Code.requestTimedOut]
        broker.broker.failNext(.produce, with: codes)
        publisher.publish(messages(0..<20), in: Self.lane, through: 1)
        #expect(settle(publisher) == [Self.lane: 1])
        #expect(firsts(texts(try broker.read(Self.events, 20))) == (0..<20).map(String.init))
        publisher.close(timeout: .seconds(1))
    }

    /// Errors after which librdkafka gives messages back: the producer is made anew, with a pause, and what is
    /// undelivered is sent again in its first order.
    @Test func whatTheProducerGivesBackIsSentAgainInOrder() throws {
        let notes = Notes()
        let publisher = try publisher(notes)
        publisher.publish(messages(0..<10), in: Self.lane, through: 0)
        #expect(settle(publisher) == [Self.lane: 0])
        // UNKNOWN_SERVER_ERROR is -1 on the wire. The embedded broker takes a request whose predecessor it refused, which
        // Kafka does not; so it refuses those too that are under way by then.
        broker.broker.failNext(.produce, with: [-1, -1, -1])
        publisher.publish(messages(10..<20), in: Self.lane, through: 1)
        _ = settle(publisher) { notes.producers.load(ordering: .relaxed) > 1 }
        for step in 2..<6 {
            publisher.publish(messages(step * 10..<step * 10 + 10), in: Self.lane, through: Int64(step))
        }
        #expect(settle(publisher) == [Self.lane: 5])
        #expect(firsts(texts(try broker.read(Self.events, 60))) == (0..<60).map(String.init))
        #expect(notes.producers.load(ordering: .relaxed) <= 6, "no loop without a pause")
        publisher.close(timeout: .seconds(1))
    }

    /// Too large for any topic: a dead letter takes its place that is cut and says so.
    @Test func whatIsTooLargeIsReplacedByACutDeadLetter() throws {
        let publisher = try publisher()
        var batch = messages(0..<3)
        batch[1].record.value = [UInt8](repeating: 1, count: 4_100_000)
        batch[1].record.topic = "identity.replies.v1"
        batch[1].role = .reply
        publisher.publish(batch, in: Self.lane, through: 2)
        #expect(settle(publisher) == [Self.lane: 2])
        #expect(texts(try broker.read(Self.events, 2)) == ["0", "2"])
        let letter = try #require(try broker.read("identity.fake.dlq.v1", 1).first)
        #expect(letter.value?.count == DeadLetterSize.kept)
        #expect(letter.header("dlq_value_bytes") == Array("4100000".utf8))
        #expect(letter.header("dlq_value_sha256")?.count == 64)
        #expect(letter.header("dlq_reason") == Array("UNDELIVERABLE".utf8))
        publisher.close(timeout: .seconds(1))
    }

    /// A broker refuses a batch as a whole; the good messages in it are not to blame.
    @Test func companyOfALargeMessageIsTriedAlone() throws {
        let publisher = try publisher()
        broker.broker.failNext(.produce, with: [KafkaError.Code.messageTooLarge])
        publisher.publish(messages(0..<40), in: Self.lane, through: 2)
        #expect(settle(publisher) == [Self.lane: 2])
        #expect(firsts(texts(try broker.read(Self.events, 40))) == (0..<40).map(String.init))
        #expect(try broker.read("identity.fake.dlq.v1", 1, within: .milliseconds(300)).isEmpty)
        publisher.close(timeout: .seconds(1))
    }

    /// A partition that comes back to the same process is not published again behind its own back.
    @Test func whatIsOnItsWayIsRememberedByLane() throws {
        let publisher = try publisher()
        broker.broker.setBroker(up: false)
        publisher.publish(messages(0..<5), in: Self.lane, through: 11)
        publisher.forget(Self.lane)
        #expect(publisher.handed(Self.lane, publishedThrough: 3) == 11)
        #expect(publisher.handed(Self.lane, publishedThrough: 20) == 20)
        #expect(publisher.handed(Self.other, publishedThrough: 3) == 3)
        broker.broker.setBroker(up: true)
        #expect(settle(publisher) == [Self.lane: 11])
        publisher.forget(Self.lane)
        #expect(publisher.handed(Self.lane, publishedThrough: 3) == 3)
        publisher.close(timeout: .seconds(1))
    }

    // MARK: Topics that outsiders name

    /// Anybody with a key may name as many as they like.
    @Test func onlySoManyTopicsOfOutsidersAreInUseAtOnce() throws {
        let notes = Notes()
        let publisher = try publisher(notes)
        let limit = OutsidersTopics.most
        // At once: what is delivered meanwhile would make room.
        let replies = (0..<(2 * limit)).flatMap {
            messages(0..<1, topic: "identity.replies.y-\($0)", role: .reply, isOutside: true)
        }
        publisher.publish(replies, in: Self.lane, through: Int64(2 * limit - 1))
        #expect(notes.gaveUp.load(ordering: .relaxed) == limit)
        #expect(settle(publisher)[Self.lane] == Int64(2 * limit - 1))
        let letters = try broker.read("identity.fake.dlq.v1", limit)
        #expect(letters.count == limit)
        // What is delivered makes room, and what goes to topics of ours needs none.
        publisher.publish(
            messages(0..<1, topic: "identity.replies.z", role: .reply, isOutside: true), in: Self.lane, through: 1000)
        publisher.publish(messages(1..<3), in: Self.lane, through: 1001)
        #expect(settle(publisher)[Self.lane] == 1001)
        #expect(notes.gaveUp.load(ordering: .relaxed) == limit)
    }

    /// A client forgets no topic, so another one takes its place; nothing is lost or sent twice by that.
    @Test func aProducerThatKnowsManyTopicsIsReplaced() throws {
        let notes = Notes()
        let publisher = try publisher(notes)
        let limit = OutsidersTopics.mostKnown
        for number in 0...limit {
            publisher.publish(
                messages(0..<1, topic: "identity.replies.y-\(number % 50)", role: .reply, isOutside: true)
                    + messages(number..<(number + 1)),
                in: Self.lane, through: Int64(number))
            // As if each had been another one.
            let isNew = publisher.outsiders.admit("\(number)")
            publisher.outsiders.release("\(number)")
            #expect(isNew)
            _ = publisher.poll(timeout: .zero)
        }
        _ = settle(publisher, until: { publisher.pending == 0 && !publisher.outsiders.areTooMany })
        #expect(publisher.pending == 0 && !publisher.outsiders.areTooMany)
        #expect(notes.producers.load(ordering: .relaxed) == 2)
        #expect(texts(try broker.read(Self.events, limit + 1)) == (0...limit).map(String.init))
    }
}
