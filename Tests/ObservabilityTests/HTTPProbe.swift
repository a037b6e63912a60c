// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc

/// A raw HTTP/1.1 client that knows nothing about the server under test.
enum HTTPProbe {
    struct Reply: Sendable {
        let status: String
        let headers: String
        let body: String
    }

    /// Sends one request with `Connection: close` and reads to the end. Blocking work runs on a Dispatch thread.
    static func send(_ path: String, method: String = "GET", port: Int) async -> Reply? {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: exchange(method, path, port)) }
        }
    }

    /// A connected socket, or nil when nobody listens.
    static func connect(port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if result == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    /// A connection that asks so many times, and never reads.
    /// - Parameter takesLittle: its kernel has no room either.
    static func askWithoutReading(_ path: String, times: Int, port: Int, takesLittle: Bool = true) -> Int32? {
        guard let descriptor = connect(port: port) else { return nil }
        if takesLittle {
            var size: Int32 = 2304
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        let one = Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        let all = Array(repeating: one, count: times).flatMap { $0 }
        _ = Glibc.send(descriptor, all, all.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        return descriptor
    }

    private static func exchange(_ method: String, _ path: String, _ port: Int) -> Reply? {
        guard let descriptor = connect(port: port) else { return nil }
        defer { close(descriptor) }
        let request = Array("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        guard write(descriptor, request, request.count) == request.count else { return nil }
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            guard count > 0 else { break }
            content += chunk[..<count]
        }
        // Bytes, not Characters: "\r\n" is a single Character.
        let text = String(decoding: content, as: UTF8.self).replacing("\r\n", with: "\n")
        guard let split = text.firstRange(of: "\n\n") else { return nil }
        let head = text[..<split.lowerBound]
        let status = head.prefix { $0 != "\n" }.split(separator: " ").dropFirst().first
        return Reply(
            status: status.map(String.init) ?? "", headers: head.lowercased(), body: String(text[split.upperBound...]))
    }
}
