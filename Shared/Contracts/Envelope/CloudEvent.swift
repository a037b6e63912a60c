// SPDX-License-Identifier: Apache-2.0

public import WireJSON

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

extension CloudEvent where Payload: WireWritable {
    /// The structured mode (`application/cloudevents+json`): every attribute and `data` in one object, as one text.
    public func encoded() throws -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(1024)
        attributes.write(to: &bytes)
        var json = JSONOutput(after: bytes)
        try json.member("data", data)
        json.end()
        return json.bytes
    }
}

/// The context attributes of a CloudEvents 1.0 message: the standard ones, the registered extensions we use
/// (`partitionkey`, `correlationid`, `causationid`, `expirytime`, `traceparent`, `tracestate`, `authtype`, `authid`)
/// and our own four, `appid`, `replyto`, `replykey` and `dryrun`.
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
    /// Kafka key for the reply; the command's own when absent. A key and no partition's number: every topic takes it.
    public var replyKey: String?
    /// RFC 3339. A command not decided by then is answered `expired` and changes nothing.
    public var expiryTime: String?
    public var traceParent: String?
    public var traceState: String?
    /// Of commands: set by the gateway only, believed only under a key of the deployment. Of what services write: whose key
    /// the command was sent with, where that was by hand (``Scope/isByHand``).
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

    /// Of a message whose data is JSON, which is all that services and tools write.
    /// - Parameter time: RFC 3339, when the message is made.
    public init(id: String, source: String, type: String, appID: String? = nil, time: String) {
        self.init(id: id, source: source, type: type, appID: appID)
        self.time = time
        dataContentType = "application/json"
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
        case replyKey = "replykey"
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
            case .replyKey: replyKey
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
            case .replyKey: replyKey = newValue
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

/// Reads a Kafka record's value and headers as a CloudEvent, in structured mode (the whole envelope in the value) or
/// binary mode (`ce_*` headers, the data in the value). Pure and safe on any input: every refusal is a named reason.
public enum EnvelopeReader {
    /// Bytes of a message's value (docs/contracts.md "Limits").
    public static let maxBytes = 256 * 1024
    public static let maxDepth = 32
    /// UTF-8 bytes of an attribute, apart from `subject` (an external id may be one) and `tracestate` (W3C).
    public static let maxAttributeBytes = 255
    public static let maxSubjectBytes = 3000
    public static let maxTraceStateBytes = 512
    public static let maxPartitionKeyBytes = 4000

    /// The attributes, and the data taken apart.
    /// - Throws: `EnvelopeError`; the record is then dead-lettered.
    public static func read(value: [UInt8]?, headers: [Header]) throws(EnvelopeError) -> CloudEvent<JSONValue> {
        let event = try open(value: value, headers: headers)
        return CloudEvent(attributes: event.attributes, data: event.data.value)
    }

    /// The attributes, and the data as it stands in the value.
    /// - Throws: `EnvelopeError`; the record is then dead-lettered.
    public static func open(value: [UInt8]?, headers: [Header]) throws(EnvelopeError) -> CloudEvent<JSONView> {
        guard let value else {
            throw EnvelopeError(.emptyValue, "the record has no value; a command carries a CloudEvents envelope")
        }
        guard value.count <= maxBytes else {
            throw EnvelopeError(.tooLarge, "the value has \(value.count) bytes; at most \(maxBytes) are read")
        }
        try checkAttributeHeaders(headers)
        let json = try parse(value)
        let event =
            headers.contains { $0.name == "ce_specversion" }
            ? CloudEvent(attributes: try binaryAttributes(headers), data: json)
            : try structured(json)
        try check(event.attributes)
        return event
    }

    private static func parse(_ value: [UInt8]) throws(EnvelopeError) -> JSONView {
        do {
            return try JSONView(parsing: value, limits: JSONLimits(maxDepth: maxDepth, maxBytes: maxBytes))
        } catch {
            throw EnvelopeError(reason(of: error), error.description)
        }
    }

    private static func reason(of error: JSONParseError) -> EnvelopeError.Reason {
        switch error.reason {
        case .notUTF8: .notUTF8
        case .notJSON: .notJSON
        case .tooDeep: .tooDeep
        case .tooLarge: .tooLarge
        case .duplicateMember: .duplicateMember
        }
    }

    private typealias Attribute = EventAttributes.CodingKeys

    /// Without these there is no envelope, so they are asked for first.
    private static let required: [Attribute] = [.specVersion, .id, .source, .type, .appID]
    /// What is read. `sequence` is for whoever reads events from outside.
    private static let attributes =
        required + Attribute.allCases.filter { !required.contains($0) && $0 != .sequence }
    /// In this order, because of two that are wrong the first is named.
    private static let checked: [Attribute] = {
        let (first, last): ([Attribute], [Attribute]) = (required + [.subject, .partitionKey], [.expiryTime, .time])
        return first + attributes.filter { !(first + last).contains($0) } + last
    }()

    // MARK: Structured mode

    private static let names = JSONNames(attributes.map(\.rawValue) + ["data", "data_base64"])
    private static let data = attributes.count
    private static let dataBase64 = data + 1

    private static func structured(_ json: JSONView) throws(EnvelopeError) -> CloudEvent<JSONView> {
        guard json.isObject else {
            throw EnvelopeError(.invalidEnvelope, "the value is not a JSON object; a CloudEvents envelope is one")
        }
        let members = json.members(names)
        if members[dataBase64] != nil {
            throw EnvelopeError(.invalidEnvelope, "data_base64 is not supported; put JSON into data")
        }
        let attributes = try readAttributes { (attribute, index) throws(EnvelopeError) in
            guard let value = members[index], !value.isNull else { return nil }
            // Nearly all messages say this, which then needs no memory of its own.
            if attribute == .dataContentType, value.isString(jsonType) { return jsonType }
            if let text = value.stringValue { return text }
            if attribute == .dryRun {
                // CloudEvents' JSON format writes attributes that are true or false without quotes. Anything else is read
                // as something that is refused with an answer: who wants a dry run waits for one.
                return value.boolValue.map { $0 ? "true" : "false" } ?? ""
            }
            throw EnvelopeError(.invalidEnvelope, "attribute \(attribute.rawValue) is not a string")
        }
        return CloudEvent(attributes: attributes, data: members[data] ?? JSONView(.null))
    }

    // MARK: Binary mode

    private static func binaryAttributes(_ headers: [Header]) throws(EnvelopeError) -> EventAttributes {
        var attributes = try readAttributes { (attribute, _) throws(EnvelopeError) in
            let name = "\(HeaderName.attributePrefix)\(attribute.rawValue)"
            guard let bytes = headers.last(where: { $0.name == name })?.value else { return nil }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw EnvelopeError(.notUTF8, "header \(name) is not UTF-8")
            }
            return text
        }
        if attributes.dataContentType == nil,
            let bytes = headers.last(where: { $0.name == HeaderName.contentType })?.value
        {
            attributes.dataContentType = String(validating: bytes, as: UTF8.self)
        }
        return attributes
    }

    /// Each attribute header once and on one line: otherwise the signing string, which is lines of sorted headers,
    /// could be read in two ways.
    private static func checkAttributeHeaders(_ headers: [Header]) throws(EnvelopeError) {
        var names: Set<ID<IDKind.Header>> = []
        for header in headers where header.name.hasPrefix(HeaderName.attributePrefix) {
            guard names.insert(ID(header.name)).inserted else {
                throw EnvelopeError(.invalidEnvelope, "a ce_ header is there twice")
            }
            let bytes = Array(header.name.utf8) + (header.value ?? [])
            if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw EnvelopeError(.invalidEnvelope, "a ce_ header has a control character")
            }
        }
    }

    // MARK: Both

    /// - Parameter read: one attribute, and its place among ``attributes``.
    private static func readAttributes(
        _ read: (Attribute, Int) throws(EnvelopeError) -> String?
    ) throws(EnvelopeError) -> EventAttributes {
        var event = EventAttributes(id: "", source: "", type: "")
        for index in attributes.indices {
            let attribute = attributes[index]
            let text = try read(attribute, index)
            guard text?.isEmpty == false || index >= required.count else {
                throw EnvelopeError(.missingAttribute, "attribute \(attribute.rawValue) is missing or empty")
            }
            event[attribute] = text
        }
        return event
    }

    private static func check(_ attributes: EventAttributes) throws(EnvelopeError) {
        guard attributes.specVersion == "1.0" else {
            throw EnvelopeError(.invalidEnvelope, "specversion is not 1.0, the only one supported")
        }
        if let contentType = attributes.dataContentType, !isJSON(contentType) {
            throw EnvelopeError(.invalidEnvelope, "datacontenttype is not application/json")
        }
        for index in checked.indices {
            if let text = attributes[checked[index]] { try check(checked[index], text) }
        }
    }

    private static func check(_ attribute: Attribute, _ text: String) throws(EnvelopeError) {
        let limit: Int
        switch attribute {
        case .time, .expiryTime:
            guard Timestamp(rfc3339: text) == nil else { return }
            throw EnvelopeError(
                .invalidEnvelope, "\(attribute.rawValue) is not an RFC 3339 time such as 2030-01-31T12:00:00Z")
        case .subject: limit = maxSubjectBytes
        case .partitionKey, .replyKey: limit = maxPartitionKeyBytes
        case .traceState: limit = maxTraceStateBytes
        default: limit = maxAttributeBytes
        }
        guard !canBeAttribute(text, atMost: limit) else { return }
        if text.utf8.count > limit {
            throw EnvelopeError(
                .invalidEnvelope,
                "attribute \(attribute.rawValue) has \(text.utf8.count) bytes; at most \(limit) are allowed")
        }
        throw EnvelopeError(.invalidEnvelope, "attribute \(attribute.rawValue) has a control character")
    }

    /// Whether an attribute can say this: of so many bytes of UTF-8 at most, and without control characters of ASCII.
    public static func canBeAttribute(_ text: String, atMost limit: Int = maxAttributeBytes) -> Bool {
        text.utf8.count <= limit && !hasControlCharacter(text)
    }

    private static func hasControlCharacter(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            // Without a way out of the loop: so it takes sixteen bytes a step.
            var found: UInt8 = 0
            for byte in bytes { found |= (byte < 0x20 ? 1 : 0) | (byte == 0x7F ? 1 : 0) }
            return found != 0
        }
    }

    private static let jsonType = "application/json"

    /// `application/json`, with or without parameters, or a structured suffix such as `application/vnd.x+json`.
    private static func isJSON(_ contentType: String) -> Bool {
        if contentType == jsonType { return true }
        let essence = contentType.prefix { $0 != ";" }.lowercased()
        let trimmed = essence.drop { $0 == " " }.prefix { $0 != " " }
        return trimmed == "application/json" || trimmed.hasSuffix("+json")
    }
}

/// Why a Kafka record is not a readable envelope. Such a record is dead-lettered with `reason` as `dlq_reason`;
/// `detail` is one line for people and never quotes the message's content.
public struct EnvelopeError: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Reason: String, Sendable, CaseIterable {
        /// The record has no value (a tombstone) where a command was expected.
        case emptyValue = "EMPTY_VALUE"
        /// Over the 256 KiB limit.
        case tooLarge = "TOO_LARGE"
        case notUTF8 = "NOT_UTF8"
        case notJSON = "NOT_JSON"
        /// Nested deeper than 32.
        case tooDeep = "TOO_DEEP"
        /// The same member twice in one object: readers would disagree about what it says.
        case duplicateMember = "DUPLICATE_MEMBER"
        /// Not an object, an attribute with a wrong type or length, or not CloudEvents 1.0.
        case invalidEnvelope = "INVALID_ENVELOPE"
        /// A required attribute (`specversion`, `id`, `source`, `type`, `appid`) is absent or empty.
        case missingAttribute = "MISSING_ATTRIBUTE"
        case unknownType = "UNKNOWN_TYPE"
    }

    public var reason: Reason
    public var detail: String

    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    public var description: String { "\(reason.rawValue): \(detail)" }
}
