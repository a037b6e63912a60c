// SPDX-License-Identifier: Apache-2.0

public import Crypto
public import WireJSON

/// The `signature` header: `v1;kid=<api key id>;<base64 HMAC-SHA256(secret, signing string)>`
/// (docs/contracts.md "Signature"). The secret itself never travels.
public struct Signature: Sendable, Hashable {
    public var keyID: String
    public var code: [UInt8]

    /// The id under which the deployment's own services sign commands.
    public static let internalKeyID = "internal"
    /// The id under which services sign events and replies.
    public static let eventsKeyID = "events"
    /// The id under which the gateway signs the commands that it sends for others.
    public static let gatewayKeyID = "gateway"
    /// Ids that no API key may have.
    public static let reservedKeyIDs: Set<String> = [internalKeyID, eventsKeyID, gatewayKeyID]

    /// Reads a header value; `nil` when it does not have the form above.
    public init?(header: [UInt8]) {
        let lead = Self.lead.count
        guard header.starts(with: Self.lead), let end = header[lead...].firstIndex(of: UInt8(ascii: ";")),
            end > lead, end - lead <= 255, let code = Self.code(header[(end + 1)...]),
            let keyID = String(validating: header[lead..<end], as: UTF8.self)
        else { return nil }
        self.keyID = keyID
        self.code = code
    }

    /// Signs a record.
    public init(keyID: String, secret: SymmetricKey, topic: String, headers: [Header], value: [UInt8]) {
        self.init(keyID: keyID, key: SigningKey(secret), topic: topic, headers: headers, value: value)
    }

    /// Signs a record.
    public init(keyID: String, key: SigningKey, topic: String, headers: [Header], value: [UInt8]) {
        self.keyID = keyID
        code = key.code(topic: topic, headers: headers, value: value).withUnsafeBytes { Array($0) }
    }

    public var header: String {
        String(decoding: code.withUnsafeBytes { Self.header(keyID: keyID, code: $0) }, as: UTF8.self)
    }

    private static let lead = Array("v1;kid=".utf8)

    /// The 32 bytes of 43 digits and one `=`; `nil` for any other text.
    private static func code(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count == 44, text.last == UInt8(ascii: "=") else { return nil }
        return Base64.read(text.dropLast(), .standard)?.bytes
    }

    fileprivate static func header(keyID: String, code: UnsafeRawBufferPointer) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(lead.count + keyID.utf8.count + 45)
        text.append(contentsOf: lead)
        text.append(contentsOf: keyID.utf8)
        text.append(UInt8(ascii: ";"))
        Base64.append(code, to: &text)
        return text
    }

    /// Whether the record is signed with this key. Compares in constant time.
    public func isValid(key: SigningKey, topic: String, headers: [Header], value: [UInt8]) -> Bool {
        key.code(topic: topic, headers: headers, value: value) == code
    }

    /// The same of a signing string. Compares in constant time.
    public func isValid(secret: SymmetricKey, signingString: [UInt8]) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signingString, using: secret)
    }

    /// What is signed: the topic, then the `ce_*` headers as `name=value` sorted by their bytes, then the raw value,
    /// joined by newlines. In structured mode there are no such headers and it is the topic, a newline and the value.
    public static func signingString(topic: String, headers: [Header], value: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(topic.utf8.count + 1 + value.count)
        text.append(contentsOf: topic.utf8)
        let lines = headers.filter { $0.name.hasPrefix(HeaderName.attributePrefix) }
            .map { Array($0.name.utf8) + [UInt8(ascii: "=")] + ($0.value ?? []) }
            .sorted { $0.lexicographicallyPrecedes($1) }
        for line in lines {
            text.append(UInt8(ascii: "\n"))
            text.append(contentsOf: line)
        }
        text.append(UInt8(ascii: "\n"))
        text.append(contentsOf: value)
        return text
    }
}

/// A key that records are signed with or checked against, with what follows from it alone computed once.
public struct SigningKey: Sendable {
    private let start: HMAC<SHA256>

    public init(_ key: SymmetricKey) { start = HMAC(key: key) }

    /// The code of the record's signing string. It is put together first: a second call costs more than a copy.
    func code(topic: String, headers: [Header], value: [UInt8]) -> HMAC<SHA256>.MAC {
        var code = start
        code.update(data: Signature.signingString(topic: topic, headers: headers, value: value))
        return code.finalize()
    }
}

/// Base64 (RFC 4648) of few bytes. By hand, because every record has a signature to read and to write.
public enum Base64 {
    public enum Alphabet: Sendable {
        case standard, url
        /// To be read only.
        case either

        fileprivate var digits: [UInt8] { self == .url ? Base64.urlDigits : Base64.standardDigits }

        /// The value of each digit; 64 for any other byte.
        fileprivate var values: [UInt8] {
            switch self {
            case .standard: Base64.standardValues
            case .url: Base64.urlValues
            case .either: Base64.eitherValues
            }
        }
    }

    private static let common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    fileprivate static let standardDigits = Array("\(common)+/".utf8)
    fileprivate static let urlDigits = Array("\(common)-_".utf8)
    fileprivate static let standardValues = values(of: [standardDigits])
    fileprivate static let urlValues = values(of: [urlDigits])
    fileprivate static let eitherValues = values(of: [standardDigits, urlDigits])

    private static func values(of alphabets: [[UInt8]]) -> [UInt8] {
        var values = [UInt8](repeating: 64, count: 256)
        for alphabet in alphabets {
            for (value, digit) in alphabet.enumerated() { values[Int(digit)] = UInt8(value) }
        }
        return values
    }

    /// The standard alphabet is written with padding, the other without.
    public static func append(
        _ bytes: UnsafeRawBufferPointer, to text: inout [UInt8], _ alphabet: Alphabet = .standard
    ) {
        let digits = alphabet.digits
        var bits: UInt32 = 0
        var count = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(digits[Int(bits >> UInt32(count) & 63)])
            }
        }
        guard count > 0 else { return }
        text.append(digits[Int(bits << UInt32(6 - count) & 63)])
        if alphabet != .url { text.append(contentsOf: count == 2 ? "==".utf8 : "=".utf8) }
    }

    /// In the alphabet of URLs, without padding.
    public static func url(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        Array(bytes).withUnsafeBytes { append($0, to: &text, .url) }
        return String(decoding: text, as: UTF8.self)
    }

    /// What digits without padding stand for: `nil` unless these are the only ones of their alphabet that do.
    public static func bytes(_ digits: some Collection<UInt8>, _ alphabet: Alphabet) -> [UInt8]? {
        guard let read = Self.read(Array(digits)[...], alphabet), read.rest == 0 else { return nil }
        return read.bytes
    }

    /// What digits without padding stand for, and the bits of the last one that are no whole byte.
    fileprivate static func read(_ digits: ArraySlice<UInt8>, _ alphabet: Alphabet) -> (bytes: [UInt8], rest: UInt32)? {
        let values = alphabet.values
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        for digit in digits {
            let value = values[Int(digit)]
            guard value < 64 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            bits &= 1 << UInt32(count) - 1
        }
        // Six are a digit too many.
        return count < 6 ? (bytes, bits) : nil
    }
}

/// Makes messages into signed records: attributes and data as one envelope, its content type, the signature. Services,
/// gateway and tools all write so. Deterministic: the same message gives the same bytes.
public struct Seal: Sendable {
    private let keyID: String
    private let key: SigningKey?
    private static let contentType = Header(HeaderName.contentType, HeaderName.structuredContentType)

    /// - Parameter key: without one nothing is signed, which is for deployments that believe whoever may write.
    public init(_ keyID: String, _ key: SymmetricKey?) {
        self.keyID = keyID
        self.key = key.map { SigningKey($0) }
    }

    /// - Parameters:
    ///   - key: the record's, which is what the attributes call the partition key, where that is text.
    ///   - traceParent: for a header of its own, where others than readers of envelopes look for it.
    public func record(
        to topic: String, key: [UInt8]?, _ attributes: EventAttributes, _ data: some WireWritable,
        traceParent: String? = nil
    ) throws -> Record {
        let value = try CloudEvent(attributes: attributes, data: data).encoded()
        var headers: [Header] = []
        headers.reserveCapacity(3)
        headers.append(Self.contentType)
        if let traceParent { headers.append(Header(HeaderName.traceParent, traceParent)) }
        if let signature = signature(topic: topic, headers: headers, value: value) { headers.append(signature) }
        return Record(topic: topic, key: key, value: value, headers: headers)
    }

    /// A command: its key is made of the app and of whom or what it is about (``partitionKey(app:subject:)``), and all
    /// commands about one are in one partition.
    ///
    /// - Parameter traceParent: as in ``record(to:key:_:_:traceParent:)``.
    public func command(
        to topic: String, of app: AppID, about subject: String, _ attributes: EventAttributes,
        _ data: some WireWritable, traceParent: String? = nil
    ) throws -> Record {
        let key = partitionKey(app: app, subject: subject)
        var attributes = attributes
        attributes.partitionKey = key
        return try record(to: topic, key: Array(key.utf8), attributes, data, traceParent: traceParent)
    }

    /// The same record with this signature, and no other.
    public func signed(_ record: Record) -> Record {
        var record = record
        record.headers.removeAll { $0.name == HeaderName.signature }
        if let signature = signature(topic: record.topic, headers: record.headers, value: record.value ?? []) {
            record.headers.append(signature)
        }
        return record
    }

    private func signature(topic: String, headers: [Header], value: [UInt8]) -> Header? {
        key.map { key in
            let code = key.code(topic: topic, headers: headers, value: value)
            return Header(HeaderName.signature, code.withUnsafeBytes { Signature.header(keyID: keyID, code: $0) })
        }
    }
}
