// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// A command whose data is a ``SyncRequest``. Result: ``SyncResult``.
public protocol SyncRequestMessage: CommandMessage {
    var request: SyncRequest { get }
    init(_ request: SyncRequest)
}

extension SyncRequestMessage {
    public static var scope: Scope { .identitySync }
    public init(from decoder: any Decoder) throws { self.init(try SyncRequest(from: decoder)) }
    public init?(usual view: JSONView) {
        guard let request = SyncRequest(usual: view) else { return nil }
        self.init(request)
    }
    public func encode(to encoder: any Encoder) throws { try request.encode(to: encoder) }
    public func write(to json: inout JSONOutput) throws { try request.write(to: &json) }
    public var partitionSubject: String { request.deviceId.text }
    public func validate() throws(Rejection) { try request.validate() }
}

/// Who is on this device? Called at each start of an app. A service of the deployment may send no identities at all.
public struct IdentifyUser: SyncRequestMessage {
    public static let type = "identity.sync.identify.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}

/// Somebody logged in.
public struct LogInUser: SyncRequestMessage {
    public static let type = "identity.sync.login.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}

/// Somebody logged out; the identities are those of the anonymous user to come. Login identities are ignored. There
/// may be no identities at all.
public struct LogOutUser: SyncRequestMessage {
    public static let type = "identity.sync.logout.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}

/// Finds a profile; never writes, never moves the device. `NOT_FOUND_ERROR` when there is none.
public struct SearchUser: SyncRequestMessage {
    public static let type = "identity.sync.search.v1"
    public var request: SyncRequest
    public init(_ request: SyncRequest) { self.request = request }
}
