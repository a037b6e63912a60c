// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import Testing

@testable import Runtime
@testable import Verification

/// A session ends with what it rests on: its key, the app's mode, its time.
@Suite struct SessionEndTests {
    /// Anna, user 1, verified by k1 on device d.
    private func world(_ settings: VerificationSettings = Fixture.settings()) -> World {
        var world = World(settings)
        let anna = world.vouched("anna")
        _ = world.answer(anna, mpid: 1)
        return world
    }

    static let gone = Fixture.settings(keys: [Fixture.k2])

    // MARK: Keys

    /// V47.
    @Test func aKeyThatIsTakenAway() {
        var world = world()
        #expect(world.review().told == [])
        #expect(world.getSession().answer == "verified k1 1 \(Fixture.now.rfc3339) login")
        world.settings = Self.gone
        let review = world.review()
        #expect(review.answer == "noted")
        #expect(review.told == ["session ended keyGone unverified! 1"])
        #expect(world.getSession().answer == "unverified! 1 login")
        #expect(world.review().told == [])
        // The user shows a new token: the same user, vouched for again.
        let anna = world.login("anna", token: Fixture.token("anna", "second_secret_key_0123456789"))
        #expect(world.answer(anna, mpid: 1).told == ["session login verified 1"])
        #expect(world.getSession().answer == "verified k2 1 \(Fixture.now.rfc3339) login")
    }

    /// Nobody has to wait for the review: whoever looks decides on the settings of now.
    @Test(arguments: ["get-session", "login", "refused", "logout", "anonymous"]) func whoeverLooks(_ what: String) {
        var world = world()
        world.settings = Self.gone
        let decision =
            switch what {
            case "get-session": world.getSession()
            case "login": world.login("anna", token: Fixture.token("anna", "second_secret_key_0123456789"))
            case "refused": world.login("anna", token: Fixture.token("anna"))
            case "logout": world.logout()
            default: world.login()
            }
        #expect(decision.told.contains("session ended keyGone unverified! 1"), "\(decision.told)")
        #expect(world.session()?.state == .unverified)
        #expect(world.session()?.mayFileIssues == false)
        #expect(world.review().told == [])
    }

    @Test func aKeyThatRetires() {
        let end = Timestamp(milliseconds: Fixture.now.milliseconds + 60_000)
        var world = world(Fixture.settings(keys: [Fixture.key("k1", Fixture.secret, retireAt: end)]))
        world.now = Timestamp(milliseconds: end.milliseconds - 1)
        #expect(world.review().told == [])
        world.now = end
        #expect(world.review().told == ["session ended keyGone unverified! 1"])
    }

    /// The id stays, the secret is another: what the old one vouched for is gone.
    @Test func anotherSecretUnderTheSameId() {
        var world = world()
        world.settings = Fixture.settings(keys: [Fixture.key("k1", "quite_another_secret_0123")])
        #expect(world.review().told == ["session ended keyGone unverified! 1"])
    }

    /// Another id for the same secret is the same key; so is a single identity token secret that becomes a list (V48).
    @Test func anotherIdForTheSameSecret() {
        var world = world()
        let jwt = Fixture.jwt(Fixture.payload(Fixture.uid))
        let login = world.identity(jwt, device: "e")
        #expect(world.answer(login, mpid: 2).settled == ["verified 2"])
        world.settings = Fixture.settings(keys: [Fixture.key("renamed", Fixture.secret)])
        world.settings.identityTokenSecrets = [Fixture.key("j1", Fixture.secret), Fixture.key("j2", "another_secret")]
        #expect(world.review().told == [])
        #expect(world.review("e").told == [])
        // It is no key of the other kind.
        world.settings.identityTokenSecrets = []
        #expect(world.review("e").told == ["session ended keyGone unverified! 2"])
        #expect(world.review().told == [])
    }

    /// In `report` everybody may stay, as unverified.
    @Test func inReport() {
        var world = world(Fixture.settings(.report))
        world.settings = Fixture.settings(.report, keys: [Fixture.k2])
        #expect(world.review().told == ["session ended keyGone unverified 1"])
        #expect(world.review().told == [])
        world.settings.mode = .enforce
        #expect(world.review().told == ["session ended verificationRequired unverified! 1"])
        #expect(world.review().told == [])
    }

    /// The key goes while the sync service looks for the user.
    @Test func theKeyGoesOnTheWay() {
        var world = World()
        let anna = world.vouched("anna")
        world.settings = Self.gone
        let late = world.answer(anna, mpid: 1)
        #expect(late.settled == ["rejected InvalidAuthToken"])
        #expect(late.told == ["session login unverified! 1"])
        #expect(world.session()?.mayFileIssues == false)
        world.settings = Fixture.settings(.report)
        let berta = world.vouched("berta")
        world.settings = Fixture.settings(.report, keys: [Fixture.k2])
        #expect(world.answer(berta, mpid: 2).settled == ["unverified 2"])
    }

    // MARK: The mode

    @Test(arguments: [VerificationSettings.Mode.off, .report]) func aSwitchToEnforce(_ mode: VerificationSettings.Mode)
    {
        var world = World(Fixture.settings(mode))
        let anna = world.login("anna")
        _ = world.answer(anna, mpid: 1)
        let vouched = world.vouched("berta", device: "e")
        _ = world.answer(vouched, mpid: 2)
        _ = world.login(device: "anonymous")
        world.settings = Fixture.settings(.enforce)
        #expect(world.review().told == ["session ended verificationRequired unverified! 1"])
        #expect(world.session()?.mayFileIssues == false)
        #expect(world.review("anonymous").told == [])
        #expect(world.review("nobody").changes.isEmpty)
        let expected = mode == .off ? ["session ended verificationRequired unverified! 2"] : []
        #expect(world.review("e").told == expected)
    }

    /// With a token, which nobody looks at in `off`: so the message does not say that none was given.
    @Test func theModeChangesOnTheWay() {
        var world = World(Fixture.settings(.off))
        let anna = world.vouched("anna")
        world.settings = Fixture.settings(.enforce)
        let late = world.answer(anna, mpid: 1)
        #expect(late.settled == ["rejected AuthTokenNotProvided"])
        let said = late.settlements.compactMap {
            if case .rejected(let refusal) = $0.outcome { refusal.message } else { nil }
        }
        #expect(said == [VerificationDecider.overtaken.message])
        #expect(late.told == ["session login unverified! 1"])
    }

    // MARK: Time

    @Test func aSessionAges() {
        var world = world(Fixture.settings(sessionSeconds: 3600))
        world.now = Timestamp(milliseconds: Fixture.now.milliseconds + 3_599_999)
        #expect(world.review().told == [])
        world.now = Timestamp(milliseconds: Fixture.now.milliseconds + 3_600_000)
        #expect(world.review().told == ["session ended sessionExpired unverified! 1"])
        let again = world.vouched("anna")
        #expect(world.answer(again, mpid: 1).told == ["session login verified 1"])
    }

    // MARK: Getting a session

    @Test func whatIsToldOfASession() {
        var world = World()
        #expect(world.getSession().answer == "anonymous")
        #expect(world.getSession().changes.isEmpty)
        _ = world.login("anna")
        #expect(world.getSession().answer == "unverified!")
        let anna = world.vouched("anna")
        #expect(world.getSession().answer == "unverified! login")
        _ = world.answer(anna, mpid: 1)
        #expect(world.getSession().answer == "verified k1 1 \(Fixture.now.rfc3339) login")
        let logout = world.logout()
        #expect(world.getSession().answer == "verified k1 1 \(Fixture.now.rfc3339) login")
        _ = world.answer(logout, mpid: -5)
        #expect(world.getSession().answer == "anonymous")
    }

    // MARK: What becomes due

    private func directory(_ settings: VerificationSettings) -> AppDirectory {
        AppDirectory([AppSettings(id: "support", verification: settings), AppSettings(id: "other")])
    }

    /// Sessions of gone keys, of another mode and of another time are found, in steps, and no others.
    @Test(arguments: [SQLEngine.sqlite, .postgresql]) func whatIsFound(_ engine: SQLEngine) throws {
        let store = try VerificationTestStore(engine)
        let old = Timestamp(milliseconds: Fixture.now.milliseconds - 10_000_000)
        func standing(_ key: VerificationSettings.Key, _ since: Timestamp = Fixture.now) -> Standing {
            Standing(.key(mark: key.mark(.authToken)), keyID: key.id, since: since)
        }
        let standings: [(String, Standing?)] =
            (0..<5).map { ("k1-\($0)", standing(Fixture.k1)) } + [
                ("k2", standing(Fixture.k2)), ("k2-old", standing(Fixture.k2, old)), ("nobody", nil),
                ("unchecked", Standing(.unchecked, since: Fixture.now)), ("let-through", Standing(.unverified)),
            ]
        var state = SessionState()
        for (device, standing) in standings {
            state.apply(.session(Session(app: "support", deviceID: DeviceID(device), standing: standing)))
        }
        let saved = state
        try store.database.transaction { try VerificationStore(transaction: $0).save(saved, shard: 0) }

        func due(_ settings: VerificationSettings, limit: Int = 100, after: Int64 = 0) throws -> [String] {
            let now = Timestamp(milliseconds: Fixture.now.milliseconds + after)
            return try store.database.transaction { transaction in
                // A new one each time has no pace to keep.
                try VerificationService().due(now: now, limit: limit, apps: directory(settings), in: transaction)
            }.map { try #require($0.command as? ReviewSession).deviceId.text }
        }
        #expect(try due(Fixture.settings(.report)) == [])
        #expect(try due(Self.gone, limit: 3).count == 3)
        #expect(Set(try due(Self.gone, after: 1000)).count == 4, "the rest, once")
        #expect(try due(Self.gone, after: 2000) == [])
        let all = ["k1-0", "k1-1", "k1-2", "k1-3", "k1-4", "let-through", "unchecked"]
        #expect(try due(Self.gone, after: 40_000).sorted() == all, "what was not decided comes again")
        #expect(
            try due(Fixture.settings(sessionSeconds: 3600), after: 90_000).sorted()
                == ["k2-old", "let-through", "unchecked"])
        #expect(try due(Fixture.settings(.off, keys: [])) == ["k2"], "the others were asked lately")
        #expect(
            try due(Fixture.settings(.off, keys: []), after: 200_000).sorted()
                == ["k1-0", "k1-1", "k1-2", "k1-3", "k1-4", "k2", "k2-old"])
    }

    /// Looking is cheap and still not done all the time; while there is more, it goes on at once.
    @Test func thePace() throws {
        let store = try VerificationTestStore(.sqlite)
        var state = SessionState()
        for number in 0..<5 {
            state.apply(
                .session(Session(app: "support", deviceID: DeviceID("d\(number)"), standing: Standing(.unchecked))))
        }
        let saved = state
        try store.database.transaction { try VerificationStore(transaction: $0).save(saved, shard: 0) }
        let service = VerificationService()
        func due(after: Int64, _ mode: VerificationSettings.Mode = .enforce) throws -> Int {
            let now = Timestamp(milliseconds: Fixture.now.milliseconds + after)
            return try store.database.transaction {
                try service.due(now: now, limit: 2, apps: directory(Fixture.settings(mode)), in: $0)
            }.count
        }
        #expect(try due(after: 0, .off) == 0)
        #expect(try due(after: 1000) == 0)
        #expect(try due(after: 5000) == 2)
        #expect(try due(after: 5001) == 2)
        #expect(try due(after: 5002) == 1)
        #expect(try due(after: 5003) == 0)
    }
}
