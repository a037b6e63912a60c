// SPDX-License-Identifier: Apache-2.0

// What a person asks of whoever holds data about them (GDPR, CCPA): to erase it, or to get it. The sync service keeps such
// requests, because it finds whose profiles are meant (docs/sync.md "Requests of data subjects"); the gateway has them in the
// words of OpenDSR.

/// What is asked for, and how far it is.
public enum SubjectRequest {
    public enum Kind: String, WireEnum {
        case erasure, access, portability
    }

    public enum Status: String, WireEnum {
        /// It can still be cancelled.
        case pending
        case inProgress
        case completed
        case cancelled
    }
}

/// A person asks for something. The same request again is answered as it stands. Result: ``SubjectRequestResult``.
public struct FileRequest: CommandMessage {
    public static let type = "identity.sync.file-request.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support

    /// A UUID, of whoever sends it.
    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    /// Either this or ``identities``.
    public var mpid: MPID?
    /// By wire name of the type: as ``EraseProfile/identities``.
    @SortedKeys public var identities: [IdentityType.RawValue: String]
    /// Of an erasure: all profiles that the identities find go, when they are several.
    public var everyHolder: Bool?
    /// `gdpr`, `ccpa` or another word.
    public var regulation: String?
    /// When the person asked.
    public var submittedAt: Timestamp?
    /// By which requests are found together.
    public var groupId: String?

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, mpid: MPID? = nil,
        identities: [IdentityType.RawValue: String] = [:], everyHolder: Bool? = nil, regulation: String? = nil,
        submittedAt: Timestamp? = nil, groupId: String? = nil
    ) {
        self.requestId = requestId
        self.kind = kind
        self.mpid = mpid
        self.identities = identities
        self.everyHolder = everyHolder
        self.regulation = regulation
        self.submittedAt = submittedAt
        self.groupId = groupId
    }

    private enum CodingKeys: String, CodingKey {
        case requestId, kind, mpid, identities, everyHolder, regulation, submittedAt, groupId
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        requestId = try container.decode(SubjectRequestID.self, forKey: .requestId)
        kind = try container.decode(SubjectRequest.Kind.self, forKey: .kind)
        mpid = try container.decodeIfPresent(MPID.self, forKey: .mpid)
        identities = try container.decodeIfPresent([String: String].self, forKey: .identities) ?? [:]
        everyHolder = try container.decodeIfPresent(Bool.self, forKey: .everyHolder)
        regulation = try container.decodeIfPresent(String.self, forKey: .regulation)
        submittedAt = try container.decodeIfPresent(Timestamp.self, forKey: .submittedAt)
        groupId = try container.decodeIfPresent(String.self, forKey: .groupId)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(requestId, forKey: .requestId)
        try container.encode(kind, forKey: .kind)
        try container.encodeIfPresent(mpid, forKey: .mpid)
        if !identities.isEmpty { try container.encode(_identities, forKey: .identities) }
        try container.encodeIfPresent(everyHolder, forKey: .everyHolder)
        try container.encodeIfPresent(regulation, forKey: .regulation)
        try container.encodeIfPresent(submittedAt, forKey: .submittedAt)
        try container.encodeIfPresent(groupId, forKey: .groupId)
    }

    public var partitionSubject: String { requestId.text }

    public func validate() throws(Rejection) {
        try Validation.requestID(requestId)
        guard (mpid == nil) != identities.isEmpty else {
            throw Rejection(.invalidRequest, "data needs either mpid or identities.")
        }
        guard everyHolder != true || kind == .erasure else {
            throw Rejection(.invalidRequest, "data.everyHolder is for an erasure: nobody gets several people's data.")
        }
        for (type, value) in identities.sorted(by: { $0.key < $1.key }) {
            try Validation.identityType(type, "identities")
            try Validation.identityValue(value, "identities.\(type)")
        }
        if let regulation { try Validation.text(regulation, "regulation", atMost: 40) }
        if let groupId { try Validation.text(groupId, "groupId") }
    }
}

/// A command about one request.
public protocol RequestCommand: CommandMessage {
    var requestId: SubjectRequestID { get }
}

extension RequestCommand {
    public var partitionSubject: String { requestId.text }

    public func validate() throws(Rejection) { try Validation.requestID(requestId) }
}

/// How far a request is. Result: ``SubjectRequestResult``.
public struct GetRequest: RequestCommand {
    public static let type = "identity.sync.get-request.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support
    public var requestId: SubjectRequestID

    public init(requestId: SubjectRequestID) { self.requestId = requestId }
}

/// The requests of a group, the latest first. Result: ``SubjectRequestsResult``.
public struct GetRequests: CommandMessage {
    public static let type = "identity.sync.get-requests.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support
    public var groupId: String

    public init(groupId: String) { self.groupId = groupId }

    public var partitionSubject: String { groupId }

    public func validate() throws(Rejection) { try Validation.text(groupId, "groupId") }
}

/// The request is not to be carried out. Result: ``SubjectRequestResult``.
public struct CancelRequest: RequestCommand {
    public static let type = "identity.sync.cancel-request.v1"
    public static let scope = Scope.userDelete
    public static let orScope: Scope? = .support
    public var requestId: SubjectRequestID

    public init(requestId: SubjectRequestID) { self.requestId = requestId }
}

/// What the sync service holds of the person who asked for it. Result: ``RequestResultsResult``.
public struct GetRequestResults: PersonQuery, RequestCommand {
    public static let type = "identity.sync.get-request-results.v1"
    public static let scope = Scope.support
    public var requestId: SubjectRequestID

    public init(requestId: SubjectRequestID) { self.requestId = requestId }

    public var subject: (kind: String, name: String) { ("requestId", requestId.text) }
}

/// The sync service to itself: it is time to go on with a request.
public struct ProcessRequest: RequestCommand {
    public static let type = "identity.sync.process-request.v1"
    public static let scope = Scope.internal
    public var requestId: SubjectRequestID
    /// When it was to begin: in a replay the app may have another delay. Absent: it has begun.
    public var startsAt: Timestamp?

    public init(requestId: SubjectRequestID, startsAt: Timestamp? = nil) {
        self.requestId = requestId
        self.startsAt = startsAt
    }
}

extension Validation {
    static func requestID(_ id: SubjectRequestID) throws(Rejection) {
        let parts = id.text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [8, 4, 4, 4, 12], parts.joined().allSatisfy(\.isHexDigit),
            id.text.utf8.count == 36
        else { throw Rejection(.invalidRequest, "data.requestId is not a UUID.") }
    }
}

// MARK: Results

/// How far a request is.
public struct SubjectRequestResult: CommandResult {
    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    public var status: SubjectRequest.Status
    /// Why it is not completed yet: `AMBIGUOUS_IDENTITY` when others hold what was named, so that nobody knows whether the
    /// person is gone; `SERVER_ERROR` when another service could not do its part.
    public var reason: ReasonCode?
    public var groupId: String?
    public var receivedAt: Timestamp
    /// When it begins: until then it can be cancelled.
    public var startsAt: Timestamp
    /// When it is done, or usually would be.
    public var expectedAt: Timestamp
    public var completedAt: Timestamp?
    /// Of access and portability: until when the results can be had. Absent before it is completed.
    public var resultsUntil: Timestamp?
    /// How many profiles were found; those of an erasure are gone.
    public var profileCount: Int
    /// How many profiles hold a value that was named, and stay.
    public var heldByOthers: Int?
    /// Of an erasure: what was done.
    public var certificates: [ErasureCertificate]?

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, status: SubjectRequest.Status,
        reason: ReasonCode? = nil, groupId: String? = nil, receivedAt: Timestamp, startsAt: Timestamp,
        expectedAt: Timestamp,
        completedAt: Timestamp? = nil, resultsUntil: Timestamp? = nil, profileCount: Int = 0,
        heldByOthers: Int? = nil, certificates: [ErasureCertificate]? = nil
    ) {
        self.requestId = requestId
        self.kind = kind
        self.status = status
        self.reason = reason
        self.groupId = groupId
        self.receivedAt = receivedAt
        self.startsAt = startsAt
        self.expectedAt = expectedAt
        self.completedAt = completedAt
        self.resultsUntil = resultsUntil
        self.profileCount = profileCount
        self.heldByOthers = heldByOthers
        self.certificates = certificates
    }
}

/// `sync.get-requests`: 100 at most.
public struct SubjectRequestsResult: CommandResult {
    public var groupId: String
    public var requests: [SubjectRequestResult]

    public init(groupId: String, requests: [SubjectRequestResult]) {
        self.groupId = groupId
        self.requests = requests
    }
}

/// `sync.get-request-results`: the profiles as they are now, without the barriers, which name others.
public struct RequestResultsResult: CommandResult {
    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    public var profiles: [ProfileResult]
    /// By which the link service may have users of theirs that the profiles do not name (S218).
    public var externalIds: [ExternalID]

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, profiles: [ProfileResult],
        externalIds: [ExternalID] = []
    ) {
        self.requestId = requestId
        self.kind = kind
        self.profiles = profiles
        self.externalIds = externalIds
    }
}

// MARK: Events

/// A request of a data subject was filed, begun, completed or cancelled.
public struct RequestChanged: EventMessage {
    public static let type = "identity.sync.request-changed.v1"
    public var requestId: SubjectRequestID
    public var kind: SubjectRequest.Kind
    public var status: SubjectRequest.Status
    public var reason: ReasonCode?

    public init(
        requestId: SubjectRequestID, kind: SubjectRequest.Kind, status: SubjectRequest.Status, reason: ReasonCode?
    ) {
        self.requestId = requestId
        self.kind = kind
        self.status = status
        self.reason = reason
    }

    public var subject: String { requestId.text }
}
