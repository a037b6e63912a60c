// SPDX-License-Identifier: Apache-2.0

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
