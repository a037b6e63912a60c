// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Storage
import Testing
import WireJSON

@testable import Link
@testable import Runtime

/// What every test of the decider starts from.
enum Fixture {
    static let app = AppSettings(id: "demo")
    static let unlinkedApp = AppSettings(id: "unlinked", linking: .init(isEnabled: false))
    static let otherApp = AppSettings(id: "other")
    static let phone = Device(kind: .phone, platform: "ios")
    static let tablet = Device(kind: .tablet, platform: "android", model: "Tab", osVersion: "14")
    static let userID: UserID = "5a18fc4b0962209e0000000d"

    static func context(
        _ app: AppSettings = app, id: CommandID = "c1", source: SourceID = "test", moment: Moment? = nil,
        as kind: Principal.Kind = .service, now: Int64 = 0
    ) -> DecisionContext {
        DecisionContext(
            command: CommandKey(app: app.id, source: source, id: id), app: app,
            principal: Principal(kind: kind, scopes: Set(Scope.allCases)), now: Timestamp(milliseconds: now),
            moment: moment)
    }

    static func device(_ kind: Device.Kind) -> Device { Device(kind: kind, platform: "test") }

    static func install(
        _ id: InstallID, _ kind: Device.Kind = .phone, of userID: UserID? = nil, _ activity: Install.Activity? = nil,
        status: InstallStatus = .enabled, app: AppID = "demo", isOpen: Bool? = nil
    ) -> Install {
        Install(
            id: id, app: app, device: device(kind), status: status, userID: userID,
            activity: activity ?? (userID == nil ? .none : .active), isOpen: isOpen ?? (userID == nil))
    }

    static func person(_ userID: UserID = userID, _ externalID: ExternalID? = nil, app: AppID = "demo") -> Person {
        Person(userID: userID, app: app, externalID: externalID)
    }

    static func decide(
        _ command: LinkCommand, _ state: LinkState, _ context: DecisionContext
    ) -> LinkDecider.Decision {
        LinkDecider(state, context).decide(command)
    }

    static func request(_ installID: InstallID, _ externalID: ExternalID) -> LinkCommand {
        .request(LinkRequest(installId: installID, externalId: externalID))
    }
}

/// What a certificate says, but for times.
struct Gone: Hashable {
    var users: Set<UserID>
    var done: ErasureCertificate.Counts

    init(_ certificate: ErasureCertificate) {
        users = Set(certificate.subject.userIds)
        done = certificate.done
    }

    /// - Parameter isWhole: whether all services are answered for.
    init(_ users: [UserID], persons: Int, installs: Int, isWhole: Bool) {
        self.users = Set(users)
        done = .init(link: .init(persons: persons, installs: installs), user: .init())
        if isWhole { done.answerForAll() }
    }
}

extension ErasureCertificate {
    /// As another service answers.
    static func part(_ done: Counts = .init()) -> ErasureCertificate {
        ErasureCertificate(
            requestId: "f", erasedAt: Timestamp(milliseconds: 0), completedAt: Timestamp(milliseconds: 0), done: done)
    }
}

/// An outcome that can be compared.
enum Answer: Hashable, CustomStringConvertible {
    case link(LinkResult)
    case install(InstallResult)
    case user(LinkedUserResult)
    case imported([ImportResult.Element])
    case certificate(Gone)
    case pending
    case noted
    case rejected(ReasonCode)
    case expired
    case another

    init(_ outcome: Outcome) {
        switch outcome {
        case .expired: self = .expired
        case .rejected(let rejection): self = .rejected(rejection.reason)
        case .succeeded(let result as LinkResult): self = .link(result)
        case .succeeded(let result as InstallResult): self = .install(result)
        case .succeeded(let result as LinkedUserResult): self = .user(result)
        case .succeeded(let result as ImportResult): self = .imported(result.results.map(\.bare))
        case .succeeded(let result as ErasureCertificate): self = .certificate(Gone(result))
        case .pending(.none): self = .pending
        case .noted: self = .noted
        case .succeeded, .pending, .begun: self = .another
        }
    }

    var description: String {
        switch self {
        case .link(let result): "\(result)"
        case .install(let result): "\(result)"
        case .user(let result): "\(result)"
        case .imported(let results): "\(results)"
        case .certificate(let gone): "\(gone)"
        case .pending: "pending"
        case .noted: "noted"
        case .rejected(let reason): reason.rawValue
        case .expired: "expired"
        case .another: "a result of another kind"
        }
    }
}

extension LinkDecider.Decision {
    var answer: Answer { Answer(outcome) }

    /// The events, so that they can be compared.
    var told: [AnyHashable] { events.map { AnyHashable($0) } }

    /// The later answers, by command id.
    var settled: [CommandID: Answer] {
        Dictionary(settlements.map { ($0.command.id, Answer($0.outcome)) }) { first, _ in first }
    }

    /// What is sent to other services, by its id.
    var sent: [CommandID: AnyHashable] {
        Dictionary(forwards.map { ($0.id, AnyHashable($0.command)) }) { first, _ in first }
    }
}

extension LinkState {
    /// The install of app demo, or of another one where that has none.
    func install(_ id: InstallID) -> Install? { install("demo", id) ?? installs.values.first { $0.id == id } }

    /// The state after the decision.
    func after(_ decision: LinkDecider.Decision) -> LinkState {
        var state = self
        decision.changes.forEach { state.apply($0) }
        return state
    }
}

extension LinkResult {
    /// An install starts with version 0 in most tests, and is changed once.
    init(userId: UserID, installId: InstallID, isActive: Bool, personCreated: Bool) {
        self.init(userId: userId, installId: installId, isActive: isActive, personCreated: personCreated, version: 1)
    }
}

extension ImportResult.Element {
    /// Without words for people.
    var bare: Self { .init(index: index, outcome: outcome, reason: reason, type: type) }
}
