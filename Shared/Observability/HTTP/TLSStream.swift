// SPDX-License-Identifier: Apache-2.0

import CLibssl
import Glibc

/// Bytes to a server and from it, for somebody who has a thread for it.
package protocol ByteStream {
    func write(_ bytes: [UInt8]) throws(ClientSocket.Failure)
    /// - Returns: what has come; nothing at the end.
    func read() throws(ClientSocket.Failure) -> [UInt8]
}

extension ClientSocket: ByteStream {}

/// TLS over a ``ClientSocket``, within its time limit. Whom it speaks to has a certificate for the host's name or address.
final class TLSStream: ByteStream {
    private let socket: ClientSocket
    private let session: OpaquePointer
    private let (input, output): (OpaquePointer, OpaquePointer)

    deinit { SSL_free(session) }

    /// Shakes hands.
    /// - Parameter authorities: a PEM file of those that are trusted; `nil` for the system's.
    init(over socket: ClientSocket, host: String, authorities: String?) throws(ClientSocket.Failure) {
        let context = try Self.context(authorities)
        defer { SSL_CTX_free(context) }
        guard let session = SSL_new(context), let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
            throw ClientSocket.Failure(words: "there is no memory for TLS")
        }
        // They end with the session.
        SSL_set_bio(session, input, output)
        SSL_set_connect_state(session)
        (self.socket, self.session, self.input, self.output) = (socket, session, input, output)
        let isNamed =
            Self.isAddress(host)
            ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host) == 1
            : SSL_set1_host(session, host) == 1 && identitybus_tls_set_name(session, host) == 1
        guard isNamed else { throw ClientSocket.Failure(words: "its name cannot be asked for") }
        _ = try run { SSL_do_handshake(session) }
    }

    /// Whether the file has authorities that can be trusted.
    static func canTrust(_ authorities: String?) -> Bool {
        guard let context = try? context(authorities) else { return false }
        SSL_CTX_free(context)
        return true
    }

    private static func context(_ authorities: String?) throws(ClientSocket.Failure) -> OpaquePointer {
        guard let context = SSL_CTX_new(TLS_client_method()) else {
            throw ClientSocket.Failure(words: "there is no memory for TLS")
        }
        let trusts =
            if let authorities {
                SSL_CTX_load_verify_locations(context, authorities, nil) == 1
            } else {
                SSL_CTX_set_default_verify_paths(context) == 1
            }
        guard trusts, identitybus_tls_set_oldest(context) == 1 else {
            SSL_CTX_free(context)
            ERR_clear_error()
            throw ClientSocket.Failure(words: "the file of trusted authorities holds no certificate")
        }
        SSL_CTX_set_verify(context, Int32(identitybus_tls_verifies_peer), nil)
        return context
    }

    private static func isAddress(_ host: String) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1
    }

    func write(_ bytes: [UInt8]) throws(ClientSocket.Failure) {
        if bytes.isEmpty { return }
        // All is taken at once: what comes of it waits in memory.
        _ = try run { bytes.withUnsafeBytes { SSL_write(session, $0.baseAddress, Int32(clamping: $0.count)) } }
    }

    func read() throws(ClientSocket.Failure) -> [UInt8] {
        var piece = [UInt8](repeating: 0, count: 16_384)
        let count = try run { piece.withUnsafeMutableBytes { SSL_read(session, $0.baseAddress, Int32($0.count)) } }
        return Array(piece[..<max(0, count)])
    }

    /// Repeats a step until it is done, and carries what it has to say and wants to hear.
    /// - Returns: its result; 0 at the end.
    private func run(_ step: () -> Int32) throws(ClientSocket.Failure) -> Int {
        while true {
            ERR_clear_error()
            let result = step()
            let error = SSL_get_error(session, result)
            // It says also why it goes.
            try flush()
            if result > 0 { return Int(result) }
            switch error {
            case Int32(identitybus_tls_wants_read):
                let heard = try socket.read()
                if heard.isEmpty { return 0 }
                _ = heard.withUnsafeBytes { BIO_write(input, $0.baseAddress, Int32($0.count)) }
            case Int32(identitybus_tls_has_ended): return 0
            default: throw ClientSocket.Failure(words: problem)
            }
        }
    }

    private func flush() throws(ClientSocket.Failure) {
        var piece = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = piece.withUnsafeMutableBytes { BIO_read(output, $0.baseAddress, Int32($0.count)) }
            guard count > 0 else { return }
            try socket.write(Array(piece[..<Int(count)]))
        }
    }

    private var problem: String {
        let verified = SSL_get_verify_result(session)
        if verified != 0, let words = X509_verify_cert_error_string(verified) {
            return "its certificate is not trusted: \(String(cString: words))"
        }
        guard let words = ERR_reason_error_string(ERR_get_error()) else { return "TLS failed" }
        return "TLS failed: \(String(cString: words))"
    }
}
