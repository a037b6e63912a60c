// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// A CloudEvents 1.0 message: attributes and data. `CloudEvent<JSONValue>` is one as it was read, before anything is
/// known about its type; the typed ones are what services write.
public struct CloudEvent<Payload> {
    public var attributes: EventAttributes
    public var data: Payload

    public init(attributes: EventAttributes, data: Payload) {
        self.attributes = attributes
        self.data = data
    }
}

extension CloudEvent: Sendable where Payload: Sendable {}
extension CloudEvent: Equatable where Payload: Equatable {}

extension CloudEvent where Payload: Encodable {
    /// The structured mode (`application/cloudevents+json`): every attribute and `data` in one object, as one text.
    public func encoded() throws -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        attributes.write(to: &bytes)
        bytes.append(",\"data\":")
        try WireJSONEncoder().append(data, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ text: StaticString) {
        // In bounds: these are the literal's bytes.
        append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}

/// The context attributes of a CloudEvents 1.0 message: the standard ones, the registered extensions we use
/// (`partitionkey`, `correlationid`, `causationid`, `expirytime`, `traceparent`, `tracestate`, `authtype`, `authid`)
/// and our own three, `appid`, `replyto` and `dryrun`.
///
/// `id` and `source` together are the idempotency key within an app: a producer that retries sends the same pair.
public struct EventAttributes: Sendable, Hashable, Codable {
    public var specVersion: String
    public var id: String
    public var source: String
    public var type: String
    public var subject: String?
    /// RFC 3339, when the message was made. Kept as written.
    public var time: String?
    public var dataContentType: String?
    /// The app (tenant) the message is for.
    public var appID: String?
    /// Equals the Kafka key.
    public var partitionKey: String?
    /// The id of the command that started it all.
    public var correlationID: String?
    /// The id of the message just before.
    public var causationID: String?
    /// CloudEvents' `sequence`, of events: `topic[partition]incarnation.offset.index` of what they were decided on. Where
    /// two are equal up to the bracket, the greater text is the later event.
    public var sequence: String?
    /// Topic for the reply; `identity.replies.v1` when absent.
    public var replyTo: String?
    /// RFC 3339. A command not decided by then is answered `expired` and changes nothing.
    public var expiryTime: String?
    public var traceParent: String?
    public var traceState: String?
    /// Set by the gateway only, believed only under a key of the deployment.
    public var authType: String?
    public var authID: String?
    /// `true`: decide, tell, and leave everything as it is. `false` and absent mean the same; anything else is refused.
    public var dryRun: String?

    public init(id: String, source: String, type: String, appID: String? = nil) {
        self.specVersion = "1.0"
        self.id = id
        self.source = source
        self.type = type
        self.appID = appID
    }

    /// Whether the command is only to be tried.
    public var isDryRun: Bool { dryRun == "true" }

    /// Begins an object with all attributes, and leaves it open.
    fileprivate func write(to bytes: inout [UInt8]) {
        let encoder = WireJSONEncoder()
        let leads = Self.leads
        // By index: without the optimiser, an iterator takes a block of the heap for each element.
        for index in leads.indices {
            let (attribute, lead) = leads[index]
            guard let text = self[attribute] else { continue }
            bytes.append(contentsOf: lead)
            encoder.append(text, to: &bytes)
        }
    }

    /// What stands in front of each attribute.
    private static let leads = CodingKeys.allCases.map { attribute in
        (attribute, Array("\(attribute == .specVersion ? "{" : ",")\"\(attribute.rawValue)\":".utf8))
    }

    /// The wire names, in the order in which they are written.
    enum CodingKeys: String, CodingKey, CaseIterable {
        case specVersion = "specversion"
        case id, source, type, subject, time
        case dataContentType = "datacontenttype"
        case appID = "appid"
        case partitionKey = "partitionkey"
        case correlationID = "correlationid"
        case causationID = "causationid"
        case sequence
        case replyTo = "replyto"
        case expiryTime = "expirytime"
        case traceParent = "traceparent"
        case traceState = "tracestate"
        case authType = "authtype"
        case authID = "authid"
        case dryRun = "dryrun"
    }

    /// Those that are required have an empty text for none.
    subscript(attribute: CodingKeys) -> String? {
        get {
            switch attribute {
            case .specVersion: specVersion
            case .id: id
            case .source: source
            case .type: type
            case .subject: subject
            case .time: time
            case .dataContentType: dataContentType
            case .appID: appID
            case .partitionKey: partitionKey
            case .correlationID: correlationID
            case .causationID: causationID
            case .sequence: sequence
            case .replyTo: replyTo
            case .expiryTime: expiryTime
            case .traceParent: traceParent
            case .traceState: traceState
            case .authType: authType
            case .authID: authID
            case .dryRun: dryRun
            }
        }
        set {
            switch attribute {
            case .specVersion: specVersion = newValue ?? ""
            case .id: id = newValue ?? ""
            case .source: source = newValue ?? ""
            case .type: type = newValue ?? ""
            case .subject: subject = newValue
            case .time: time = newValue
            case .dataContentType: dataContentType = newValue
            case .appID: appID = newValue
            case .partitionKey: partitionKey = newValue
            case .correlationID: correlationID = newValue
            case .causationID: causationID = newValue
            case .sequence: sequence = newValue
            case .replyTo: replyTo = newValue
            case .expiryTime: expiryTime = newValue
            case .traceParent: traceParent = newValue
            case .traceState: traceState = newValue
            case .authType: authType = newValue
            case .authID: authID = newValue
            case .dryRun: dryRun = newValue
            }
        }
    }
}
