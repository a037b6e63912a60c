// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import TestKit
import Testing
import WireJSON

@testable import CLI

/// docs/command-line.md, "import": an import that is killed anywhere, and goes on.
@Suite struct ImportRunTests {
    private struct Killed: Error {}

    /// Answers lists in any order, under one id always the same, and kills the tool.
    private final class Desk: ImportSender {
        struct List {
            var kind: String
            var elements: [JSONValue]
            var data: JSONValue
        }

        var random: SplitMix64
        /// In the order in which they came first.
        private(set) var lists: [CommandID: List] = [:]
        private(set) var order: [CommandID] = []
        private(set) var problems: [String] = []
        private var waiting: Set<CommandID> = []
        private let profilesFirst: Bool
        private let resume: String
        /// Calls until the tool is killed, and what it had written by then.
        var callsToLive = Int.max
        private(set) var stateAtDeath: Data?

        init(_ seed: UInt64, profilesFirst: Bool, resume: String) {
            random = SplitMix64(seed: seed)
            (self.profilesFirst, self.resume) = (profilesFirst, resume)
        }

        /// Another process begins.
        func begin(callsToLive: Int) {
            (self.callsToLive, waiting, stateAtDeath) = (callsToLive, [], nil)
        }

        private func live() throws {
            callsToLive -= 1
            guard callsToLive <= 0 else { return }
            if stateAtDeath == nil { stateAtDeath = try? Data(contentsOf: URL(filePath: resume)) }
            throw Killed()
        }

        func send(_ data: JSONValue, of type: String, _ id: CommandID, subject: String) throws {
            let kind = type == ImportUsers.type ? "users" : "profiles"
            let elements = data[kind]?.arrayValue ?? []
            if profilesFirst, kind == "users", waiting.contains(where: { lists[$0]?.kind == "profiles" }) {
                problems.append("users overtake profiles")
            }
            if let known = lists[id] {
                if known.data != data { problems.append("another list under the id of one before") }
            } else {
                lists[id] = List(kind: kind, elements: elements, data: data)
                order.append(id)
            }
            if !waiting.insert(id).inserted { problems.append("a list is sent twice") }
            try live()
        }

        func listen() throws { try live() }

        func answer(to id: CommandID) throws -> ReceivedReply? {
            guard waiting.contains(id), Bool.random(using: &random), let list = lists[id] else { return nil }
            waiting.remove(id)
            let results = list.elements.enumerated().map { index, element -> JSONValue in
                var result: JSONObject = [
                    "index": .number(JSONNumber(index)),
                    "outcome": .string(ImportRunTests.outcome(ImportRunTests.number(of: element)).rawValue),
                ]
                if result["outcome"] == "conflict" { result["reason"] = "DIFFERS" }
                if result["outcome"] == "invalid" {
                    result["message"] = .string("users[\(index)].createdAt: is not a time")
                }
                return .object(result)
            }
            return ReceivedReply([
                "commandId": .string(id.text), "commandType": .string("identity.x.import-\(list.kind).v1"),
                "commandDigest": "d", "status": "succeeded", "result": ["results": .array(results)],
            ])
        }
    }

    private static let outcomes: [ImportOutcome] = [.created, .created, .created, .same, .changed, .conflict, .invalid]
    private static func outcome(_ number: Int) -> ImportOutcome { outcomes[number % outcomes.count] }

    /// Every person of these files has a number.
    private static func number(of element: JSONValue) -> Int {
        Int((element["userId"] ?? element["mpid"])?.stringValue ?? "") ?? 0
    }

    /// A file, and what is to become of it.
    private struct Input {
        var text = ""
        /// The numbers of those who are to be sent, in their order.
        var users: [Int] = []
        var profiles: [Int] = []
        /// What the errors file is to have.
        var refused: [String] = []
        var counts: [String: ImportState.Counts] = [:]

        mutating func count(_ outcome: ImportOutcome, _ kind: String) {
            var counts = counts[kind] ?? .init()
            switch outcome {
            case .created: counts.created += 1
            case .same: counts.same += 1
            case .changed: counts.changed += 1
            case .conflict, .invalid: counts.refused += 1
            }
            self.counts[kind] = counts
        }

        static func reason(_ outcome: ImportOutcome) -> String {
            outcome == .conflict ? "DIFFERS" : "invalid: createdAt: is not a time"
        }
    }

    private func jsonLines(_ random: inout SplitMix64, profilesFirst: Bool) -> Input {
        func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
        var input = Input()
        if chance(30) { input.text = "\u{FEFF}" }
        let end = chance(30) ? "\r\n" : "\n"
        let count = Int.random(in: 0...700, using: &random)
        let change = Int.random(in: 0...count, using: &random)
        var isUser = chance(50)
        for number in 0..<count {
            if chance(5) { isUser.toggle() }
            if profilesFirst { isUser = number >= change }
            var line = isUser ? #"{"userId":"\#(number)"}"# : #"{"mpid":"\#(number)"}"#
            if chance(3) {
                line = isUser ? #"{"userId":"\#(number)"# : #"{"neither":\#(number)}"#
                let problem = isUser ? "no JSON" : "neither a user with userId nor a profile with mpid"
                input.refused.append(ImportErrors.line(Array(line.utf8), "invalid: \(problem)"))
                input.count(.invalid, "lines")
            } else {
                let note = String(repeating: "n", count: chance(4) ? 60_000 : 0)
                if !note.isEmpty { line.replace("}", with: #","name":"\#(note)"}"#) }
                if isUser { input.users.append(number) } else { input.profiles.append(number) }
                let outcome = ImportRunTests.outcome(number)
                input.count(outcome, isUser ? "users" : "profiles")
                if [.conflict, .invalid].contains(outcome) {
                    input.refused.append(ImportErrors.line(Array(line.utf8), Input.reason(outcome)))
                }
            }
            input.text += line + (number == count - 1 && chance(50) ? "" : end)
            if chance(4) { input.text += end }
        }
        return input
    }

    private func csv(_ random: inout SplitMix64) -> Input {
        func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
        var input = Input()
        input.text = "userId,installId,model\n"
        input.refused = ["userId,installId,model,importError"]
        for number in 0..<Int.random(in: 0...500, using: &random) {
            let name = chance(10) ? String(repeating: "m", count: 20_000) : "a \"good\" one"
            let rows = (0..<Int.random(in: 1...3, using: &random)).map { ["\(number)", "i\(number)-\($0)", name] }
            input.users.append(number)
            let outcome = ImportRunTests.outcome(number)
            input.count(outcome, "users")
            for row in rows {
                input.text += CSVRows.line(row) + "\n"
                if [.conflict, .invalid].contains(outcome) {
                    input.refused.append(CSVRows.line(row + [Input.reason(outcome)]))
                }
            }
        }
        return input
    }

    /// Everybody is sent, in lists that are the same whenever they are sent, and is told once, wherever the tool is killed.
    @Test func everybodyIsSentAndToldOnce() throws {
        try runSequences(8) { seed in
            var random = SplitMix64(seed: seed)
            let profilesFirst = Bool.random(using: &random)
            let isCSV = Int.random(in: 0..<3, using: &random) == 0
            let input = isCSV ? csv(&random) : jsonLines(&random, profilesFirst: profilesFirst)
            let folder = FileManager.default.temporaryDirectory.appending(path: "import-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            func path(_ name: String) -> String { folder.appending(path: name).path }
            try Data(input.text.utf8).write(to: URL(filePath: path("input")))
            let (upsert, events) = (Bool.random(using: &random), Bool.random(using: &random))
            let desk = Desk(seed, profilesFirst: profilesFirst, resume: path("resume"))
            let state = try #require(
                try run(input, isCSV, desk, upsert: upsert, events: events, profilesFirst, path, &random),
                "seed \(seed)")
            check(input, desk, state, upsert: upsert, events: events, "seed \(seed)")
            let told = try String(contentsOf: URL(filePath: path("errors")), encoding: .utf8)
            let expected = input.refused.map { $0 + "\n" }.joined()
            // What the parser says of broken JSON is its own.
            #expect(reasons(told) == reasons(expected), "seed \(seed)")
            // What is done is known as done.
            #expect(try ImportState.read(path("resume")) == state, "seed \(seed)")
        }
    }

    private func reasons(_ text: String) -> String {
        text.replacing(#/"importError":"invalid: no JSON(?:[^"\\]|\\.)*"/#, with: #""importError":"invalid: no JSON""#)
    }

    /// Processes one after the other, until one comes to the end.
    private func run(
        _ input: Input, _ isCSV: Bool, _ desk: Desk, upsert: Bool, events: Bool, _ profilesFirst: Bool,
        _ path: (String) -> String, _ random: inout SplitMix64
    ) throws -> ImportState? {
        for life in 0..<60 {
            var state =
                try ImportState.read(path("resume"))
                ?? ImportState(run: "r\(life)", app: "demo", upsert: upsert, dryRun: false)
            let lines = try LineReader(path: path("input"), from: state.offset, line: state.line)
            defer { lines.close() }
            if state.offset > 0 { #expect(lines.digest.finalize().hex == state.digest) }
            let reader: any ImportReader
            if isCSV {
                let csv = try CSVReader(lines, header: state.offset > 0 ? state.header : nil)
                state.header = csv.header
                reader = csv
            } else {
                reader = JSONLinesReader(lines)
            }
            let errors = try ImportErrors(path: path("errors"), header: state.header, length: state.errorBytes)
            var options = ImportRun.Options(profilesFirst: profilesFirst, events: events, resume: path("resume"))
            options.stateEvery = [.zero, .milliseconds(1), .seconds(3600)][Int.random(in: 0..<3, using: &random)]
            let run = ImportRun(state, options, reader, desk, errors, total: nil)
            desk.begin(callsToLive: life < 50 ? Int.random(in: 1...12, using: &random) : .max)
            do {
                try run.run { false }
                return run.state
            } catch is Killed {
                // Nothing is written after the end.
                let url = URL(filePath: path("resume"))
                if let left = desk.stateAtDeath {
                    try left.write(to: url)
                } else {
                    try? FileManager.default.removeItem(at: url)
                }
            }
        }
        return nil
    }

    private func check(
        _ input: Input, _ desk: Desk, _ state: ImportState, upsert: Bool, events: Bool, _ seed: Comment
    ) {
        #expect(desk.problems.isEmpty, seed)
        for (kind, numbers) in [("users", input.users), ("profiles", input.profiles)] {
            let lists = desk.order.compactMap { desk.lists[$0] }.filter { $0.kind == kind }
            #expect(lists.flatMap(\.elements).map(Self.number) == numbers, seed)
            for list in lists {
                #expect(
                    list.data["upsert"] == (upsert ? true : nil) && list.data["events"] == (events ? nil : false), seed)
                #expect(list.elements.count <= ImportRun.elements, seed)
                let bytes = list.data.serialized().count
                // As they stand in the file; what they are called in the message comes on top.
                #expect(bytes <= 3 * ImportRun.listBytes / 2 || list.elements.count == 1, seed)
            }
        }
        #expect(state.counts == input.counts, seed)
        #expect(state.isDone, seed)
    }

    // MARK: The reader

    /// From the end of each person the same others follow, by the same lines: what is killed there goes on so.
    @Test func fromAnyPlaceTheSameFollows() throws {
        try runSequences(5) { seed in
            var random = SplitMix64(seed: seed)
            let isCSV = Bool.random(using: &random)
            let input = isCSV ? csv(&random) : jsonLines(&random, profilesFirst: false)
            let path = FileManager.default.temporaryDirectory.appending(path: "import-\(UUID().uuidString)").path
            let bytes = Data(input.text.utf8)
            try bytes.write(to: URL(filePath: path))
            defer { try? FileManager.default.removeItem(atPath: path) }
            func read(from offset: Int, line: Int, atMost count: Int, _ header: [String]?) throws -> [ImportItem] {
                let lines = try LineReader(path: path, from: offset, line: line)
                defer { lines.close() }
                var reader: any ImportReader = JSONLinesReader(lines)
                if isCSV { reader = try CSVReader(lines, header: header) }
                var items: [ImportItem] = []
                while items.count < count, let item = try reader.next() { items.append(item) }
                return items
            }
            func text(_ items: some Sequence<ImportItem>) -> [String] {
                items.map { "\($0.line) \($0.nextLine) \($0.start) \($0.end) \($0.data) \($0.digest.finalize().hex)" }
            }
            let all = try read(from: 0, line: 1, atMost: .max, nil)
            for (index, item) in all.enumerated() where index % 37 == 0 {
                #expect(item.digest.finalize().hex == SHA256.hash(data: bytes.prefix(item.end)).hex, "seed \(seed)")
                let rest = try read(
                    from: item.end, line: item.nextLine, atMost: 5, isCSV ? ["userId", "installId", "model"] : nil)
                #expect(text(rest) == text(all.dropFirst(index + 1).prefix(5)), "seed \(seed)")
            }
        }
    }

    private func items(_ text: String, isCSV: Bool = true) throws -> [ImportItem] {
        let path = FileManager.default.temporaryDirectory.appending(path: "import-\(UUID().uuidString)").path
        try Data(text.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let lines = try LineReader(path: path)
        defer { lines.close() }
        var reader: any ImportReader = JSONLinesReader(lines)
        if isCSV { reader = try CSVReader(lines) }
        var items: [ImportItem] = []
        while let item = try reader.next() { items.append(item) }
        return items
    }

    @Test func rowsWithoutAnIDAreNotOnePerson() throws {
        #expect(try items("userId,installId\n,i1\n,i2\n").count == 2)
    }

    @Test func aFileFromWindowsIsReadAsOthers() throws {
        let item = try #require(try items("\u{FEFF}userId,installId\r\n1,i1\r\n").first)
        #expect(item.data["installs"]?.arrayValue?.first?["installId"] == "i1")
    }

    /// Only where a file begins: one that was put together has it in a cell.
    @Test func aMarkWithinAFileIsNotPassedOver() throws {
        #expect(
            try items("{\"userId\":\"1\"}\n\u{FEFF}{\"userId\":\"2\"}\n", isCSV: false).map { $0.problem == nil } == [
                true, false,
            ])
    }

    /// What an errors file has may be mended and fed again: the reason is not sent, and not told twice.
    @Test func whatIsRefusedAgainHasOneReason() throws {
        let line = ImportErrors.line(Array(#"{"userId":"1"}"#.utf8), "DIFFERS")
        #expect(ImportErrors.line(Array(line.utf8), "IMMUTABLE") == #"{"importError":"IMMUTABLE","userId":"1"}"#)
        #expect(try items(line, isCSV: false).first?.data == ["userId": "1"])
    }

    /// An answer that does not fit its list is none.
    @Test(arguments: [0, 2]) func anAnswerOfAnotherLengthIsAProblem(_ count: Int) throws {
        final class Wrong: ImportSender {
            let count: Int
            init(_ count: Int) { self.count = count }
            func send(_ data: JSONValue, of type: String, _ id: CommandID, subject: String) throws {}
            func listen() throws {}
            func answer(to id: CommandID) throws -> ReceivedReply? {
                ReceivedReply([
                    "commandId": .string(id.text), "commandType": "t", "commandDigest": "d", "status": "succeeded",
                    "result": [
                        "results": .array(Array(repeating: ["index": 0, "outcome": "created"], count: count))
                    ],
                ])
            }
        }
        let path = FileManager.default.temporaryDirectory.appending(path: "import-\(UUID().uuidString)").path
        try Data("{\"userId\":\"1\"}\n".utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let run = ImportRun(
            ImportState(run: "r", app: "demo", upsert: false, dryRun: false),
            .init(profilesFirst: false, events: true, resume: nil), JSONLinesReader(try LineReader(path: path)),
            Wrong(count), nil, total: nil)
        #expect(throws: (any Error).self) { try run.run { false } }
        #expect(run.state.all == 0)
    }
}
