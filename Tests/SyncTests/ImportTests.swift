// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing
import WireJSON

@testable import Apps
@testable import Runtime
@testable import Sync

/// Profiles of another system (docs/sync.md "Import").
@Suite struct ImportTests: ErasingTests {
    private static let (five, six, seven): (MPID, MPID, MPID) = (mpid(5), mpid(6), mpid(7))
    private static let none: [IdentityType: [String]] = [:]
    private static let then = Timestamp(milliseconds: World.start - 86_400_000)

    private static func mpid(_ number: Int64) -> MPID { MPID(number) ?? .max }

    private static func on(_ id: DeviceID, isCurrent: Bool = true, _ ago: Int64 = 0) -> ImportedProfile.Device {
        .init(
            deviceId: id, isCurrent: isCurrent, firstSeen: Timestamp(milliseconds: then.milliseconds - ago),
            lastSeen: Timestamp(milliseconds: then.milliseconds - ago))
    }

    private static func who(
        _ mpid: MPID, _ identities: [IdentityType: [String]] = [:], name: String? = nil,
        on devices: [ImportedProfile.Device]? = nil
    ) -> ImportedProfile {
        ImportedProfile(
            mpid: mpid, identities: identities, firstSeen: then, lastSeen: then, name: name, devices: devices)
    }

    @discardableResult private func bring(
        _ profiles: [ImportedProfile], upsert: Bool? = nil, events: Bool? = nil, in world: World
    ) -> [ImportResult.Element] {
        let list = ImportProfiles(profiles: profiles.map { .read($0) }, upsert: upsert, events: events)
        guard case .imported(let results) = world.run(.importProfiles(list)) else { return [] }
        return results
    }

    private func told<Event: EventMessage>(_: Event.Type, _ world: World) -> [Event] {
        (world.last?.events ?? []).compactMap { $0 as? Event }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var profile: ImportedProfile
        var upsert: Bool?
        var expected: ImportResult.Element

        init(
            _ name: String, _ profile: ImportedProfile, upsert: Bool? = nil, _ outcome: ImportOutcome,
            _ reason: ImportConflict? = nil, _ type: IdentityType? = nil
        ) {
            testDescription = name
            self.profile = profile
            self.upsert = upsert
            expected = .init(index: 0, outcome: outcome, reason: reason, type: type)
        }
    }

    /// 1 is anna on device a, 2 is anonymous on b and shares `other`, 3 was erased, 4 is an orphan, 8 restricted; values are
    /// limited to two, and so are those who share one.
    private func given() throws -> World {
        let world = world()
        world.settings.limits.valuesPerType = 2
        world.settings.limits.profilesPerValue = 2
        world.settings.immutableIdentities = [.customerID]
        bring(
            [
                Self.who(Self.mpid(1), [.customerID: ["anna"], .other: ["shared"]], name: "Anna", on: [Self.on("a")]),
                Self.who(Self.mpid(2), [.iosIDFV: ["x"], .other: ["shared"]], on: [Self.on("b")]),
                Self.who(Self.mpid(3), [.email: ["gone@mail"]]), Self.who(Self.mpid(4), [.email: ["o@mail"]]),
                Self.who(Self.mpid(8), [.email: ["r@mail"]]),
            ], in: world)
        world.run(.erase(EraseProfile(mpid: Self.mpid(3))))
        try world.modify(Self.mpid(4), "email", from: "o@mail", to: nil)
        world.run(
            .restrict(RestrictProfile(mpid: Self.mpid(8), isRestricted: true, author: "kim", reason: "Art. 18")))
        return world
    }

    /// S150 to S154.
    @Test(arguments: [
        Case("new", who(five, [.customerID: ["bob"], .email: ["b@mail"]], on: [on("c")]), .created),
        Case("new, of nothing", who(five), .created),
        Case("new, on anna's device, not current", who(five, on: [on("a", isCurrent: false)]), .created),
        Case("two of a type that has one", who(five, [.email: ["a@mail", "b@mail"]]), .invalid),
        Case("a device twice", who(five, on: [on("c"), on("c")]), .invalid),
        Case("a name of nothing", who(five, name: ""), .invalid),
        Case("a value of nothing", who(five, [.email: [""]]), .invalid),
        Case("names nobody", who(five, [.customerID: ["null"]]), .conflict, .valueNamesNobody, .customerID),
        Case("a device's that names nobody", who(five, [.iosIDFV: ["0000-00"]]), .created),
        Case("taken", who(five, [.email: ["n@mail"], .customerID: ["anna"]]), .conflict, .identityTaken, .customerID),
        Case("shared by too many", who(five, [.other: ["shared"]]), .conflict, .limitExceeded, .other),
        Case("too many of a type", who(five, [.other2: ["1", "2", "3"]]), .conflict, .limitExceeded, .other2),
        Case("on anna's device", who(five, on: [on("c"), on("a")]), .conflict, .deviceTaken),
        Case("on anna's device, upsert", who(five, on: [on("c"), on("a")]), upsert: true, .created),
        Case("erased", who(mpid(3), [.email: ["new@mail"]]), .conflict, .profileErased),
        Case("erased, upsert", who(mpid(3), [.email: ["new@mail"]]), upsert: true, .conflict, .profileErased),
        Case("an orphan", who(mpid(4), [.email: ["new@mail"]]), upsert: true, .conflict, .immutable),
        Case("restricted", who(mpid(8), [.other: ["1"]]), upsert: true, .conflict, .restricted),
        Case("known, less", who(mpid(1), [.customerID: ["anna"]]), .same),
        Case("known, more", who(mpid(1), [.email: ["a@mail"]]), .conflict, .differs),
        Case("known, another name", who(mpid(1), name: "Anne"), .conflict, .differs),
        Case("added an identity", who(mpid(1), [.email: ["a@mail"]]), upsert: true, .changed),
        Case("added a device", who(mpid(1), on: [on("b")]), upsert: true, .changed),
        Case("added a name", who(mpid(2), name: "Bob"), upsert: true, .changed),
        Case("another name is not taken", who(mpid(1), name: "Anne"), upsert: true, .same),
        Case(
            "an immutable one", who(mpid(1), [.customerID: ["anne"]]), upsert: true, .conflict, .immutable, .customerID),
        Case("another's", who(mpid(2), [.customerID: ["anna"]]), upsert: true, .conflict, .identityTaken, .customerID),
        Case("a third value", who(mpid(1), [.other: ["2", "3"]]), upsert: true, .conflict, .limitExceeded, .other),
        Case(
            "seen backwards",
            .init(mpid: five, identities: none, firstSeen: then, lastSeen: .init(milliseconds: then.milliseconds - 1)),
            .conflict, .badTime),
        Case(
            "in the future",
            .init(
                mpid: five, identities: none, firstSeen: then,
                lastSeen: .init(milliseconds: World.start + 9_000_000)),
            .conflict, .badTime),
    ]) func whatBecomesOfAnElement(_ one: Case) throws {
        let world = try given()
        let before = world.state
        #expect(bring([one.profile], upsert: one.upsert, in: world) == [one.expected])
        if [.conflict, .invalid, .same].contains(one.expected.outcome) {
            #expect(world.last?.changes.allSatisfy { if case .ignored = $0 { true } else { false } } == true)
            #expect(world.last?.events.isEmpty == true)
            return
        }
        let profile = try #require(world.profile(one.profile.mpid))
        for identity in one.profile.named where !world.settings.nobody.contains(identity) {
            #expect(profile.holds(identity, world.settings))
        }
        for device in one.profile.brought {
            #expect(world.state.device("demo", device.deviceId).users.contains { $0.mpid == profile.mpid })
        }
        // Who was there stays there.
        for device in before.devices.values {
            #expect(world.state.device("demo", device.key.id).current == device.current)
        }
    }

    /// S151.
    @Test func oneThatFailsDoesNotFailTheOthers() throws {
        let world = world()
        let at = Self.then.rfc3339
        let times = #""firstSeen":"\#(at)","lastSeen":"\#(at)""#
        let text = """
            {"profiles":[{"mpid":"5","identities":{"email":"a@mail"},\(times)},{"mpid":0,"identities":{},\(times)},
            {"mpid":6,"identities":{"mail":"b"},\(times)},{"mpid":6,"identities":{"email":["a@mail"]},\(times)},
            {"mpid":6,"identities":{},\(times),"device":[]},{"mpid":-6,"identities":{"other":["1","2"]},\(times)}]}
            """
        let list = try WireJSONDecoder().decode(ImportProfiles.self, from: Array(text.utf8))
        try list.validate()
        guard case .imported(let results) = world.run(.importProfiles(list)) else { return }
        #expect(results.map(\.outcome) == [.created, .invalid, .invalid, .conflict, .invalid, .created])
        #expect(results[3].reason == .identityTaken && results[3].type == .email)
        guard case .succeeded(let told as ImportResult) = world.last?.outcome else { return }
        let words = told.results.map { $0.message ?? "" }
        #expect(words[2].contains("mail is not an identity type") && words[4].contains("device"), "\(words)")
        #expect(list.partitionSubject == "5")
    }

    /// S152.
    @Test func theSameElementIsTheSameWhateverBecameOfTheProfile() throws {
        let world = world()
        let profile = Self.who(Self.five, [.customerID: ["anna"], .iosIDFV: ["1"]], on: [Self.on("a")])
        #expect(bring([profile, profile], in: world).map(\.outcome) == [.created, .same])
        _ = world.login(["customerid": "anna", "email": "a@mail"], on: "b")
        _ = world.logout(["ios_idfv": "1"], on: "a")
        try world.modify(Self.five, "customerid", from: "anna", to: "anne")
        let before = world.state.profiles.rows
        for upsert in [nil, true] { #expect(bring([profile], upsert: upsert, in: world).map(\.outcome) == [.same]) }
        #expect(world.state.profiles.rows == before)
        // Erased it stays (S57).
        world.run(.erase(EraseProfile(mpid: Self.five)))
        for upsert in [nil, true] {
            #expect(bring([profile], upsert: upsert, in: world).map(\.reason) == [.profileErased])
        }
    }

    /// S150. What is told of a profile is told at once.
    @Test func aProfileStandsInAListOnce() {
        let world = world()
        let results = bring(
            [Self.who(Self.five, on: [Self.on("a")]), Self.who(Self.five, [.customerID: ["anna"]])], upsert: true,
            in: world)
        #expect(results.map(\.outcome) == [.created, .invalid])
    }

    /// S153, S38, S157.
    @Test(arguments: [true, false]) func whoBecomesKnownIsToldToDevices(_ events: Bool) throws {
        let world = world()
        let anonymous = try #require(world.identify(["ios_idfv": "1"], on: "a")?.mpid)
        let more = Self.who(anonymous, [.customerID: ["anna"]], on: [Self.on("b")])
        #expect(bring([more], upsert: true, events: events ? nil : false, in: world).map(\.outcome) == [.changed])
        let changes = told(CurrentUserChanged.self, world)
        #expect(changes.map(\.deviceId) == (events ? ["b", "a"] : ["a"]))
        #expect(changes.allSatisfy { $0.isLoggedIn && $0.cause == .importing && $0.rule == .imported })
        #expect(told(IdentitiesChanged.self, world).count == (events ? 1 : 0))
        #expect(changes.last?.move == world.state.device("demo", "a").lastMove)
    }

    /// S154, S19.
    @Test func devicesHaveThoseWhoWereSeenThere() {
        let world = World(.defaults(of: .userIDThenEmail))
        world.principal = Principal(kind: .apiKey("k"), scopes: [.identitySync])
        bring(
            [
                Self.who(Self.mpid(1), on: [Self.on("a", isCurrent: false, 300)]),
                Self.who(Self.mpid(2), [.customerID: ["anna"]], on: [Self.on("a", 100)]),
                Self.who(Self.mpid(3), on: [Self.on("a", isCurrent: false, 200)]),
                Self.who(Self.mpid(4), [.customerID: ["bob"]], on: [Self.on("a", isCurrent: false, 50)]),
            ], in: world)
        let device = world.state.device("demo", "a")
        #expect(device.users.map(\.mpid.value) == [2, 4, 3, 1])
        #expect(device.current == Self.mpid(2) && device.anonymous == Self.mpid(3))
        #expect(told(CurrentUserChanged.self, world).map(\.mpid) == [Self.mpid(2)])
        // A logout returns to the anonymous user that was there last.
        #expect(world.logout([:], on: "a")?.mpid == Self.mpid(3))
        guard case .users(let users) = world.run(.getUsers(GetDeviceUsers(deviceId: "a"))) else { return }
        #expect(users.users.map(\.mpid.value) == [3, 2, 4, 1])
    }

    /// An SDK that goes on with its old MPID sees no mismatch.
    @Test func theOldMPIDIsTheRightOne() throws {
        let world = world()
        bring([Self.who(Self.five, [.iosIDFV: ["1"]], on: [Self.on("a")])], in: world)
        let result = try #require(world.move(.identify, ["ios_idfv": "1"], on: "a", previous: Self.five))
        #expect(result.mpid == Self.five && result.previousMPID == Self.five && result.previousMismatch == false)
        #expect(world.profile(Self.five)?.firstSeen == Self.then.milliseconds)
    }

    /// S155.
    @Test func whereVerificationIsEnforcedItNeedsVouching() {
        let world = world(.conversion, .enforce)
        world.principal = Principal(kind: .apiKey("k"), scopes: [.importing])
        let list = ImportProfiles(profiles: [.read(Self.who(Self.five))])
        #expect(world.run(.importProfiles(list)) == .rejected(.verificationRequired))
        world.principal = Principal(kind: .apiKey("k"), scopes: [.importing, .identityVouch])
        #expect(bring([Self.who(Self.five)], in: world).map(\.outcome) == [.created])
    }

    /// S156, S100: an erasure of before means somebody else, one of after the profile.
    @Test func identitiesCountFromTheImport() throws {
        let world = world()
        bring([Self.who(Self.five, [.customerID: ["anna"]])], in: world)
        let moment = world.now
        #expect(world.profile(Self.five)?.namedAt == [moment])
        #expect(world.profile(Self.five)?.imported?.at == moment)
        #expect(world.profile(Self.five)?.lastSeen == Self.then.milliseconds)
        func forget(_ at: Int64) -> SyncCommand {
            .forget(ForgetProfiles(userId: nil, externalId: "anna", erasedAt: Timestamp(milliseconds: at)))
        }
        world.run(forget(moment - 1))
        #expect(world.profile(Self.five)?.isErased == false)
        world.run(forget(moment))
        #expect(world.profile(Self.five)?.isErased == true)
    }

    /// S158, S46: the link marks who came before, and makes one where it is read first.
    @Test func linksMarkWhoWasImported() throws {
        let world = world()
        bring([Self.who(Self.five, [.customerID: ["anna"]])], in: world)
        world.run(link("user-1", "anna"))
        #expect(world.profile(Self.five)?.mark?.userID == "user-1" && world.state.profiles.count == 1)
        world.run(link("user-2", "bob"))
        #expect(bring([Self.who(Self.six, [.customerID: ["bob"]])], in: world).map(\.reason) == [.identityTaken])
    }

    /// S157: of two lists at one moment one is decided behind the other, whatever they find.
    @Test func twoListsMeet() throws {
        let world = world()
        bring([Self.who(Self.five), Self.who(Self.six)], in: world)
        func list(_ one: ImportedProfile, _ other: ImportedProfile) -> SyncCommand {
            .importProfiles(ImportProfiles(profiles: [.read(one), .read(other)], upsert: true))
        }
        var skew = WriteSkew(SyncService(aliasDelay: .seconds(1))) { state in
            var stored = SyncState()
            stored.load(Array(state.profiles.values))
            return stored
        }
        let steps = [
            list(Self.who(Self.five, name: "Anna"), Self.who(Self.six)),
            list(Self.who(Self.six, name: "Bob"), Self.who(Self.five)),
        ].map { command in
            world.count += 1
            return (command, world.context)
        }
        try skew.pair(steps.map { ($0.0, $0.1) }, on: world.state, "by hand")
        #expect(skew.changing == 1 && skew.meeting == 1)
    }

    // MARK: As if they had grown here

    /// Whatever people do, it comes to the same for those who grew here and for those who were brought.
    @Test(arguments: [SyncStrategy.conversion, .link, .isolation, .bestMatch])
    func whoWasBroughtIsAsWhoGrew(_ strategy: SyncStrategy) throws {
        var compared = 0
        try runSequences(60, until: { compared > 400 }) { seed in
            var commands = RandomCommands(seed: seed)
            var grown = SyncState()
            var moved: SyncState?
            for place in 0..<50 {
                let profiles = grown.profiles.values.map(\.mpid).sorted()
                var step = commands.next(profiles: profiles, aliases: [:])
                switch step.command {
                case .move, .search, .modify: break
                default: continue
                }
                if case .move(let operation, var request) = step.command {
                    (request.clearAnonymousUser, request.vouchedFor) = (nil, nil)
                    step.command = .move(operation, request)
                }
                step.context.app = AppSettings(id: "demo", sync: .worked(strategy))
                step.context.command.id = CommandID("c\(place)")
                step.context.principal = Principal(kind: .apiKey("k"), scopes: [.identitySync])
                step.context.now = Timestamp(milliseconds: World.start + Int64(place) * 60_000)
                step.context.moment = Moment(milliseconds: step.context.now.milliseconds)
                if place >= 20, moved == nil { moved = try Self.moved(grown, step.context) }
                let decision = SyncDecider(grown, step.context, aliasDelay: 1000).decide(step.command)
                decision.changes.forEach { grown.apply($0) }
                guard let state = moved else { continue }
                let other = SyncDecider(state, step.context, aliasDelay: 1000).decide(step.command)
                other.changes.forEach { moved?.apply($0) }
                let trace = Comment(rawValue: "seed \(seed), place \(place): \(step.command)")
                try #require(Self.withoutMove(other.outcome) == Self.withoutMove(decision.outcome), trace)
                compared += 1
            }
        }
        #expect(compared > 400)
    }

    private static func withoutMove(_ outcome: Outcome) -> Answer {
        guard case .sync(var result) = Answer(outcome) else { return Answer(outcome) }
        result.move = nil
        return .sync(result)
    }

    /// - Returns: the same people in a new store; `nil` when a device's user is an orphan, whom nobody moves.
    private static func moved(_ state: SyncState, _ context: DecisionContext) throws -> SyncState? {
        let here = state.profiles.values.filter { !$0.isOrphaned }.sorted { $0.mpid < $1.mpid }
        let known = Set(here.map(\.mpid))
        let devices = Array(state.devices.values)
        guard devices.allSatisfy({ $0.users.allSatisfy { known.contains($0.mpid) } }), !here.isEmpty else { return nil }
        let elements = here.map { profile in
            ImportedProfile(
                mpid: profile.mpid,
                identities: Dictionary(grouping: profile.identities, by: \.type).mapValues { $0.map(\.value.text) },
                firstSeen: Timestamp(milliseconds: profile.firstSeen),
                lastSeen: Timestamp(milliseconds: profile.lastSeen), name: profile.name,
                devices: devices.sorted { $0.key < $1.key }.compactMap { device in
                    device.users.first { $0.mpid == profile.mpid }.map { seen in
                        .init(
                            deviceId: device.key.id, isCurrent: device.current == profile.mpid,
                            firstSeen: Timestamp(milliseconds: seen.firstSeen),
                            lastSeen: Timestamp(milliseconds: seen.lastSeen))
                    }
                })
        }
        var context = context
        context.command.id = "import"
        let list = ImportProfiles(profiles: elements.map { .read($0) })
        let decision = SyncDecider(SyncState(), context, aliasDelay: 1000).decide(.importProfiles(list))
        guard case .imported(let results) = Answer(decision.outcome) else { return nil }
        try #require(results.allSatisfy { $0.outcome == .created }, "\(results)")
        var state = SyncState()
        decision.changes.forEach { state.apply($0) }
        return state
    }
}
