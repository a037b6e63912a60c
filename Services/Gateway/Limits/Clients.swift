// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where a request comes from.
struct Client: Sendable, Hashable {
    /// `nil` when it is not known.
    var address: IPAddress?
    /// Whether limits for each address count for it.
    var isLimited = false

    static let unknown = Client()
}

/// Tells clients apart, behind proxies too (`GATEWAY_TRUSTED_PROXIES`). Pure.
struct Clients: Sendable {
    /// Whose `X-Forwarded-For` is believed. `nil`: nothing was said about proxies.
    var proxies: [IPAddress.Network]?

    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - forwarded: the values of `X-Forwarded-For`, in their order.
    func client(peer: IPAddress?, forwarded: [String]) -> Client {
        guard let peer else { return .unknown }
        guard let proxies else {
            // As long as nobody says otherwise, a peer of one's own network may be a proxy, and everybody comes from
            // there: a limit would be one for all.
            return Client(address: peer, isLimited: !peer.isPrivate)
        }
        func isTrusted(_ address: IPAddress) -> Bool { proxies.contains { $0.contains(address) } }
        // From the right: what a client made up stands to the left of what the first trusted proxy saw.
        var address = peer
        for entry in forwarded.joined(separator: ",").split(separator: ",").reversed() {
            guard isTrusted(address), let next = Self.address(entry) else { break }
            address = next
        }
        return Client(address: address, isLimited: !isTrusted(address))
    }

    /// Whether the peer looks like a proxy that nobody has named.
    func isUnnamedProxy(peer: IPAddress?, forwarded: [String]) -> Bool {
        proxies == nil && !forwarded.isEmpty && peer?.isPrivate == true
    }

    /// Some write the port as well: `192.0.2.1:4711`, `[2001:db8::1]:4711`.
    private static func address(_ entry: Substring) -> IPAddress? {
        let text = String(entry.filter { $0 != " " && $0 != "\t" })
        if let address = IPAddress(text) { return address }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return IPAddress(String(text[text.index(after: text.startIndex)..<end]))
        }
        return text.lastIndex(of: ":").flatMap { IPAddress(String(text[..<$0])) }
    }
}

/// An address of IPv6, or of IPv4 as `::ffff:a.b.c.d`.
struct IPAddress: Sendable, Hashable {
    private var high: UInt64
    private var low: UInt64

    private init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// - Parameter text: one address, with nothing around it.
    init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(high: 0, low: 0xFFFF << 32 | UInt64(UInt32(bigEndian: four.s_addr)))
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            let bytes = withUnsafeBytes(of: &six) { Array($0) }
            func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
            self.init(high: number(bytes[0..<8]), low: number(bytes[8..<16]))
        } else {
            return nil
        }
    }

    private var isFour: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// What one client has to itself: the address, of IPv6 the network of 64 bits.
    var network: IPAddress { isFour ? self : IPAddress(high: high, low: 0) }

    /// Whether it is of this machine or of a network of one's own: nobody on the Internet has it.
    var isPrivate: Bool { Self.privateNetworks.contains { $0.contains(self) } }

    private static let privateNetworks = [
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "::1/128", "fc00::/7",
        "fe80::/10",
    ].compactMap(Network.init)

    /// The usual text.
    var text: String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        if isFour {
            var four = in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian)
            inet_ntop(AF_INET, &four, &buffer, socklen_t(buffer.count))
        } else {
            var six = in6_addr()
            withUnsafeMutableBytes(of: &six) { bytes in
                bytes.storeBytes(of: high.bigEndian, as: UInt64.self)
                bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            inet_ntop(AF_INET6, &six, &buffer, socklen_t(buffer.count))
        }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// `10.0.0.0/8`, `fd00::/8`, or a single address.
    struct Network: Sendable, Hashable {
        private var high: UInt64
        private var low: UInt64
        private var highMask: UInt64
        private var lowMask: UInt64

        init?(_ text: String) {
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count <= 2, let address = IPAddress(String(parts[0])) else { return nil }
            let size = address.isFour && !parts[0].contains(":") ? 32 : 128
            guard let length = parts.count == 2 ? Int(parts[1]) : size, (0...size).contains(length) else { return nil }
            let ones = 128 - size + length
            highMask = ones >= 64 ? .max : ones == 0 ? 0 : .max << UInt64(64 - ones)
            lowMask = ones <= 64 ? 0 : .max << UInt64(128 - ones)
            high = address.high & highMask
            low = address.low & lowMask
        }

        func contains(_ address: IPAddress) -> Bool {
            address.high & highMask == high && address.low & lowMask == low
        }
    }
}
