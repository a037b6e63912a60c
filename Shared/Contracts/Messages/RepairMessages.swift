// SPDX-License-Identifier: Apache-2.0

/// A command that is done as it is written or not at all: a member that nobody reads is a mistake of whoever wrote it by
/// hand, and refuses it.
public protocol CommandByHand: CommandMessage {}

/// A change that a person asks for and answers for. Both stand in what is told of it.
public protocol RepairCommand: CommandByHand {
    /// Who asks, in the words of whoever sends it: 1 to 255 bytes. Nobody has proved it; `authid` in the envelope is the key
    /// that was used.
    var author: String { get }
    /// Why, for whoever asks later: 1 to 1,000 bytes.
    var reason: String { get }
}

extension GetProfile {
    /// The identity, if it is of a type that there is.
    public var named: Identity? { identity?.identity }
}

extension GetProfile.Named {
    /// `nil` for a type that there is not.
    public var identity: Identity? {
        IdentityType(rawValue: type).map { Identity($0, IdentityValue(value)) }
    }
}

extension DetachIdentities {
    /// More are refused.
    public static let mostIdentities = 100

    /// Those of a type that there is, each once, as they were written.
    public var named: [Identity] {
        var named: [Identity] = []
        for one in identities {
            guard let identity = one.identity, !named.contains(identity) else { continue }
            named.append(identity)
        }
        return named
    }
}
