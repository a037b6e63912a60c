// SPDX-License-Identifier: Apache-2.0

import Crypto

/// What an element of an imported list says, member by member, as bytes that no other element has: each text with its
/// length, each list with its count, and a byte of its own for what is absent.
///
/// Written out by hand, because encoding to JSON for it was a fourteenth of what an import costs the sync service. That no
/// member is left out, a test sees to.
public struct ElementDigest {
    private var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(256) }

    mutating func add(_ text: String?) {
        guard var text else { return bytes.append(0) }
        bytes.append(1)
        add(count: text.utf8.count)
        text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ time: Timestamp?) {
        guard let time else { return bytes.append(0) }
        bytes.append(1)
        add(UInt64(bitPattern: time.milliseconds))
    }

    mutating func add(_ truth: Bool?) { bytes.append(truth.map { $0 ? 2 : 1 } ?? 0) }

    /// - Parameter one: adds each of the list's elements; `nil` is an absent list.
    mutating func add<Element>(_ list: [Element]?, _ one: (inout ElementDigest, Element) -> Void) {
        guard let list else { return bytes.append(0) }
        bytes.append(1)
        add(count: list.count)
        for element in list { one(&self, element) }
    }

    mutating func add(_ device: Device) {
        add(device.kind.rawValue)
        add(device.platform)
        add(device.model)
        add(device.osVersion)
    }

    private mutating func add(count: Int) { add(UInt64(count)) }

    private mutating func add(_ number: UInt64) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// The first eight bytes of their SHA-256.
    var number: Int64 { SHA256.hash(data: bytes).prefix(8).reduce(0) { $0 << 8 | Int64($1) } }
}
