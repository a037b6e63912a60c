// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Storage

/// Erasing somebody: here at once, in the other services by commands that each of them answers.
extension SyncDecider {
    func erase(_ command: EraseProfile, _ state: SyncState, _ context: DecisionContext) throws(Rejection) -> Decision {
        var profiles: [Profile] = []
        if let mpid = command.mpid {
            // One that is erased already is erased again: the first time may have failed elsewhere.
            profiles = [mpid].compactMap { state.profile(context.app.id, $0) }
        } else if let identity = command.identity {
            guard !context.app.sync.nobody.contains(identity.value) else { throw Self.namesNobody(identity.type) }
            profiles = holders(of: identity, state, context)
        }
        guard !profiles.isEmpty else { throw Rejection(.notFoundError) }
        let persons = profiles.flatMap(Self.persons)
        return begin(profiles, .erase, persons, customerIDs: [], state, context)
    }

    /// The link service asks for it, so it needs not be asked to do its part. Whoever it does not find here may still
    /// have a session.
    func forget(_ command: ForgetProfiles, _ state: SyncState, _ context: DecisionContext) -> Decision {
        let app = ExactText(context.app.id)
        var profiles: [MPID: Profile] = [:]
        if let externalID = command.externalId {
            for profile in holders(of: Identity(.customerID, externalID), state, context) {
                profiles[profile.mpid] = profile
            }
        }
        if let userID = command.userId.map({ ExactText($0) }) {
            for profile in state.profiles.values
            where ExactText(profile.app) == app && profile.userID.map({ ExactText($0) }) == userID {
                profiles[profile.mpid] = profile
            }
        }
        var decision = begin(
            profiles.values.sorted { $0.mpid < $1.mpid }, .forget, [],
            customerIDs: command.externalId.map { [$0] } ?? [], state, context)
        if let userID = command.userId {
            decision.changes.append(.forgotten(ForgottenUser(app: context.app.id, userID: userID)))
        }
        return decision
    }

    private func holders(of identity: Identity, _ state: SyncState, _ context: DecisionContext) -> [Profile] {
        let draft = Draft(state, context, .erase)
        return draft.holders(of: identity).compactMap { draft.profile($0) }.sorted { $0.mpid < $1.mpid }
    }

    /// The link service's persons of a profile.
    private static func persons(_ profile: Profile) -> [ForgetPerson] {
        let externalIDs = profile.values(of: .customerID).map(\.value)
        var persons = externalIDs.map { ForgetPerson(externalId: $0) }
        if let userID = profile.userID {
            if persons.isEmpty { persons = [ForgetPerson(userId: userID)] } else { persons[0].userId = userID }
        }
        return persons
    }

    private func begin(
        _ profiles: [Profile], _ cause: SyncCause, _ persons: [ForgetPerson], customerIDs: [String],
        _ state: SyncState, _ context: DecisionContext
    ) -> Decision {
        let app = ExactText(context.app.id)
        var draft = Draft(state, context, cause)
        for profile in profiles where !profile.isErased { draft.erase(profile) }
        let mpids = profiles.map(\.mpid).sorted()
        var events: [any EventMessage] = profiles.filter { !$0.isErased }.map {
            ProfileErased(mpid: $0.mpid, cause: cause)
        }
        var changes = draft.changes
        for device in state.devices.values.sorted(by: { $0.key < $1.key }) where device.key.app == app {
            let users = [device.current, device.anonymous].compactMap { $0 }
            guard users.contains(where: mpids.contains) else { continue }
            var after = device
            if let current = device.current, mpids.contains(current) {
                after.current = nil
                events.append(CurrentUserErased(deviceId: device.key.id.text, mpid: current, cause: cause))
            }
            if device.anonymous.map(mpids.contains) == true { after.anonymous = nil }
            after.users.removeAll { mpids.contains($0.mpid) || draft.profile($0.mpid)?.isErased != false }
            // A device on which nobody else was seen is forgotten with its id, which often is an identity's value.
            if after.isUnused { after.bucket = nil }
            changes.append(.device(after))
        }
        for alias in state.aliases.values.sorted(by: { $0.key < $1.key })
        where alias.key.app == app && (mpids.contains(alias.source) || mpids.contains(alias.destination)) {
            changes.append(.aliasDone(alias.key))
        }
        for userID in profiles.compactMap(\.userID) {
            changes.append(.forgotten(ForgottenUser(app: context.app.id, userID: userID)))
        }
        let sessions = ForgetSessions(
            mpids: mpids, userIds: Self.distinct(customerIDs + Self.values(of: .customerID, profiles)),
            emails: Self.distinct(Self.values(of: .email, profiles)))
        let commands: [any CommandMessage] = [sessions] + persons
        let forwards = commands.enumerated().map { Forward(id: context.forwardID($0), command: $1) }
        let erasure = Erasure(command: context.command, mpids: mpids, waiting: forwards.map(\.id))
        return Decision(.pending(nil), changes: changes + [.erasure(erasure)], events: events, forwards: forwards)
    }

    private static func values(of type: IdentityType, _ profiles: [Profile]) -> [String] {
        profiles.flatMap { $0.values(of: type).map(\.value) }
    }

    private static func distinct(_ values: [String]) -> [String] {
        Set(values.map { ExactText($0) }).sorted().map(\.text)
    }

    /// One of the others has done its part, or cannot.
    func settle(_ answer: ForwardAnswer, _ state: SyncState, _ context: DecisionContext) -> Decision {
        guard !answer.isPending,
            var erasure = state.erasures.values.first(where: {
                ExactText($0.command.app) == ExactText(context.app.id) && $0.waiting.contains(answer.forwardID)
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
