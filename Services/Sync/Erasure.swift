// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
import Storage

/// An erasure that waits for other services to erase their part.
public struct Erasure: Sendable, Hashable {
    /// The command that began it.
    public var command: CommandKey
    public var mpids: [MPID]
    /// How many profiles hold a value that the command named, and stay.
    public var heldByOthers: Int
    /// The ids of the commands that were forwarded and are not answered.
    public var waiting: [CommandID]
    /// One of the others could not do its part.
    public var hasFailed = false

    public init(command: CommandKey, mpids: [MPID], heldByOthers: Int, waiting: [CommandID]) {
        self.command = command
        self.mpids = mpids
        self.heldByOthers = heldByOthers
        self.waiting = waiting
    }
}

/// A user of the link service.
public typealias LinkedUser = Scoped<UserID>

/// Another service's answer to a command that was forwarded to it.
public struct ForwardAnswer: Sendable, Hashable {
    public var forwardID: CommandID
    /// The final answer is yet to come.
    public var isPending: Bool
    public var hasSucceeded: Bool
}

extension ForwardAnswer {
    init(_ reply: ReceivedReply) {
        self.init(
            forwardID: reply.commandId, isPending: reply.status == .pending, hasSucceeded: reply.status == .succeeded)
    }
}

// MARK: The rules

/// Erasing somebody: here at once, in the other services by commands that each of them answers.
extension SyncDecider {
    /// S53, S93.
    func erase(_ command: EraseProfile) throws(Rejection) -> Decision {
        if let waiting = stillWaiting { return waiting }
        let named = try named(command)
        let isEnforced = context.app.verification.mode == .enforce
        let persons = command.persons ?? (isEnforced ? .byCustomerId : .marked)
        return begin(
            named, .erase, persons: named.profiles.flatMap { Self.persons($0, persons) }, customerIDs: [],
            users: persons == .none ? [] : named.profiles.compactMap(\.mark?.userID))
    }

    /// The link service asks for it, so it needs not be asked to do its part. Whoever it does not find here may still
    /// have a session (S95).
    func forget(_ command: ForgetProfiles) -> Decision {
        if let waiting = stillWaiting { return waiting }
        return begin(
            forgotten(command), .forget, persons: [],
            customerIDs: command.externalId.map { [IdentityValue($0.text)] } ?? [],
            users: command.userId.map { [$0] } ?? [])
    }

    /// The same command came before, and the others have not done their part: they were asked, and whatever they answer
    /// ends both (S69).
    private var stillWaiting: Decision? {
        state.erasures[context.command].map { Decision(.pending(nil), changes: [.erasure($0)]) }
    }

    /// The link service's persons of a profile.
    private static func persons(_ profile: Profile, _ which: EraseProfile.Persons) -> [ForgetPerson] {
        let marked = profile.mark.map { [ForgetPerson(userId: $0.userID)] } ?? []
        switch which {
        case .none: return []
        case .marked: return marked
        case .byCustomerId:
            let named = profile.values(of: .customerID).map { ForgetPerson(externalId: ExternalID($0.value.text)) }
            guard let user = marked.first?.userId, var first = named.first else { return marked + named }
            first.userId = user
            return [first] + named.dropFirst()
        }
    }

    /// S54, S55.
    /// - Parameters:
    ///   - persons: those whom the link service is to forget.
    ///   - users: those of the link service who are gone, whatever is read of them later (S58).
    private func begin(
        _ named: ErasedProfiles, _ cause: SyncCause, persons: [ForgetPerson], customerIDs: [IdentityValue],
        users: [UserID]
    ) -> Decision {
        let profiles = (named.profiles + aliasSources(of: named)).sorted { $0.mpid < $1.mpid }
        let mpids = profiles.map(\.mpid)
        var draft = Draft(state, context, cause)
        draft.touch(named.identities)
        leaveAliases(into: mpids, &draft)
        for profile in profiles where !profile.isErased { draft.erase(profile) }
        let aliases = state.aliases.values.sorted { $0.key < $1.key }.filter { alias in
            alias.key.app == app && (mpids.contains(alias.source) || mpids.contains(alias.destination))
        }
        for alias in aliases {
            draft.tell(
                AliasDropped(
                    aliasId: alias.key.id, sourceMPID: alias.source, destinationMPID: alias.destination, rule: .erased))
        }
        for profile in profiles where !profile.isErased { draft.tell(ProfileErased(mpid: profile.mpid, cause: cause)) }
        leaveDevices(of: mpids, &draft)
        var decision = draft.decision(.pending(nil))
        decision.changes += aliases.map { .aliasDone($0.key) }
        decision.changes += users.map { .forgotten(LinkedUser(app: app, id: $0)) }
        let sessions = ForgetSessions(
            mpids: mpids, userIds: Self.distinct(customerIDs + Self.values(of: .customerID, profiles)),
            emails: Self.distinct(Self.values(of: .email, profiles)))
        let commands: [any CommandMessage] = [sessions] + persons
        decision.forwards = commands.enumerated().map { Forward(id: context.forwardID($0), command: $1) }
        decision.changes.append(
            .erasure(
                Erasure(
                    command: context.command, mpids: mpids, heldByOthers: named.heldByOthers,
                    waiting: decision.forwards.map(\.id))))
        return decision
    }

    /// No device has any of these as user any more.
    private func leaveDevices(of mpids: [MPID], _ draft: inout Draft) {
        for device in state.devices.values.sorted(by: { $0.key < $1.key }) where device.key.app == app {
            let users = [device.current, device.anonymous].compactMap { $0 }
            guard users.contains(where: mpids.contains) else { continue }
            var after = device
            if let current = device.current, mpids.contains(current) {
                after.current = nil
                draft.tell(CurrentUserErased(deviceId: device.key.id, mpid: current, cause: draft.cause))
            }
            if device.anonymous.map(mpids.contains) == true { after.anonymous = nil }
            after.users.removeAll { mpids.contains($0.mpid) || draft.profile($0.mpid)?.isErased != false }
            // A device on which nobody else was seen is forgotten with its id, which often is an identity's value.
            if after.isUnused { after.bucket = nil }
            draft.put(after)
        }
    }

    private static func values(of type: IdentityType, _ profiles: [Profile]) -> [IdentityValue] {
        profiles.flatMap { $0.values(of: type).map(\.value) }
    }

    private static func distinct(_ values: [IdentityValue]) -> [IdentityValue] {
        Set(values).sorted()
    }

    /// One of the others has done its part, or cannot.
    func take(_ answer: ForwardAnswer) -> Decision {
        guard !answer.isPending,
            var erasure = state.erasures.values.first(where: {
                $0.command.app == app && $0.waiting.contains(answer.forwardID)
            })
        else { return Decision(.noted) }
        erasure.waiting.removeAll { $0 == answer.forwardID }
        if !answer.hasSucceeded { erasure.hasFailed = true }
        guard erasure.waiting.isEmpty else { return Decision(.noted, changes: [.erasure(erasure)]) }
        let outcome: Outcome =
            erasure.hasFailed
            ? .rejected(Rejection(.serverError, "Another service could not erase its part; erase again."))
            : .succeeded(ErasedProfilesResult(mpids: erasure.mpids, heldByOthers: erasure.heldByOthers))
        return Decision(
            .noted, changes: [.erasureDone(erasure.command)], settlements: [Settlement(erasure.command, outcome)])
    }
}

extension Draft {
    /// Leaves the MPID. No event says what the profile had (S54, S59).
    mutating func erase(_ profile: Profile) {
        for key in Set(profile.identities.flatMap(everyKey)).sorted() {
            release(key, profile.mpid)
        }
        var tombstone = Profile(app: app, mpid: profile.mpid, seen: now)
        tombstone.isOrphaned = true
        tombstone.isErased = true
        put(tombstone)
    }

    /// Every key under which the value may have been stored: settings and rules of folding change.
    private func everyKey(_ identity: Identity) -> [IdentityEntry.Key] {
        [identity.value.text, identity.value.text.asciiLowercased, identity.value.text.lowercased()].map {
            IdentityEntry.Key(app: app, type: identity.type, value: IdentityValue($0))
        }
    }
}
