// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage

/// How an installation stands in the database: `installations.record`. Flat, and the same since the first version, so that
/// replicas of an older one read what a newer one writes. Members that mean nothing in a state are left out, or false.
struct StoredInstallation: Codable, Sendable, Hashable {
    struct Facts: Codable, Sendable, Hashable {
        var version: Int64
        var userID: UserID?
        var isLinked: Bool
        var isActive: Bool
        var isUsersFirst: Bool
        var waitsForPhone: Bool?
        var status: InstallStatus
    }

    struct Saga: Codable, Sendable, Hashable {
        enum Purpose: String, Codable { case create, link, reset }

        enum Means: Codable, Sendable, Hashable {
            case code(externalID: ExternalID, digest: CodeDigest)
            case linker, unlinked, none
        }

        var purpose: Purpose
        var means: Means
        var commands: [Waiting] = []
        var confirmations: [Waiting] = []
        var externalIDs: [ExternalID]?
        var resets: [Waiting] = []
        var forward: CommandID?
        /// In milliseconds since 1970, as the deadline is.
        var expiry: Int64?
        var deadline: Int64?
        /// When the creation began.
        var moment: Int64?
        var failure: Failure?
        var userID: UserID?
        var isCleaning = false
        var wasCleaned = false
    }

    var app: AppID
    var id: InstallID
    var phase: Installation.Phase
    var device: Device?
    var sdkVersion: String?
    var appVersion: String?
    var facts: Facts
    var redeemed: Registration.Redeemed?
    var creation: String?
    var saga: Saga?
}

extension Installation: Codable {
    /// Where the install stands, in one word: for the database, and for people who look there.
    enum Phase: String, Codable, Sendable, Hashable {
        case creating
        case awaitingLink = "awaiting-link"
        case confirming, present, linking, electing, resetting
    }

    var phase: Phase {
        switch state {
        case .creating(let creation):
            switch creation.step {
            case .asking: creation.deadline == nil ? .creating : .awaitingLink
            case .awaitingLinker: .awaitingLink
            case .confirming: .confirming
            }
        case .present: .present
        case .linking(_, let link):
            switch link.step {
            case .asking: .linking
            case .awaitingLinker: .awaitingLink
            case .confirming: .confirming
            }
        case .electing: .electing
        case .resetting: .resetting
        }
    }

    /// - Throws: `StorageError` when the record says what cannot be. The loop dead-letters what came for it.
    public init(from decoder: any Decoder) throws {
        let stored = try StoredInstallation(from: decoder)
        self.init(app: stored.app, id: stored.id, try stored.state())
    }

    public func encode(to encoder: any Encoder) throws { try StoredInstallation(self).encode(to: encoder) }
}

// MARK: Reading

extension StoredInstallation {
    /// The record contradicts itself. No version ever wrote such a one: it is a defect, or was changed by hand.
    private func unreadable(_ problem: String) -> StorageError {
        StorageError(kind: .invalid, message: "an installation is \(phase.rawValue) \(problem)")
    }

    private func required<Value>(_ value: Value?, _ name: String) throws(StorageError) -> Value {
        guard let value else { throw unreadable("without a \(name)") }
        return value
    }

    func state() throws(StorageError) -> Installation.State {
        guard let saga else {
            guard phase == .present else { throw unreadable("without anything that goes on") }
            return .present(try account())
        }
        switch (phase, saga.purpose, saga.means) {
        case (.creating, .create, .code(let externalID, let digest)):
            let code = HeldCode(externalID: externalID, digest: digest)
            return try creating(.asking(question(saga, .user(by: .code(code), resets: saga.resets))), saga)
        case (.creating, .create, .unlinked):
            return try creating(.asking(question(saga, .user(by: .unlinked, resets: saga.resets))), saga)
        case (.awaitingLink, .create, .linker):
            let deadline = Timestamp(milliseconds: try required(saga.deadline, "deadline"))
            guard saga.forward != nil else { return try creating(.awaitingLinker(deadline: deadline), saga) }
            return try creating(.asking(question(saga, .linkersTurn(deadline: deadline))), saga)
        case (.confirming, .create, .linker): return try creating(.confirming(confirmation(saga)), saga)
        case (.linking, .link, .code(let externalID, let digest)):
            let code = HeldCode(externalID: externalID, digest: digest)
            return try linking(
                .asking(code, forward: required(saga.forward, "command that is answered"), resets: saga.resets), saga)
        case (.electing, .create, .code(let externalID, let digest)):
            let election = Election(
                commands: try beginners(saga), code: HeldCode(externalID: externalID, digest: digest),
                forward: try required(saga.forward, "command that is answered"), resets: saga.resets)
            return .electing(try account(), election)
        case (.awaitingLink, .link, .linker):
            let deadline = Timestamp(milliseconds: try required(saga.deadline, "deadline"))
            return try linking(.awaitingLinker(deadline: deadline), saga)
        case (.confirming, .link, .linker): return try linking(.confirming(confirmation(saga)), saga)
        case (.resetting, .reset, .none):
            let cause: Reset.Cause =
                device == nil ? .commandForUnknown : .command(try registration(), userID: saga.userID)
            return try resetting(cause, saga)
        case (.resetting, .create, .linker):
            let failed = FailedCreation(
                registration: try registration(), commands: try beginners(saga), confirmations: saga.confirmations,
                failure: try required(saga.failure, "failure"))
            return try resetting(.failure(failed), saga)
        default: throw unreadable("in order to \(saga.purpose.rawValue), by other means")
        }
    }

    private func creating(
        _ step: Creation.Step, _ saga: Saga
    ) throws(StorageError) -> Installation.State {
        .creating(
            Creation(
                registration: try registration(), moment: saga.moment.map { Timestamp(milliseconds: $0) },
                facts: LinkFacts(facts), commands: try beginners(saga), step: step))
    }

    private func linking(_ step: PendingLink.Step, _ saga: Saga) throws(StorageError) -> Installation.State {
        .linking(try account(), PendingLink(commands: try beginners(saga), step: step))
    }

    private func resetting(_ cause: Reset.Cause, _ saga: Saga) throws(StorageError) -> Installation.State {
        .resetting(
            Reset(
                cause: cause, facts: LinkFacts(facts), resets: saga.resets,
                forward: try required(saga.forward, "command that is answered")))
    }

    private func question(
        _ saga: Saga, _ want: Creation.Want
    ) throws(StorageError) -> Creation.Question {
        let attempt: Creation.Attempt =
            switch (saga.isCleaning, saga.wasCleaned) {
            case (false, false): .first
            case (true, false): .detaching
            case (false, true): .second
            case (true, true): throw unreadable("and detached for the second time")
            }
        return Creation.Question(
            want: want, attempt: attempt, forward: try required(saga.forward, "command that is answered"),
            expiry: saga.expiry.map { Timestamp(milliseconds: $0) })
    }

    private func confirmation(_ saga: Saga) throws(StorageError) -> Confirmation {
        Confirmation(
            commands: saga.confirmations, externalIDs: Set(saga.externalIDs ?? []), resets: saga.resets,
            forward: try required(saga.forward, "command that is answered"))
    }

    private func beginners(_ saga: Saga) throws(StorageError) -> Beginners {
        var beginners = Beginners(try required(saga.commands.first, "command that began it"))
        beginners.repeats = Array(saga.commands.dropFirst())
        return beginners
    }

    private func registration() throws(StorageError) -> Registration {
        Registration(
            device: try required(device, "device"), sdkVersion: sdkVersion, appVersion: appVersion, creation: creation,
            redeemed: redeemed)
    }

    private func account() throws(StorageError) -> Account {
        try required(Account(try registration(), LinkFacts(facts)), "user")
    }
}

extension LinkFacts {
    fileprivate init(_ stored: StoredInstallation.Facts) {
        self.init(
            version: stored.version, userID: stored.userID, isLinked: stored.isLinked, isActive: stored.isActive,
            isUsersFirst: stored.isUsersFirst, waitsForPhone: stored.waitsForPhone ?? false, status: stored.status)
    }
}

// MARK: Writing

extension StoredInstallation {
    init(_ install: Installation) {
        let known = install.facts
        app = install.app
        id = install.id
        phase = install.phase
        facts = Facts(
            version: known.version, userID: known.userID, isLinked: known.isLinked, isActive: known.isActive,
            isUsersFirst: known.isUsersFirst, waitsForPhone: known.user?.waitsForPhone == true ? true : nil,
            status: known.status)
        switch install.state {
        case .creating(let creation):
            set(creation.registration)
            saga = Saga(creation)
        case .present(let account): set(account.registration)
        case .linking(let account, let link):
            set(account.registration)
            saga = Saga(link)
        case .electing(let account, let election):
            set(account.registration)
            saga = Saga(purpose: .create, means: Saga.means(election.code), commands: election.commands.all)
        case .resetting(let reset):
            if let registration = reset.registration { set(registration) }
            saga = Saga(reset)
        }
        saga?.resets = install.resets
        saga?.forward = install.forward
        saga?.deadline = install.linkersTurn?.deadline.milliseconds
    }

    private mutating func set(_ registration: Registration) {
        device = registration.device
        sdkVersion = registration.sdkVersion
        appVersion = registration.appVersion
        redeemed = registration.redeemed
        creation = registration.creation
    }
}

extension StoredInstallation.Saga {
    fileprivate init(_ creation: Creation) {
        self.init(purpose: .create, means: .linker, commands: creation.commands.all)
        moment = creation.moment?.milliseconds
        switch creation.step {
        case .asking(let question):
            switch question.want {
            case .user(by: .code(let code), _): means = Self.means(code)
            case .user(by: .unlinked, _): means = .unlinked
            case .linkersTurn: break
            }
            expiry = question.expiry?.milliseconds
            isCleaning = question.attempt == .detaching
            wasCleaned = question.attempt == .second
        case .awaitingLinker: break
        case .confirming(let confirmation): set(confirmation)
        }
    }

    fileprivate init(_ link: PendingLink) {
        self.init(purpose: .link, means: .linker, commands: link.commands.all)
        switch link.step {
        case .asking(let code, _, _): means = Self.means(code)
        case .awaitingLinker: break
        case .confirming(let confirmation): set(confirmation)
        }
    }

    fileprivate init(_ reset: Reset) {
        switch reset.cause {
        case .command(_, let user):
            self.init(purpose: .reset, means: .none)
            userID = user
        case .commandForUnknown: self.init(purpose: .reset, means: .none)
        case .failure(let failed):
            self.init(purpose: .create, means: .linker, commands: failed.commands.all)
            confirmations = failed.confirmations
            failure = failed.failure
        }
    }

    private mutating func set(_ confirmation: Confirmation) {
        confirmations = confirmation.commands
        if !confirmation.externalIDs.isEmpty { externalIDs = confirmation.externalIDs.sorted() }
    }

    fileprivate static func means(_ code: HeldCode) -> Means { .code(externalID: code.externalID, digest: code.digest) }
}
