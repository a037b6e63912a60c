// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// Where spans go: a collector that speaks OTLP over HTTP, with TLS or without.
package struct OTLPReceiver: Sendable {
    package struct Field: Sendable {
        var name: String
        var value: String
    }

    /// Why a setting cannot be used, without what it says.
    package struct Problem: Error, Sendable {
        package var words: String
    }

    /// What came of a request.
    package enum Answer: Sendable, Equatable {
        case status(Int)
        /// Nothing, and why.
        case silence(String)
    }

    let host: String
    let port: Int
    let path: String
    let isSecure: Bool
    /// A PEM file of the authorities that may vouch for it, read with every request: it may change. `nil` for the system's.
    package var authorities: String?
    /// Sent with each request; may be secrets.
    package var fields: [Field] = []

    /// Without what is secret.
    var place: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// - Parameter url: of the signal `traces`, or, with `isBase`, of what has a path for each signal.
    package init(_ url: String, isBase: Bool) throws(Problem) {
        guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty, parts.query == nil,
            parts.fragment == nil
        else { throw Problem(words: "is not an address such as http://127.0.0.1:4318") }
        guard let scheme = parts.scheme?.lowercased(), ["http", "https"].contains(scheme) else {
            throw Problem(words: "does not begin with http:// or https://")
        }
        guard parts.user == nil, parts.password == nil else {
            throw Problem(words: "has a user in it: say who asks with OTEL_EXPORTER_OTLP_HEADERS")
        }
        self.host = host.trimmingCharacters(in: ["[", "]"])
        isSecure = scheme == "https"
        port = parts.port ?? (isSecure ? 443 : 80)
        let path = parts.percentEncodedPath
        if isBase {
            self.path = (path.hasSuffix("/") ? String(path.dropLast()) : path) + "/v1/traces"
        } else {
            self.path = path.isEmpty ? "/" : path
        }
    }

    /// A PEM file of those that may vouch for the collector, which holds some.
    package static func authorities(_ path: String) throws(Problem) -> String {
        if let words = TextFile.problem(of: path) { throw Problem(words: words) }
        guard TLSStream.canTrust(path) else { throw Problem(words: "\(path) holds no certificate in PEM form") }
        return path
    }

    /// Reads `name=value,name=value`, with `%` for what may not stand in values.
    /// - Throws: ``Problem``, which does not say what the text is.
    package static func fields(_ text: String) throws(Problem) -> [Field] {
        var fields: [Field] = []
        for (name, value) in try pairs(text, "name=value,name=value") {
            guard name.utf8.allSatisfy(isOfToken), value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                throw Problem(words: "has a name or a value that no header has")
            }
            guard !own.contains(name.lowercased()) else {
                throw Problem(words: "has \(name.lowercased()), which is said already")
            }
            fields.append(Field(name: name, value: value))
        }
        return fields
    }

    /// Reads what is said of the process, `name=value,name=value`.
    package static func attributes(_ text: String) throws(Problem) -> [TraceSettings.Attribute] {
        try pairs(text, "name=value,name=value, with %2C for a comma").map { TraceSettings.Attribute($0, $1) }
    }

    private static func pairs(_ text: String, _ form: String) throws(Problem) -> [(String, String)] {
        var pairs: [(String, String)] = []
        for part in text.split(separator: ",") {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = sides[0].trimmingCharacters(in: .whitespaces)
            guard sides.count == 2, !name.isEmpty,
                let value = sides[1].trimmingCharacters(in: .whitespaces).removingPercentEncoding
            else { throw Problem(words: "is not \(form)") }
            pairs.append((name, value))
        }
        return pairs
    }

    private static let own: Set = [
        "host", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection",
    ]

    private static func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// Sends a request on a connection of its own: seconds lie between two. Blocks.
    func post(_ body: [UInt8], within limit: Duration) -> Answer {
        var head = "POST \(path) HTTP/1.1\r\nHost: \(place)\r\nContent-Type: application/x-protobuf\r\n"
        head += "Content-Length: \(body.count)\r\nUser-Agent: identitybus/\(Release.version)\r\nConnection: close\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        do throws(ClientSocket.Failure) {
            let stream = try connect(within: limit)
            try stream.write(Array("\(head)\r\n".utf8) + body)
            return try Self.answer(on: stream)
        } catch {
            return .silence(error.words)
        }
    }

    private func connect(within limit: Duration) throws(ClientSocket.Failure) -> any ByteStream {
        let socket = try ClientSocket(to: host, port, within: limit)
        return isSecure ? try TLSStream(over: socket, host: host, authorities: authorities) : socket
    }

    /// The status. The rest is read too, where it is short: who closes before has reset the connection for the server.
    private static func answer(on stream: any ByteStream) throws(ClientSocket.Failure) -> Answer {
        var answer: [UInt8] = []
        while answer.count < 1 << 16, !isWhole(answer) {
            let piece: [UInt8]
            do throws(ClientSocket.Failure) {
                piece = try stream.read()
            } catch {
                if status(answer) != nil { break }
                throw error
            }
            if piece.isEmpty { break }
            answer += piece
        }
        guard let status = status(answer) else {
            return .silence(answer.isEmpty ? "it closed the connection" : "what answers there does not speak HTTP")
        }
        return .status(status)
    }

    private static func status(_ answer: [UInt8]) -> Int? {
        guard answer.contains(0x0A) else { return nil }
        let words = answer.prefix { $0 != 0x0D && $0 != 0x0A }.split(separator: 0x20)
        guard words.count >= 2, words[0].starts(with: "HTTP/1.".utf8) else { return nil }
        return Int(String(decoding: words[1], as: UTF8.self))
    }

    /// Whether a server that does not close the connection has said all.
    private static func isWhole(_ answer: [UInt8]) -> Bool {
        let text = String(decoding: answer, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return false }
        let head = text[..<end.lowerBound].lowercased()
        guard let field = head.firstRange(of: "\r\ncontent-length:") else {
            return head.contains("chunked") && text.hasSuffix("0\r\n\r\n")
        }
        let length = head[field.upperBound...].prefix { $0 != "\r\n" }.trimmingCharacters(in: .whitespaces)
        return Int(length).map { text[end.upperBound...].utf8.count >= $0 } ?? false
    }
}
