// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc

/// A connection to a server that blocks, for programs that ask now and then and have a thread for it. Closed with its last
/// reference.
package final class ClientSocket: Sendable {
    /// Why there is no connection, or no answer, in words for people.
    package struct Failure: Error, Sendable {
        package var words: String

        package init(words: String) { self.words = words }
    }

    private let descriptor: Int32
    private let deadline: ContinuousClock.Instant

    deinit { close(descriptor) }

    /// - Parameter limit: for everything that is done with it. The look-up of the name has limits of its own.
    package init(to host: String, _ port: Int, within limit: Duration) throws(Failure) {
        deadline = .now + limit
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, "\(port)", &hints, &found)
        guard result == 0, let first = found else {
            throw Failure(words: String(cString: gai_strerror(result)).lowercased())
        }
        defer { freeaddrinfo(first) }
        var cause = "no address"
        var next: UnsafeMutablePointer<addrinfo>? = first
        while let address = next {
            next = address.pointee.ai_next
            let kind = address.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue)
            let descriptor = socket(address.pointee.ai_family, kind, 0)
            Self.limit(descriptor, until: deadline)
            if connect(descriptor, address.pointee.ai_addr, address.pointee.ai_addrlen) == 0 {
                self.descriptor = descriptor
                return
            }
            cause = Self.words(errno)
            close(descriptor)
        }
        throw Failure(words: cause)
    }

    package func write(_ bytes: [UInt8]) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try wait()
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Failure(words: Self.words(errno)) }
            rest = rest.dropFirst(count)
        }
    }

    /// - Returns: what has come; nothing at the end.
    package func read() throws(Failure) -> [UInt8] {
        try wait()
        var piece = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &piece, piece.count, 0)
        guard count >= 0 else { throw Failure(words: Self.words(errno)) }
        return Array(piece[..<count])
    }

    /// Sees to it that what is done next does not last for longer than it may.
    private func wait() throws(Failure) {
        guard deadline > .now else { throw Failure(words: Self.words(EAGAIN)) }
        Self.limit(descriptor, until: deadline)
    }

    private static func limit(_ descriptor: Int32, until deadline: ContinuousClock.Instant) {
        // 0 would be no limit.
        let left = max(1, (deadline - .now).inMilliseconds)
        var limit = timeval(tv_sec: Int(left / 1000), tv_usec: Int(left % 1000) * 1000)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// A time limit of a socket ends as if it could be tried again.
    private static func words(_ number: Int32) -> String {
        number == EAGAIN || number == EINPROGRESS ? "timed out" : String(cString: strerror(number)).lowercased()
    }
}
