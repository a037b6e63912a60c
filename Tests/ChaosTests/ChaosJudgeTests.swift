// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Testing
import WireJSON

@testable import Chaos

/// `identitybus chaos` must find whatever went wrong: each test plants one thing in a history that is right.
@Suite struct ChaosJudgeTests {
    typealias History = ChaosHistory

    /// An install is registered, linked and asked about; a device logs in.
    private func right() -> History {
        var history = History()
        add(
            &history, "register", "link.register-install", ["installId": "i1"],
            event("link", "link.install-registered", "i1", "register", 1, ["installId": "i1"]))
        add(
            &history, "link", "link.request", ["installId": "i1", "userId": "u1", "version": 2],
            event(
                "link", "link.linked", "i1", "link", 2,
                ["installId": "i1", "externalId": "ada", "userId": "u1", "personCreated": true, "version": 2]))
        add(
            &history, "create", "user.create", ["installId": "i2", "userId": "u2"],
            event("user", "user.created", "i2", "create-reply", 1, ["installId": "i2", "userId": "u2"]))
        add(
            &history, "login", "sync.login", ["mpid": "7", "previousMPID": "3"],
            event("sync", "sync.current-user-changed", "d1", "login", 1, ["deviceId": "d1", "mpid": "7"]),
            data: ["deviceId": "d1"])
        ask(
            &history, .install, "i1", "ask-install",
            ["installId": "i1", "userId": "u1", "externalId": "ada", "version": 2, "isActive": true])
        ask(&history, .user, "i2", "ask-user", ["installId": "i2", "userId": "u2"])
        ask(&history, .device, "d1", "ask-device", ["users": [["mpid": "7", "isCurrent": true]]])
        return history
    }

    private func key(_ id: String) -> History.CommandKey { .init(id: id, digest: "of \(id)") }

    private func event(
        _ service: String, _ type: String, _ subject: String, _ causation: String, _ offset: Int, _ data: JSONValue
    ) -> History.Event {
        .init(
            service: service, id: "event of \(causation)", type: type, subject: subject, causation: causation,
            sequence: "\(service)[0]000001.000\(offset).0000", data: data, fingerprint: "event of \(causation)")
    }

    private func add(
        _ history: inout History, _ id: String, _ type: String, _ result: JSONValue, _ event: History.Event? = nil,
        data: JSONValue = [:]
    ) {
        let service = String(type.prefix { $0 != "." })
        history.commands[key(id)] = .init(key: key(id), type: type, service: service, data: data, sentAt: [1])
        history.answers[key(id)] = [
            .init(
                command: key(id), id: "reply to \(id)", outcome: "succeeded", isFinal: true, result: result,
                fingerprint: id, at: 1.5)
        ]
        if let event { history.events.append(event) }
    }

    private func ask(
        _ history: inout History, _ subject: History.Question.Subject, _ id: String, _ command: String,
        _ result: JSONValue
    ) {
        add(&history, command, "question", result)
        history.questions.append(.init(subject: subject, id: id, command: key(command)))
    }

    /// The kinds of what is found when this is done to the history that is right.
    private func kinds(_ plant: (inout History) -> Void) -> Set<ChaosFinding.Kind> {
        var history = right()
        plant(&history)
        return Set(ChaosJudge(history).findings.map(\.kind))
    }

    private func answer(_ id: String, _ change: (inout History.Answer) -> Void) -> History.Answer {
        var answer = History.Answer(
            command: key(id), id: "reply to \(id)", outcome: "succeeded", isFinal: true, result: nil, fingerprint: id,
            at: 2)
        change(&answer)
        return answer
    }

    @Test func whatIsRightPasses() {
        #expect(kinds { _ in } == [])
    }

    @Test func copiesOfAnswersAndEventsPass() {
        #expect(
            kinds {
                $0.answers[key("link")]?.append(answer("link") { _ in })
                $0.answers[key("create")]?.insert(
                    answer("create") { ($0.isFinal, $0.outcome, $0.fingerprint) = (false, "pending", "p") }, at: 0)
                $0.events += $0.events
            } == [])
    }

    @Test func aLostReply() {
        #expect(kinds { $0.answers[key("register")] = nil } == [.lostReply])
    }

    @Test func aSagaThatNeverEnds() {
        #expect(
            kinds { $0.answers[key("create")] = [answer("create") { ($0.isFinal, $0.outcome) = (false, "pending") }] }
                == [.lostReply])
    }

    @Test func aQuestionThatIsNotAnswered() {
        #expect(kinds { $0.answers[key("ask-user")] = nil } == [.lostReply])
    }

    @Test func answersThatDiffer() {
        #expect(
            kinds { $0.answers[key("link")]?.append(answer("link") { $0.fingerprint = "other" }) } == [.answersDiffer])
    }

    @Test func anAnswerThatNobodyExpects() {
        #expect(
            kinds { $0.answers[key("ask-user")] = [answer("ask-user") { $0.outcome = "INTERNAL_ERROR" }] }
                == [.unexpectedAnswer])
    }

    @Test func anIDThatIsUsedTwiceAndAccepted() {
        #expect(kinds { $0.commands[key("ask-user")]?.allowed = ["ID_REUSED"] } == [.unexpectedAnswer])
    }

    @Test func aCommandThatIsDecidedAtTwoPlaces() {
        #expect(
            kinds {
                var second = event("link", "link.install-registered", "i1", "register", 9, ["installId": "i1"])
                second.id = "another"
                $0.events.append(second)
            } == [.decidedTwice])
    }

    @Test func oneChangeToldTwice() {
        #expect(
            kinds {
                var second = $0.events[1]
                (second.id, second.causation, second.sequence) = ("another", "other", "link[0]000001.0003.0000")
                second.data = ["externalId": "ada", "userId": "u1", "personCreated": false, "version": 2]
                $0.events.append(second)
            } == [.decidedTwice])
    }

    @Test func copiesOfAnEventThatDiffer() {
        #expect(
            kinds {
                var copy = $0.events[0]
                copy.fingerprint = "other"
                $0.events.append(copy)
            } == [.copiesDiffer])
    }

    @Test func twoEventsWithOneSequence() {
        #expect(
            kinds {
                var second = $0.events[0]
                (second.id, second.causation) = ("another", "other")
                $0.events.append(second)
            } == [.sequence])
    }

    @Test func versionsThatGoBack() {
        #expect(
            kinds {
                var second = $0.events[1]
                (second.id, second.causation, second.sequence) = ("another", "other", "link[0]000001.0009.0000")
                second.data = ["externalId": "ada", "userId": "u1", "personCreated": false, "version": 1]
                $0.events.append(second)
            } == [.sequence])
    }

    @Test(arguments: ["register", "create-reply"])
    func anEventThatIsMissing(_ causation: String) {
        #expect(kinds { $0.events.removeAll { $0.causation == causation } } == [.eventMissing])
    }

    @Test func anEventThatSaysSomethingElse() {
        #expect(
            kinds { history in
                let index = history.events.firstIndex { $0.causation == "login" } ?? 0
                history.events[index].data = ["deviceId": "d1", "mpid": "9"]
            } == [.eventMissing, .stateDiffers])
    }

    @Test func twoUsersOfOneExternalID() {
        #expect(
            kinds {
                add(
                    &$0, "second", "link.request", ["installId": "i3", "userId": "u3", "version": 1],
                    event(
                        "link", "link.linked", "i3", "second", 3,
                        ["externalId": "ada", "userId": "u3", "personCreated": false, "version": 1]))
            } == [.twoUsers])
    }

    @Test func aPersonCreatedTwice() {
        #expect(
            kinds {
                add(
                    &$0, "second", "link.request", ["installId": "i3", "userId": "u1", "version": 1],
                    event(
                        "link", "link.linked", "i3", "second", 3,
                        ["externalId": "ada", "userId": "u1", "personCreated": true, "version": 1]))
            } == [.twoUsers])
    }

    @Test func twoExternalIDsOfOneUser() {
        #expect(
            kinds {
                add(
                    &$0, "second", "link.request", ["installId": "i3", "userId": "u1", "version": 1],
                    event(
                        "link", "link.linked", "i3", "second", 3,
                        ["externalId": "bob", "userId": "u1", "personCreated": true, "version": 1]))
            } == [.twoUsers])
    }

    @Test func twoActiveInstalls() {
        #expect(
            kinds { ask(&$0, .install, "i9", "ask-9", ["installId": "i9", "userId": "u1", "isActive": true]) }
                == [.twoActive])
    }

    private static let lies: [(String, JSONValue)] = [
        ("ask-install", ["userId": "u9", "externalId": "ada", "version": 2]),
        ("ask-install", ["userId": "u1", "externalId": "bob", "version": 2]),
        ("ask-install", ["userId": "u1", "externalId": "ada", "version": 3]),
        ("ask-user", ["userId": "u9"]),
        ("ask-device", ["users": [["mpid": "7", "isCurrent": false], ["mpid": "8", "isCurrent": true]]]),
        ("ask-device", ["users": []]),
    ]

    @Test(arguments: lies)
    func aServiceThatSaysSomethingElse(_ question: String, _ result: JSONValue) {
        #expect(kinds { $0.answers[key(question)] = [answer(question) { $0.result = result }] } == [.stateDiffers])
    }

    @Test func strays() {
        #expect(kinds { $0.deadLetters.append(.init(place: "t[0]@1", what: "NOT_JSON")) } == [.deadLetter])
        #expect(kinds { $0.unsigned.append(.init(place: "t[0]@1", what: "?")) } == [.unsigned])
        #expect(kinds { $0.unexpectedEnds.append("link-1 ended by itself") } == [.unexpectedEnd])
    }

    private func slow(_ wait: Double, service: String = "link", limit: Double? = 12) -> Set<ChaosFinding.Kind> {
        kinds {
            $0.injuries = [.init(kind: .kill, service: service, what: "kill", begin: 1.2, end: 5, limit: limit)]
            $0.answers[key("register")]?[0].at = 1.2 + wait
        }
    }

    @Test func aSlowRecovery() {
        #expect(slow(12.5) == [.slowRecovery])
        #expect(slow(11.5) == [])
        #expect(slow(12.5, service: "user") == [])
        #expect(slow(12.5, limit: nil) == [])
    }

    @Test func theVerdictNamesWhatWasFound() throws {
        let settings = ChaosReport.Settings(
            seed: 1, minutes: 1, rate: 1, replicas: 1, broker: "b", store: "s", topicPrefix: "p.")
        let passed = ChaosReport(right(), settings: settings)
        #expect(
            passed.isPassed
                && passed.lines == [
                    "PASSED: 7 commands (7 sent with repetitions), 0 injuries, nothing lost, nothing doubled"
                ])
        var history = right()
        history.answers[key("register")] = nil
        let failed = ChaosReport(history, settings: settings)
        #expect(!failed.isPassed)
        #expect(failed.lines.first == "FAILED: 1 LOST_REPLY, in 7 commands (7 sent with repetitions), 0 injuries")
        #expect(failed.lines.contains { $0.contains("LOST_REPLY: link.register-install register has no answer") })
        #expect(failed.lines.contains { $0.contains("1.0 s sent link.register-install register") })
        #expect(String(decoding: try failed.json(), as: UTF8.self).contains("\"verdict\" : \"FAILED\""))
    }
}
