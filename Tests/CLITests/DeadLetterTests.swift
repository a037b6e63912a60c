// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Supervision
import Testing
import WireJSON

@testable import CLI

/// A letter of the link service.
func letter(
    _ partition: Int32, _ offset: Int64, key: String? = "demo/ada", at time: Int64 = 1000,
    type: String? = "link.request",
    headers: [Header] = [], letter: [Header] = [], step: DeadLetter.Step = .authenticate,
    from topic: String = "identity.link.commands.v1"
) throws -> Letter {
    let attributes = EventAttributes(
        id: "id-\(partition)-\(offset)", source: "s", type: CommandType.fullName(type ?? ""), appID: "demo")
    let value = try CloudEvent(attributes: attributes, data: ["installId": "i"] as JSONValue).encoded()
    let cause = DeadLetter(
        reason: "KEY_EXPIRED", step: step, error: "e", topic: topic, partition: 3,
        offset: 70, timestampMs: 900, group: "g")
    return try #require(
        Letter(
            KafkaRecord(
                topicPartition: TopicPartition(topic: "identity.link.dlq.v1", partition: partition), offset: offset,
                timestampMs: time, key: key.map { Array($0.utf8) }, value: type == nil ? [0xFF] : value,
                headers: headers + cause.headers(now: Timestamp(milliseconds: time)) + letter), of: "link"))
}

@Suite struct LetterTests {
    @Test func lettersHaveNamesThatCanBeTyped() {
        let id = LetterID(service: "link", partition: 9, offset: 12)
        #expect("\(id)" == "link/9@12" && LetterID(argument: "link/9@12") == id)
        for text in [
            "", "link", "link/9", "link@9", "link/9@", "link/@1", "link/-1@2", "link/1@-2", "9@2", "link/1@2x",
        ] {
            #expect(LetterID(argument: text) == nil, "\(text)")
        }
    }

    /// What the record had, and nothing of the letter, is sent again; also where a producer has used our names.
    @Test func theRecordIsFoundInItsLetter() throws {
        let odd = [Header("dlq_reason", "mine"), Header("x", nil), Header("signature", "no")]
        let mark = Header(Letter.replayHeader, "identity.link.dlq.v1[0]@1")
        let found = try letter(1, 2, headers: [mark] + odd)
        #expect(found.headers == odd)
        #expect(found.reason == "KEY_EXPIRED" && found.origin.partition == 3 && found.originOffset == 70)
        #expect(found.attributes?.id == "id-1-2" && found.signer == nil && found.isCommand)
        #expect(found.told == "rejected UNAUTHENTICATED" && found.replayMark == "identity.link.dlq.v1[1]@2")
        let broken = try letter(1, 3, type: nil)
        #expect(broken.attributes == nil && broken.unreadable?.reason == .notUTF8 && broken.told == nil)
        #expect(broken.app == "demo")
        #expect(found.isSignatureRight)
        let cut = try letter(1, 4, letter: [Header("dlq_value_bytes", "300000")])
        #expect(cut.isCut && cut.wholeSize == 300_000)
    }

    /// Commands, and events and replies of others; but not what a service has made itself and could not deliver.
    @Test(arguments: ["identity.link.commands.v1", "identity.user.events.v1", "identity.replies.link.v1"])
    func whatNoServiceCanReadIsNotSentAgain(topic: String) throws {
        #expect(try letter(1, 0, type: nil, step: .decode, from: topic).refusal?.reason == .notUTF8)
        #expect(try letter(1, 0, step: .decide, from: topic).refusal == nil)
        #expect(try letter(1, 0, type: nil, step: .publish, from: topic).refusal == nil)
    }

    @Test func lettersAreChosen() throws {
        let ada = try letter(0, 0, at: 5000)
        let cases: [(LetterChoice, Bool)] = [
            (LetterChoice(), true), (LetterChoice(ids: [ada.id]), true),
            (LetterChoice(ids: [LetterID(service: "link", partition: 0, offset: 1)]), false),
            (LetterChoice(services: ["user"]), false), (LetterChoice(reason: "key_expired"), true),
            (LetterChoice(reason: "NOT_JSON"), false), (LetterChoice(app: "demo"), true),
            (LetterChoice(app: "shop"), false), (LetterChoice(key: "demo/*"), true),
            (LetterChoice(key: "demo/eva"), false), (LetterChoice(type: "link.request"), true),
            (LetterChoice(type: "link.query"), false), (LetterChoice(since: Timestamp(milliseconds: 5001)), false),
            (LetterChoice(until: Timestamp(milliseconds: 4999)), false),
            (LetterChoice(since: Timestamp(milliseconds: 5000), until: Timestamp(milliseconds: 5000)), true),
        ]
        for (choice, isMeant) in cases { #expect(choice.contains(ada) == isMeant, "\(choice)") }
        #expect(LetterChoice().isEmpty && !LetterChoice(services: ["link"]).isEmpty)
    }

    @Test func groupsCountWhatIsOpen() throws {
        var handled = HandledLetters()
        let letters = try (0..<3).map { try letter(0, $0, at: 1000 * ($0 + 1)) }
        handled.take(
            LetterHandling(.dismissed, letters[1].place, id: "h", run: "r", by: "eva", note: "test", time: 9000))
        let groups = LetterGroup.groups(letters.map { HandledLetter(letter: $0, state: handled[$0.place]) })
        #expect(groups.count == 1 && groups[0].letters.count == 3 && groups[0].open == 2)
        let lines = LetterTable(now: Timestamp(milliseconds: 61_000)).groups(groups)
        #expect(lines[0] == "SERVICE  REASON       STEP          LETTERS  OPEN  OLDEST  NEWEST  APPS (KEYS)")
        #expect(
            lines[1] == "link     KEY_EXPIRED  authenticate        3     2  1 min   58 s    demo"
                + "         -> give the key a new end, then replay; or replay --sign-as")
    }

    /// Letters by what was done: dismissed by whom, or sent (`nil`).
    @Test(
        arguments: [
            (["root", "root"], "dismissed by root \"why\""),
            (["root", "root", nil, nil, nil], "3 replayed, 2 dismissed"),
            (["root", nil], "1 dismissed, 1 replayed"), (["root", "eva"], "2 dismissed"),
            ([nil], "replayed by eva \"why\": not answered yet"),
        ] as [([String?], String)])
    func ofHandledLettersIsSaidWhatIsTrueOfAll(_ dismissers: [String?], _ words: String) throws {
        var handled = HandledLetters()
        let letters = try dismissers.indices.map { try letter(0, Int64($0)) }
        for (letter, dismisser) in zip(letters, dismissers) {
            handled.take(
                LetterHandling(
                    dismisser == nil ? .sent : .dismissed, letter.place, id: "\(letter.id)", run: "r",
                    by: dismisser ?? "eva", note: "why", time: 9000))
        }
        let groups = LetterGroup.groups(letters.map { HandledLetter(letter: $0, state: handled[$0.place]) })
        #expect(groups.map(\.advice) == [words])
    }

    @Test func anEditIsCheckedAsAServiceWould() throws {
        let edit = try #require(LetterEdit(try letter(0, 0, type: "link.requst")))
        #expect(edit.text == "{\n  \"type\": \"link.requst\",\n  \"data\": {\n    \"installId\": \"i\"\n  }\n}\n")
        func reason(_ text: String) -> String? {
            do throws(Hindrance) {
                _ = try edit.command(text)
                return nil
            } catch {
                return error.reason
            }
        }
        #expect(reason(edit.text) == "UNKNOWN_TYPE" && reason("{") == "NOT_JSON" && reason("{}") == "INVALID_REQUEST")
        #expect(reason(#"{"type":"link.request","data":{"installId":"i"}}"#) == "INVALID_REQUEST")
        #expect(reason(#"{"type":"user.get","data":{"installId":"i"}}"#) == "UNKNOWN_TYPE")
        let good = try edit.command(#"{"type":"link.request","data":{"installId":"i","externalId":"eva"}}"#)
        #expect(good.event.attributes.id == "id-0-0" && good.key == Array("demo/eva".utf8))
        #expect(LetterEdit(try letter(0, 1, type: nil)) == nil)
        #expect(
            LetterEdit.difference("a\nb\nc\n", "a\nx\nc\nd\n") == ["  a", "- b", "+ x", "  c", "+ d"])
    }
}

/// Order and stops.
@Suite struct ReplayPlanTests {
    @Test func lettersOfAKeyGoOneAfterTheOther() throws {
        let letters = try [letter(0, 0), letter(0, 1), letter(1, 0, key: "demo/eva"), letter(2, 0, key: nil)]
        var plan = ReplayPlan(letters, keepsGoing: false)
        #expect(plan.laneCount == 3)
        let now = ContinuousClock.now
        let first = try [plan.next(now: now), plan.next(now: now), plan.next(now: now)].map { try #require($0) }
        #expect(Set(first) == Set([letters[0].id, letters[2].id, letters[3].id]))
        #expect(plan.next(now: now) == nil && !plan.isDone)
        plan.postpone(letters[2].id, until: now + .seconds(1))
        plan.finish(letters[0].id, isGood: true)
        #expect(plan.next(now: now) == letters[1].id)
        plan.finish(letters[1].id, isGood: true)
        plan.finish(letters[3].id, isGood: true)
        #expect(plan.next(now: now) == nil && !plan.isDone)
        #expect(plan.next(now: now + .seconds(1)) == letters[2].id)
        plan.finish(letters[2].id, isGood: true)
        #expect(plan.isDone && plan.left.isEmpty && plan.stopped.isEmpty)
    }

    @Test(arguments: [false, true]) func aKeyStopsAtTheFirstThatFails(_ keepsGoing: Bool) throws {
        let letters = try (0..<3).map { try letter(0, $0) }
        var plan = ReplayPlan(letters, keepsGoing: keepsGoing)
        let first = plan.next(now: .now)
        #expect(first == letters[0].id)
        plan.finish(letters[0].id, isGood: false)
        #expect(plan.isDone != keepsGoing)
        #expect(plan.stopped.map(\.letter) == (keepsGoing ? [] : [letters[1].id, letters[2].id]))
        plan.close()
        #expect(plan.isDone && plan.next(now: .now) == nil && plan.left.count == (keepsGoing ? 2 : 0))
    }

    /// A clock that goes back changes no order within a partition.
    @Test func lettersComeInTheOrderOfTheirPartitions() throws {
        let letters = try [letter(0, 0, at: 500), letter(0, 1, at: 100), letter(1, 0, at: 300), letter(1, 1, at: 900)]
        let order = ReplayPlan.inOrder(letters.shuffled()).map(\.id)
        #expect(order == [letters[2], letters[0], letters[1], letters[3]].map(\.id))
    }
}

/// Whether the command can be trusted to be the letter's.
@Suite struct RecordDigestTests {
    /// As contracts.md says it: whoever writes another reader of the topic gets the same.
    @Test func itIsOfKeyValueAndHeadersInTheirOrder() {
        let headers = [Header("a", "1"), Header("b", nil)]
        let digest = RecordDigest.text(key: Array("k".utf8), value: Array("v".utf8), headers: headers)
        func part(_ text: String) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, UInt8(text.utf8.count)] + Array(text.utf8) }
        let none = [UInt8](repeating: 0xFF, count: 8)
        let bytes = part("k") + part("v") + part("a") + part("1") + part("b") + none
        #expect(digest == SHA256.hash(data: bytes).hex)
        let others = [
            RecordDigest.text(key: nil, value: Array("v".utf8), headers: headers),
            RecordDigest.text(key: Array("k".utf8), value: Array("w".utf8), headers: headers),
            RecordDigest.text(key: Array("k".utf8), value: Array("v".utf8), headers: headers.reversed()),
            RecordDigest.text(key: Array("k".utf8), value: Array("v".utf8), headers: [headers[0]]),
            RecordDigest.text(key: Array("kv".utf8), value: [], headers: headers),
        ]
        #expect(!others.contains(digest) && Set(others).count == others.count)
    }
}

@Suite struct ReplayReportTests {
    private static let bad = LetterHandling.Answer(status: "rejected", reason: "ID_REUSED")
    private static let good = LetterHandling.Answer(status: "succeeded", reason: nil)
    private static let first = LetterID(service: "link", partition: 0, offset: 0)

    /// docs/command-line.md has the statuses. What is left is never 0.
    @Test(
        arguments: [
            ([.answered(good), .others(good), .others(nil)], nil),
            ([.spared(reason: "INSTALL_NOT_FOUND"), .behind(first)], nil),
            ([.answered(bad)], .refused),
            ([.answered(.unreadable("NOT_UTF8"))], .refused),
            ([.left(reason: "KEY_EXPIRED")], .refused),
            ([.unanswered, .behind(first)], .unanswered),
            ([.stillUnanswered, .behind(first)], .unanswered),
            ([.held, .behind(first)], .unanswered),
            // Somebody else's was refused: the letters behind it are here all the same.
            ([.others(bad), .behind(first)], .refused),
            ([.unanswered, .answered(bad)], .refused),
        ] as [([ReplayResult.End], Supervision.ExitStatus?)])
    func theStatusTellsWhetherAnythingIsLeft(_ ends: [ReplayResult.End], _ status: Supervision.ExitStatus?) throws {
        var report = ReplayReport(by: "eva", note: "x", isJSON: false)
        for (offset, end) in ends.enumerated() {
            report.take(ReplayResult(letter: try letter(0, Int64(offset)), end: end))
        }
        #expect(report.status == status)
    }

    @Test func progressTellsHowLongItTakes() {
        var bar = ProgressLine(total: 10_000, hint: "^C stops")
        #expect(bar.text(after: .seconds(1)) == "  [--------------------]  0/10000  0/s  -  ^C stops")
        bar.count = 2_500
        #expect(bar.text(after: .seconds(50)) == "  [#####---------------]  2500/10000  50/s  3 min left  ^C stops")
        bar.count = 9_900
        #expect(bar.text(after: .seconds(198)) == "  [###################-]  9900/10000  50/s  2 s left  ^C stops")
    }
}

/// Letters that were sent and have no answer yet go with those behind them.
@Suite struct UnansweredTests {
    @Test func whatIsNotAnsweredComesWithWhatIsBehindIt() throws {
        var handled = HandledLetters()
        let letters = try (0..<5).map { try letter(0, $0, key: $0 == 4 ? "demo/eva" : "demo/ada") }
        func take(_ act: LetterHandling.Act, _ number: Int, answer: LetterHandling.Answer? = nil) {
            handled.take(
                LetterHandling(act, letters[number].place, id: "h", run: "r", by: "eva", answer: answer, time: 1))
        }
        // Long ago, and by whichever clock.
        take(.sent, 0)
        take(.sent, 1)
        take(.answered, 1, answer: .init(status: "succeeded", reason: nil))
        take(.sent, 3)
        take(.sent, 4)
        let found = DLQReplayCommand.withUnanswered(
            letters.map { HandledLetter(letter: $0, state: handled[$0.place]) })
        #expect(found.map(\.letter.id) == [letters[0].id, letters[2].id])
    }
}

/// What is said of a value that is no envelope.
@Suite struct ValueFactsTests {
    @Test(arguments: [
        ("", "0 bytes, empty"), ("x", "1 byte, text, no JSON from byte 0 on"),
        (#"{"a":"secret",}"#, "15 bytes, like JSON, no JSON from byte 14 on"),
        (#"{"a":"secret"}"#, "14 bytes, a JSON object"), ("7", "1 byte, JSON, but no object"),
        ("<secret/>", "9 bytes, like XML, no JSON from byte 0 on"),
        ("se\u{1F}cret\u{FF}", "9 bytes, text, no JSON from byte 0 on"),
    ])
    func textIsNotShown(_ value: String, _ facts: String) {
        let digest = SHA256.hash(data: Array(value.utf8)).hex
        #expect(ValueFacts(Array(value.utf8)).text == "\(facts), SHA-256 \(digest)")
    }

    @Test(
        arguments: [
            ([0x73, 0x65, 0x63, 0xC3, 0x28], "5 bytes, no text, no UTF-8 from byte 3 on"),
            ([0x1F, 0x8B, 8, 0], "4 bytes, gzip"),
            ([0, 0, 0, 0, 7, 2, 3], "7 bytes, as serializers of a schema registry write"),
            ([0xFF, 0xFE, 0x7B], "3 bytes, UTF-16"),
        ] as [([UInt8], String)])
    func bytesAreNotShown(_ value: [UInt8], _ facts: String) {
        #expect(ValueFacts(value).text.hasPrefix("\(facts), SHA-256 "))
    }

    @Test func ofWhatIsCutTheWholeIsTold() throws {
        let cut = try letter(
            1, 4, type: nil, letter: [Header("dlq_value_bytes", "300000"), Header("dlq_value_sha256", "abc")])
        #expect(ValueFacts(cut.record).text == "300000 bytes, no text, no UTF-8 from byte 0 on, SHA-256 abc")
        let advice = LetterGroup.advice(cut)
        #expect(advice == "only its beginning is kept: let the sender send it anew, smaller; dismiss")
    }
}
