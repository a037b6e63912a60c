// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing
import WireJSON

@testable import Gateway

@Suite struct WaitersTests {
    private let soon = ContinuousClock.now + .seconds(60)

    private func reply(
        _ id: String, app: AppID = "demo", digest: String = "d", _ status: ReplyStatus = .succeeded
    ) -> CommandReply {
        CommandReply(commandID: CommandID(id), app: app, digest: digest, status: status)
    }

    private func question(_ id: String = "a", digest: String = "d", acceptsPending: Bool = false) -> Waiters.Question {
        Waiters.Question(
            id: CommandID(id), owner: Shares.Owner(app: "demo", services: ["link"], isOneOfSeveral: false),
            digest: digest,
            acceptsPending: acceptsPending)
    }

    private func status(_ answer: Answer) -> ReplyStatus? {
        if case .reply(let reply) = answer { reply.status } else { nil }
    }

    @Test func aReplyThatComesBeforeSendReturnsIsNotLost() async {
        let waiters = Waiters(limit: 1, timeout: .seconds(8))
        let answer = await waiters.wait(for: question(), until: soon) {
            waiters.resolve(reply("a"))
        }
        #expect(status(answer) == .succeeded)
        #expect(waiters.count == 0)
    }

    @Test func othersRepliesArePassedOver() async {
        let waiters = Waiters(limit: 1, timeout: .seconds(8))
        let answer = await waiters.wait(for: question(), until: soon) {
            waiters.resolve(reply("b"))
            waiters.resolve(reply("a", app: "other"))
            waiters.resolve(reply("a", .pending))
            #expect(waiters.count == 1)
            waiters.resolve(reply("a", .rejected))
        }
        #expect(status(answer) == .rejected)
    }

    /// Two commands may have one id: each request gets the answer to its own.
    @Test func aReplyToWhatSomebodyElseSaidIsPassedOver() async {
        let waiters = Waiters(limit: 2, timeout: .seconds(8))
        let answer = await waiters.wait(for: question(digest: "mine"), until: soon) {
            waiters.resolve(reply("a", digest: "theirs"))
            #expect(waiters.count == 1)
            waiters.resolve(reply("a", digest: "mine", .rejected))
        }
        #expect(status(answer) == .rejected)
    }

    @Test func aDryRunAndTheRealOneHaveTheirOwnAnswers() async {
        let waiters = Waiters(limit: 2, timeout: .seconds(8))
        var tried = reply("a", .pending)
        tried.isDryRun = true
        var question = question()
        let real = await waiters.wait(for: question, until: soon) {
            waiters.resolve(tried)
            waiters.resolve(reply("a", .rejected))
        }
        #expect(status(real) == .rejected)
        question.isDryRun = true
        let answer = await waiters.wait(for: question, until: soon) {
            waiters.resolve(reply("a"))
            waiters.resolve(tried)
        }
        #expect(status(answer) == .pending)
    }

    // MARK: Idempotency-Keys

    private let derived: CommandID = "0a1b2c3d-0000-8000-8000-000000000000"

    private func isRefused(_ answer: Answer) -> Bool { if case .keyReused = answer { true } else { false } }

    @Test func aKeyThatStandsForAnotherRequestIsRefusedAtOnceAndLate() async {
        let waiters = Waiters(limit: 4, timeout: .seconds(8))
        let other = question(derived.text, digest: "other")
        let first = await waiters.wait(for: question(derived.text), until: soon) {
            waiters.sweep(now: soon)
        }
        guard case .timedOut = first else {
            Issue.record("\(first)")
            return
        }
        let late = await waiters.wait(for: other, until: soon) { Issue.record("nothing may be sent") }
        #expect(isRefused(late))
        let again = await waiters.wait(for: question(derived.text), until: soon) {
            waiters.resolve(reply(derived.text))
        }
        #expect(status(again) == .succeeded)
    }

    /// Replicas read each other's replies.
    @Test func aKeyThatAnotherReplicaWasAskedWithIsKnown() async {
        let waiters = Waiters(limit: 4, timeout: .seconds(8))
        // Refused itself, so it says nothing about what the key stands for.
        var refused = reply(derived.text, digest: "refused", .rejected)
        refused.reason = "ID_REUSED"
        #expect(waiters.wants(refused) && !waiters.wants(reply("a")))
        waiters.resolve(refused)
        waiters.resolve(reply(derived.text, digest: "theirs"))
        #expect(isRefused(await waiters.wait(for: question(derived.text), until: soon) {}))
    }

    @Test func randomIdsAreNoKeys() {
        #expect(!CommandID.random().isDerived && derived.isDerived && !CommandID("8").isDerived)
    }

    @Test func keysAreForgottenOldestFirst() {
        var keys = UsedKeys(limit: 10)
        let first = (0..<15).map { keys.use(CommandID("k\($0)"), for: "a") }
        let again = (5..<15).map { keys.use(CommandID("k\($0)"), for: "b") }
        let more = (100..<120).map { keys.use(CommandID("k\($0)"), for: "a") }
        let forgotten = keys.use("k0", for: "b")
        #expect(first.allSatisfy { $0 } && !again.contains(true) && more.allSatisfy { $0 } && forgotten)
    }

    @Test func pendingIsAnAnswerWhereItAwaitsTheCaller() async {
        let waiters = Waiters(limit: 1, timeout: .seconds(8))
        let answer = await waiters.wait(for: question(acceptsPending: true), until: soon) {
            var platform = reply("a", .pending)
            platform.result = ["awaiting": "platform"]
            waiters.resolve(platform)
            #expect(waiters.count == 1)
            var linker = reply("a", .pending)
            linker.result = ["awaiting": "linker"]
            waiters.resolve(linker)
        }
        #expect(status(answer) == .pending)
    }

    @Test func theBoundHolds() async {
        let waiters = Waiters(limit: 0, timeout: .seconds(8))
        let answer = await waiters.wait(for: question(), until: soon) {
            Issue.record("nothing may be sent")
        }
        guard case .full = answer else {
            Issue.record("\(answer)")
            return
        }
    }

    @Test func timeOutsAndFailures() async {
        let waiters = Waiters(limit: 2, timeout: .seconds(8))
        let late = await waiters.wait(for: question(), until: soon) {
            waiters.sweep(now: soon - .seconds(1))
            #expect(waiters.count == 1)
            waiters.sweep(now: soon)
        }
        guard case .timedOut = late else {
            Issue.record("\(late)")
            return
        }
        let failed = await waiters.wait(for: question(), until: soon) { waiters.fail("a") }
        guard case .unavailable = failed else {
            Issue.record("\(failed)")
            return
        }
    }

    /// The end did not come in time, but the beginning did.
    @Test func timeOutsOfWhatIsUnderWay() async {
        let waiters = Waiters(limit: 1, timeout: .seconds(8))
        let answer = await waiters.wait(for: question(), until: soon) {
            waiters.resolve(reply("a", digest: "theirs", .pending))
            waiters.resolve(reply("a", .pending))
            waiters.sweep(now: soon)
        }
        guard case .stillPending = answer else {
            Issue.record("\(answer)")
            return
        }
        #expect(waiters.count == 0)
    }

    /// Many waiters, replies, failures and time-outs from several threads: each waiter is answered exactly once
    /// (twice would trap), and none is left.
    @Test func fromManyThreads() async {
        let waiters = Waiters(limit: 10_000, timeout: .seconds(8))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<2000 {
                let id = "c-\(number % 700)"
                group.addTask {
                    _ = await waiters.wait(for: question(id, acceptsPending: number % 2 == 0), until: soon) {
                        Task { waiters.resolve(reply(id)) }
                    }
                }
                if number % 5 == 0 { group.addTask { waiters.fail(CommandID(id)) } }
                if number % 50 == 0 { group.addTask { waiters.sweep(now: soon) } }
            }
        }
        #expect(waiters.count == 0)
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"type":"identity.reply.v1","appid":"demo","data":{}}"#,
        #"{"type":"other","appid":"demo","data":{"commandId":"a","commandDigest":"d","status":"succeeded"}}"#,
        #"{"type":"identity.reply.v1","appid":"demo","data":{"commandId":"a","commandDigest":"d"}}"#,
        #"{"type":"identity.reply.v1","appid":"demo","data":{"commandId":"a","status":"succeeded"}}"#,
        #"{"type":"identity.reply.v1","data":{"commandId":"a","commandDigest":"d","status":"succeeded"}}"#,
    ])
    func whatIsNoReply(_ text: String) {
        #expect(CommandReply(envelope: Array(text.utf8)) == nil)
    }

    @Test(arguments: ["rejected", "later"]) func wordsOfTomorrowAreStillAnAnswer(_ status: String) {
        let text = """
            {"type":"identity.reply.v1","appid":"demo",\
            "data":{"commandId":"a","commandDigest":"d","status":"\(status)","reason":"NEW"}}
            """
        let reply = CommandReply(envelope: Array(text.utf8))
        #expect(reply?.status == .rejected)
        #expect(reply?.reason == "NEW")
        #expect(reply.map { APIFailure($0).status } == 400)
    }
}
