// SPDX-License-Identifier: Apache-2.0

/// Turns the free-form labels of swift-metrics into names that the Prometheus text format accepts.
///
/// Pure functions: the same input gives the same name on every thread and in every process.
enum MetricName {
    /// A metric name: letters, digits, `_` and `:`; everything else becomes `_`.
    static func metric(_ raw: String, suffix: String = "") -> String {
        let name = sanitised(raw, allowingColon: true)
        return name.hasSuffix(suffix) ? name : name + suffix
    }

    /// A label name: letters, digits and `_`; everything else becomes `_`.
    ///
    /// `le` belongs to histogram buckets and a leading `__` to Prometheus itself, so both are moved out of the way.
    static func label(_ raw: String) -> String {
        let name = sanitised(raw, allowingColon: false)
        return name == "le" || name.hasPrefix("__") ? "exported_" + name : name
    }

    private static func sanitised(_ raw: String, allowingColon: Bool) -> String {
        guard let first = raw.utf8.first else { return "_" }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(raw.utf8.count + 1)
        if isDigit(first) { bytes.append(underscore) }
        for scalar in raw.unicodeScalars {
            let byte = UInt8(exactly: scalar.value) ?? underscore
            let keep = isLetter(byte) || isDigit(byte) || (allowingColon && byte == colon)
            bytes.append(keep ? byte : underscore)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let underscore = UInt8(ascii: "_")
    private static let colon = UInt8(ascii: ":")

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower)
    }
}
