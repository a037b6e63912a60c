// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Foundation
import Storage
import TestKit
import WireJSON

@testable import Runtime
@testable import Verification

/// A seeded stream of commands for a few devices of two apps whose settings change, and of the sync service's answers: in
/// order or not, twice, refused, or never.
struct RandomCommands: RandomSource {
    /// A login as its sender knows it: with what its token was made of.
    struct Login {
        enum Token {
            case missing
            /// Of no key's making.
            case forged
            /// Of what the app signs.
            case made(secret: String)
        }

        var device: DeviceID
        var method = VerificationMethod.authToken
        var userID: String?
        var email: String?
        var name: String?
        var fullPrivacy: Bool?
        var token = Token.missing
    }

    struct Step {
        var command: VerificationCommand
        var context: DecisionContext
        /// Of a login and of a check.
        var login: Login?
    }

    /// A forward that was not answered, or that may be answered again.
    struct Waiting {
        var app: AppID
        var forwardID: CommandID
        /// Whom the sync service finds.
        var mpid: MPID?
        var move: Int64
    }

    /// The anonymous user after a logout.
    private static let nobody = MPID(-9)

    var random: SplitMix64
    private var count = 0
    private var now = Fixture.now
    private var settings: [AppID: VerificationSettings] = [
        "support": Fixture.settings(.enforce), "other": Fixture.settings(.report),
    ]
    private var waiting: [Waiting] = []
    private var logins: [Step] = []
    /// Numbers of moves that the sync service has given out.
    private var moves: Int64 = Fixture.now.milliseconds
    /// How often a user of an app was erased: whoever comes back is somebody new.
    private var lives: [String: Int64] = [:]

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func next() -> Step {
        count += 1
        if chance(15) { now.milliseconds += Int64.random(in: 1...40, using: &random) * 60_000 }
        if !waiting.isEmpty, chance(40) { return answer() }
        // Now and then a login that the inbox has forgotten comes again, also while it is on its way.
        if chance(6), let old = logins.suffix(4).randomElement(using: &random) { return old }
        let app: AppID = chance(50) ? "support" : "other"
        if chance(12) { settings[app] = newSettings() }
        let device = DeviceID("d\(Int.random(in: 0..<3, using: &random))")
        switch Int.random(in: 0..<16, using: &random) {
        case 0: return kept(step(.logout(VerificationLogout(deviceId: device)), app))
        case 1: return step(.usage(VerificationUsage()), app)
        case 2: return step(.getSession(GetSession(deviceId: device)), app)
        case 3: return step(.review(ReviewSession(deviceId: device)), app)
        case 4: return step(forget(user(), app), app)
        case 13, 12: return step(.moved(device, moved(app)), app)
        case 5:
            var login = login(device)
            (login.method, login.fullPrivacy) = (.authToken, nil)
            return step(login, app, isCheck: true)
        default: return kept(step(login(device), app))
        }
    }

    private mutating func user() -> String { pick(["anna", "berta", "carla"]) }

    /// May come again.
    private mutating func kept(_ step: Step) -> Step {
        logins.append(step)
        return step
    }

    // MARK: Settings

    /// Every key now and then, and every mode.
    private mutating func newSettings() -> VerificationSettings {
        var keys = [Fixture.k1, Fixture.k2]
        if chance(30) { keys.removeFirst() }
        if chance(20) { keys[0].retireAt = Timestamp(milliseconds: now.milliseconds + 1_200_000) }
        if chance(10) { keys[0].id = "renamed" }
        return Fixture.settings(
            pick([.enforce, .enforce, .report, .report, .off]), pick([.vendor, .vendor, .userId, .email, .delimited]),
            keys: keys,
            fullPrivacy: chance(8), clears: chance(20), identityTokenSecret: chance(85) ? Fixture.secret : nil,
            sessionSeconds: chance(25) ? 3600 : nil)
    }

    private func step(_ command: VerificationCommand, _ app: AppID, _ login: Login? = nil) -> Step {
        let expiry = count % 3 == 0 ? Timestamp(milliseconds: now.milliseconds + 60_000) : nil
        let context = Fixture.context(
            settings[app] ?? Fixture.settings(), id: CommandID("c\(count)"), app: app, now: now, expiry: expiry,
            folded: app == "other" ? [.email] : [])
        return Step(command: command, context: context, login: login)
    }

    // MARK: Logins

    private mutating func login(_ device: DeviceID) -> Login {
        var login = Login(device: device)
        if chance(25) { login.method = .identityToken }
        if chance(85) { login.userID = chance(90) ? user() : pick([" anna", "null", ""]) }
        if chance(35) { login.email = chance(85) ? "\(user())@x.io" : "Anna@x.io" }
        if chance(4) { login.email = "nowhere" }
        if chance(20), login.method == .authToken { login.name = "Somebody" }
        if chance(12) { login.fullPrivacy = chance(60) }
        switch Int.random(in: 0..<12, using: &random) {
        case 0: login.token = .missing
        case 1: login.token = .forged
        case 2: login.token = .made(secret: "a key that no app has")
        default:
            let isFirst = login.method == .identityToken || chance(70)
            login.token = .made(secret: isFirst ? Fixture.secret : Fixture.secondSecret)
        }
        return login
    }

    private func step(_ login: Login, _ app: AppID, isCheck: Bool = false) -> Step {
        if login.method == .identityToken {
            let command = VerificationLoginIdentity(
                deviceId: login.device, identityToken: jwt(login), fullPrivacy: login.fullPrivacy)
            return step(.loginIdentity(command), app, login)
        }
        let token = token(login, settings[app] ?? Fixture.settings())
        let command: VerificationCommand =
            isCheck
            ? .check(VerificationCheck(userId: login.userID, userEmail: login.email, userAuthToken: token ?? ""))
            : .login(
                VerificationLogin(
                    deviceId: login.device, userId: login.userID, userEmail: login.email, userName: login.name,
                    userAuthToken: token, fullPrivacy: login.fullPrivacy))
        return step(command, app, login)
    }

    /// As an app's backend makes it; of a field that is not there it signs nothing.
    private func token(_ login: Login, _ settings: VerificationSettings) -> String? {
        let isPrivate = settings.fullPrivacy || login.fullPrivacy == true
        let userID = login.userID ?? ""
        let email = isPrivate ? "" : login.email ?? ""
        let message =
            switch settings.signedFields {
            case .vendor: userID + email
            case .userId: userID
            case .email: email
            case .delimited: isPrivate ? userID : userID + "\n" + email
            }
        return written(login.token, forged: "x") { Fixture.token(message, $0) }
    }

    private func jwt(_ login: Login) -> String {
        let identities = [("uid", login.userID), ("email", login.email)].compactMap { name, value in
            value.map { #"{"identifier":"\#(name)","value":"\#($0)"}"# }
        }
        let payload = Fixture.payload(
            "[\(identities.joined(separator: ","))]", iat: String(now.milliseconds / 1000))
        return written(login.token, forged: "x.y.z") { Fixture.jwt(payload, secret: $0) } ?? ""
    }

    private func written(_ token: Login.Token, forged: String, _ make: (String) -> String) -> String? {
        switch token {
        case .missing: nil
        case .forged: forged
        case .made(let secret): make(secret)
        }
    }

    // MARK: The sync service

    private func mpid(_ user: String, _ app: AppID) -> Int64 {
        ["anna": 1, "berta": 2, "carla": 3][user, default: 4] + 10 * lives["\(app) \(user)", default: 0]
    }

    private mutating func forget(_ user: String, _ app: AppID) -> VerificationCommand {
        if chance(3) {
            return .forget(ForgetSessions(mpids: [Self.nobody].compactMap(\.self)))
        }
        defer { lives["\(app) \(user)", default: 0] += 1 }
        return .forget(ForgetSessions(mpids: chance(95) ? [MPID(mpid(user, app))].compactMap(\.self) : []))
    }

    /// Remembers what has to be answered.
    mutating func note(_ decision: VerificationDecider.Decision, app: AppID) {
        for forward in decision.forwards {
            let identities = (forward.command as? LogInUser)?.request.knownIdentities ?? [:]
            let email = (identities["email"] ?? nil)?.lowercased().split(separator: "@").first.map(String.init)
            let user = (identities["customerid"] ?? nil) ?? email
            moves += 1
            waiting.append(
                Waiting(
                    app: app, forwardID: forward.id, mpid: user.flatMap { MPID(mpid($0, app)) } ?? Self.nobody,
                    move: moves))
        }
    }

    private mutating func answer() -> Step {
        // Mostly the oldest, as it comes; now and then another one.
        let place = chance(75) ? 0 : Int.random(in: 0..<waiting.count, using: &random)
        let one = waiting[place]
        if chance(75) { waiting.remove(at: place) }
        let command =
            switch Int.random(in: 0..<14, using: &random) {
            case 0: Fixture.answer(to: one.forwardID, .rejected, reason: .throttled)
            case 1: Fixture.answer(to: one.forwardID, .expired)
            case 2: Fixture.answer(to: one.forwardID, .pending)
            default:
                Fixture.answer(
                    to: one.forwardID, .succeeded,
                    result: [
                        "mpid": .string(one.mpid?.description ?? ""), "move": .number(JSONNumber(one.move)),
                        "isLoggedIn": .bool((one.mpid != Self.nobody) != chance(5)),
                    ])
            }
        return step(command, one.app)
    }

    /// What the sync service tells of a device: something new, or something that comes late.
    private mutating func moved(_ app: AppID) -> DeviceMove {
        moves += 1
        let number = chance(80) ? moves : moves - Int64.random(in: 1...8, using: &random)
        guard let user = MPID(mpid(user(), app)), let nobody = Self.nobody, !chance(25) else {
            return DeviceMove(number: number, mpid: Self.nobody ?? .max, user: .anonymous)
        }
        return DeviceMove(
            number: number, mpid: chance(5) ? nobody : user, user: pick([.known, .known, .anonymous, .erased]),
            isDetached: number % 4 == 0)
    }
}
