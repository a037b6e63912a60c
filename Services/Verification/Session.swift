// SPDX-License-Identifier: Apache-2.0

public import Contracts

/// Who uses a device, as far as this service has said (docs/verification.md "Sessions").
public struct Session: Sendable, Hashable {
    public var app: String
    public var deviceID: String
    public var state: VerificationState
    public var mayFileIssues: Bool
    /// The user whose login was announced and whose logout was not. Stays while a refused login makes the session
    /// `unverified`: nobody else has come.
    public var mpid: MPID?
    /// What ``mayFileIssues`` rests on. `nil` for anonymous users, who always may, and after a refusal.
    public var standing: Standing?
    /// How many logins and logouts the device has sent: the number of the last one.
    public var number: Int64
    /// The number of the one whose state the session shows. What comes back for a lower number has been overtaken.
    public var shown: Int64
    /// The number of the last login or logout that the sync service has done: ``mpid`` comes from it.
    public var moved: Int64
    /// A login was forwarded to the sync service and no logout has been done since, so the device may have a user there.
    public var hasLogin: Bool

    public init(
        app: String, deviceID: String, state: VerificationState = .anonymous, mayFileIssues: Bool = true,
        mpid: MPID? = nil, standing: Standing? = nil, number: Int64 = 0, shown: Int64 = 0, moved: Int64 = 0,
        hasLogin: Bool = false
    ) {
        self.app = app
        self.deviceID = deviceID
        self.state = state
        self.mayFileIssues = mayFileIssues
        self.mpid = mpid
        self.standing = standing
        self.number = number
        self.shown = shown
        self.moved = moved
        self.hasLogin = hasLogin
    }
}
