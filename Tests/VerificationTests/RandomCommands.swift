// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Storage
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
        var app: String
        var forwardID: String
        var user: String?
    }

    private var random: SplitMix64
    private var count = 0
    private var waiting: [Waiting] = []

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func next() -> Step {
        count += 1
        let app = ["support", "other"][Int.random(in: 0...1, using: &random)]
        let settings = Fixture.settings(app == "support" ? .enforce : .report)
        if !waiting.isEmpty, Int.random(in: 0..<5, using: &random) < 2 {
            let answer = answer()
            let settings = Fixture.settings(answer.1 == "support" ? .enforce : .report)
            return Step(command: answer.0, context: Fixture.context(settings, id: "c\(count)", app: answer.1))
        }
        let device = "d\(Int.random(in: 0..<3, using: &random))"
        let user = ["anna", "berta", "carla"][Int.random(in: 0..<3, using: &random)]
        let command: VerificationCommand =
            switch Int.random(in: 0..<10, using: &random) {
            case 0: .logout(VerificationLogout(deviceId: device))
            case 1: .login(VerificationLogin(deviceId: device))
            case 2: .login(VerificationLogin(deviceId: device, userId: user, userAuthToken: "x"))
            case 3:
                .loginIdentity(
                    VerificationLoginIdentity(
                        deviceId: device,
                        identityToken: Fixture.jwt(Fixture.payload(#"[{"identifier":"uid","value":"\#(user)"}]"#))))
            case 4: .usage(VerificationUsage())
            default:
                .login(VerificationLogin(deviceId: device, userId: user, userAuthToken: Fixture.token(user)))
            }
        return Step(command: command, context: Fixture.context(settings, id: "c\(count)", app: app))
    }

    /// Remembers what has to be answered.
    mutating func note(_ decision: VerificationDecider.Decision, app: String) {
        for forward in decision.forwards {
            let user = (forward.command as? LogInUser)?.request.knownIdentities["customerid"] ?? nil
            waiting.append(Waiting(app: app, forwardID: forward.id, user: user))
        }
    }

    private mutating func answer() -> (VerificationCommand, String) {
        // Mostly the oldest, as it comes; now and then another one.
        let place = Int.random(in: 0..<4, using: &random) > 0 ? 0 : Int.random(in: 0..<waiting.count, using: &random)
        let one = waiting[place]
        if Int.random(in: 0..<4, using: &random) > 0 { waiting.remove(at: place) }
        var reply = Reply<JSONValue>(commandId: one.forwardID, commandType: LogInUser.type, status: .succeeded)
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
            reply.status = .rejected
            reply.reason = .throttled
        case 1: reply.status = .expired
        default:
            let mpid = one.user.map { ["anna": "1", "berta": "2", "carla": "3"][$0] ?? "4" } ?? "-9"
            reply.result = ["mpid": .string(mpid)]
        }
        return (.synced(reply), one.app)
    }
}
