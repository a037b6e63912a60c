// SPDX-License-Identifier: Apache-2.0

import NIOHTTP1

/// Why a request is refused before anybody gets to read it.
package enum UnreadableRequest: Sendable, CaseIterable {
    /// It is not HTTP, or its head is too large.
    case malformed
    /// It does not name exactly one host (RFC 9112, 3.2).
    case host
    /// Its method is none of HTTP's.
    case method
    /// It expects what this server does not do (RFC 9110, 10.1.1).
    case expectation

    package var status: Int {
        switch self {
        case .malformed, .host: 400
        case .method: 501
        case .expectation: 417
        }
    }

    package var detail: String {
        switch self {
        case .malformed: "The request is not HTTP/1.1, or its head is larger than this server reads."
        case .host: "The request does not name exactly one host; send one Host header with one name."
        case .method: "This server knows no such method."
        case .expectation: "This server meets no expectation but 100-continue."
        }
    }
}

extension HTTPRequestHead {
    /// Whether nothing can be read behind this request, or nothing shall be. The decoder reads nothing behind an
    /// `Upgrade` and a `CONNECT`, also when nobody takes part in it; and a body whose length an HTTP/1.0 proxy may have
    /// seen otherwise is the last thing that is believed (RFC 9112, 6.1).
    var endsConnection: Bool {
        let wishes = headers[canonicalForm: "Connection"].map { $0.lowercased() }
        if wishes.contains("close") || headers.contains(name: "Upgrade") || method == .CONNECT { return true }
        guard isOld else { return false }
        return !wishes.contains("keep-alive") || headers.contains(name: "Transfer-Encoding")
    }

    /// Exactly one `Host`, with one name; HTTP/1.0 has none.
    var namesItsHost: Bool {
        let hosts = headers["Host"]
        guard let host = hosts.first else { return isOld }
        return hosts.count == 1 && host.utf8.allSatisfy(Self.isOfHost)
    }

    /// A comma may stand in a name, but is what a proxy puts between two of them.
    private static func isOfHost(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-._~%!$&'()*+;=:[]".utf8.contains(byte)
        }
    }

    /// What the client waits for before it sends the body; HTTP/1.0 has no such word.
    var expectations: [Substring] { isOld ? [] : headers[canonicalForm: "Expect"] }

    /// HTTP/1.0 or before it: connections end there unless both say otherwise.
    private var isOld: Bool { version.major < 1 || version == .http1_0 }
}
