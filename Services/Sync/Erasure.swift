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
    /// The ids of the commands that were forwarded and are not answered.
    public var waiting: [CommandID]
    /// One of the others could not do its part.
    public var hasFailed = false

    public init(command: CommandKey, mpids: [MPID], waiting: [CommandID]) {
        self.command = command
        self.mpids = mpids
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
    /// S53.
    func erase(_ command: EraseProfile) throws(Rejection) -> Decision {
        if let waiting = stillWaiting { return waiting }
        var profiles: [Profile] = []
        if let mpid = command.mpid {
            // One that is erased already is erased again: the first time may have failed elsewhere (S56).
            profiles = [mpid].compactMap { state.profile(app, $0) }
        } else if let identity = command.identity {
            guard !settings.nobody.contains(identity.value.text) else { throw Self.namesNobody(identity.type) }
            profiles = holders(of: identity)
        }
        guard !profiles.isEmpty else { throw Rejection(.notFoundError) }
        let persons = profiles.flatMap(Self.persons)
        return begin(profiles, .erase, persons, customerIDs: [])
    }

    /// The link service asks for it, so it needs not be asked to do its part. Whoever it does not find here may still
    /// have a session.
    func forget(_ command: ForgetProfiles) -> Decision {
        if let waiting = stillWaiting { return waiting }
        var profiles: [MPID: Profile] = [:]
        if let externalID = command.externalId {
            for profile in holders(of: Identity(.customerID, IdentityValue(externalID.text))) {
                profiles[profile.mpid] = profile
            }
        }
        if let userID = command.userId {
            for profile in state.profiles.values
            where profile.app == app && profile.userID == userID {
                profiles[profile.mpid] = profile
            }
        }
        var decision = begin(
            profiles.values.sorted { $0.mpid < $1.mpid }, .forget, [],
            customerIDs: command.externalId.map { [IdentityValue($0.text)] } ?? [])
        if let userID = command.userId {
            decision.changes.append(.forgotten(LinkedUser(app: app, id: userID)))
        }
        return decision
    }

    /// The same command came before, and the others have not done their part: they were asked, and whatever they answer
    /// ends both (S69).
    private var stillWaiting: Decision? {
        state.erasures[context.command].map { Decision(.pending(nil), changes: [.erasure($0)]) }
    }

    private func holders(of identity: Identity) -> [Profile] {
        let draft = Draft(state, context, .erase)
        return draft.holders(of: identity).compactMap { draft.profile($0) }.sorted { $0.mpid < $1.mpid }
    }

    /// The link service's persons of a profile.
    private static func persons(_ profile: Profile) -> [ForgetPerson] {
        let externalIDs = profile.values(of: .customerID).map(\.value)
        var persons = externalIDs.map { ForgetPerson(externalId: ExternalID($0.text)) }
        if let userID = profile.userID {
            if persons.isEmpty { persons = [ForgetPerson(userId: userID)] } else { persons[0].userId = userID }
        }
        return persons
    }

    /// S55.
    private func begin(
        _ profiles: [Profile], _ cause: SyncCause, _ persons: [ForgetPerson], customerIDs: [IdentityValue]
    ) -> Decision {
        var draft = Draft(state, context, cause)
        for profile in profiles where !profile.isErased { draft.erase(profile) }
        let mpids = profiles.map(\.mpid).sorted()
        for profile in profiles where !profile.isErased { draft.tell(ProfileErased(mpid: profile.mpid, cause: cause)) }
        for device in state.devices.values.sorted(by: { $0.key < $1.key }) where device.key.app == app {
            let users = [device.current, device.anonymous].compactMap { $0 }
            guard users.contains(where: mpids.contains) else { continue }
            var after = device
            if let current = device.current, mpids.contains(current) {
                after.current = nil
                draft.tell(CurrentUserErased(deviceId: device.key.id, mpid: current, cause: cause))
            }
            if device.anonymous.map(mpids.contains) == true { after.anonymous = nil }
            after.users.removeAll { mpids.contains($0.mpid) || draft.profile($0.mpid)?.isErased != false }
            // A device on which nobody else was seen is forgotten with its id, which often is an identity's value.
            if after.isUnused { after.bucket = nil }
            draft.put(after)
        }
        var decision = draft.decision(.pending(nil))
        for alias in state.aliases.values.sorted(by: { $0.key < $1.key })
        where alias.key.app == app && (mpids.contains(alias.source) || mpids.contains(alias.destination)) {
            decision.changes.append(.aliasDone(alias.key))
        }
        for userID in profiles.compactMap(\.userID) {
            decision.changes.append(.forgotten(LinkedUser(app: app, id: userID)))
        }
        let sessions = ForgetSessions(
            mpids: mpids, userIds: Self.distinct(customerIDs + Self.values(of: .customerID, profiles)),
            emails: Self.distinct(Self.values(of: .email, profiles)))
        let commands: [any CommandMessage] = [sessions] + persons
        decision.forwards = commands.enumerated().map { Forward(id: context.forwardID($0), command: $1) }
        let erasure = Erasure(command: context.command, mpids: mpids, waiting: decision.forwards.map(\.id))
        decision.changes.append(.erasure(erasure))
        return decision
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
            : .succeeded(ErasedProfilesResult(mpids: erasure.mpids))
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
