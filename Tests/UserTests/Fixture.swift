// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Storage
import WireJSON

@testable import Runtime
@testable import User

/// What every test of the decider starts from.
enum Fixture {
    static let secret = "demo-app-secret"
    static let app = AppSettings(
        id: "demo",
        sdk: SDKSettings(
            appSecret: AppSecret(secret), maxOutstandingCodes: 4, configuration: ["detections": true],
            keysOpenInstalls: true))
    static let otherApp = AppSettings(id: "other")
    static let unlinkedApp = AppSettings(
        id: "unlinked", linking: .init(isEnabled: false),
        sdk: SDKSettings(appSecret: AppSecret(secret), keysOpenInstalls: true))
    static let phone = Device(kind: .phone, platform: "ios")
    static let tablet = Device(kind: .tablet, platform: "android")
    static let userID: UserID = "5a18fc4b0962209e0000000d"
    static let start = Timestamp(milliseconds: 1_800_000_000_000)
    static let minute: Int64 = 60_000

    static func context(
        _ app: AppSettings = app, id: CommandID = "c1", source: SourceID = "test", now: Timestamp = start,
        expiry: Timestamp? = nil, as kind: Principal.Kind = .service
    ) -> DecisionContext {
        DecisionContext(
            command: CommandKey(app: app.id, source: source, id: id), app: app,
            principal: Principal(kind: kind, scopes: Set(Scope.allCases)), now: now, expiry: expiry)
    }

    static func code(_ text: String, _ externalID: ExternalID = "anna", use: AuthCode.Use = .none) -> AuthCode {
        AuthCode(
            digest: CodeDigest(of: text), app: "demo", externalID: externalID, moment: start,
            expires: Timestamp(milliseconds: start.milliseconds + 10 * minute), use: use)
    }

    static func facts(
        _ version: Int64 = 1, user: UserID? = userID, isLinked: Bool = true, isActive: Bool = true,
        isUsersFirst: Bool = true, waitsForPhone: Bool = false, status: InstallStatus = .enabled
    ) -> LinkFacts {
        LinkFacts(
            version: version, userID: user, isLinked: isLinked, isActive: isActive, isUsersFirst: isUsersFirst,
            inactiveBecause: waitsForPhone ? .waitsForPhone : nil, status: status)
    }

    static let registration = Registration(device: phone, creation: "life")

    static func account(
        _ version: Int64 = 1, user: UserID = userID, isLinked: Bool = true, isActive: Bool = true,
        waitsForPhone: Bool = false, status: InstallStatus = .enabled,
        redeemed: (code: String, purpose: Registration.Redeemed.Purpose)? = nil, creation: String = "life"
    ) -> Account {
        var registration = registration
        registration.creation = creation
        registration.redeemed = redeemed.map { .init(digest: CodeDigest(of: $0.code), purpose: $0.purpose) }
        return Account(
            registration: registration, version: version, status: status,
            user: .init(
                id: user, isLinked: isLinked, isActive: isActive, isUsersFirst: true, waitsForPhone: waitsForPhone))
    }

    static func present(_ account: Account, app: AppID = "demo", id: InstallID = "i1") -> Installation {
        Installation(app: app, id: id, .present(account))
    }

    static func key(_ id: CommandID) -> CommandKey { CommandKey(app: "demo", source: "test", id: id) }
}

/// An outcome that can be compared. Tokens are left out: their times differ.
enum Answer: Hashable, CustomStringConvertible {
    case user(String, isLinked: Bool, isRemoteEnabled: Bool)
    case code(String)
    case reset
    case pending(PendingUser.Awaiting)
    /// Nothing is told yet.
    case begun
    case rejected(ReasonCode)
    case expired
    case noted
    case forgotten(Int)
    case another

    init(_ outcome: Outcome) {
        switch outcome {
        case .expired: self = .expired
        case .noted: self = .noted
        case .begun: self = .begun
        case .rejected(let rejection): self = .rejected(rejection.reason)
        case .succeeded(let result as UserResult):
            self = .user(result.userId.text, isLinked: result.isLinked, isRemoteEnabled: result.isRemoteEnabled)
        case .succeeded(let result as AuthCodeResult): self = .code(result.authenticationCode)
        case .succeeded(is ResetResult): self = .reset
        case .succeeded(let result as ErasureCertificate): self = .forgotten(result.done.user?.installs ?? -1)
        case .pending(let result as PendingUser): self = .pending(result.awaiting)
        case .pending(.none): self = .begun
        case .succeeded, .pending: self = .another
        }
    }

    var description: String {
        switch self {
        case .user(let id, let isLinked, let isRemoteEnabled):
            "user \(id)\(isLinked ? " linked" : "")\(isRemoteEnabled ? " enabled" : "")"
        case .code(let text): "code \(text.prefix(6))"
        case .reset: "reset"
        case .pending(let awaiting): "pending \(awaiting)"
        case .begun: "begun"
        case .rejected(let reason): reason.rawValue
        case .expired: "expired"
        case .noted: "noted"
        case .forgotten(let count): "forgotten on \(count) installs"
        case .another: "a result of another kind"
        }
    }
}

extension UserDecider {
    static func decide(_ command: UserCommand, _ state: UserState, _ context: DecisionContext) -> Decision {
        UserDecider(state, context).decide(command)
    }
}

extension UserDecider.Decision {
    var answer: Answer { Answer(outcome) }

    /// The events, so that they can be compared.
    var told: [AnyHashable] { events.map { AnyHashable($0) } }

    /// The final answers, by command id.
    var settled: [CommandID: Answer] {
        Dictionary(settlements.map { ($0.command.id, Answer($0.outcome)) }) { first, _ in first }
    }
}

extension UserState {
    /// The state after the decision.
    func after(_ decision: UserDecider.Decision) -> UserState {
        var state = self
        decision.changes.forEach { state.apply($0) }
        return state
    }
}
