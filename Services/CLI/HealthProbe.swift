// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Asks a service on this machine whether it is ready. Blocking sockets: this is all the HTTP the tool needs.
enum HealthProbe {
    /// Whether `GET /readyz` answers 200 within a second.
    /// - Parameter address: as a child reports it, `http://host:port` with a numeric host.
    static func isReady(_ address: String?) -> Bool {
        guard let address, let descriptor = connection(to: address) else { return false }
        defer { close(descriptor) }
        let request = Array("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        guard send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            return false
        }
        var answer = [UInt8](repeating: 0, count: 64)
        let count = recv(descriptor, &answer, answer.count, 0)
        return count > 12 && String(decoding: answer[..<count], as: UTF8.self).hasPrefix("HTTP/1.1 200")
    }

    private static func connection(to address: String) -> Int32? {
        guard let colon = address.lastIndex(of: ":"), let slash = address[..<colon].lastIndex(of: "/") else {
            return nil
        }
        let host = address[address.index(after: slash)..<colon].trimmingCharacters(in: ["[", "]"])
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(address[colon...].dropFirst()), &hints, &found) == 0, let found else {
            return nil
        }
        defer { freeaddrinfo(found) }
        let descriptor = socket(found.pointee.ai_family, found.pointee.ai_socktype, 0)
        var second = timeval(tv_sec: 1, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &second, socklen_t(MemoryLayout<timeval>.size))
        }
        guard connect(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}
