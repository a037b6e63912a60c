// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Verification

/// docs/verification.md "Results of a login", in all modes.
@Suite struct OutcomeTests {
    static let good = Fixture.token("anna")
    static let second = Fixture.token("anna", "second_secret_key_0123456789")
    static let foreign = Fixture.token("anna", "the_secret_of_another_app")

    static let tokens = [
        "good": good, "second": second, "foreign": foreign, "rubbish": "rubbish", "blank": " ", "jwt": jwt, "old": old,
        "nobody": nobody, "x": "x", "empty": "",
    ]

    /// Mode, user id, e-mail, token; the answer; what is told and forwarded; what it comes to once the sync service has
    /// found user 7.
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var columns: [String]

        static func rows(_ table: String) -> [Row] {
            table.split(separator: "\n").map { line in
                let columns = line.split(separator: "|").map { String($0).trimmingCharacters(in: .whitespaces) }
                return Row(testDescription: columns.prefix(4).joined(separator: " "), columns: columns)
            }
        }

        var mode: VerificationSettings.Mode {
            guard let mode = VerificationSettings.Mode(rawValue: columns[0]) else {
                preconditionFailure("no mode: \(columns[0])")
            }
            return mode
        }

        /// A column's text; quotes keep white space.
        func text(_ column: Int) -> String? {
            columns[column] == "-" ? nil : columns[column].trimmingCharacters(in: ["\""])
        }

        func list(_ column: Int) -> [String] { text(column)?.components(separatedBy: ", ") ?? [] }
    }

    static let rows = Row.rows(
        """
        off     | anna    | -       | -       | pending | - | login customerid=anna | unchecked 7
        off     | anna    | a@b.io  | rubbish | pending | - | login customerid=anna email=a@b.io | unchecked 7
        off     | anna    | -       | good    | pending | - | login customerid=anna | unchecked 7
        enforce | -       | -       | -       | pending | session login anonymous | identify | anonymous 7 noIdentifier
        enforce | -       | -       | good    | pending | session login anonymous | identify | anonymous 7 noIdentifier
        enforce | " anna" | -       | good    | pending | session login anonymous | identify | anonymous 7 userIdOuterWhiteSpace
        enforce | anna    | rubbish | good    | pending | session login anonymous | identify | anonymous 7 userEmailInvalid
        enforce | anna    | -       | good    | pending | verified k1 | login customerid=anna | verified k1 7
        enforce | anna    | -       | second  | pending | verified k2 | login customerid=anna | verified k2 7
        enforce | anna    | -       | -       | rejected AuthTokenNotProvided | failed AuthTokenNotProvided, session refusal unverified! | - | -
        enforce | anna    | -       | blank   | rejected AuthTokenNotProvided | failed AuthTokenNotProvided, session refusal unverified! | - | -
        enforce | anna    | -       | foreign | rejected InvalidAuthToken | failed InvalidAuthToken, session refusal unverified! | - | -
        enforce | berta   | -       | good    | rejected InvalidAuthToken | failed InvalidAuthToken, session refusal unverified! | - | -
        report  | anna    | -       | good    | pending | verified k1 | login customerid=anna | verified k1 7
        report  | anna    | -       | -       | pending | observed AuthTokenNotProvided | login customerid=anna | unverified 7
        report  | anna    | a@b.io  | foreign | pending | observed InvalidAuthToken | login customerid=anna email=a@b.io | unverified 7
        report  | -       | -       | -       | pending | session login anonymous | identify | anonymous 7 noIdentifier
        """)

    @Test(arguments: rows) func matrix(_ row: Row) {
        #expect(row.columns.count == 8)
        var world = World(Fixture.settings(row.mode))
        let decision = world.login(row.text(1), row.text(2), token: row.text(3).flatMap { Self.tokens[$0] })
        #expect(decision.answer == row.text(4))
        #expect(decision.told == row.list(5))
        #expect(decision.sent == row.list(6))
        guard let settled = row.text(7) else {
            #expect(decision.forwards.isEmpty)
            return
        }
        let state = settled.split(separator: " ")[0]
        let final = world.answer(decision, mpid: 7, isKnown: state != "anonymous")
        #expect(final.settled == [settled])
        #expect(final.settlements.first?.command.id == "c1")
        guard state != "anonymous" else {
            #expect(final.told == [] && world.session()?.mpid == nil)
            return
        }
        #expect(final.told == ["session login \(state) 7"])
        #expect(world.session()?.mpid?.value == 7)
    }

    /// A session that is refused is not turned anonymous; anonymous users may always file issues.
    @Test func whoMayFileIssues() {
        var world = World()
        _ = world.login("anna")
        #expect(world.session()?.state == .unverified)
        #expect(world.session()?.mayFileIssues == false)
        _ = world.login()
        #expect(world.session()?.state == .anonymous)
        #expect(world.session()?.mayFileIssues == true)
    }

    @Test func whatIsForwarded() {
        var world = World(Fixture.settings(.enforce, .userId, clears: true))
        let decision = world.login("anna", "a@b.io", token: Self.good, name: "Anna")
        // The e-mail is not signed.
        #expect(decision.sent == ["login customerid=anna name=Anna clears=true"])
        world.settings = Fixture.settings(.enforce, .email)
        #expect(world.login("anna", "a@b.io", token: Fixture.token("a@b.io")).sent == ["login email=a@b.io"])
        world.settings = Fixture.settings(.off, fullPrivacy: true)
        #expect(world.login("anna", "a@b.io", name: "Anna").sent == ["login customerid=anna"])
        world.settings = Fixture.settings(.off)
        #expect(world.login("anna", "a@b.io", name: "Anna", fullPrivacy: true).sent == ["login customerid=anna"])
        #expect(world.login(nil, "a@b.io", fullPrivacy: true).sent == ["logout"])
    }

    @Test func theExpiryGoesAlong() {
        let expiry = Timestamp(milliseconds: Fixture.now.milliseconds + 1000)
        let context = Fixture.context(Fixture.settings(.off), expiry: expiry)
        let login = VerificationCommand.login(VerificationLogin(deviceId: "d", userId: "anna"))
        let decision = VerificationDecider(SessionState(), context).decide(login)
        #expect(decision.forwards.map(\.expiry) == [expiry])
    }

    // MARK: Identity tokens

    static let jwt = Fixture.jwt(Fixture.payload(Fixture.uid))
    static let old = Fixture.jwt(Fixture.payload(Fixture.uid, iat: "1600000000"))
    static let nobody = Fixture.jwt(Fixture.payload("[]"))

    static let identityRows = Row.rows(
        """
        enforce | jwt    | pending | verified identityToken | login customerid=captain_planet
        enforce | empty  | pending | session login anonymous | identify
        enforce | old    | rejected INVALID_IDENTITY_TOKEN | failed INVALID_IDENTITY_TOKEN, session refusal unverified! | -
        enforce | nobody | rejected UID_OR_EMAIL_IS_MANDATORY | failed UID_OR_EMAIL_IS_MANDATORY, session refusal unverified! | -
        enforce | x      | rejected INVALID_IDENTITY_TOKEN | failed INVALID_IDENTITY_TOKEN, session refusal unverified! | -
        report  | old    | pending | observed INVALID_IDENTITY_TOKEN | login customerid=captain_planet
        report  | x      | rejected INVALID_IDENTITY_TOKEN | observed INVALID_IDENTITY_TOKEN | -
        off     | old    | pending | - | login customerid=captain_planet
        off     | x      | rejected INVALID_IDENTITY_TOKEN | - | -
        """)

    /// One that names nobody lets nobody in, whatever the mode.
    @Test(arguments: identityRows) func identityTokens(_ row: Row) throws {
        #expect(row.columns.count == 5)
        var world = World(Fixture.settings(row.mode))
        let decision = world.identity(try #require(row.text(1).flatMap { Self.tokens[$0] }))
        #expect(decision.answer == row.text(2))
        #expect(decision.told == row.list(3))
        #expect(decision.sent == row.list(4))
    }

    /// Whose key it was is told of a token that is refused for something else than its signature.
    @Test(arguments: [(old, "j1"), (nobody, "j1"), ("x", nil), (jwt + "A", nil)] as [(String, KeyID?)])
    func aRefusedTokenNamesItsKey(_ token: String, _ key: KeyID?) {
        for mode in [VerificationSettings.Mode.enforce, .report] {
            var settings = Fixture.settings(mode)
            settings.identityTokenSecrets = [Fixture.key("j1", Fixture.secret)]
            var world = World(settings)
            let told = world.identity(token).events.compactMap { event in
                (event as? VerificationFailed).map { [$0.keyId] } ?? (event as? UnverifiedObserved).map { [$0.keyId] }
            }
            #expect(told == [[key]])
        }
    }

    @Test func withoutASecretIdentityTokensAreRefused() {
        var world = World(Fixture.settings(identityTokenSecret: nil))
        #expect(world.identity(Self.jwt).answer == "rejected IDENTITY_FEATURE_NOT_ENABLED")
    }

    // MARK: Check

    @Test func check() {
        var world = World(Fixture.settings(.off))
        func ask(_ userID: String?, _ email: String?, _ token: String) -> String {
            world.decide(.check(VerificationCheck(userId: userID, userEmail: email, userAuthToken: token))).answer
        }
        #expect(ask("anna", nil, Self.good) == "verified k1")
        #expect(ask("anna", nil, Self.second) == "verified k2")
        #expect(ask("anna", nil, Self.foreign) == "rejected InvalidAuthToken")
        #expect(ask("anna", nil, " ") == "rejected AuthTokenNotProvided")
        #expect(ask(" anna", nil, Self.good) == "anonymous userIdOuterWhiteSpace")
        #expect(world.state.sessions.isEmpty)
        #expect(world.state.usage(app: "support").isEmpty)
    }

    // MARK: Report tells what enforce would do

    /// The same recorded traffic in both modes: the counters are equal, and report refuses nobody who can be named.
    @Test func reportCountsWhatEnforceRefuses() {
        var random = SplitMix64(seed: testSeed)
        var traffic: [VerificationCommand] = []
        for index in 0..<2000 {
            let user = "user\(index % 17)"
            let tokens = [
                Fixture.token(user), Fixture.token(user, "second_secret_key_0123456789"), Self.foreign, nil, "", "x",
            ]
            let jwts = [
                Self.jwt, Self.old, Self.nobody, "x", "",
                Fixture.jwt(Fixture.payload(Fixture.uid), secret: "wrong_secret"),
            ]
            if Bool.random(using: &random) {
                traffic.append(
                    .login(
                        VerificationLogin(
                            deviceId: DeviceID("d\(index % 50)"), userId: index % 29 == 0 ? nil : user,
                            userAuthToken: tokens.randomElement(using: &random) ?? nil)))
            } else {
                let token = jwts.randomElement(using: &random) ?? ""
                traffic.append(
                    .loginIdentity(
                        VerificationLoginIdentity(deviceId: DeviceID("d\(index % 50)"), identityToken: token)))
            }
        }
        var report = World(Fixture.settings(.report))
        var enforce = World(Fixture.settings(.enforce))
        var refused: [String: Int] = [:]
        for command in traffic {
            let seen = report.decide(command)
            let decided = enforce.decide(command)
            let observed = seen.told.filter { $0.hasPrefix("observed ") }.map { $0.dropFirst(9) }
            if decided.answer.hasPrefix("rejected ") {
                refused[decided.answer, default: 0] += 1
                #expect(observed.map { "rejected \($0)" } == [decided.answer])
            } else {
                #expect(observed.isEmpty)
                #expect(!seen.answer.hasPrefix("rejected"))
            }
            if case .login = command { #expect(!seen.answer.hasPrefix("rejected")) }
        }
        let counts = report.state.usage(app: "support")
        #expect(counts == enforce.state.usage(app: "support"))
        #expect(refused.count >= 4)
        var counted: [String: Int] = [:]
        for (tally, count) in counts {
            if let reason = tally.reason { counted["rejected \(reason.rawValue)", default: 0] += Int(count.count) }
        }
        #expect(counted == refused)
        #expect(counts.filter { $0.key.reason == nil }.keys.compactMap(\.keyID).sorted() == ["k1", "k2"])
    }

    /// What it says of usage, in order, and only of the own app.
    @Test func usage() throws {
        var world = World()
        _ = world.vouched("anna")
        _ = world.vouched("berta")
        world.now = Timestamp(milliseconds: Fixture.now.milliseconds + 5000)
        _ = world.login("anna", token: Self.second)
        _ = world.login("anna")
        _ = world.identity(Self.jwt)
        guard case .succeeded(let any) = world.decide(.usage(VerificationUsage())).outcome else {
            Issue.record("not succeeded")
            return
        }
        let result = try #require(any as? VerificationUsageResult)
        let later = world.now
        #expect(
            result.counts == [
                .init(method: .authToken, keyId: "k1", count: 2, lastUsed: Fixture.now),
                .init(method: .authToken, keyId: "k2", count: 1, lastUsed: later),
                .init(method: .authToken, reason: .authTokenNotProvided, count: 1, lastUsed: later),
                .init(method: .identityToken, count: 1, lastUsed: later),
            ])
        #expect(world.state.usage(app: "other").isEmpty)
    }
}
