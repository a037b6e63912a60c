// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Runtime
@testable import Sync

/// Commands and what comes of them, one a line, in one world:
///
///     login d1 customerid=a email=new -> A known matched; A replaced +email=new -email=old
///     profile A                       -> customerid=a email=new
///
/// Left of the arrow: `identify`, `login`, `logout` and `search` with device and identities; `modify A email OLD NEW`,
/// where `-` is no value; `profile A`, which looks at what it has. Right of it: the profile, `known` or `anonymous`, the
/// rule, the profiles that a modify changed; or the reason of a refusal. The words at the end may be left out. Behind a
/// semicolon: all events. Profiles are called `A`, `B`, `C` in the order in which they appear, and those that were given
/// by their MPID.
struct Story {
    let world: World
    private var names: [MPID: String] = [:]

    init(_ world: World) { self.world = world }

    mutating func tell(_ text: String) {
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " -> ", maxSplits: 1).map { String($0) }
            guard parts.count == 2 else { preconditionFailure("no line of a story: \(line)") }
            let answer = run(parts[0].split(separator: " ").map { String($0) })
            let expected = parts[1].split(separator: ";", maxSplits: 1).map(words)
            let said = words(answer[...])
            let isAsExpected =
                parts[0].hasPrefix("profile") ? said == expected[0] : said.starts(with: expected[0])
            #expect(isAsExpected, "\(line): \(answer)")
            guard expected.count == 2 else { continue }
            let told = (world.last?.events ?? []).map { self.text(of: $0) }.joined(separator: ", ")
            #expect(words(told[...]) == expected[1], "\(line): \(told)")
        }
    }

    /// As bytes: two spellings of one letter are two values.
    private func words(_ text: Substring) -> [[UInt8]] { text.split(separator: " ").map { Array($0.utf8) } }

    // MARK: Commands

    private mutating func run(_ words: [String]) -> String {
        switch words[0] {
        case "profile": return self.text(of: world.profile(mpid(words[1])))
        case "modify":
            let (old, new) = (words[3] == "-" ? nil : words[3], words[4] == "-" ? nil : words[4])
            guard let mpid = mpid(words[1]) else { preconditionFailure("no profile: \(words)") }
            let change = ModifyIdentities.Change(identityType: words[2], oldValue: old, newValue: new)
            return text(of: world.run(.modify(ModifyIdentities(mpid: mpid, changes: [change]))))
        default:
            let identities = words.dropFirst(2).map { word in
                let parts = word.split(separator: "=", maxSplits: 1).map { String($0) }
                return (parts[0], Optional(parts[1]))
            }
            let request = SyncRequest(
                deviceId: DeviceID(words[1]), knownIdentities: Dictionary(uniqueKeysWithValues: identities))
            switch words[0] {
            case "identify": return moved(.identify, request)
            case "login": return moved(.login, request)
            case "logout": return moved(.logout, request)
            case "search": return text(of: world.run(.search(request)))
            default: preconditionFailure("no command: \(words)")
            }
        }
    }

    private mutating func moved(_ operation: SyncCommand.Operation, _ request: SyncRequest) -> String {
        let answer = world.run(.move(operation, request))
        if case .sync(let result) = answer { #expect(world.current(DeviceID(request.deviceId.text)) == result.mpid) }
        return text(of: answer)
    }

    // MARK: Texts

    private func mpid(_ name: String) -> MPID? {
        names.first { $0.value == name }?.key ?? Int64(name).flatMap { MPID($0) }
    }

    private mutating func name(_ mpid: MPID) -> String {
        if let name = names[mpid] { return name }
        // Those that were given have small MPIDs.
        let name =
            mpid.value.magnitude < 10_000
            ? mpid.description : String(UnicodeScalar(UInt8(ascii: "A") + UInt8(names.count)))
        if name != mpid.description { names[mpid] = name }
        return name
    }

    private mutating func text(of answer: Answer) -> String {
        switch answer {
        case .sync(let result):
            var words = [name(result.mpid), result.isLoggedIn ? "known" : "anonymous", result.rule.rawValue]
            if let changes = result.changeResults {
                words.append(changes.isEmpty ? "unchanged" : "changed")
                words += changes.map { name($0.modifiedMPID) }
            }
            return words.joined(separator: " ")
        case .rejected(let reason): return reason.rawValue
        default: return "\(answer)"
        }
    }

    private func text(of profile: Profile?) -> String {
        guard let profile else { return "unknown" }
        let types = Set(profile.identities.map(\.type)).sorted { $0.rawValue < $1.rawValue }
        let identities = types.flatMap { type in profile.values(of: type).map { text(of: $0) } }
        return (identities + (profile.isOrphaned ? ["orphaned"] : [])).joined(separator: " ")
    }

    private func text(of identity: Identity) -> String { "\(identity.type.rawValue)=\(identity.value)" }

    private mutating func text(of event: any EventMessage) -> String {
        switch event {
        case let event as ProfileCreated: return "created \(name(event.mpid))"
        case let event as IdentitiesChanged:
            let words =
                [name(event.mpid), event.reason.rawValue] + event.added.map { "+\(text(of: $0))" }
                + event.removed.map { "-\(text(of: $0))" }
            return words.joined(separator: " ")
        case let event as ProfileOrphaned:
            return "orphaned \(name(event.mpid))" + (event.takenBy.map { " by \(name($0))" } ?? "")
        case let event as CurrentUserChanged:
            return "\(event.deviceId) has \(name(event.mpid)) \(event.isLoggedIn ? "known" : "anonymous")"
        default: return "another"
        }
    }
}

extension World {
    func story(_ text: String) {
        var story = Story(self)
        story.tell(text)
    }
}
