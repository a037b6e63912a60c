// SPDX-License-Identifier: Apache-2.0

import Contracts

/// A record as text, so that people and fuzzers can write one: header lines such as `ce_id: c1`, an empty line, and the
/// value. A text that begins with a brace is a value without headers, as the golden files are.
struct RecordText {
    var headers: [Header] = []
    /// `nil` where there is no empty line.
    var value: [UInt8]?

    init(_ bytes: [UInt8]) {
        guard bytes.first != UInt8(ascii: "{") else {
            value = bytes
            return
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let line = rest.prefix { $0 != UInt8(ascii: "\n") }
            rest = rest.dropFirst(line.count + 1)
            if line.isEmpty {
                value = Array(rest)
                return
            }
            let name = line.prefix { $0 != UInt8(ascii: ":") }
            let content = line.dropFirst(name.count + 1).drop { $0 == UInt8(ascii: " ") }
            headers.append(Header(nameBytes: Array(name), name.count < line.count ? Array(content) : nil))
        }
    }

    /// Takes out what is meant for the fuzzer: the last header of this name.
    mutating func take(_ name: String) -> String? {
        let value = headers.last { $0.name == name }?.value
        headers.removeAll { $0.name == name }
        return value.map { String(decoding: $0, as: UTF8.self) }
    }
}
