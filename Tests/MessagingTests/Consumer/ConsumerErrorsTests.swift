// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Messaging

@Suite struct ConsumerErrorsTests {
    private let a = TopicPartition(topic: "t", partition: 0)
    private let b = TopicPartition(topic: "t", partition: 1)
    private let start = ContinuousClock.now
    private let unknown = KafkaError(code: KafkaError.Code.unknownTopicOrPartition)
    private let broken = KafkaError(code: KafkaError.Code.transport)

    private func after(_ seconds: Int) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }

    @Test func aPartitionsErrorEndsWithItsOwnRecordOnly() {
        var errors = ConsumerErrors()
        let warned1 = errors.note(broken, at: .partition(a), mayPass: false, now: start)
        #expect(warned1)
        errors.received(from: b)
        #expect(errors.current == broken)
        errors.received(from: a)
        #expect(errors.current == nil && errors.isEmpty)
    }

    /// People are told what is the matter, not librdkafka's name for it.
    @Test func theNewestErrorHasWords() {
        let noRight = KafkaError(code: KafkaError.Code.groupAuthorizationFailed)
        let cases: [(KafkaError, ConsumerErrors.Place, String)] = [
            (noRight, .client, "no right to join it (Read and Describe)"),
            (unknown, .topic("t"), "topic t does not exist"),
            (
                KafkaError(code: KafkaError.Code.topicAuthorizationFailed), .partition(a),
                "no right to read (Read) the topic t"
            ),
            (broken, .client, "\(broken)"),
        ]
        var errors = ConsumerErrors()
        #expect(errors.problem == nil)
        for (second, (error, place, words)) in cases.enumerated() {
            _ = errors.note(error, at: place, mayPass: false, now: after(second))
            #expect(errors.problem == words)
        }
    }

    @Test func anErrorOfTheClientEndsWithAnyRecordOrAssignment() {
        var errors = ConsumerErrors()
        _ = errors.note(broken, at: .client, mayPass: false, now: start)
        errors.received(from: b)
        #expect(errors.current == nil)
        _ = errors.note(broken, at: .client, mayPass: false, now: start)
        errors.assigned([])
        #expect(errors.current == nil)
    }

    @Test func aTopicsErrorEndsWithItsAssignmentAndIsNeverWarnedAbout() {
        var errors = ConsumerErrors()
        let warned2 = errors.note(unknown, at: .topic("t"), mayPass: true, now: start)
        #expect(!warned2)
        errors.assigned([TopicPartition(topic: "other", partition: 0)])
        #expect(errors.current == unknown)
        errors.assigned([a])
        #expect(errors.current == nil)
        let due7 = errors.review(now: after(20))
        #expect(due7.isEmpty)
    }

    @Test func aTopicsErrorThatLastsIsWarnedAboutOnce() {
        var errors = ConsumerErrors()
        _ = errors.note(unknown, at: .topic("t"), mayPass: true, now: start)
        errors.assigned([])
        #expect(errors.current == nil)
        let due8 = errors.review(now: after(9))
        #expect(due8.isEmpty)
        let due9 = errors.review(now: after(10))
        #expect(due9.map(\.error) == [unknown])
        let due10 = errors.review(now: after(30))
        #expect(due10.isEmpty)
    }

    @Test func whatIsNotRepeatedIsForgotten() {
        var errors = ConsumerErrors()
        _ = errors.note(broken, at: .client, mayPass: false, now: start)
        _ = errors.note(broken, at: .client, mayPass: false, now: after(8))
        let due11 = errors.review(now: after(17))
        #expect(due11.isEmpty)
        #expect(errors.current == broken)
        _ = errors.review(now: after(18))
        #expect(errors.current == nil)
    }

    @Test func aPartitionThatCannotBeReadIsFetchedAnewAndNamed() {
        var errors = ConsumerErrors()
        let refused = KafkaError(code: KafkaError.Code.topicAuthorizationFailed)
        let warned3 = errors.note(refused, at: .partition(a), mayPass: false, now: start)
        #expect(warned3)
        #expect(errors.unreadable == [a.topic: refused])
        let anew = [0, 2, 3, 5, 6].map { errors.toFetchAnew(now: after($0)) }
        #expect(anew == [[a], [], [a], [], [a]])
        // It is told again while it lasts.
        _ = errors.note(refused, at: .partition(a), mayPass: false, now: after(6))
        #expect(errors.toFetchAnew(now: after(9)) == [a])
        _ = errors.review(now: after(18))
        #expect(errors.unreadable == [a.topic: refused])
        _ = errors.review(now: after(19))
        #expect(errors.unreadable.isEmpty && errors.isEmpty)
    }

    /// A loop may stand still for long, waiting for its database: what nobody asked for cannot have been repeated.
    @Test func aPartitionsErrorIsNotForgottenBeforeItWasAskedForAnew() {
        var errors = ConsumerErrors()
        _ = errors.note(broken, at: .partition(a), mayPass: false, now: start)
        #expect(errors.turn(now: after(60)).unread == [a])
        _ = errors.turn(now: after(69))
        #expect(errors.unreadable == [a.topic: broken])
        _ = errors.turn(now: after(70))
        #expect(errors.isEmpty)
    }

    /// ```
    /// 0 s transport ... 8 s transport ... 10 s warning
    /// 0 s transport ... (nothing) ....... 10 s forgotten
    /// ```
    @Test func aFaultOfTheFirstMomentsMustLastToBeWarnedAbout() {
        var errors = ConsumerErrors()
        let warned4 = errors.note(broken, at: .client, mayPass: true, now: start)
        #expect(!warned4)
        let warned5 = errors.note(broken, at: .client, mayPass: true, now: after(8))
        #expect(!warned5)
        let due12 = errors.review(now: after(11))
        #expect(due12.map(\.error) == [broken])
        let warned6 = errors.note(broken, at: .client, mayPass: false, now: after(12))
        #expect(warned6)
    }
}
