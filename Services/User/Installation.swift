// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Storage

/// An install as the user service knows it. One without a record is in the state `none`.
public struct Installation: Sendable, Hashable {
    /// Where the install stands, with all that is known there and nothing else. What each command is answered in each of
    /// them: docs/user.md "States", U50 to U67.
    public enum State: Stored, Sendable, Hashable {
        /// A user is on its way.
        case creating(Creation)
        /// There is a user, and nothing goes on.
        case present(Account)
        /// There is a user for the SDK to use, and its link is on its way.
        case linking(Account, PendingLink)
        /// There is a user that is not active here, and the link service is asked to make it so.
        case electing(Account, Election)
        /// The link service is asked to take off whatever is on the install.
        case resetting(Reset)
    }

    public internal(set) var app: AppID
    public internal(set) var id: InstallID
    public var state: State
    public var lastDecision = LastDecision()

    init(app: AppID, id: InstallID, _ state: State) {
        self.app = app
        self.id = id
        self.state = state
    }

    /// The same install in another state.
    func with(_ state: State) -> Installation { Installation(app: app, id: id, state) }

    public var key: InstallKey { InstallKey(app: app, id: id) }
}

/// Two apps may use one install id (L47).
public typealias InstallKey = Scoped<InstallID>

/// How an install came to us: on which device, by which creation.
public struct Registration: Stored, Sendable, Hashable {
    /// The code that brought the user, or its link: who repeats that command with it gets the same answer (U8).
    public struct Redeemed: Stored, Sendable, Hashable {
        public enum Purpose: String, Stored, Sendable, Hashable { case create, link }

        var digest: CodeDigest
        var purpose: Purpose
    }

    var device: Device
    var sdkVersion: String?
    var appVersion: String?
    /// Names the creation; tokens are bound to it.
    var creation: String
    var redeemed: Redeemed?
    /// When an unlinked user came last, to the day, in milliseconds since 1970. Noted only where that counts (U200).
    var seenAt: Int64?
}

/// A user on an install, for the SDK to use: from the end of its creation to the beginning of a reset.
public struct Account: Stored, Sendable, Hashable {
    var registration: Registration
    let version: Int64
    let status: InstallStatus
    let user: LinkFacts.KnownUser

    var facts: LinkFacts { LinkFacts(version: version, status: status, user: user) }
}

extension Account {
    /// - Returns: `nil` when by these facts nobody is on the install.
    init?(_ registration: Registration, _ facts: LinkFacts) {
        guard let user = facts.user else { return nil }
        self.init(registration: registration, version: facts.version, status: facts.status, user: user)
    }
}

// MARK: What all states answer

extension Installation {
    /// Where the install stands, in one word: for the database, and for people who look there.
    enum Phase: String, Sendable, Hashable {
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

    /// What the link service said last.
    var facts: LinkFacts {
        switch state {
        case .creating(let creation): creation.facts
        case .present(let account), .linking(let account, _), .electing(let account, _): account.facts
        case .resetting(let reset): reset.facts
        }
    }

    /// The same install, by what the link service said last.
    /// - Returns: `nil` when the user that was here to be used is gone.
    func knowing(_ facts: LinkFacts) -> Installation? {
        switch state {
        case .creating(var creation):
            creation.facts = facts
            return with(.creating(creation))
        case .present(let account): return Account(account.registration, facts).map { with(.present($0)) }
        case .linking(let account, let link):
            return Account(account.registration, facts).map { with(.linking($0, link)) }
        case .electing(let account, let election):
            return Account(account.registration, facts).map { with(.electing($0, election)) }
        case .resetting(var reset):
            reset.facts = facts
            return with(.resetting(reset))
        }
    }

    /// The creation that brought what stands here, unless only a reset did.
    var creation: String? {
        switch state {
        case .creating(let creation): creation.registration.creation
        case .present(let account), .linking(let account, _), .electing(let account, _):
            account.registration.creation
        case .resetting(let reset): reset.registration?.creation
        }
    }

    /// The command to the link service whose answer comes next, while one is awaited.
    var forward: CommandID? {
        switch state {
        case .creating(let creation): creation.forward
        case .present: nil
        case .linking(_, let link): link.forward
        case .electing(_, let election): election.forward
        case .resetting(let reset): reset.forward
        }
    }

    /// The code that a creation or a link goes on with.
    var code: HeldCode? {
        switch state {
        case .creating(let creation): creation.code
        case .linking(_, let link): link.code
        case .electing(_, let election): election.code
        case .present, .resetting: nil
        }
    }

    /// Who waits for a user or its link, or for the end of a creation that failed.
    var waiting: [Waiting] {
        switch state {
        case .creating(let creation): creation.waiting
        case .present: []
        case .linking(_, let link): link.waiting
        case .electing(_, let election): election.commands.all
        case .resetting(let reset): reset.waiting
        }
    }

    /// Who waits for a reset.
    var resets: [Waiting] {
        switch state {
        case .creating(let creation): creation.resets
        case .present: []
        case .linking(_, let link): link.resets
        case .electing(_, let election): election.resets
        case .resetting(let reset): reset.resets
        }
    }

    /// While the app's linker has its turn: who waits for it, and until when.
    var linkersTurn: (command: Waiting, deadline: Timestamp)? {
        switch state {
        case .creating(let creation): creation.deadline.map { (creation.commands.first, $0) }
        case .linking(_, let link): link.deadline.map { (link.commands.first, $0) }
        case .present, .electing, .resetting: nil
        }
    }
}
