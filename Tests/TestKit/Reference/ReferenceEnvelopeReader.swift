// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import WireJSON

/// The reader over a tree, of before there was a tape: what the present one is compared with.
public enum ReferenceEnvelopeReader {
    private static let maxBytes = EnvelopeReader.maxBytes
    private static let maxDepth = EnvelopeReader.maxDepth
    private static let maxAttributeBytes = EnvelopeReader.maxAttributeBytes
    private static let maxSubjectBytes = EnvelopeReader.maxSubjectBytes
    private static let maxTraceStateBytes = EnvelopeReader.maxTraceStateBytes

    /// - Throws: `EnvelopeError`; the record is then dead-lettered.
    public static func read(value: [UInt8]?, headers: [Header]) throws(EnvelopeError) -> CloudEvent<JSONValue> {
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

    private static func parse(_ value: [UInt8]) throws(EnvelopeError) -> JSONValue {
        do {
            return try JSONValue(parsing: value, limits: JSONLimits(maxDepth: maxDepth, maxBytes: maxBytes))
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

    // MARK: Structured mode

    private static func structured(_ json: JSONValue) throws(EnvelopeError) -> CloudEvent<JSONValue> {
        guard case .object(let members) = json else {
            throw EnvelopeError(.invalidEnvelope, "the value is not a JSON object; a CloudEvents envelope is one")
        }
        if members["data_base64"] != nil {
            throw EnvelopeError(.invalidEnvelope, "data_base64 is not supported; put JSON into data")
        }
        let attributes = try readAttributes { (name) throws(EnvelopeError) in
            switch members[name] {
            case .none, .null?: return nil
            case .string(let text)?: return text
            // CloudEvents' JSON format writes attributes that are true or false without quotes.
            case .bool(let flag)? where name == "dryrun": return flag ? "true" : "false"
            // Read as something that is refused with an answer: who wants a dry run waits for one.
            case .some where name == "dryrun": return ""
            default: throw EnvelopeError(.invalidEnvelope, "attribute \(name) is not a string")
            }
        }
        return CloudEvent(attributes: attributes, data: members["data"] ?? .null)
    }

    // MARK: Binary mode

    private static func binaryAttributes(_ headers: [Header]) throws(EnvelopeError) -> EventAttributes {
        var attributes = try readAttributes { (name) throws(EnvelopeError) in
            guard let bytes = headers.last(where: { $0.name == HeaderName.attributePrefix + name })?.value else {
                return nil
            }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw EnvelopeError(.notUTF8, "header ce_\(name) is not UTF-8")
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
        var names: Set<[UInt8]> = []
        for header in headers where header.name.hasPrefix(HeaderName.attributePrefix) {
            guard names.insert(Array(header.name.utf8)).inserted else {
                throw EnvelopeError(.invalidEnvelope, "a ce_ header is there twice")
            }
            let bytes = Array(header.name.utf8) + (header.value ?? [])
            if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw EnvelopeError(.invalidEnvelope, "a ce_ header has a control character")
            }
        }
    }

    // MARK: Both

    private static func readAttributes(
        _ read: (String) throws(EnvelopeError) -> String?
    ) throws(EnvelopeError) -> EventAttributes {
        func required(_ name: String) throws(EnvelopeError) -> String {
            guard let text = try read(name), !text.isEmpty else {
                throw EnvelopeError(.missingAttribute, "attribute \(name) is missing or empty")
            }
            return text
        }
        let specVersion = try required("specversion")
        var attributes = EventAttributes(
            id: try required("id"), source: try required("source"), type: try required("type"),
            appID: try required("appid"))
        attributes.specVersion = specVersion
        attributes.subject = try read("subject")
        attributes.time = try read("time")
        attributes.dataContentType = try read("datacontenttype")
        attributes.partitionKey = try read("partitionkey")
        attributes.correlationID = try read("correlationid")
        attributes.causationID = try read("causationid")
        attributes.replyTo = try read("replyto")
        attributes.replyKey = try read("replykey")
        attributes.expiryTime = try read("expirytime")
        attributes.traceParent = try read("traceparent")
        attributes.traceState = try read("tracestate")
        attributes.authType = try read("authtype")
        attributes.authID = try read("authid")
        attributes.dryRun = try read("dryrun")
        return attributes
    }

    private static func check(_ attributes: EventAttributes) throws(EnvelopeError) {
        guard attributes.specVersion == "1.0" else {
            throw EnvelopeError(.invalidEnvelope, "specversion is not 1.0, the only one supported")
        }
        if let contentType = attributes.dataContentType, !isJSON(contentType) {
            throw EnvelopeError(.invalidEnvelope, "datacontenttype is not application/json")
        }
        let limits = [
            ("id", attributes.id, maxAttributeBytes), ("source", attributes.source, maxAttributeBytes),
            ("type", attributes.type, maxAttributeBytes), ("appid", attributes.appID, maxAttributeBytes),
            ("subject", attributes.subject, maxSubjectBytes), ("partitionkey", attributes.partitionKey, 4000),
            ("datacontenttype", attributes.dataContentType, maxAttributeBytes),
            ("correlationid", attributes.correlationID, maxAttributeBytes),
            ("causationid", attributes.causationID, maxAttributeBytes),
            ("replyto", attributes.replyTo, maxAttributeBytes), ("replykey", attributes.replyKey, 4000),
            ("traceparent", attributes.traceParent, maxAttributeBytes),
            ("tracestate", attributes.traceState, maxTraceStateBytes),
            ("authtype", attributes.authType, maxAttributeBytes), ("authid", attributes.authID, maxAttributeBytes),
            ("dryrun", attributes.dryRun, maxAttributeBytes),
        ]
        for (name, text, limit) in limits {
            guard let text else { continue }
            if text.utf8.count > limit {
                throw EnvelopeError(
                    .invalidEnvelope, "attribute \(name) has \(text.utf8.count) bytes; at most \(limit) are allowed")
            }
            if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw EnvelopeError(.invalidEnvelope, "attribute \(name) has a control character")
            }
        }
        if let expiry = attributes.expiryTime, Timestamp(rfc3339: expiry) == nil {
            throw EnvelopeError(.invalidEnvelope, "expirytime is not an RFC 3339 time such as 2030-01-31T12:00:00Z")
        }
        if let time = attributes.time, Timestamp(rfc3339: time) == nil {
            throw EnvelopeError(.invalidEnvelope, "time is not an RFC 3339 time such as 2030-01-31T12:00:00Z")
        }
    }

    /// `application/json`, with or without parameters, or a structured suffix such as `application/vnd.x+json`.
    private static func isJSON(_ contentType: String) -> Bool {
        if contentType == "application/json" { return true }
        let essence = contentType.prefix { $0 != ";" }.lowercased()
        let trimmed = essence.drop { $0 == " " }.prefix { $0 != " " }
        return trimmed == "application/json" || trimmed.hasSuffix("+json")
    }
}
