// SPDX-License-Identifier: Apache-2.0

import Foundation
import Observability
package import WireJSON

/// Asks a program whether it is well. Blocking sockets: this is all the HTTP the tool needs.
package enum HealthProbe {
    /// What was answered.
    package struct Answer {
        package var status: Int
        /// What it says; has the list of checks, where the answer has one.
        package var report: JSONValue?
        /// What program of ours it is: a service, or `gateway`. `nil`: something else answers there.
        package var program: String? { report?["identitybus"]?.stringValue }
    }

    /// Why there is no answer, in words for people.
    package struct Silence: Error {
        package var words: String
    }

    /// What keeps the service from being ready, the first cause first; `nil` when `GET /readyz` answers 200 within a second.
    /// - Parameter address: as a child reports it, `http://host:port`.
    package static func problem(_ address: String?) -> String? {
        guard let address, let answer = try? ask(address, "/readyz", within: 1), answer.program != nil else {
            return "it does not answer at /readyz"
        }
        if answer.status == 200 { return nil }
        let failing = failing(answer)
        let first = failing.first { $0.because.isEmpty } ?? failing.first
        return first.map { "\($0.name): \($0.detail)" } ?? "not ready"
    }

    /// A check of the list that fails.
    package struct Failing {
        package var name: String
        package var detail: String
        /// Since when, as it stands in the list.
        package var since: String?
        /// The failing checks that it is a consequence of.
        package var because: [String]
    }

    package static func failing(_ answer: Answer) -> [Failing] {
        (answer.report?["checks"]?.arrayValue ?? []).compactMap { check in
            guard check["ok"]?.boolValue == false, let name = check["name"]?.stringValue else { return nil }
            return Failing(
                name: name, detail: check["detail"]?.stringValue ?? "not ready", since: check["since"]?.stringValue,
                because: (check["because"]?.arrayValue ?? []).compactMap(\.stringValue))
        }
    }

    /// - Parameters:
    ///   - address: `http://host:port`.
    ///   - seconds: how long it may take.
    package static func ask(_ address: String, _ path: String, within seconds: Int) throws(Silence) -> Answer {
        guard let (host, port) = place(address) else {
            throw Silence(words: "it is not an address such as http://127.0.0.1:8080")
        }
        var answer: [UInt8] = []
        do throws(ClientSocket.Failure) {
            let socket = try ClientSocket(to: host, port, within: .seconds(seconds))
            try socket.write(Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8))
            while answer.count < 1 << 18 {
                let piece = try socket.read()
                if piece.isEmpty { break }
                answer += piece
            }
        } catch {
            // What has come may be all of it.
            if answer.isEmpty { throw Silence(words: error.words) }
        }
        return try read(String(decoding: answer, as: UTF8.self))
    }

    /// Whether something can be asked there: health servers speak HTTP without TLS.
    package static func isAddress(_ text: String) -> Bool { place(text) != nil }

    private static func place(_ address: String) -> (host: String, port: Int)? {
        guard let url = URL(string: address), url.scheme == "http", let host = url.host(), !host.isEmpty else {
            return nil
        }
        return (host.trimmingCharacters(in: ["[", "]"]), url.port ?? 80)
    }

    private static func read(_ text: String) throws(Silence) -> Answer {
        let line = text.prefix { $0 != "\r\n" }.split(separator: " ")
        guard line.count >= 2, line[0].hasPrefix("HTTP/1."), let status = Int(line[1]) else {
            throw Silence(words: "what answers there does not speak HTTP")
        }
        let body = text.firstRange(of: "\r\n\r\n").map { text[$0.upperBound...] } ?? ""
        return Answer(status: status, report: try? JSONValue(parsing: Array(body.utf8)))
    }
}
