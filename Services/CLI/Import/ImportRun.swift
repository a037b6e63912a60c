// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Observability
import Supervision
import WireJSON

/// Reads the input, sends it in lists, hears what became of them and writes that down, in the order of the input.
final class ImportRun {
    /// Elements of one list, and its bytes. Few lists on their way and not the largest: whoever waits on the same services
    /// waits for all of them at most.
    static let elements = 200
    static let listBytes = 128 << 10
    static let window = 6
    /// What was sent is waited for when somebody stops it.
    private static let farewell: Duration = .seconds(5)

    struct Options {
        /// Profiles come before users (S158).
        var profilesFirst: Bool
        var events: Bool
        /// The file of `--resume`.
        var resume: String?
        /// How often it is written.
        var stateEvery: Duration = .milliseconds(250)
    }

    private struct List {
        var items: [ImportItem]
        var kind: ImportItem.Kind?
        /// Of its command.
        var id: CommandID?
        /// One for each item that was sent.
        var results: [ImportResult.Element]?
    }

    private(set) var state: ImportState
    private let options: Options
    private var reader: any ImportReader
    private let post: any ImportSender
    private let errors: ImportErrors?
    private var progress: ImportProgress
    private var lists: [List] = []
    private var ahead: ImportItem?
    /// Read, and waiting for what stands before it.
    private var held: List?
    private var isRead = false
    private var written: ContinuousClock.Instant?
    /// Of all that is answered by this run.
    private var digest: SHA256?
    private var shown = 0

    init(
        _ state: ImportState, _ options: Options, _ reader: any ImportReader, _ post: any ImportSender,
        _ errors: ImportErrors?, total: Int?
    ) {
        self.state = state
        self.options = options
        self.reader = reader
        self.post = post
        self.errors = errors
        progress = ImportProgress(total: total, before: state.offset, count: state.all)
    }

    /// - Throws: `Problem`; what was answered by then is written down.
    func run(unless stop: () -> Bool) throws {
        defer { progress.clear() }
        do {
            // The ids of all lists follow from what stands in it: whoever is killed after the first one is sent knows them.
            try save(always: true)
            var stopped: ContinuousClock.Instant?
            while true {
                if stopped == nil, stop() { stopped = .now }
                if stopped == nil { try fill() }
                if lists.isEmpty, isRead && held == nil || stopped != nil { break }
                if let stopped, .now - stopped > Self.farewell { break }
                try post.listen()
                try hear()
                progress.show(state)
            }
            if stopped != nil {
                try save(always: true)
                throw Problem(.interrupted, "interrupted at line \(state.line)")
            }
        } catch {
            try? save(always: true)
            throw error
        }
        state.isDone = true
        try save(always: true)
    }

    // MARK: Sending

    private func fill() throws {
        while lists.count < Self.window, let list = try held ?? nextList() {
            held = nil
            if options.profilesFirst {
                if list.kind == .profiles, state.hasUsers { throw profilesTooLate(list) }
                // Who is here is marked by links; so all profiles are here before the first link.
                guard list.kind != .users || lists.allSatisfy({ $0.kind != .profiles }) else {
                    held = list
                    return
                }
            }
            if list.kind == .users { state.hasUsers = true }
            lists.append(try sent(list))
        }
    }

    private func profilesTooLate(_ list: List) -> Problem {
        Problem(
            .usage, "line \(list.items[0].line) has a profile behind users, and the app has `fromLinks`.",
            "There, profiles come first: a user that comes before makes a profile of its own (docs/sync.md, \"Import\")."
        )
    }

    /// Follows from where it begins alone, so that a run that goes on sends the same lists.
    private func nextList() throws -> List? {
        var list = List(items: [])
        var bytes = 0
        while !isRead, list.items.count < Self.elements {
            guard let item = try ahead ?? reader.next() else {
                isRead = true
                break
            }
            ahead = item
            let isOther = item.kind != nil && list.kind != nil && item.kind != list.kind
            if isOther || !list.items.isEmpty && bytes + item.size > Self.listBytes { break }
            ahead = nil
            bytes += item.size
            list.kind = list.kind ?? item.kind
            list.items.append(item)
        }
        return list.items.isEmpty ? nil : list
    }

    private func sent(_ list: List) throws -> List {
        var list = list
        guard let kind = list.kind, let first = list.items.first else {
            list.results = []
            return list
        }
        let elements = list.items.filter { $0.problem == nil }.map(\.data)
        var members: [(String, JSONValue)] = [(kind.rawValue, .array(elements))]
        if state.upsert { members.append(("upsert", true)) }
        if !options.events { members.append(("events", false)) }
        let type = kind == .users ? ImportUsers.type : ImportProfiles.type
        let id = state.commandID(at: first.start)
        try post.send(.object(JSONObject(members)), of: type, id, subject: Self.subject(elements, kind))
        list.id = id
        return list
    }

    /// Spreads lists over partitions.
    private static func subject(_ elements: [JSONValue], _ kind: ImportItem.Kind) -> String {
        let id = elements.first?[kind == .users ? "userId" : "mpid"]
        let text = id?.stringValue ?? (id?.int64Value).map { String($0) } ?? ""
        let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) || $0 == 0x2D }
        return (1...24).contains(text.utf8.count) && isPlain ? text : "import"
    }

    // MARK: Hearing

    private func hear() throws {
        for place in lists.indices where lists[place].results == nil {
            guard let id = lists[place].id, let reply = try post.answer(to: id) else { continue }
            lists[place].results = try results(reply, of: lists[place])
        }
        while let list = lists.first, let results = list.results {
            lists.removeFirst()
            try conclude(list, results)
        }
        try save(always: false)
    }

    private func results(_ reply: ReceivedReply, of list: List) throws -> [ImportResult.Element] {
        let count = list.items.count { $0.problem == nil }
        if reply.status == .succeeded, let result = reply.result(as: ImportResult.self), result.results.count == count {
            return result.results
        }
        let reason = reply.reason ?? reply.status.rawValue
        var problem = Problem(
            .refused, "the list at line \(list.items[0].line) was refused: \(reason), \(reply.message ?? "")",
            "Nothing of it was done, and nothing behind it was sent.")
        switch ReasonCode(rawValue: reason) {
        case .insufficientScope: problem.advice.append("The key needs the scope `import`: --key-id")
        case .idReused:
            problem.advice.append(
                "The input is not what it was when this import began. Begin anew, with another --resume.")
        default: break
        }
        throw problem
    }

    private func conclude(_ list: List, _ results: [ImportResult.Element]) throws {
        var results = results[...]
        for item in list.items {
            let result =
                item.problem.map { ImportResult.Element(index: 0, invalid: $0) } ?? results.popFirst()
                ?? ImportResult.Element(index: 0, invalid: "not answered")
            state.count(result.outcome, item.kind)
            guard [.conflict, .invalid].contains(result.outcome) else { continue }
            let reason = Self.words(result)
            try errors?.add(item, because: reason)
            if errors == nil { show(item.line, reason) }
        }
        guard let last = list.items.last else { return }
        (state.offset, state.line, digest) = (last.end, last.nextLine, last.digest)
        state.errorBytes = errors?.length ?? 0
    }

    static func words(_ result: ImportResult.Element) -> String {
        let reason = result.reason.map { $0.rawValue + (result.type.map { " \($0.rawValue)" } ?? "") }
        var message = result.message.map { $0[...] } ?? "?"
        // The list is nobody's but ours: its line says who it is.
        for member in ["users[", "profiles["] where message.hasPrefix(member) {
            message = message.firstRange(of: "].").map { message[$0.upperBound...] } ?? message
        }
        if message.hasPrefix("data.") { message = message.dropFirst("data.".count) }
        return reason ?? "invalid: \(message)"
    }

    private static let mostShown = 20

    private func show(_ line: Int, _ reason: String) {
        shown += 1
        guard shown <= Self.mostShown else { return }
        progress.clear()
        complain("line \(line): \(reason)".harmless)
        if shown == Self.mostShown {
            complain("More are not shown; --errors FILE has all, to be mended and fed again.")
        }
    }

    private func save(always: Bool) throws {
        guard let path = options.resume else { return }
        guard always || written.map({ .now - $0 > options.stateEvery }) ?? true else { return }
        written = .now
        if let digest { state.digest = digest.finalize().hex }
        try state.write(path)
    }
}

/// How far it is, how fast and for how long still; on a terminal only.
struct ImportProgress {
    /// In bytes; `nil` where nobody knows.
    private let total: Int?
    private let before: Int
    private let countBefore: Int
    private let start = ContinuousClock.now
    private var shown: ContinuousClock.Instant?

    init(total: Int?, before: Int, count: Int) {
        self.total = total
        self.before = before
        countBefore = count
    }

    mutating func show(_ state: ImportState) {
        guard Terminal.isErrorOutput, shown.map({ .now - $0 > .milliseconds(200) }) ?? true else { return }
        shown = .now
        Terminal.rewrite(text(state, after: .now - start))
    }

    func text(_ state: ImportState, after time: Duration) -> String {
        let seconds = max(0.5, time.inSeconds)
        let rate = Int((Double(state.all - countBefore) / seconds).rounded())
        var parts = ["\(state.all)", "\(rate)/s"]
        if let total, total > 0 {
            let width = 20
            let full = min(width, state.offset * width / total)
            parts.insert(
                "[\(String(repeating: "#", count: full) + String(repeating: "-", count: width - full))]", at: 0)
            let speed = Double(state.offset - before) / seconds
            parts.append(speed > 0 ? "\(ProgressLine.words(Double(total - state.offset) / speed)) left" : "-")
        }
        parts += [state.refused > 0 ? "\(state.refused) refused" : nil, "Ctrl-C stops"].compactMap(\.self)
        return "  " + parts.joined(separator: "  ")
    }

    mutating func clear() {
        if shown != nil { Terminal.rewrite("") }
        shown = nil
    }
}
