// SPDX-License-Identifier: Apache-2.0

import Contracts

@testable import Runtime
@testable import User

/// The rows of the table in docs/user.md "States".
enum State: String, CaseIterable, Sendable {
    case none
    case creatingByCode = "creating, by a code"
    case creatingUnlinked = "creating, unlinked"
    case awaitingCreation = "awaiting-link, creation"
    case confirmingCreation = "confirming, creation"
    case presentUnlinked = "present, unlinked"
    case presentLinked = "present, linked"
    case presentLinkedLater = "present, linked later"
    case presentDisabled = "present, disabled"
    case presentNotActive = "present, not active"
    case electing
    case linking
    case awaitingLink = "awaiting-link, link"
    case confirmingLink = "confirming, link"
    case resetting

    private static let held = HeldCode(
        externalID: "anna", digest: CodeDigest(of: "held"), moment: Timestamp(milliseconds: 0))
    private static let deadline = Timestamp(milliseconds: Fixture.start.milliseconds + Fixture.minute)
    private static let confirmation = Confirmation(commands: [Waiting(Fixture.key("confirmed"))], forward: "f1")

    /// Every way of standing there. Who began waits as `begun`, the link service's next answer is to `f1`, and the code
    /// `held` is the one that goes on or was redeemed.
    var installs: [Installation?] {
        let unlinked = Fixture.account(isLinked: false)
        let states: [Installation.State] =
            switch self {
            case .none: []
            case .creatingByCode: Self.asking(.user(by: .code(Self.held)))
            case .creatingUnlinked: Self.asking(.user(by: .unlinked))
            case .awaitingCreation:
                Self.asking(.linkersTurn(deadline: Self.deadline))
                    + [Self.creating(.awaitingLinker(deadline: Self.deadline))]
            case .confirmingCreation: [Self.creating(.confirming(Self.confirmation))]
            case .presentUnlinked: [.present(unlinked)]
            case .presentLinked: [.present(Fixture.account(redeemed: ("held", .create)))]
            case .presentLinkedLater: [.present(Fixture.account(redeemed: ("held", .link)))]
            case .presentDisabled: [.present(Fixture.account(isLinked: false, status: .disabled))]
            case .presentNotActive:
                [false, true].map {
                    .present(Fixture.account(isActive: false, waitsForPhone: $0, redeemed: ("held", .create)))
                }
            case .electing: [Self.beingElected]
            case .linking: [Self.linking(.asking(Self.held, forward: "f1"))]
            case .awaitingLink: [Self.linking(.awaitingLinker(deadline: Self.deadline))]
            case .confirmingLink: [Self.linking(.confirming(Self.confirmation))]
            case .resetting:
                [Self.reset(.command(Fixture.registration, userID: Fixture.userID)), Self.reset(.commandForUnknown)]
                    + [Failure.expired, .appSideLinkingFailed].map { Self.reset(.failure(Self.failed($0))) }
            }
        return self == .none ? [nil] : states.map { Installation(app: "demo", id: "i1", $0) }
    }

    /// The same as the state of the service, with the codes `held` and `fresh`.
    var values: [UserState] {
        installs.map { install in
            let use: AuthCode.Use = install?.code == nil ? .used(installID: "i1") : .reserved(installID: "i1")
            return UserState(
                installs: install.map { [$0] } ?? [],
                codes: [Fixture.code("held", use: use), Fixture.code("fresh", "bert")])
        }
    }

    private static func asking(_ want: Creation.Want) -> [Installation.State] {
        [Creation.Attempt.first, .detaching, .second].map {
            creating(.asking(Creation.Question(want: want, attempt: $0, forward: "f1")))
        }
    }

    private static func creating(_ step: Creation.Step) -> Installation.State {
        .creating(
            Creation(
                registration: Fixture.registration, moment: Fixture.start,
                commands: Beginners(Waiting(Fixture.key("begun"))), step: step))
    }

    private static func linking(_ step: PendingLink.Step) -> Installation.State {
        .linking(
            Fixture.account(isLinked: false),
            PendingLink(commands: Beginners(Waiting(Fixture.key("begun"))), step: step))
    }

    private static let beingElected = Installation.State.electing(
        Fixture.account(isActive: false),
        Election(commands: Beginners(Waiting(Fixture.key("begun"))), code: held, forward: "f1"))

    private static func failed(_ failure: Failure) -> FailedCreation {
        FailedCreation(
            registration: Fixture.registration, commands: Beginners(Waiting(Fixture.key("begun"))), failure: failure)
    }

    private static func reset(_ cause: Reset.Cause) -> Installation.State {
        let isOnCommand = if case .failure = cause { false } else { true }
        return .resetting(
            Reset(
                cause: cause, facts: .nothing, resets: isOnCommand ? [Waiting(Fixture.key("reset"))] : [], forward: "f1"
            ))
    }
}

/// The columns of that table.
enum Command: String, CaseIterable, Sendable {
    case createByCode = "create by a code"
    case createBySameCode = "create by the same code"
    case createUnlinked = "create unlinked"
    case createByLinker = "create by the linker"
    case linkByCode = "link by a code"
    case linkBySameCode = "link by the same code"
    case linkByLinker = "link by the linker"
    case confirmSuccess = "confirm success"
    case confirmFailure = "confirm failure"
    case reset, get
    case expire = "linker too late"

    var value: UserCommand {
        switch self {
        case .createByCode: Self.create(code: "fresh")
        case .createBySameCode: Self.create(code: "held")
        case .createUnlinked: Self.create(linking: Linking.none)
        case .createByLinker: Self.create(linking: .linker)
        case .linkByCode: .link(LinkUser(installId: "i1", authCode: "fresh"))
        case .linkBySameCode: .link(LinkUser(installId: "i1", authCode: "held"))
        case .linkByLinker: .link(LinkUser(installId: "i1", linking: .linker))
        case .confirmSuccess: .confirmLink(ConfirmLink(installId: "i1", success: true))
        case .confirmFailure: .confirmLink(ConfirmLink(installId: "i1", success: false))
        case .reset: .reset(ResetUser(installId: "i1"))
        case .get: .get(GetUser(installId: "i1"))
        case .expire: .expireLinker(ExpireLinker(installId: "i1", commandSource: "test", commandId: "begun"))
        }
    }

    private static func create(code: String? = nil, linking: Linking? = nil) -> UserCommand {
        .create(
            CreateUser(
                installId: "i1", device: Fixture.phone, authCode: code,
                appSecret: linking == nil ? nil : Fixture.secret, linking: linking))
    }
}
