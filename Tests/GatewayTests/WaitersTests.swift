// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Testing
import WireJSON

@testable import Gateway

@Suite struct WaitersTests {
    private let soon = ContinuousClock.now + .seconds(60)

    private func reply(_ id: String, app: String = "demo", _ status: CommandReply.Status = .succeeded) -> CommandReply {
        CommandReply(commandID: id, app: app, status: status)
    }

    private func status(_ answer: Answer) -> CommandReply.Status? {
        if case .reply(let reply) = answer { reply.status } else { nil }
    }

    @Test func aReplyThatComesBeforeSendReturnsIsNotLost() async {
        let waiters = Waiters(limit: 1)
        let answer = await waiters.wait(for: "a", app: "demo", acceptsPending: false, until: soon) {
            waiters.resolve(reply("a"))
        }
        #expect(status(answer) == .succeeded)
        #expect(waiters.count == 0)
    }

    @Test func othersRepliesArePassedOver() async {
        let waiters = Waiters(limit: 1)
        let answer = await waiters.wait(for: "a", app: "demo", acceptsPending: false, until: soon) {
            waiters.resolve(reply("b"))
            waiters.resolve(reply("a", app: "other"))
            waiters.resolve(reply("a", .pending))
            #expect(waiters.count == 1)
            waiters.resolve(reply("a", .rejected))
        }
        #expect(status(answer) == .rejected)
    }

    @Test func pendingIsAnAnswerWhereItAwaitsTheCaller() async {
        let waiters = Waiters(limit: 1)
        let answer = await waiters.wait(for: "a", app: "demo", acceptsPending: true, until: soon) {
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
        let waiters = Waiters(limit: 0)
        let answer = await waiters.wait(for: "a", app: "demo", acceptsPending: false, until: soon) {
            Issue.record("nothing may be sent")
        }
        guard case .full = answer else {
            Issue.record("\(answer)")
            return
        }
    }

    @Test func timeOutsAndFailures() async {
        let waiters = Waiters(limit: 2)
        let late = await waiters.wait(for: "a", app: "demo", acceptsPending: false, until: soon) {
            waiters.sweep(now: soon - .seconds(1))
            #expect(waiters.count == 1)
            waiters.sweep(now: soon)
        }
        guard case .timedOut = late else {
            Issue.record("\(late)")
            return
        }
        let failed = await waiters.wait(for: "a", app: "demo", acceptsPending: false, until: soon) { waiters.fail("a") }
        guard case .unavailable = failed else {
            Issue.record("\(failed)")
            return
        }
    }

    /// The end did not come in time, but the beginning did.
    @Test func timeOutsOfWhatIsUnderWay() async {
        let waiters = Waiters(limit: 1)
        let answer = await waiters.wait(for: "a", app: "demo", acceptsPending: false, until: soon) {
            waiters.resolve(CommandReply(commandID: "a", app: "demo", status: .pending))
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
        let waiters = Waiters(limit: 10_000)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<2000 {
                let id = "c-\(number % 700)"
                group.addTask {
                    _ = await waiters.wait(for: id, app: "demo", acceptsPending: number % 2 == 0, until: soon) {
                        Task { waiters.resolve(reply(id)) }
                    }
                }
                if number % 5 == 0 { group.addTask { waiters.fail(id) } }
                if number % 50 == 0 { group.addTask { waiters.sweep(now: soon) } }
            }
        }
        #expect(waiters.count == 0)
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"type":"identity.reply.v1","appid":"demo","data":{}}"#,
        #"{"type":"other","appid":"demo","data":{"commandId":"a","status":"succeeded"}}"#,
        #"{"type":"identity.reply.v1","appid":"demo","data":{"commandId":"a","status":"later"}}"#,
        #"{"type":"identity.reply.v1","data":{"commandId":"a","status":"succeeded"}}"#,
    ])
    func whatIsNoReply(_ text: String) {
        #expect(CommandReply(envelope: Array(text.utf8)) == nil)
    }

    @Test func aReasonOfTomorrowIsStillAnAnswer() {
        let text =
            #"{"type":"identity.reply.v1","appid":"demo","data":{"commandId":"a","status":"rejected","reason":"NEW"}}"#
        let reply = CommandReply(envelope: Array(text.utf8))
        #expect(reply?.reason == "NEW")
        #expect(reply.map { APIFailure($0).status } == 400)
    }
}
