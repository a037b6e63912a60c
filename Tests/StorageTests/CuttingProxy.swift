// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// A network between a client and the server that can be made to fail at a chosen moment.
final class CuttingProxy: Sendable {
    enum Fault: Sendable {
        case none
        /// Hands this on to the server, waits for its answer, and then cuts the client off without telling it.
        case loseAnswerTo(String)
        /// Hands nothing on from this request of the client on, and keeps the connections open.
        case silentFrom(String)
        /// The client freezes in the middle of writing this: from then on nothing is handed on in either direction,
        /// until the fault is another one.
        case freezeBefore(String)
        /// The client freezes when it has written this, before it reads more.
        case freezeAfter(String)
        /// Accepts and cuts off.
        case refuse

        var freezes: Bool {
            switch self {
            case .freezeBefore, .freezeAfter: true
            default: false
            }
        }
    }

    let url: String
    private let listener: CInt
    private let target: sockaddr_in
    private let fault = Mutex(Fault.none)

    /// - Parameter serverURL: of a server on a loopback port.
    init(to serverURL: String) throws {
        var components = try Self.require(URLComponents(string: serverURL), "\(serverURL) is no URL")
        let port = try Self.require(components.port, "\(serverURL) has no port")
        target = Self.loopback(UInt16(port))
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard bound else { throw POSIXError(.EADDRNOTAVAIL) }
        components.port = Int(UInt16(bigEndian: address.sin_port))
        url = try Self.require(components.string, "no URL")
        self.listener = listener
        Thread.detachNewThread { [self] in acceptAll() }
    }

    func set(_ next: Fault) {
        fault.withLock { $0 = next }
    }

    func stop() {
        shutdown(listener, CInt(SHUT_RDWR))
        close(listener)
    }

    private func acceptAll() {
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else { return }
            if case .refuse = fault.withLock({ $0 }) {
                close(client)
                continue
            }
            Thread.detachNewThread { [self] in carry(client) }
        }
    }

    private func carry(_ client: CInt) {
        let server = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = target
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        var isLosing = false
        var isSilent = false
        var isFrozen = false
        copying: while true {
            while isFrozen {
                usleep(10_000)
                isFrozen = fault.withLock { $0.freezes }
            }
            var descriptors = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&descriptors, 2, 120_000) > 0 else { break }
            if descriptors[0].revents != 0 {
                guard var bytes = Self.read(client) else { break }
                switch fault.withLock({ $0 }) {
                case .loseAnswerTo(let text): isLosing = isLosing || Self.contains(bytes, text)
                case .silentFrom(let text): isSilent = isSilent || Self.contains(bytes, text)
                case .freezeBefore(let text):
                    if let start = Data(bytes).range(of: Data(text.utf8))?.lowerBound {
                        Self.write(server, Array(bytes[..<start]))
                        while fault.withLock({ $0.freezes }) { usleep(10_000) }
                        bytes.removeFirst(start)
                    }
                case .freezeAfter(let text): isFrozen = Self.contains(bytes, text)
                case .none, .refuse: break
                }
                if !isSilent { Self.write(server, bytes) }
            }
            if descriptors[1].revents != 0 {
                guard let bytes = Self.read(server), !isLosing else { break copying }
                Self.write(client, bytes)
            }
        }
        close(client)
        close(server)
    }

    private static func read(_ descriptor: CInt) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    private static func write(_ descriptor: CInt, _ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    private static func contains(_ bytes: [UInt8], _ text: String) -> Bool {
        Data(bytes).range(of: Data(text.utf8)) != nil
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    private static func require<T>(_ value: T?, _ complaint: String) throws -> T {
        guard let value else { throw StringError(description: complaint) }
        return value
    }

    private struct StringError: Error, CustomStringConvertible {
        let description: String
    }
}
