// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import Storage
import WireJSON

/// By what an erased profile is found again in a replay, where another command may have made it, so that its MPID is
/// another one (S125). No value of the person: digests, which the store's rows of values are found by.
struct ErasedTrace: Codable, Hashable {
    /// One of its login identities, as it had it at the erasure.
    struct Login: Codable, Hashable {
        var type: IdentityType
        /// Of the value as it was given.
        var exact: TextDigest
        /// Of the value without its case, where that is another one: by the time of the replay the app may ignore it.
        var folded: TextDigest?

        init(_ identity: Identity) {
            type = identity.type
            exact = TextDigest(of: identity.value.text)
            let folded = identity.value.text.asciiLowercased
            if folded != identity.value.text { self.folded = TextDigest(of: folded) }
        }

        /// What the row of the value is found by.
        func key(_ settings: SyncSettings) -> IdentityDigest {
            let ignoresCase = settings.foldedIdentities.contains(type)
            return IdentityDigest(type: type, digest: ignoresCase ? folded ?? exact : exact)
        }
    }

    /// Of a known profile.
    var logins: [Login] = []
    /// Whose anonymous user it was.
    var devices: [DeviceID] = []

    var isEmpty: Bool { logins.isEmpty && devices.isEmpty }
    var count: Int { logins.count + devices.count }
}

/// The key of a value's row.
struct IdentityDigest: Hashable, Comparable {
    var type: IdentityType
    var digest: TextDigest

    static func < (left: IdentityDigest, right: IdentityDigest) -> Bool {
        (left.type, left.digest) < (right.type, right.digest)
    }
}

extension KeepErased {
    /// More traces than this many are in no command: a record has its limit. Those of a profile are in one.
    static let most = 500
    private static let purpose = "keep-erased"

    /// - Returns: `nil` when nothing can be closed.
    init?(_ traces: [ErasedTrace], mpid: MPID, erasedAt: Int64, _ context: DecisionContext) {
        guard let text = try? WireJSONEncoder().encode(traces),
            let whom = context.secrets.closed(text, Self.purpose, [context.app.id.text])
        else { return nil }
        self.init(mpid: mpid, erasedAt: Timestamp(milliseconds: erasedAt), whom: whom.hex)
    }

    /// - Returns: `nil` when it was closed with another store's salt.
    func traces(_ context: DecisionContext) -> [ErasedTrace]? {
        guard let whom else { return [] }
        guard let closed = [UInt8](hex: whom),
            let text = context.secrets.opened(closed, Self.purpose, [context.app.id.text])
        else { return nil }
        return try? WireJSONDecoder().decode([ErasedTrace].self, from: text)
    }
}

extension SyncDecider {
    /// What the service tells itself of whom it erases (S125).
    /// - Parameters:
    ///   - gone: as they were.
    ///   - draft: in which they are gone.
    func keeping(_ gone: [Profile], as of: ErasedProfiles, _ draft: Draft) throws(Rejection) -> [DueCommand] {
        let traces = gone.map { trace(of: $0, upTo: of.moment, draft) }.filter { !$0.isEmpty }
        guard let mpid = gone.map(\.mpid).min(), !traces.isEmpty else { return [] }
        var parts: [[ErasedTrace]] = []
        for trace in traces {
            if let last = parts.indices.last, parts[last].map(\.count).reduce(trace.count, +) <= KeepErased.most {
                parts[last].append(trace)
            } else {
                parts.append([trace])
            }
        }
        var due: [DueCommand] = []
        for (number, part) in parts.enumerated() {
            guard let command = KeepErased(part, mpid: mpid, erasedAt: of.moment, context) else {
                throw Rejection(.internalError)
            }
            due.append(self.due(command, number))
        }
        return due
    }

    /// What the service tells itself of users of whom the link service says that they are gone: a replay in which the
    /// erasure finds nobody does not ask it.
    /// - Parameter number: how much it tells itself beside that.
    func keeping(_ users: [UserID], goneWith erasure: Erasure, _ number: Int) -> [DueCommand] {
        guard let mpid = erasure.certificate.subject.mpids.first, !users.isEmpty else { return [] }
        return [due(KeepErased(mpid: mpid, erasedAt: erasure.certificate.erasedAt, userIds: users), number)]
    }

    /// Its id is below zero, apart from what is sent to others.
    private func due(_ command: KeepErased, _ number: Int) -> DueCommand {
        DueCommand(app: app, id: context.forwardID(-1 - number), dueAt: command.erasedAt, command: command)
    }

    /// What was its own by then: a login identity that nobody has beside it, or the devices whose anonymous user it was.
    private func trace(of profile: Profile, upTo end: Int64, _ draft: Draft) -> ErasedTrace {
        guard profile.isKnown(settings) else {
            guard profile.firstSeen <= end else { return ErasedTrace() }
            let devices = state.devices.values.filter { $0.key.app == app && $0.anonymous == profile.mpid }
            return ErasedTrace(devices: Array(devices.map(\.key.id).sorted().prefix(KeepErased.most)))
        }
        let own = settings.logins(profile.identities).filter { identity in
            profile.namedAt(identity, settings).map { $0 <= end } == true && isNobodys(identity, draft)
        }.sorted { rank($0) < rank($1) }
        return ErasedTrace(logins: own.prefix(KeepErased.most).map(ErasedTrace.Login.init))
    }

    /// Of a type that profiles share, all who have it may be gone. Its row is here (``SyncService``).
    private func isNobodys(_ identity: Identity, _ draft: Draft) -> Bool {
        settings.uniqueIdentities.contains(identity.type)
            || state.identities[draft.key(identity)] != nil && draft.holders(of: identity).isEmpty
    }

    private func rank(_ identity: Identity) -> (Int, IdentityType) { (settings.rank(identity.type), identity.type) }

    /// S125. Mostly nobody is left: the erasure itself has found them.
    func keepErased(_ command: KeepErased) throws(Rejection) -> Decision {
        if let waiting = stillWaiting { return waiting }
        guard let traces = command.traces(context) else {
            throw Rejection(
                .validationError, "whom was not closed with the salt of this store: replay with the salts of before.")
        }
        let end = command.erasedAt.milliseconds
        var found: [MPID: Profile] = [:]
        for trace in traces {
            for profile in trace.logins.isEmpty ? anonymous(trace, end) : known(trace, end) {
                found[profile.mpid] = profile
            }
        }
        let forgotten = (command.userIds ?? []).map { SyncState.Change.forgotten(LinkedUser(app: app, id: $0)) }
        guard !found.isEmpty else { return Decision(.noted, changes: forgotten) }
        let profiles = found.values.sorted { $0.mpid < $1.mpid }
        let users = profiles.compactMap(\.mark).filter { $0.linkedAt <= end }.map(\.userID)
        // The link service was asked for its persons by the erasure.
        var decision = try begin(ErasedProfiles(moment: end, profiles: profiles, users: users), .erase, persons: [])
        // What told it stands in the log.
        decision.due = []
        decision.changes += forgotten
        return decision
    }

    /// The profiles that are called so first of all, and were by then. A lower-ranked identity does not say who somebody is
    /// (S9), and who got a higher-ranked one since has come since.
    private func known(_ trace: ErasedTrace, _ end: Int64) -> [Profile] {
        let keys = Set(trace.logins.map { $0.key(settings) })
        let types = Set(keys.map(\.type))
        let holders = state.identities.values.filter { entry in
            entry.key.app == app && types.contains(entry.key.id.type) && !entry.holders.isEmpty
                && keys.contains(entry.key.id.key)
        }.flatMap(\.holders)
        return holders.compactMap { state.profile(app, $0) }.filter { profile in
            let logins = settings.logins(profile.identities)
            guard let first = logins.min(by: { rank($0) < rank($1) }) else { return false }
            return logins.contains { identity in
                identity.type == first.type
                    && keys.contains(FoldedIdentity(type: identity.type, value: settings.folded(identity)).key)
                    && profile.namedAt(identity, settings).map { $0 <= end } == true
            }
        }
    }

    /// The anonymous user of these devices, who was there by then and is on no other.
    private func anonymous(_ trace: ErasedTrace, _ end: Int64) -> [Profile] {
        let named = Set(trace.devices)
        let users = named.compactMap { state.device(app, $0).anonymous }
        return Set(users).compactMap { state.profile(app, $0) }.filter { profile in
            !profile.isErased && !profile.isKnown(settings) && profile.firstSeen <= end
                && !state.devices.values.contains { device in
                    device.key.app == app && !named.contains(device.key.id)
                        && (device.current == profile.mpid || device.anonymous == profile.mpid)
                }
        }
    }
}
