// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Gateway

@Suite struct ClientsTests {
    private func network(_ text: String) throws -> IPAddress.Network { try #require(IPAddress.Network(text)) }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:DB8::0:1", "2001:db8::1"), ("::1", "::1"),
        ("255.255.255.255", "255.255.255.255"),
    ])
    func addresses(_ row: (text: String, shown: String)) throws {
        #expect(try #require(IPAddress(row.text)).text == row.shown)
    }

    @Test(arguments: ["", "1.2.3", "256.1.1.1", "1.2.3.4 ", "::g", "localhost", "1.2.3.4/8", "unknown", "_hidden"])
    func noAddresses(_ text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("192.0.2.1", "192.0.2.1", true),
        ("192.0.2.1", "192.0.2.2", false), ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "2001:db8::1", false),
        ("2001:db8::/32", "2001:db8:1::7", true), ("2001:db8::/32", "2001:db9::7", false), ("::/0", "192.0.2.1", true),
        ("::ffff:10.0.0.0/104", "10.9.9.9", true), ("192.0.2.128/25", "192.0.2.200", true),
        ("192.0.2.128/25", "192.0.2.100", false), ("2001:db8::1", "2001:db8::1", true),
    ])
    func networks(_ row: (network: String, address: String, isIn: Bool)) throws {
        #expect(try network(row.network).contains(try #require(IPAddress(row.address))) == row.isIn)
    }

    @Test(arguments: ["10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0/8", "::/129", "/8", "a/8", "1.2.3.4/8/8"])
    func noNetworks(_ text: String) {
        #expect(IPAddress.Network(text) == nil)
    }

    @Test func oneClientOfIPv6HasANetwork() throws {
        let addresses = try ["2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1"].map { try #require(IPAddress($0)) }
        #expect(addresses[0].network == addresses[1].network && addresses[0].network != addresses[2].network)
        let four = try ["192.0.2.1", "192.0.2.2"].map { try #require(IPAddress($0)) }
        #expect(four[0].network != four[1].network)
    }

    /// The right-most address that is no trusted proxy's; what stands left of it anybody can make up.
    @Test(arguments: [
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"), ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"), ("10.0.0.1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1,10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1", "10.0.0.2 "], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"), ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"), ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"), ("10.0.0.1", ["[2001:db8::9]:4711"], "2001:db8::9"),
        ("::ffff:10.0.0.1", ["2001:db8::9"], "2001:db8::9"),
    ])
    func behindProxies(_ row: (peer: String, forwarded: [String], client: String)) throws {
        let clients = Clients(proxies: [try network("10.0.0.0/8")])
        let client = clients.client(peer: IPAddress(row.peer), forwarded: row.forwarded)
        #expect(client.address == IPAddress(row.client))
        #expect(client.isLimited == !row.client.hasPrefix("10."), "a proxy is nobody's client")
    }

    @Test func withoutAWordAboutProxies() {
        let clients = Clients(proxies: nil)
        let forwarded = ["198.51.100.1"]
        let stranger = clients.client(peer: IPAddress("203.0.113.7"), forwarded: forwarded)
        #expect(stranger.address == IPAddress("203.0.113.7") && stranger.isLimited)
        for peer in ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "::1", "fd00::1", "fe80::1"] {
            let near = clients.client(peer: IPAddress(peer), forwarded: forwarded)
            #expect(
                near.address == IPAddress(peer) && !near.isLimited, "it may be a proxy, and everybody comes from there")
            #expect(clients.isUnnamedProxy(peer: IPAddress(peer), forwarded: forwarded))
            #expect(!clients.isUnnamedProxy(peer: IPAddress(peer), forwarded: []))
        }
        #expect(clients.client(peer: IPAddress("172.32.0.1"), forwarded: []).isLimited)
        let none = Clients(proxies: [])
        #expect(
            none.client(peer: IPAddress("127.0.0.1"), forwarded: forwarded)
                == .init(
                    address: IPAddress("127.0.0.1"), isLimited: true))
        #expect(none.client(peer: nil, forwarded: forwarded) == .unknown)
    }
}
