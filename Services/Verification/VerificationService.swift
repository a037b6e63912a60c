// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Runtime
public import Storage
public import WireJSON

/// Verification.
public struct VerificationService: CommandService {
    public static let name = "verification"
    public static let migrations: [Migration] = []

    public init() {}

    public static func scope(of type: String) -> Scope? { nil }

    public static func decode(type: String, data: JSONValue) throws -> VerificationCommand {
        throw Rejection(.unknownType)
    }

    public func load(
        _ commands: [(VerificationCommand, DecisionContext)], in transaction: any SQLTransaction
    ) throws -> VerificationState { VerificationState() }

    public func decide(
        _ command: VerificationCommand, _ state: VerificationState, _ context: DecisionContext
    ) -> Decision<VerificationState.Change> { Decision(.noted) }

    public func save(_ state: VerificationState, in transaction: any SQLTransaction) throws {}
}

public enum VerificationCommand: Sendable {
    case placeholder
}

public struct VerificationState: ServiceState {
    public enum Change: Sendable {
        case placeholder
    }

    public mutating func apply(_ change: Change) {}
}
