// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc
import WireJSON

/// A reply as far as a measurement looks at it.
struct Answer {
    let commandID: String
    /// `succeeded`, `pending`, `expired`, or the reason of a rejection.
    let status: String
    let result: JSONValue?

    /// - Returns: `nil` when the record is no reply.
    init?(_ record: KafkaRecord) {
        guard let value = record.value, case .object(let envelope)? = try? JSONValue(parsing: value),
            case .object(let data)? = envelope["data"], case .string(let id)? = data["commandId"],
            case .string(let status)? = data["status"]
        else { return nil }
        commandID = id
        if case .string(let reason)? = data["reason"] { self.status = reason } else { self.status = status }
        result = data["result"]
    }

    /// The number in the id of the command, see ``CommandFactory/id(_:)``.
    var number: Int? {
        commandID.hasPrefix("command-") ? Int(commandID.dropFirst("command-".count)) : nil
    }

    // MARK: Without reading all of it
    // A quotation mark inside a string is escaped, so these bytes are found where they are members only.

    static func isPending(_ record: KafkaRecord) -> Bool { end(of: "\"status\":\"pending\"", in: record) != nil }

    static func number(_ record: KafkaRecord) -> Int? {
        guard let value = record.value, let start = end(of: "\"commandId\":\"command-", in: record) else { return nil }
        let digits = value[start...].prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return digits.isEmpty ? nil : digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    }

    /// Where the text ends that is looked for.
    private static func end(of text: StaticString, in record: KafkaRecord) -> Int? {
        guard let value = record.value else { return nil }
        let length = text.utf8CodeUnitCount
        return value.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress else { return nil }
            var start = 0
            // A whole word of the text is compared only where its first byte stands.
            while start + length <= bytes.count,
                let found = memchr(base + start, Int32(text.utf8Start.pointee), bytes.count - start - length + 1)
            {
                if memcmp(found, text.utf8Start, length) == 0 { return UnsafeRawPointer(found) - base + length }
                start = UnsafeRawPointer(found) - base + 1
            }
            return nil
        }
    }
}
