// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Storage
import TestKit
import WireJSON

@testable import Apps
@testable import Runtime
@testable import Sync

/// Commands about few devices, few values and few profiles, so that they meet.
struct RandomCommands: RandomSource {
    struct Step {
        var command: SyncCommand
        var context: DecisionContext
    }

    /// Every strategy, and settings that bring the limits and immutable identities into play.
    static let settings: [SyncSettings] = {
        var limited = SyncSettings.worked(.conversion)
        limited.uniqueIdentities = [.customerID]
        limited.limits.valuesPerType = 2
        limited.limits.profilesPerValue = 2
        limited.limits.usersPerDevice = 3
        limited.limits.aliasesPerProfile = 1
        limited.foldedIdentities = [.email]
        limited.fromLinks = true
        var immutable = SyncSettings.worked(.link)
        immutable.immutableIdentities = [.customerID]
        immutable.uniqueIdentities.insert(.iosIDFV)
        immutable.fromLinks = true
        var devicesFirst = SyncSettings.worked(.isolation)
        devicesFirst.priority = [.iosIDFV, .email, .customerID]
        devicesFirst.uniqueIdentities = []
        var person = SyncSettings.defaults(of: .userIDThenEmail)
        person.limits.profilesPerValue = 3
        var best = SyncSettings.worked(.bestMatch)
        best.limits.profilesPerValue = 2
        var joining = SyncSettings.worked(.conversion)
        joining.joinByLowerRank = true
        var shared = SyncSettings.worked(.link)
        shared.uniqueIdentities = []
        shared.limits.profilesPerValue = 2
        shared.fromLinks = true
        return [
            .worked(.conversion), .worked(.link), .worked(.isolation), .worked(.bestMatch), SyncSettings(), person,
            SyncSettings.defaults(of: .userIDThenEmail), limited, immutable, devicesFirst, best,
            joining, shared,
        ].map { settings in
            var settings = settings
            settings.throttle.devicePerSecond = 0
            settings.throttle.loginPerSecond = 0
            return settings
        }
    }()

    static let values: [IdentityType: [String]] = [
        .customerID: ["anna", "bob", "ANNA"], .email: ["x@mail", "X@MAIL", "z@mail"], .iosIDFV: ["idfv-1", "idfv-2"],
        .androidUUID: ["uuid-1"], .deviceApplicationStamp: ["stamp-1", "stamp-2"], .other: ["other-1"],
        .pushToken: ["push-1", "push-2"],
    ]
    static let names = ["Miss Alpha", "Mister Beta"]
    static let users: [UserID] = ["user-1", "user-2", "user-3", "user-4"]
    /// Values that name nobody.
    static let nobodies = ["NULL", "0000-00", "ffffffff-FFFF-ffff-ffff-ffffffffffff"]

    /// An MPID that no profile has.
    private static let nobody = DerivedID.mpid(
        salt: DerivedID.Salt(SymmetricKey(data: [1])), of: CommandKey(app: "none", source: "none", id: "none"),
        counter: 0)

    var random: SplitMix64
    /// How late commands are decided, drawn apart: sequences of which a seed is kept stay as they were.
    private var delays: SplitMix64
    /// What the service told itself, and when it comes (again): drawn apart too.
    private var told: [KeepErased] = []
    private var again: SplitMix64
    /// What support does: drawn apart too.
    private var repairs: SplitMix64
    /// What profiles have, to be taken from them.
    var held: [MPID: [Identity]] = [:]
    private(set) var settings: SyncSettings
    let mode: VerificationSettings.Mode
    /// Mostly logins, and what the link service tells and asks, more of it late.
    let isOfPeople: Bool
    /// Many profiles are taken apart.
    let isOfRepairs: Bool
    /// Many profiles are restricted, and are so no longer.
    let isOfRestrictions: Bool
    /// Many profiles come from another system.
    let isOfImports: Bool
    /// Lists are drawn apart too.
    private var lists: SplitMix64
    private var recent: [ImportedProfile] = []
    /// Much goes because nobody came back.
    let isOfRetention: Bool
    /// When somebody was heard of last, and a device.
    var heard: [MPID: Int64] = [:]
    var heardDevices: [DeviceID: Int64] = [:]
    private(set) var now: Int64 = World.start
    private var count = 0
    /// Between two commands, in milliseconds.
    private var longestPause: Int64 = 100_000

    init(
        seed: UInt64, isOfPeople: Bool = false, isOfRepairs: Bool = false, isOfRestrictions: Bool = false,
        isOfImports: Bool = false, isOfRetention: Bool = false
    ) {
        self.isOfImports = isOfImports
        self.isOfRetention = isOfRetention
        lists = SplitMix64(seed: seed ^ 0xC3C3)
        self.isOfPeople = isOfPeople
        self.isOfRepairs = isOfRepairs
        self.isOfRestrictions = isOfRestrictions
        repairs = SplitMix64(seed: seed ^ 0x5A5A)
        random = SplitMix64(seed: seed)
        delays = SplitMix64(seed: ~seed)
        again = SplitMix64(seed: seed ^ 0xA5A5)
        settings = Self.settings[Int(seed % UInt64(Self.settings.count))]
        let round = seed / UInt64(Self.settings.count)
        // Best match has nobody who could be verified, and the loader refuses it.
        mode = round % 3 == 0 && settings.strategy != .bestMatch ? .enforce : .off
        guard round % 4 == 1, !isOfRetention else { return }
        settings.throttle.devicePerSecond = 2
        settings.throttle.deviceBurst = 3
        settings.throttle.loginPerSecond = 1
        settings.throttle.loginBurst = 2
        longestPause = 1000
    }

    /// - Parameters:
    ///   - profiles: those that exist, to be named.
    ///   - aliases: ids of accepted ones.
    ///   - forwards: ids of commands that others have not answered.
    mutating func next(profiles: [MPID], aliases: [AliasID: [MPID]], forwards: [CommandID] = []) -> Step {
        count += 1
        // Several commands in one batch share an instant.
        if chance(60) { now += Int64.random(in: 1...longestPause, using: &random) }
        // Now and then a command that the inbox has forgotten comes again under its old id.
        let number = chance(10) ? Int.random(in: 1...count, using: &random) : count
        let isService = chance(20)
        let scopes: Set<Scope> = chance(50) ? [.identitySync, .identityVouch, .admin] : [.identitySync]
        var context = DecisionContext(
            command: CommandKey(app: "demo", source: "test", id: CommandID("c\(number)")),
            app: AppSettings(id: "demo", sync: settings, verification: VerificationSettings(mode: mode)),
            principal: Principal(kind: isService ? .service : .apiKey("k"), scopes: scopes),
            now: Timestamp(milliseconds: now),
            moment: Moment(milliseconds: now - delay()))
        // What services say has ids of its own, which no command has too: forwards follow from them.
        let own = CommandKey(app: "demo", source: "identitybus/link", id: CommandID("r\(count)"))
        if !told.isEmpty, Int.random(in: 0..<8, using: &again) == 0 {
            context.command = own
            return Step(command: .keepErased(told[Int.random(in: told.indices, using: &again)]), context: context)
        }
        if isOfImports, Int.random(in: 0..<4, using: &lists) == 0 {
            return Step(command: .importProfiles(list(profiles)), context: context)
        }
        if isOfRetention, Int.random(in: 0..<3, using: &repairs) == 0 {
            return expire(&context)
        }
        if isOfRestrictions, Int.random(in: 0..<6, using: &repairs) == 0 {
            return Step(command: restrict(profiles), context: context)
        }
        if isOfRepairs || isOfRestrictions || isOfRetention,
            Int.random(in: 0..<(isOfRepairs ? 4 : 12), using: &repairs) == 0
        {
            return Step(command: repair(profiles), context: context)
        }
        if !forwards.isEmpty, chance(15) {
            let answer = ForwardAnswer(
                forwardID: pick(forwards + ["none"]), isPending: chance(20),
                part: chance(80)
                    ? .part(
                        chance(50)
                            ? .init(verification: .init(sessions: 2)) : .init(link: .init(persons: 1, installs: 3)),
                        users: chance(20) ? [pick(Self.users)] : []) : nil)
            context.command = own
            return Step(command: .answered(answer), context: context)
        }
        return Step(command: command(profiles, aliases), context: context)
    }

    /// What a decision tells the service itself comes later, or again.
    mutating func note(_ decision: SyncDecider.Decision) {
        told += decision.due.compactMap { $0.command as? KeepErased }
    }

    private mutating func command(_ profiles: [MPID], _ aliases: [AliasID: [MPID]]) -> SyncCommand {
        let mpid = { (random: inout SplitMix64) in profiles.randomElement(using: &random) ?? Self.nobody }
        // Who is whom, to the end.
        let first = isOfPeople ? pick([25, 25, 96, 97, 97, 97]) : 0
        switch Int.random(in: first..<100, using: &random) {
        case 0..<25: return .move(.identify, request(profiles))
        case 25..<45: return .move(.login, request(profiles))
        case 45..<57: return .move(.logout, request(profiles))
        case 57..<65: return .search(request(profiles))
        case 65..<80:
            let changes = (0..<Int.random(in: 0...2, using: &random)).map { _ in change() }
            return .modify(
                ModifyIdentities(
                    mpid: chance(5) ? Self.nobody : mpid(&random), changes: changes, deviceId: chance(50) ? "d1" : nil))
        case 80..<86:
            let day: Int64 = 86_400_000
            return .alias(
                AliasUsers(
                    sourceMPID: mpid(&random), destinationMPID: chance(10) ? Self.nobody : mpid(&random),
                    startUnixtimeMs: chance(50) ? now - Int64.random(in: -1...100, using: &random) * day : nil,
                    endUnixtimeMs: chance(50) ? now - Int64.random(in: -1...30, using: &random) * day : nil,
                    scope: chance(50) ? .mpid : nil, deviceApplicationStamp: chance(50) ? "stamp" : nil))
        case 86..<90:
            let alias = aliases.sorted { $0.key < $1.key }.randomElement(using: &random)
            return .applyAlias(
                ApplyAlias(aliasId: alias?.key ?? "none", destinationMPID: alias?.value[1] ?? Self.nobody))
        case 90..<93: return .getUsers(GetDeviceUsers(deviceId: device()))
        case 93:
            // Drawn apart, as what is late is.
            guard Int.random(in: 0..<2, using: &delays) == 0 else {
                return .getErasure(GetProfileErasure(mpid: mpid(&random)))
            }
            let type = Self.values.keys.sorted()[Int.random(in: 0..<Self.values.count, using: &delays)]
            let value = Self.values[type]?.randomElement(using: &delays) ?? ""
            let byMPID = Int.random(in: 0..<2, using: &delays) == 0
            return .getProfile(
                byMPID
                    ? GetProfile(mpid: mpid(&delays))
                    : GetProfile(identity: .init(type: type.rawValue, value: value)))
        case 94..<96:
            let persons = chance(50) ? nil : pick(EraseProfile.Persons.allCases)
            if chance(40) { return .erase(EraseProfile(mpid: mpid(&random), persons: persons)) }
            return .erase(
                EraseProfile(identities: named(), everyHolder: chance(30) ? chance(80) : nil, persons: persons))
        case 96..<97:
            let externalID: ExternalID? = chance(60) ? pick(["anna", "bob"]) : nil
            return .forget(
                ForgetProfiles(
                    userId: externalID == nil || chance(50) ? pick(Self.users) : nil, externalId: externalID,
                    former: past(now),
                    erasedAt: chance(50)
                        ? Timestamp(milliseconds: now - Int64.random(in: 0...500_000, using: &random)) : nil))
        default:
            if Int.random(in: 0..<3, using: &delays) == 0 { return support() }
            return .linked(
                Linked(
                    installId: "i", externalId: pick(["anna", "bob", "new-1", "NULL"]), userId: pick(Self.users),
                    personCreated: false, activeInstallId: "i", deactivatedInstallIds: [], version: 1,
                    linkedAt: Int.random(in: 0..<2, using: &delays) == 0
                        ? Timestamp(milliseconds: now - delay()) : nil))
        }
    }

    /// What the link service's users were called.
    private mutating func past(_ now: Int64) -> [FormerExternalID]? {
        guard Int.random(in: 0..<2, using: &delays) == 0 else { return nil }
        let until = Timestamp(milliseconds: now - delay())
        return [FormerExternalID(externalId: Bool.random(using: &delays) ? "bob" : "new-1", until: until)]
    }

    /// What support makes of the link service's users.
    private mutating func support() -> SyncCommand {
        func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &delays)] }
        let names: [ExternalID] = ["anna", "bob", "new-1", "NULL"]
        let (user, old, new) = (pick(Self.users), pick(names), pick(names))
        let moment = Timestamp(milliseconds: now - delay())
        guard Int.random(in: 0..<3, using: &delays) > 0 else {
            return .unlinked(
                ExternalIDRemoved(userId: user, externalId: old, unlinkedAt: moment, author: "a", reason: "r"))
        }
        return .renamed(
            ExternalIDChanged(
                userId: user, externalId: new, previousExternalId: pick([nil, old, old, old]), linkedAt: moment,
                author: "a", reason: "r"))
    }

    /// By an identity now and then.
    private mutating func restrict(_ profiles: [MPID]) -> SyncCommand {
        let mpid = profiles.randomElement(using: &repairs) ?? Self.nobody
        let own = Int.random(in: 0..<4, using: &repairs) == 0 ? held[mpid]?.randomElement(using: &repairs) : nil
        return .restrict(
            RestrictProfile(
                mpid: own == nil ? mpid : nil,
                identity: own.map { .init(type: $0.type.rawValue, value: $0.value.text) },
                isRestricted: Int.random(in: 0..<3, using: &repairs) > 0, author: "kim", reason: "r"))
    }

    /// Somebody to whom nobody came back, or a device; now and then of a time that is not true any more, or by clocks that do
    /// not agree.
    private mutating func expire(_ context: inout DecisionContext) -> Step {
        func may(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &repairs) < percent }
        context.app = AppSettings(
            id: "demo", sync: settings, verification: VerificationSettings(mode: mode),
            retention: NaiveSyncModel.retention)
        context.command.id = CommandID("e\(count)")
        // Two weeks, by which a clock is wrong.
        let wrong: Int64 = may(20) ? 14 * 86_400_000 : 0
        context.logged = may(85) ? Moment(milliseconds: now - wrong, isBrokers: true) : may(50) ? nil : context.moment
        let late: Int64 = may(5) ? 1 : 0
        if may(50), let (id, seen) = heardDevices.sorted(by: { $0.key < $1.key }).randomElement(using: &repairs) {
            let command = ExpireDevice(deviceId: id, lastSeen: Timestamp(milliseconds: seen - late))
            return Step(command: .expireDevice(command), context: context)
        }
        let (mpid, seen) = heard.sorted { $0.key < $1.key }.randomElement(using: &repairs) ?? (Self.nobody, 0)
        return Step(
            command: .expireProfile(ExpireProfile(mpid: mpid, lastSeen: Timestamp(milliseconds: seen - late))),
            context: context)
    }

    /// Mostly of somebody who has enough for two.
    private mutating func repair(_ profiles: [MPID]) -> SyncCommand {
        func one<Value>(_ values: [Value]) -> Value? { values.randomElement(using: &repairs) }
        func may(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &repairs) < percent }
        let rich = profiles.filter { (held[$0]?.count ?? 0) > 1 }
        let mpid = one(may(95) && !rich.isEmpty ? rich : profiles) ?? Self.nobody
        let own = held[mpid] ?? []
        let all = Self.values.keys.sorted().flatMap { type in
            (Self.values[type] ?? []).map { Identity(type, IdentityValue($0)) }
        }
        func named(_ id: Identity) -> GetProfile.Named { .init(type: id.type.rawValue, value: id.value.text) }
        let other = one(profiles.filter { $0 != mpid }) ?? Self.nobody
        guard may(75) else {
            return .allow(
                may(60)
                    ? AllowMerge(mpid: mpid, otherMPID: other, author: "kim", reason: "r")
                    : AllowMerge(
                        mpid: mpid, identity: named(one(all) ?? Identity(.email, "x")), author: "kim", reason: "r"))
        }
        var ids = own.filter { _ in may(40) }
        if ids.isEmpty || may(5) { ids += one(may(90) && !own.isEmpty ? own : all).map { [$0] } ?? [] }
        return .detach(
            DetachIdentities(
                mpid: mpid, identities: ids.map(named), toMPID: may(30) ? other : nil, author: "kim", reason: "r"))
    }

    /// In milliseconds; mostly none.
    private mutating func delay() -> Int64 {
        Int.random(in: 0..<(isOfPeople ? 2 : 5), using: &delays) == 0
            ? Int64.random(in: 0...500_000, using: &delays) : 0
    }

    /// Whom somebody wants to be erased: one value mostly, more of them now and then.
    private mutating func named() -> [String: String] {
        var identities: [String: String] = [:]
        repeat {
            let type = pick(Self.values.keys.sorted())
            identities[type.rawValue] = chance(5) ? pick(Self.nobodies) : pick(Self.values[type] ?? [])
        } while chance(40)
        return identities
    }

    private mutating func request(_ profiles: [MPID]) -> SyncRequest {
        var identities: [String: String?] = [:]
        for (type, values) in Self.values.sorted(by: { $0.key < $1.key }) where chance(35) {
            identities[type.rawValue] = chance(8) ? .some(nil) : chance(4) ? pick(Self.nobodies) : pick(values)
        }
        var request = SyncRequest(deviceId: device(), knownIdentities: identities)
        if chance(30) { request.previousMPID = profiles.randomElement(using: &random) }
        if chance(15) { request.name = pick(Self.names) }
        if chance(10) { request.vouchedFor = [.customerID, .deviceApplicationStamp] }
        if chance(15) { request.clearAnonymousUser = true }
        if chance(15) { request.context = "c" }
        return request
    }

    private mutating func change() -> ModifyIdentities.Change {
        let type = pick(Self.values.keys.sorted())
        let values = (Self.values[type] ?? []) + ["new-1"]
        return ModifyIdentities.Change(
            identityType: type.rawValue, oldValue: chance(50) ? pick(values) : nil,
            newValue: chance(70) ? chance(4) ? pick(Self.nobodies) : pick(values) : nil)
    }

    private mutating func device() -> DeviceID { pick(["d1", "d2", "d3"]) }

    // MARK: Lists

    private mutating func list(_ profiles: [MPID]) -> ImportProfiles {
        func one<Value>(_ values: [Value]) -> Value? { values.randomElement(using: &lists) }
        func may(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &lists) < percent }
        let elements = (0..<Int.random(in: 1...4, using: &lists)).map { _ -> ListElement<ImportedProfile> in
            if may(4) { return .unreadable(["mpid": 0], "not this") }
            if may(15), let again = one(recent) { return .read(again) }
            var mpid = MPID(Int64(Int.random(in: 1...9, using: &lists))) ?? .max
            if may(35), let known = one(profiles) { mpid = known }
            var identities: [IdentityType: [String]] = [:]
            for id in held[mpid] ?? [] where may(40) { identities[id.type, default: []].append(id.value.text) }
            for type in Self.values.keys.sorted() where may(15) {
                identities[type, default: []].append(
                    may(6)
                        ? one(Self.nobodies) ?? ""
                        : may(40) ? "new-\(Int.random(in: 0...99, using: &lists))" : one(Self.values[type] ?? []) ?? "")
            }
            let end = now - Int64.random(in: -100...900_000, using: &lists) + (may(4) ? 4_000_000 : 0)
            let ids: [DeviceID] = ["d1", "d2", "d3", "n1", "n2", "n3"]
            let devices = ids.filter { _ in may(15) }.map { id in
                ImportedProfile.Device(
                    deviceId: id, isCurrent: may(50), firstSeen: Timestamp(milliseconds: end - 10),
                    lastSeen: Timestamp(milliseconds: end + (may(3) ? -20 : 0)))
            }
            let profile = ImportedProfile(
                mpid: mpid, identities: identities, firstSeen: Timestamp(milliseconds: end - 1000),
                lastSeen: Timestamp(milliseconds: end), name: may(20) ? one(Self.names) : nil,
                devices: devices.isEmpty ? nil : devices)
            recent = recent.suffix(5) + [profile]
            return .read(profile)
        }
        return ImportProfiles(profiles: elements, upsert: may(60) ? true : nil, events: may(10) ? false : nil)
    }
}
