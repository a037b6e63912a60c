// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where an HTTP server is to listen, looked at before it does.
public enum ListenAddress {
    /// Why nobody can listen there, whatever the port, in words that follow the name of a setting; `nil` when one can. A
    /// name is looked up, which may block for as long as the resolver does.
    /// - Parameter host: an address or a name.
    public static func problem(of host: String) -> String? {
        var found: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, nil, nil, &found)
        guard status == 0, let address = found?.pointee else {
            return "\(host) cannot be listened on: \(String(cString: gai_strerror(status)).lowercased()); \(advice)"
        }
        defer { freeaddrinfo(found) }
        let socket = socket(address.ai_family, Int32(SOCK_STREAM.rawValue), 0)
        guard socket >= 0 else { return nil }
        defer { close(socket) }
        // With port 0 the kernel chooses one.
        if bind(socket, address.ai_addr, address.ai_addrlen) == 0 { return nil }
        return "\(host) cannot be listened on: \(String(cString: strerror(errno)).lowercased()); \(advice)"
    }

    private static let advice = "it must be an address of this machine, 127.0.0.1, 0.0.0.0 or ::"
}
