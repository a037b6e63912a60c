// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// Something that docs/guarantees.md says does not happen.
struct ChaosFinding: Codable {
    enum Kind: String, Codable, CaseIterable {
        case lostReply = "LOST_REPLY"
        case answersDiffer = "ANSWERS_DIFFER"
        case unexpectedAnswer = "UNEXPECTED_ANSWER"
        case decidedTwice = "DECIDED_TWICE"
        case copiesDiffer = "COPIES_DIFFER"
        case sequence = "SEQUENCE"
        case eventMissing = "EVENT_MISSING"
        case twoUsers = "TWO_USERS"
        case twoActive = "TWO_ACTIVE_INSTALLS"
        case stateDiffers = "STATE_DIFFERS"
        case deadLetter = "DEAD_LETTER"
        case unsigned = "NOT_SIGNED_BY_A_SERVICE"
        case unexpectedEnd = "SERVICE_ENDED"
        case slowRecovery = "SLOW_RECOVERY"
    }

    var kind: Kind
    var what: String
    /// What led there, line by line.
    var story: [String] = []
}

/// Compares what came out of a run with what is promised. Pure: the same history gets the same findings.
struct ChaosJudge {
    let history: ChaosHistory
    private(set) var findings: [ChaosFinding] = []

    init(_ history: ChaosHistory) {
        self.history = history
        checkAnswers()
        checkEvents()
        checkReplySaysWhatEventsSay()
        checkPersons()
        checkEnd()
        checkStrays()
        checkRecoveries()
    }

    mutating func find(_ kind: ChaosFinding.Kind, _ what: String, _ commands: [ChaosHistory.CommandKey] = []) {
        findings.append(ChaosFinding(kind: kind, what: what, story: commands.flatMap(history.story)))
    }

    // MARK: Answers

    private mutating func checkAnswers() {
        for command in history.commands.values.sorted(by: { $0.key < $1.key }) {
            let answers = history.answers[command.key] ?? []
            let final = answers.filter(\.isFinal)
            guard let first = final.first else {
                let state = answers.isEmpty ? "no answer" : "only pending"
                find(.lostReply, "\(command.type) \(command.key.id) has \(state)", [command.key])
                continue
            }
            if Set(final.map(\.fingerprint)).count > 1 {
                find(.answersDiffer, "\(command.type) \(command.key.id) has final answers that differ", [command.key])
            }
            if !command.allowed.contains(first.outcome) {
                let wanted = command.allowed.sorted().joined(separator: " or ")
                find(
                    .unexpectedAnswer,
                    "\(command.type) \(command.key.id) was answered \(first.outcome) instead of \(wanted)",
                    [command.key])
            }
        }
    }

    // MARK: Events

    /// Each event once, whatever copies of it there are.
    private var distinctEvents: [ChaosHistory.Event] {
        var seen = Set<String>()
        return history.events.filter { seen.insert("\($0.service) \($0.id)").inserted }
    }

    private mutating func checkEvents() {
        for (id, copies) in Dictionary(grouping: history.events, by: { "\($0.service) \($0.id)" }).sorted(by: {
            $0.key < $1.key
        })
        where Set(copies.map(\.fingerprint)).count > 1 {
            find(.copiesDiffer, "event \(id) (\(copies[0].type)) was published in copies that differ")
        }
        let events = distinctEvents
        // Several services may tell something of one record.
        for (_, same) in Dictionary(grouping: events, by: { "\($0.service) \($0.sequence)" }).sorted(by: {
            $0.key < $1.key
        })
        where same.count > 1 {
            find(.sequence, "\(same.count) different events have the sequence \(same[0].sequence)")
        }
        // What follows from one message was decided at one place of the log.
        for (_, group) in Dictionary(grouping: events, by: { "\($0.service) \($0.causation)" }).sorted(by: {
            $0.key < $1.key
        }) {
            let places = Set(group.map { $0.sequence.split(separator: ".").dropLast().joined(separator: ".") }).sorted()
            if places.count > 1, let first = group.first {
                let keys = history.commands.keys.filter { $0.id == first.causation }.sorted()
                find(
                    .decidedTwice,
                    "\(first.causation) was decided \(places.count) times by \(first.service): "
                        + places.joined(separator: ", "), keys)
            }
        }
        checkVersions(events)
    }

    /// Of the events of one install that were decided on one partition, the later one has the higher version (L34).
    private mutating func checkVersions(_ events: [ChaosHistory.Event]) {
        let versioned = events.filter { $0.service == "link" && $0.data["version"]?.int64Value != nil }
        for (install, own) in Dictionary(grouping: versioned, by: \.subject).sorted(by: { $0.key < $1.key }) {
            for (version, same) in Dictionary(
                grouping: own, by: { "\($0.type) \($0.data["version"]?.int64Value ?? 0)" })
            where same.count > 1 {
                find(.decidedTwice, "install \(install) has \(same.count) events \(version)")
            }
            let lanes = Dictionary(grouping: own) { String($0.sequence.prefix { $0 != "]" }) }
            for lane in lanes.values {
                let versions = lane.sorted { $0.sequence < $1.sequence }.compactMap { $0.data["version"]?.int64Value }
                if versions != versions.sorted() {
                    find(.sequence, "install \(install): the versions \(versions) do not grow with the sequence")
                }
            }
        }
    }

    /// What was answered was also told to others.
    private mutating func checkReplySaysWhatEventsSay() {
        let events = Dictionary(grouping: distinctEvents, by: \.subject)
        for command in history.commands.values.sorted(by: { $0.key < $1.key }) {
            guard let answer = history.finalAnswer(command.key), answer.outcome == "succeeded",
                let result = answer.result
            else { continue }
            let wanted: (types: Set<String>, subject: String?, members: [String])
            switch command.type {
            case "link.register-install": wanted = (["link.install-registered"], result["installId"]?.stringValue, [])
            case "link.request": wanted = (["link.linked"], result["installId"]?.stringValue, ["userId"])
            case "user.create":
                wanted = (["user.created", "user.restored"], result["installId"]?.stringValue, ["userId"])
            case "sync.identify", "sync.login", "sync.logout":
                if result["mpid"] == result["previousMPID"] { continue }
                wanted = (["sync.current-user-changed"], command.data["deviceId"]?.stringValue, ["mpid"])
            default: continue
            }
            let found = events[wanted.subject ?? ""]?.contains { event in
                wanted.types.contains(event.type) && wanted.members.allSatisfy { event.data[$0] == result[$0] }
            }
            if found != true {
                find(
                    .eventMissing,
                    "\(command.type) \(command.key.id) succeeded, and no event \(wanted.types.sorted().joined(separator: " or ")) tells of it",
                    [command.key])
            }
        }
    }

    // MARK: Persons

    /// An external id belongs to one person, who was made once (L18, L19).
    private mutating func checkPersons() {
        let links = distinctEvents.filter { $0.type == "link.linked" }
        let byExternalID = Dictionary(grouping: links) { $0.data["externalId"]?.stringValue ?? "" }
        for (externalID, own) in byExternalID.sorted(by: { $0.key < $1.key }) {
            let users = Set(own.compactMap { $0.data["userId"]?.stringValue }).sorted()
            let what: String
            if users.count > 1 {
                what = "external id \(externalID) is linked to \(users.joined(separator: " and "))"
            } else if own.count(where: { $0.data["personCreated"] == true }) > 1 {
                what = "the person of external id \(externalID) was created more than once"
            } else {
                continue
            }
            let causes = Set(own.map(\.causation))
            find(.twoUsers, what, history.commands.keys.filter { causes.contains($0.id) }.sorted())
        }
        for (user, own) in Dictionary(grouping: links, by: { $0.data["userId"]?.stringValue ?? "" }).sorted(by: {
            $0.key < $1.key
        }) {
            let externalIDs = Set(own.compactMap { $0.data["externalId"]?.stringValue }).sorted()
            if externalIDs.count > 1 {
                find(.twoUsers, "user \(user) has the external ids \(externalIDs.joined(separator: " and "))")
            }
        }
    }

    // MARK: The end

    /// The services say in the end what their events said.
    private mutating func checkEnd() {
        let events = Dictionary(grouping: distinctEvents, by: \.subject)
        var active: [String: [String]] = [:]
        for question in history.questions {
            guard let result = history.finalAnswer(question.command)?.result else { continue }  // It is a lost reply.
            let own = events[question.id] ?? []
            switch question.subject {
            case .install:
                if result["isActive"] == true, let user = result["userId"]?.stringValue {
                    active[user, default: []].append(question.id)
                }
                let versioned = own.filter { $0.service == "link" && $0.data["version"]?.int64Value != nil }
                let last = versioned.compactMap { $0.data["version"]?.int64Value }.max()
                let link = versioned.filter { $0.type == "link.linked" }.max {
                    ($0.data["version"]?.int64Value ?? 0) < ($1.data["version"]?.int64Value ?? 0)
                }
                guard let last, let link else { continue }
                compare(question, "version", said: .number(JSONNumber(last)), result["version"])
                compare(question, "userId", said: link.data["userId"], result["userId"])
                compare(question, "externalId", said: link.data["externalId"], result["externalId"])
            case .user:
                let last = own.filter { ["user.created", "user.restored"].contains($0.type) }.max {
                    $0.sequence < $1.sequence
                }
                if let last { compare(question, "userId", said: last.data["userId"], result["userId"]) }
            case .device:
                let last = own.filter { $0.type == "sync.current-user-changed" }.max { $0.sequence < $1.sequence }
                let current = result["users"]?.arrayValue?.first { $0["isCurrent"] == true }
                if let last { compare(question, "mpid", said: last.data["mpid"], current?["mpid"]) }
            }
        }
        for (user, installs) in active.sorted(by: { $0.key < $1.key }) where installs.count > 1 {
            find(.twoActive, "user \(user) is active on \(installs.sorted().joined(separator: " and "))")
        }
    }

    private mutating func compare(
        _ question: ChaosHistory.Question, _ member: String, said: JSONValue?, _ is: JSONValue?
    ) {
        if said == `is` { return }
        func text(_ value: JSONValue?) -> String {
            value.map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "nothing"
        }
        find(
            .stateDiffers,
            "\(question.subject) \(question.id): events say \(member) \(text(said)), the service says \(text(`is`))",
            [question.command])
    }

    // MARK: The rest

    private mutating func checkStrays() {
        for letter in history.deadLetters { find(.deadLetter, "\(letter.place): \(letter.what)") }
        for record in history.unsigned { find(.unsigned, "\(record.place): \(record.what)") }
        for end in history.unexpectedEnds { find(.unexpectedEnd, end) }
    }

    private mutating func checkRecoveries() {
        for injury in history.injuries {
            guard let limit = injury.limit, let recovery = ChaosRecovery(injury, in: history), recovery.seconds > limit
            else { continue }
            find(
                .slowRecovery,
                "after \(injury.what) at \(ChaosHistory.time(injury.begin)) a \(injury.service) command waited "
                    + "\(ChaosHistory.time(recovery.seconds)); \(ChaosHistory.time(limit)) are promised",
                [recovery.command])
        }
    }
}

/// How long an injury was felt: the longest wait for a first answer among the commands that were waiting when it
/// began or came before all was well again.
struct ChaosRecovery {
    let seconds: Double
    let command: ChaosHistory.CommandKey

    /// - Returns: `nil` when no command met it.
    init?(_ injury: ChaosHistory.Injury, in history: ChaosHistory) {
        var longest: (seconds: Double, command: ChaosHistory.CommandKey)?
        for command in history.commands.values where injury.service.isEmpty || injury.service == command.service {
            guard let sent = command.sentAt.first, sent <= injury.end ?? .infinity,
                let answered = history.answers[command.key]?.map(\.at).min(), answered >= injury.begin
            else { continue }
            let wait = answered - max(sent, injury.begin)
            if wait > longest?.seconds ?? -1 { longest = (wait, command.key) }
        }
        guard let longest else { return nil }
        (seconds, command) = longest
    }
}
