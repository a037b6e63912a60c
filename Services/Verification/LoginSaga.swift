// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

public import Contracts
public import Storage

/// A login or logout that waits for the sync service, and what it will come to.
public struct LoginSaga: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable { case login, logout }

    /// The id of the command that was forwarded.
    public var forwardID: String
    /// The command that began it.
    public var command: CommandKey
    public var deviceID: String
    public var kind: Kind
    /// Its number among the device's, see ``Session/number``.
    public var number: Int64
    /// The final answer, but for the MPID.
    public var result: VerificationResult

    public init(
        forwardID: String, command: CommandKey, deviceID: String, kind: Kind, number: Int64,
        result: VerificationResult
    ) {
        self.forwardID = forwardID
        self.command = command
        self.deviceID = deviceID
        self.kind = kind
        self.number = number
        self.result = result
    }
}
