// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime
import Storage

/// A login or logout that waits for the sync service, and what it will come to.
public struct LoginSaga: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable {
        case login, logout
        /// An anonymous login where nobody is: the sync service is asked for the device's anonymous user (V75).
        case anonymous
    }

    /// The id of the command that was forwarded.
    public var forwardID: CommandID
    /// The command that began it.
    public var command: CommandKey
    public var deviceID: DeviceID
    public var kind: Kind
    /// Its number among the device's, see ``Session/number``.
    public var number: Int64
    /// The final answer, but for the MPID.
    public var result: VerificationResult
    /// What the session will rest on; of a login.
    public var standing: Standing?

    public init(
        forwardID: CommandID, command: CommandKey, deviceID: DeviceID, kind: Kind, number: Int64,
        result: VerificationResult, standing: Standing? = nil
    ) {
        self.forwardID = forwardID
        self.command = command
        self.deviceID = deviceID
        self.kind = kind
        self.number = number
        self.result = result
        self.standing = standing
    }
}
