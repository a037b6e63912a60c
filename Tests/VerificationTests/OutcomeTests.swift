// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Storage
import TestKit
import Testing
import WireJSON

@testable import Runtime
@testable import Verification

/// Table B3.5 and what the modes make of it.
@Suite struct OutcomeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var mode: VerificationSettings.Mode
        var userID: String? = nil
        var email: String? = nil
        var token: String? = nil
        /// Answer, what is told, what is forwarded.
        var answer: String
        var told: [String] = []
        var sent: [String] = []
        /// State and answer once the sync service has found user 7.
        var settled: String? = nil
        var testDescription: String { "\(mode) \(userID ?? "-") \(email ?? "-") \(token ?? "-")" }
    }

    static let good = Fixture.token("anna")
    static let second = Fixture.token("anna", "second_secret_key_0123456789")
    static let foreign = Fixture.token("anna", "the_secret_of_another_app")

    static let rows = [
        Row(mode: .off, userID: "anna", answer: "pending", sent: ["login customerid=anna"], settled: "unchecked 7"),
        Row(
            mode: .off, userID: "anna", email: "a@b.io", token: "rubbish", answer: "pending",
            sent: ["login customerid=anna email=a@b.io"], settled: "unchecked 7"),
        Row(
            mode: .off, userID: "anna", token: good, answer: "pending", sent: ["login customerid=anna"],
            settled: "unchecked 7"),
        Row(mode: .enforce, answer: "anonymous noIdentifier", told: ["session login anonymous"]),
        Row(mode: .enforce, token: good, answer: "anonymous noIdentifier", told: ["session login anonymous"]),
        Row(
            mode: .enforce, userID: " anna", token: good, answer: "anonymous userIdOuterWhiteSpace",
            told: ["session login anonymous"]),
        Row(
            mode: .enforce, userID: "anna", email: "rubbish", token: good, answer: "anonymous userEmailInvalid",
            told: ["session login anonymous"]),
        Row(
            mode: .enforce, userID: "anna", token: good, answer: "pending", told: ["verified k1"],
            sent: ["login customerid=anna"], settled: "verified k1 7"),
        Row(
            mode: .enforce, userID: "anna", token: second, answer: "pending", told: ["verified k2"],
            sent: ["login customerid=anna"], settled: "verified k2 7"),
        Row(
            mode: .enforce, userID: "anna", answer: "rejected AuthTokenNotProvided",
            told: ["failed AuthTokenNotProvided", "session refusal unverified!"]),
        Row(
            mode: .enforce, userID: "anna", token: " ", answer: "rejected AuthTokenNotProvided",
            told: ["failed AuthTokenNotProvided", "session refusal unverified!"]),
        Row(
            mode: .enforce, userID: "anna", token: foreign, answer: "rejected InvalidAuthToken",
            told: ["failed InvalidAuthToken", "session refusal unverified!"]),
        Row(
            mode: .enforce, userID: "berta", token: good, answer: "rejected InvalidAuthToken",
            told: ["failed InvalidAuthToken", "session refusal unverified!"]),
        Row(
            mode: .report, userID: "anna", token: good, answer: "pending", told: ["verified k1"],
            sent: ["login customerid=anna"], settled: "verified k1 7"),
        Row(
            mode: .report, userID: "anna", answer: "pending", told: ["observed AuthTokenNotProvided"],
            sent: ["login customerid=anna"], settled: "unverified 7"),
        Row(
            mode: .report, userID: "anna", email: "a@b.io", token: foreign, answer: "pending",
            told: ["observed InvalidAuthToken"], sent: ["login customerid=anna email=a@b.io"], settled: "unverified 7"),
        Row(mode: .report, answer: "anonymous noIdentifier", told: ["session login anonymous"]),
    ]

    @Test(arguments: rows) func matrix(_ row: Row) {
        var world = World(Fixture.settings(row.mode))
        let decision = world.login(row.userID, row.email, token: row.token)
        #expect(decision.answer == row.answer)
        #expect(decision.told == row.told)
        #expect(decision.sent == row.sent)
        guard let settled = row.settled else {
            #expect(decision.forwards.isEmpty)
            return
        }
        let final = world.answer(decision, mpid: 7)
        #expect(final.settled == [settled])
        #expect(final.settlements.first?.command.id == "c1")
        let state = settled.split(separator: " ")[0]
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
        let decision = VerificationDecider.decide(login, SessionState(), context)
        #expect(decision.forwards.map(\.expiry) == [expiry])
    }

    // MARK: Identity tokens

    static let jwt = Fixture.jwt(Fixture.payload(Fixture.uid))
    static let old = Fixture.jwt(Fixture.payload(Fixture.uid, iat: "1600000000"))
    static let nobody = Fixture.jwt(Fixture.payload("[]"))

    @Test(
        arguments: [
            (.enforce, jwt, "pending", ["verified identityToken"], ["login customerid=captain_planet"]),
            (.enforce, "", "anonymous noIdentifier", ["session login anonymous"], []),
            (
                .enforce, old, "rejected INVALID_IDENTITY_TOKEN",
                ["failed INVALID_IDENTITY_TOKEN", "session refusal unverified!"], []
            ),
            (
                .enforce, nobody, "rejected UID_OR_EMAIL_IS_MANDATORY",
                ["failed UID_OR_EMAIL_IS_MANDATORY", "session refusal unverified!"], []
            ),
            (
                .enforce, "x", "rejected INVALID_IDENTITY_TOKEN",
                ["failed INVALID_IDENTITY_TOKEN", "session refusal unverified!"], []
            ),
            (.report, old, "pending", ["observed INVALID_IDENTITY_TOKEN"], ["login customerid=captain_planet"]),
            // It names nobody, so there is nobody to let in.
            (.report, "x", "rejected INVALID_IDENTITY_TOKEN", ["observed INVALID_IDENTITY_TOKEN"], []),
            (.off, old, "pending", [], ["login customerid=captain_planet"]),
            (.off, "x", "rejected INVALID_IDENTITY_TOKEN", [], []),
        ] as [(VerificationSettings.Mode, String, String, [String], [String])])
    func identityTokens(
        _ mode: VerificationSettings.Mode, _ token: String, _ answer: String, _ told: [String], _ sent: [String]
    ) {
        var world = World(Fixture.settings(mode))
        let decision = world.identity(token)
        #expect(decision.answer == answer)
        #expect(decision.told == told)
        #expect(decision.sent == sent)
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
                            deviceId: "d\(index % 50)", userId: index % 29 == 0 ? nil : user,
                            userAuthToken: tokens.randomElement(using: &random) ?? nil)))
            } else {
                let token = jwts.randomElement(using: &random) ?? ""
                traffic.append(
                    .loginIdentity(VerificationLoginIdentity(deviceId: "d\(index % 50)", identityToken: token)))
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
        let later = world.now.rfc3339
        #expect(
            result.counts == [
                .init(method: .authToken, keyId: "k1", count: 2, lastUsed: Fixture.now.rfc3339),
                .init(method: .authToken, keyId: "k2", count: 1, lastUsed: later),
                .init(method: .authToken, reason: .authTokenNotProvided, count: 1, lastUsed: later),
                .init(method: .identityToken, count: 1, lastUsed: later),
            ])
        #expect(world.state.usage(app: "other").isEmpty)
    }
}
