// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing

@testable import Runtime
@testable import Sync

/// What a certificate says, but for times.
struct Gone: Hashable {
    var users: Set<UserID>
    var mpids: [MPID]
    var done: ErasureCertificate.Counts
    var others: Int
    var isComplete: Bool

    init(_ certificate: ErasureCertificate) {
        users = Set(certificate.subject.userIds)
        mpids = certificate.subject.mpids
        done = certificate.done
        others = certificate.heldByOthers
        isComplete = certificate.completedAt != nil
    }

    init(
        users: Set<UserID> = [], mpids: [MPID], done: ErasureCertificate.Counts, others: Int, isComplete: Bool = false
    ) {
        self.users = users
        self.mpids = mpids
        self.done = done
        self.others = others
        self.isComplete = isComplete
    }
}

extension ErasureCertificate {
    /// As another service answers.
    static func part(_ done: Counts = .init(), users: [UserID] = []) -> ErasureCertificate {
        ErasureCertificate(
            requestId: "f", erasedAt: Timestamp(milliseconds: 0), completedAt: Timestamp(milliseconds: 0),
            subject: .init(userIds: users), done: done)
    }
}

/// An outcome that can be compared.
enum Answer: Hashable {
    case sync(SyncResult)
    case alias(AliasResult)
    case users(DeviceUsersResult)
    case profile(ProfileResult)
    case detached(DetachResult)
    case allowed(AllowResult)
    case restricted(RestrictResult)
    case imported([ImportResult.Element])
    case certificate(Gone)
    case rejected(ReasonCode)
    case pending
    case noted
    case another

    init(_ outcome: Outcome) {
        switch outcome {
        case .noted: self = .noted
        case .rejected(let rejection): self = .rejected(rejection.reason)
        case .succeeded(let result as SyncResult): self = .sync(result)
        case .succeeded(let result as AliasResult): self = .alias(result)
        case .succeeded(let result as DeviceUsersResult): self = .users(result)
        case .succeeded(let result as ProfileResult): self = .profile(result)
        case .succeeded(let result as DetachResult): self = .detached(result)
        case .succeeded(let result as AllowResult): self = .allowed(result)
        case .succeeded(let result as RestrictResult): self = .restricted(result)
        case .succeeded(let result as ImportResult):
            self = .imported(
                result.results.map { .init(index: $0.index, outcome: $0.outcome, reason: $0.reason, type: $0.type) })
        case .succeeded(let result as ErasureCertificate): self = .certificate(Gone(result))
        case .pending(nil): self = .pending
        case .succeeded, .pending, .begun, .expired: self = .another
        }
    }
}

/// One app, one decider, the whole state in memory: commands go in one by one, a second apart.
final class World {
    static let start: Int64 = 1_795_000_000_000

    var app: AppSettings
    var state = SyncState()
    var now = World.start
    /// How long ago commands were given when they are decided.
    var lateness: Int64 = 0
    var count = 0
    var principal = Principal(kind: .apiKey("k"), scopes: [.identitySync])
    /// The last decision.
    var last: SyncDecider.Decision?

    init(_ sync: SyncSettings, state: SyncState = SyncState()) {
        app = AppSettings(id: "demo", sync: sync)
        self.state = state
    }

    var settings: SyncSettings {
        get { app.sync }
        set { app = AppSettings(id: app.id, sync: newValue, verification: app.verification) }
    }

    var verification: VerificationSettings {
        get { app.verification }
        set { app = AppSettings(id: app.id, sync: app.sync, verification: newValue) }
    }

    var context: DecisionContext {
        DecisionContext(
            command: CommandKey(app: app.id, source: "test", id: CommandID("c\(count)")), app: app,
            principal: principal,
            now: Timestamp(milliseconds: now), moment: Moment(milliseconds: now - lateness))
    }

    @discardableResult
    func run(_ command: SyncCommand) -> Answer {
        count += 1
        now += 1000
        let before = state
        let decision = SyncDecider(state, context, aliasDelay: 1000).decide(command)
        decision.changes.forEach { state.apply($0) }
        last = decision
        if case .rejected = decision.outcome {
            #expect(decision.changes.allSatisfy { $0.onlyCounts })
            #expect(decision.events.isEmpty)
        }
        if case .search = command { #expect(decision.events.isEmpty) }
        let again = SyncDecider(before, context, aliasDelay: 1000).decide(command)
        #expect(again.changes == decision.changes, "deciding twice gives the same")
        #expect(again.events.map { AnyHashable($0) } == events)
        return Answer(decision.outcome)
    }

    var events: [AnyHashable] { (last?.events ?? []).map { AnyHashable($0) } }

    /// - Returns: the result, if it succeeded.
    func move(
        _ operation: SyncCommand.Operation, _ identities: [String: String?], on device: DeviceID = "d1",
        previous: MPID? = nil
    ) -> SyncResult? {
        let request = SyncRequest(deviceId: DeviceID(device.text), knownIdentities: identities, previousMPID: previous)
        guard case .sync(let result) = run(.move(operation, request)) else { return nil }
        return result
    }

    func identify(_ identities: [String: String?], on device: DeviceID = "d1") -> SyncResult? {
        move(.identify, identities, on: device)
    }

    func login(_ identities: [String: String?], on device: DeviceID = "d1") -> SyncResult? {
        move(.login, identities, on: device)
    }

    func logout(_ identities: [String: String?], on device: DeviceID = "d1") -> SyncResult? {
        move(.logout, identities, on: device)
    }

    func search(_ identities: [String: String?], on device: DeviceID = "d1") -> Answer {
        run(.search(SyncRequest(deviceId: DeviceID(device.text), knownIdentities: identities)))
    }

    @discardableResult
    func modify(_ mpid: MPID?, _ type: String, from old: String?, to new: String?) throws -> Answer {
        run(
            .modify(
                ModifyIdentities(
                    mpid: try #require(mpid), changes: [.init(identityType: type, oldValue: old, newValue: new)])))
    }

    func profile(_ mpid: MPID?) -> Profile? { mpid.flatMap { state.profile(app.id, $0) } }

    func identities(_ mpid: MPID?) -> Set<Identity> { Set(profile(mpid)?.identities ?? []) }

    func current(_ device: DeviceID = "d1") -> MPID? { state.device(app.id, DeviceID(device.text)).current }

    /// Puts a profile there as if it had come from the store.
    func given(_ mpid: Int64, _ identities: [Identity], seen: Int64 = World.start) throws -> MPID {
        let mpid = try #require(MPID(mpid))
        var profile = Profile(app: app.id, mpid: mpid, seen: seen)
        for identity in identities { profile.add(identity, at: seen) }
        state.apply(.profile(profile))
        for identity in identities {
            let key = IdentityEntry.Key(app: app.id, identity, settings)
            var entry = state.identities[key] ?? IdentityEntry(key: key)
            entry.holders.append(mpid)
            state.apply(.identity(entry))
        }
        return mpid
    }
}

extension SyncState.Change {
    /// Whether it says nothing about anybody: buckets and counters, which a refused command may change too.
    var onlyCounts: Bool {
        switch self {
        case .device, .identity, .ignored: true
        default: false
        }
    }
}

extension SyncSettings {
    /// The settings of the worked examples, as the demo apps have them.
    static func worked(_ strategy: SyncStrategy) -> SyncSettings {
        if strategy == .bestMatch {
            return SyncSettings(
                strategy: strategy, priority: [.email, .iosIDFV, .androidUUID], login: [], unique: [], immutable: [])
        }
        return SyncSettings(
            strategy: strategy, priority: [.customerID, .email, .iosIDFV, .rokuAID, .deviceApplicationStamp],
            login: [.customerID, .email], unique: [.customerID, .email], immutable: [])
    }
}
