// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import TestKit
import WireJSON

@testable import Runtime
@testable import Verification

/// A seeded stream of commands for a few devices of two apps, and of the sync service's answers: in order or not,
/// twice, refused, or never.
struct RandomCommands {
    struct Step {
        var command: VerificationCommand
        var context: DecisionContext
    }

    /// A forward that was not answered, or that may be answered again.
    struct Waiting {
        var app: AppID
        var forwardID: CommandID
        /// Whom the sync service finds.
        var mpid: Int64
    }

    private var random: SplitMix64
    private var count = 0
    private var waiting: [Waiting] = []
    private var logins: [Step] = []
    /// How often a user of an app was erased: whoever comes back is somebody new.
    private var lives: [String: Int64] = [:]

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func next() -> Step {
        count += 1
        let app: AppID = ["support", "other"][Int.random(in: 0...1, using: &random)]
        let settings = settings(app)
        if !waiting.isEmpty, Int.random(in: 0..<5, using: &random) < 2 {
            let answer = answer()
            return Step(
                command: answer.0,
                context: Fixture.context(self.settings(answer.1), id: CommandID("c\(count)"), app: answer.1))
        }
        // Now and then a login that the inbox has forgotten comes again, also while it is on its way.
        if Int.random(in: 0..<16, using: &random) == 0, let old = logins.suffix(4).randomElement(using: &random) {
            return old
        }
        let device = DeviceID("d\(Int.random(in: 0..<3, using: &random))")
        let user = ["anna", "berta", "carla"][Int.random(in: 0..<3, using: &random)]
        let command: VerificationCommand =
            switch Int.random(in: 0..<13, using: &random) {
            case 0: .logout(VerificationLogout(deviceId: device))
            case 1: .login(VerificationLogin(deviceId: device))
            case 2: .login(VerificationLogin(deviceId: device, userId: user, userAuthToken: "x"))
            case 3:
                .loginIdentity(
                    VerificationLoginIdentity(
                        deviceId: device,
                        identityToken: Fixture.jwt(Fixture.payload(#"[{"identifier":"uid","value":"\#(user)"}]"#))))
            case 4: .usage(VerificationUsage())
            case 5: .getSession(GetSession(deviceId: device))
            case 6: .review(ReviewSession(deviceId: device))
            case 7: forget(user, app)
            default:
                .login(VerificationLogin(deviceId: device, userId: user, userAuthToken: Fixture.token(user)))
            }
        let step = Step(command: command, context: Fixture.context(settings, id: CommandID("c\(count)"), app: app))
        switch command {
        case .login, .loginIdentity, .logout: logins.append(step)
        default: break
        }
        return step
    }

    /// Mostly the same; now and then the first key is away for a moment.
    private mutating func settings(_ app: AppID) -> VerificationSettings {
        Fixture.settings(
            app == "support" ? .enforce : .report,
            keys: Int.random(in: 0..<8, using: &random) == 0 ? [Fixture.k2] : [Fixture.k1, Fixture.k2])
    }

    private func mpid(_ user: String, _ app: AppID) -> Int64 {
        ["anna": 1, "berta": 2, "carla": 3][user, default: 4] + 10 * lives["\(app) \(user)", default: 0]
    }

    private mutating func forget(_ user: String, _ app: AppID) -> VerificationCommand {
        defer { lives["\(app) \(user)", default: 0] += 1 }
        let userIDs = Bool.random(using: &random) ? [user] : []
        return .forget(
            ForgetSessions(
                mpids: [MPID(mpid(user, app))].compactMap(\.self), userIds: userIDs.map(IdentityValue.init(_:)),
                emails: []))
    }

    /// Remembers what has to be answered.
    mutating func note(_ decision: VerificationDecider.Decision, app: AppID) {
        for forward in decision.forwards {
            let user = (forward.command as? LogInUser)?.request.knownIdentities["customerid"] ?? nil
            waiting.append(Waiting(app: app, forwardID: forward.id, mpid: user.map { mpid($0, app) } ?? -9))
        }
    }

    private mutating func answer() -> (VerificationCommand, AppID) {
        // Mostly the oldest, as it comes; now and then another one.
        let place = Int.random(in: 0..<4, using: &random) > 0 ? 0 : Int.random(in: 0..<waiting.count, using: &random)
        let one = waiting[place]
        if Int.random(in: 0..<4, using: &random) > 0 { waiting.remove(at: place) }
        let command =
            switch Int.random(in: 0..<12, using: &random) {
            case 0: Fixture.answer(to: one.forwardID, .rejected, reason: .throttled)
            case 1: Fixture.answer(to: one.forwardID, .expired)
            default: Fixture.answer(to: one.forwardID, .succeeded, result: ["mpid": .string(String(one.mpid))])
            }
        return (command, one.app)
    }
}
