// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A TCP socket of the loopback interface that blocks; closed with its last reference. One thread reads and writes at a
/// time, any may shut it down.
final class Socket: Sendable {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    private let descriptor: Int32

    private init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// On a port that the kernel chooses.
    /// - Throws: when there is none, or no descriptor.
    convenience init(listeningOn host: String) throws(Failure) {
        guard let descriptor = Self.make() else { throw Failure(description: Self.problem("no socket")) }
        self.init(descriptor)
        let isBound = Self.withAddress(host, 0) { bind(descriptor, $0, $1) } == 0
        guard isBound, listen(descriptor, 1024) == 0 else {
            throw Failure(description: Self.problem("no port of \(host) to listen on"))
        }
    }

    /// - Returns: `nil` when nobody listens there.
    convenience init?(connectingTo host: String, _ port: UInt16) {
        guard let descriptor = Self.make() else { return nil }
        self.init(descriptor)
        guard Self.withAddress(host, port, { connect(descriptor, $0, $1) }) == 0 else { return nil }
        Self.sendAtOnce(descriptor)
    }

    /// The one it is bound to; 0 when it is bound to none.
    var port: UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// - Returns: `nil` when it was shut down.
    func accept() -> Socket? {
        while true {
            let client = Glibc.accept(descriptor, nil, nil)
            if client >= 0 {
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                Self.sendAtOnce(client)
                return Socket(client)
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            // No descriptors at the moment: somebody will give one back.
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: usleep(10_000)
            default: return nil
            }
        }
    }

    /// Ends whatever waits for it.
    func shutDown() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Reads a length of four bytes and as many bytes as it says.
    /// - Returns: `nil` when the peer has gone, or says more than `limit`.
    func readFrame(atMost limit: Int) -> [UInt8]? {
        guard let head = read(4) else { return nil }
        let length = head.reduce(0) { $0 << 8 | Int($1) }
        return length <= limit ? read(length) : nil
    }

    /// - Returns: whether it was taken.
    func writeFrame(_ bytes: [UInt8]) -> Bool {
        var length = UInt32(bytes.count).bigEndian
        return withUnsafeBytes(of: &length) { head in bytes.withUnsafeBytes { write([head, $0]) } }
    }

    private func read(_ count: Int) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let got = recv(descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, 0)
                if got > 0 { filled += got } else if got == 0 || errno != EINTR { return }
            }
        }
        return bytes.count == count ? bytes : nil
    }

    /// In one go, so that a small frame is one packet.
    private func write(_ parts: [UnsafeRawBufferPointer]) -> Bool {
        var parts = parts.filter { !$0.isEmpty }
        while !parts.isEmpty {
            var vectors = parts.map { iovec(iov_base: .init(mutating: $0.baseAddress), iov_len: $0.count) }
            var sent = vectors.withUnsafeMutableBufferPointer { vectors in
                var message = msghdr()
                message.msg_iov = vectors.baseAddress
                message.msg_iovlen = vectors.count
                return sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL))
            }
            guard sent >= 0 || errno == EINTR else { return false }
            while sent > 0, let first = parts.first {
                let taken = min(sent, first.count)
                sent -= taken
                parts[0] = UnsafeRawBufferPointer(rebasing: first.dropFirst(taken))
                if parts[0].isEmpty { parts.removeFirst() }
            }
        }
        return true
    }

    private static func make() -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        return descriptor < 0 ? nil : descriptor
    }

    private static func sendAtOnce(_ descriptor: Int32) {
        var on: Int32 = 1
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func problem(_ what: String) -> String { "\(what) (errno \(errno))" }

    private static func withAddress(
        _ host: String, _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
