// SPDX-License-Identifier: Apache-2.0

package import Contracts
import Crypto
package import WireJSON

/// What can be said of a value that is no envelope without showing any of it: it may hold whatever its sender has, secrets
/// too.
package struct ValueFacts {
    /// In bytes.
    private let size: Int
    /// In hex; of the whole value, also where only its beginning is here.
    private let digest: String
    private let guess: String
    /// From which byte on it is no UTF-8, or no JSON, counted from 0; `nil` where it is both or that says nothing.
    private let flaw: (what: String, offset: Int)?

    /// - Parameters:
    ///   - size: of the whole value, where this is only its beginning.
    ///   - digest: the same, in hex.
    package init(_ value: [UInt8], size: Int? = nil, digest: String? = nil) {
        self.size = size ?? value.count
        self.digest = digest ?? SHA256.hash(data: value).hex
        let isWhole = self.size == value.count
        if let binary = Self.binary(value) {
            (guess, flaw) = (binary, nil)
        } else if let offset = Self.endOfUTF8(value) {
            (guess, flaw) = ("no text", ("UTF-8", offset))
        } else {
            do throws(JSONParseError) {
                let json = try JSONValue(parsing: value)
                (guess, flaw) = (json.objectValue == nil ? "JSON, but no object" : "a JSON object", nil)
            } catch {
                guess = Self.text(value)
                flaw = isWhole && error.reason == .notJSON ? ("JSON", error.offset) : nil
            }
        }
    }

    /// - Parameter record: of a topic of any kind; a dead letter says what its value was before it was cut.
    package init(_ record: KafkaRecord) {
        func header(_ name: String) -> String? { record.header(name).map { String(decoding: $0, as: UTF8.self) } }
        self.init(
            record.value ?? [], size: header("dlq_value_bytes").flatMap { Int($0) }, digest: header("dlq_value_sha256"))
    }

    package var text: String {
        let end = flaw.map { ", no \($0.what) from byte \($0.offset) on" } ?? ""
        return "\(size) byte\(size == 1 ? "" : "s"), \(guess)\(end), SHA-256 \(digest)"
    }

    package var json: JSONValue {
        var object: JSONObject = [
            "bytes": .number(JSONNumber(size)), "sha256": .string(digest), "looksLike": .string(guess),
        ]
        if let flaw { object["no\(flaw.what == "JSON" ? "JSON" : "UTF8")From"] = .number(JSONNumber(flaw.offset)) }
        return .object(object)
    }

    /// What the first bytes tell, where they are a format's.
    private static func binary(_ value: [UInt8]) -> String? {
        let marks: [([UInt8], String)] = [
            ([0x1F, 0x8B], "gzip"), ([0x28, 0xB5, 0x2F, 0xFD], "zstd"), ([0x04, 0x22, 0x4D, 0x18], "lz4"),
            ([0x82] + Array("SNAPPY".utf8), "snappy"), ([0xEF, 0xBB, 0xBF], "text behind a byte order mark"),
            ([0xFE, 0xFF], "UTF-16"), ([0xFF, 0xFE], "UTF-16"),
        ]
        if value.isEmpty { return "empty" }
        // Five bytes before Avro, Protobuf or JSON.
        if value.count > 5, value[0] == 0, value[1] == 0 { return "as serializers of a schema registry write" }
        return marks.first { value.starts(with: $0.0) }?.1
    }

    private static func text(_ value: [UInt8]) -> String {
        switch value.first(where: { !" \t\r\n".utf8.contains($0) }) {
        case UInt8(ascii: "{"), UInt8(ascii: "["): "like JSON"
        case UInt8(ascii: "<"): "like XML"
        default: "text"
        }
    }

    /// - Returns: `nil` when all of it is UTF-8.
    private static func endOfUTF8(_ value: [UInt8]) -> Int? {
        if String(validating: value, as: UTF8.self) != nil { return nil }
        var parser = Unicode.UTF8.ForwardParser()
        var bytes = value.makeIterator()
        var offset = 0
        while case .valid(let scalar) = parser.parseScalar(from: &bytes) { offset += scalar.count }
        return offset
    }
}
