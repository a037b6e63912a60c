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
    /// Whom the login is about, so that it ends with them when they are erased. Digests, see ``PersonDigest``.
    public var userID: PersonDigest?
    public var email: PersonDigest?

    public init(
        forwardID: CommandID, command: CommandKey, deviceID: DeviceID, kind: Kind, number: Int64,
        result: VerificationResult, standing: Standing? = nil, userID: PersonDigest? = nil, email: PersonDigest? = nil
    ) {
        self.forwardID = forwardID
        self.command = command
        self.deviceID = deviceID
        self.kind = kind
        self.number = number
        self.result = result
        self.standing = standing
        self.userID = userID
        self.email = email
    }
}

/// The digest of an identifier, as the sync service compares it: enough to find a login that is on its way, and no clear
/// text in the table (V55).
public typealias PersonDigest = TextDigest

extension PersonDigest {
    init(of value: String, _ type: IdentityType, _ settings: SyncSettings) {
        self.init(of: settings.foldedIdentities.contains(type) ? value.asciiLowercased : value)
    }
}
