// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// An install as the user service knows it. One without a record is in the state `none`.
public struct Installation: Codable, Sendable, Hashable {
    /// Where the install stands (domain.md "User"); the table of all states is in ``UserDecider``.
    public enum Phase: String, Codable, Sendable, Hashable, CaseIterable {
        /// The link service is asked for a user.
        case creating
        /// The app's linker has its turn.
        case awaitingLink = "awaiting-link"
        /// The linker is done; the link service is asked whether that is so.
        case confirming
        /// There is a user, and nothing goes on.
        case present
        /// The link service is asked to link the user, by an authentication code.
        case linking
        /// The link service is asked to take the user off.
        case resetting
    }

    /// The code that brought the user, or its link: who repeats that command with it gets the same answer.
    public struct Redeemed: Codable, Sendable, Hashable {
        var digest: CodeDigest
        var purpose: InstallSaga.Purpose
    }

    public var app: String
    public var id: String
    public var phase: Phase
    public var device: Device?
    public var sdkVersion: String?
    public var appVersion: String?
    public var facts: LinkFacts
    public var redeemed: Redeemed?
    /// Names the creation that brought what stands here; install tokens are bound to it. Nil in records of versions that
    /// had none, and where there was only a reset.
    public var creation: String?
    /// Nil when the phase is `present`.
    public var saga: InstallSaga?

    public init(
        app: String, id: String, phase: Phase, device: Device? = nil, sdkVersion: String? = nil,
        appVersion: String? = nil, facts: LinkFacts = .nothing, redeemed: Redeemed? = nil, creation: String? = nil,
        saga: InstallSaga? = nil
    ) {
        self.app = app
        self.id = id
        self.phase = phase
        self.device = device
        self.sdkVersion = sdkVersion
        self.appVersion = appVersion
        self.facts = facts
        self.redeemed = redeemed
        self.creation = creation
        self.saga = saga
    }

    /// Whether a user is here for the SDK to use: from the end of its creation to the beginning of a reset.
    public var hasUser: Bool {
        switch phase {
        case .present, .linking: true
        case .awaitingLink, .confirming: saga?.purpose == .link
        case .creating, .resetting: false
        }
    }

    /// When the install's linker has taken too long, while its turn lasts.
    var deadline: Int64? { phase == .awaitingLink ? saga?.deadline : nil }

    public var key: InstallKey { InstallKey(app: app, id: id) }
}

/// Two apps may use one install id; which of them owns the install is for the link service to say.
public typealias InstallKey = Scoped<ExactText>
