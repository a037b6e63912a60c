// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import WireJSON

@testable import Runtime
@testable import Verification

/// A decider with its state, driven by hand: commands in, the sync service's answers when the test gives them.
struct World {
    var state = SessionState()
    var settings: VerificationSettings
    var now = Fixture.now
    private var count = 0

    init(_ settings: VerificationSettings = Fixture.settings()) { self.settings = settings }

    /// - Returns: the decision, applied.
    mutating func decide(_ command: VerificationCommand, app: AppID = "support") -> VerificationDecider.Decision {
        count += 1
        let context = Fixture.context(settings, id: CommandID("c\(count)"), app: app, now: now)
        let decision = VerificationDecider(state, context).decide(command)
        decision.changes.forEach { state.apply($0) }
        return decision
    }

    mutating func login(
        _ userID: String? = nil, _ email: String? = nil, token: String? = nil, device: DeviceID = "d",
        name: String? = nil,
        fullPrivacy: Bool? = nil
    ) -> VerificationDecider.Decision {
        decide(
            .login(
                VerificationLogin(
                    deviceId: device, userId: userID, userEmail: email, userName: name, userAuthToken: token,
                    fullPrivacy: fullPrivacy)))
    }

    /// A login with the right token.
    mutating func vouched(_ userID: String, device: DeviceID = "d") -> VerificationDecider.Decision {
        login(userID, token: Fixture.token(userID), device: device)
    }

    mutating func identity(_ token: String, device: DeviceID = "d") -> VerificationDecider.Decision {
        decide(.loginIdentity(VerificationLoginIdentity(deviceId: device, identityToken: token)))
    }

    mutating func logout(device: DeviceID = "d") -> VerificationDecider.Decision {
        decide(.logout(VerificationLogout(deviceId: device)))
    }

    /// The sync service's answer to what a decision forwarded.
    /// - Parameter move: the number of the device's move, if the sync service counts them.
    mutating func answer(
        _ decision: VerificationDecider.Decision, mpid: Int64, move: Int64? = nil, isKnown: Bool = true
    ) -> VerificationDecider.Decision {
        var result: JSONObject = ["mpid": .string(String(mpid)), "isLoggedIn": .bool(isKnown)]
        result["move"] = move.map { .number(JSONNumber($0)) }
        return answer(decision, .succeeded, result: .object(result))
    }

    /// An event of the sync service.
    mutating func moved(
        _ move: Int64, to mpid: Int64, _ user: DeviceMove.User = .known, isDetached: Bool = false,
        device: DeviceID = "d"
    ) -> VerificationDecider.Decision {
        decide(.moved(device, DeviceMove(number: move, mpid: MPID(mpid) ?? .max, user: user, isDetached: isDetached)))
    }

    mutating func answer(
        _ decision: VerificationDecider.Decision, _ status: Reply<JSONValue>.Status, reason: ReasonCode? = nil,
        result: JSONValue? = nil
    ) -> VerificationDecider.Decision {
        decide(Fixture.answer(to: decision.forwards.first?.id ?? "", status, reason: reason, result: result))
    }

    mutating func getSession(_ device: DeviceID = "d") -> VerificationDecider.Decision {
        decide(.getSession(GetSession(deviceId: device)))
    }

    mutating func review(_ device: DeviceID = "d") -> VerificationDecider.Decision {
        decide(.review(ReviewSession(deviceId: device)))
    }

    mutating func forget(_ mpids: Int64...) -> VerificationDecider.Decision {
        decide(.forget(ForgetSessions(mpids: mpids.compactMap { MPID($0) })))
    }

    func session(_ device: DeviceID = "d") -> Session? { state.session(app: "support", deviceID: device) }
}

extension VerificationDecider.Decision {
    /// What happened, in short: `pending`, `verified k1 7`, `anonymous`, `rejected InvalidAuthToken`.
    var answer: String { Self.text(outcome) }

    var settled: [String] { settlements.map { Self.text($0.outcome) } }

    /// The events in short: `verified k1`, `failed R`, `observed R`, `session login verified 7`, with `!` when no
    /// issues may be filed.
    var told: [String] {
        events.map { event in
            switch event {
            case let event as VerificationVerified: "verified \(event.keyId?.text ?? event.method.rawValue)"
            case let event as VerificationFailed: "failed \(event.reason.rawValue)"
            case let event as UnverifiedObserved: "observed \(event.reason.rawValue)"
            case let event as SessionChanged:
                ([
                    "session", event.cause.rawValue, event.reason?.rawValue,
                    event.state.rawValue + (event.mayFileIssues ? "" : "!"), event.mpid?.description,
                ] as [String?]).compactMap(\.self).joined(separator: " ")
            case let event as SessionsErased: "erased " + event.mpids.map(\.description).joined(separator: ",")
            default: "another"
            }
        }
    }

    /// What was forwarded in short: `login customerid=u email=e`.
    var sent: [String] {
        forwards.map { forward in
            let request = (forward.command as? any SyncRequestMessage)?.request
            let identities = (request?.knownIdentities ?? [:]).sorted { $0.key < $1.key }.map {
                "\($0.key)=\($0.value ?? "null")"
            }
            let extras = [request?.name.map { "name=\($0)" }, request?.clearAnonymousUser.map { "clears=\($0)" }]
            let kind = forward.command is LogInUser ? "login" : forward.command is LogOutUser ? "logout" : "identify"
            return ([kind] + identities + extras.compactMap(\.self)).joined(separator: " ")
        }
    }

    private static func text(_ outcome: Outcome) -> String {
        switch outcome {
        case .pending: "pending"
        case .begun: "begun"
        case .noted: "noted"
        case .expired: "expired"
        case .rejected(let rejection): "rejected \(rejection.reason.rawValue)"
        case .succeeded(let result as VerificationResult):
            ([
                result.state.rawValue + (result.mayFileIssues ? "" : "!"), result.keyId?.text, result.mpid?.description,
                result.anonymousReason?.rawValue,
            ] as [String?]).compactMap(\.self).joined(separator: " ")
        case .succeeded(let result as SessionResult):
            ([
                result.state.rawValue + (result.mayFileIssues ? "" : "!"), result.keyId?.text, result.mpid?.description,
                result.verifiedAt?.rfc3339, result.hasLogin ? "login" : nil,
            ] as [String?]).compactMap(\.self).joined(separator: " ")
        case .succeeded(let result as ErasureCertificate): "removed \(result.done.verification?.sessions ?? -1)"
        case .succeeded: "another"
        }
    }
}
