// SPDX-License-Identifier: Apache-2.0

import CLibpq
package import Contracts
import Glibc

/// The kind of reason why a connection to PostgreSQL cannot be made, by a stable name.
package enum PostgreSQLCause: String, Sendable, CaseIterable {
    case nameNotResolved = "name-not-resolved"
    case refused
    case unreachable
    case timedOut = "timed-out"
    case closed
    case notPostgreSQL = "not-postgresql"
    case tlsToPlain = "tls-to-plain"
    case wantsTLS = "wants-tls"
    case noAuthorities = "no-ca-file"
    case certificateRefused = "certificate-refused"
    case wrongHostName = "wrong-host-name"
    case clientCertificate = "client-certificate"
    case wrongCredentials = "wrong-credentials"
    case noRight = "no-right"
    case noDatabase = "no-database"
    case readOnly = "read-only"
    case full = "too-many-connections"
    case transactionPooler = "transaction-pooler"
    case parameter = "parameter-refused"
    case other

    /// Words of libpq and of the server, in lower case, and what they mean; the first that match count. With
    /// `sslmode=prefer` and `allow` there are two tries, with TLS and without: who is refused for another reason than that
    /// is refused for it.
    private static let marks: [(words: [String], cause: PostgreSQLCause)] = [
        ([StorageError.transactionPooler.message], .transactionPooler),
        (["does not match host name"], .wrongHostName),
        (["root certificate file"], .noAuthorities),
        (["certificate verify failed"], .certificateRefused),
        (["requires a valid client certificate"], .clientCertificate),
        (["certificate authentication failed"], .clientCertificate),
        (["alert", "certificate"], .clientCertificate),
        (["alert", "unknown ca"], .clientCertificate),
        (["alert", "handshake failure"], .clientCertificate),
        (["certificate file"], .clientCertificate),
        (["private key file"], .clientCertificate),
        (["does not support ssl"], .tlsToPlain),
        (["invalid response to ssl negotiation"], .notPostgreSQL),
        (["authentication failed"], .wrongCredentials),
        (["no password supplied"], .wrongCredentials),
        (["role \"", "does not exist"], .wrongCredentials),
        (["is not permitted to log in"], .noRight),
        (["permission denied for database"], .noRight),
        (["is not currently accepting connections"], .noRight),
        (["pg_hba.conf", "ssl encryption"], .noRight),
        (["database \"", "does not exist"], .noDatabase),
        (["takes no writes"], .readOnly),
        (["too many clients"], .full),
        (["too many connections"], .full),
        (["connection slots are reserved"], .full),
        (["pg_hba.conf", "no encryption"], .wantsTLS),
        (["pg_hba.conf"], .noRight),
        (["configuration parameter"], .parameter),
        (["value for parameter"], .parameter),
        (["channel binding"], .parameter),
        (["hot standby mode"], .parameter),
        (["session is not read-only"], .parameter),
        (["invalid ", " value: "], .parameter),
        (["definition of service"], .parameter),
        (["name or service not known"], .nameNotResolved),
        (["name resolution"], .nameNotResolved),
        (["no address associated"], .nameNotResolved),
        (["connection refused"], .refused),
        (["no route to host"], .unreachable),
        (["unreachable"], .unreachable),
        (["no such file"], .refused),
        (["no answer"], .timedOut),
        (["timed out"], .timedOut),
        (["expected authentication request"], .notPostgreSQL),
        (["closed the connection"], .closed),
        (["eof detected"], .closed),
        (["connection reset"], .closed),
    ]

    /// - Parameter failure: of a transaction.
    package init(_ failure: StorageError) {
        let text = failure.message.lowercased()
        self = Self.marks.first { $0.words.allSatisfy(text.contains) }?.cause ?? .other
    }
}

extension PostgreSQLDatabase {
    /// What the URL says itself; nothing when it cannot be read.
    static func options(of url: String) -> [String: String] { (try? PostgreSQLURL(url))?.options ?? [:] }

    /// What libpq takes for one of its parameters: what the URL says, else what the variable does.
    static func parameter(_ option: String, _ variable: String, _ options: [String: String]) -> String? {
        options[option] ?? getenv(variable).map { String(cString: $0) }
    }

    /// The `sslmode` that connections of this URL have.
    package static func encryption(of url: String) -> String {
        parameter("sslmode", "PGSSLMODE", options(of: url)) ?? "prefer"
    }

    /// The file of the authorities that its certificate is compared with.
    package static func authorities(of url: String) -> String? {
        parameter("sslrootcert", "PGSSLROOTCERT", options(of: url))
    }

    /// The file of the certificate that we show; `nil` where libpq shows none. It need not be there.
    /// - Parameter home: the folder of this user.
    package static func ownCertificate(of url: String, home: String) -> String? {
        let options = options(of: url)
        if parameter("sslcertmode", "PGSSLCERTMODE", options) == "disable" { return nil }
        return parameter("sslcert", "PGSSLCERT", options) ?? "\(home)/.postgresql/postgresql.crt"
    }

    /// The name of the database; empty for the default one.
    package static func name(of url: String) -> String { options(of: url)["dbname"] ?? "" }

    /// The certificate that the server shows. The connection ends before anybody signs in, so no password is sent.
    ///
    /// - Returns: `nil` when it shows none in time. Blocks.
    package static func certificate(of url: String, timeout: Duration) -> PeerCertificate? {
        // A file of authorities that is missing is one that nothing is compared with.
        let keywords = [
            ("dbname", url), ("sslmode", "require"), ("sslrootcert", "/nonexistent"), ("gssencmode", "disable"),
            ("password", "none"), ("target_session_attrs", "any"),
        ]
        var names: [UnsafePointer<CChar>?] = keywords.map { UnsafePointer(strdup($0.0)) } + [nil]
        var values: [UnsafePointer<CChar>?] = keywords.map { UnsafePointer(strdup($0.1)) } + [nil]
        defer { for pointer in names + values { free(UnsafeMutablePointer(mutating: pointer)) } }
        guard let handle = PQconnectStartParams(&names, &values, 1) else { return nil }
        defer { PQfinish(handle) }
        let end = ContinuousClock.now.advanced(by: timeout)
        var state = PGRES_POLLING_WRITING
        while state == PGRES_POLLING_WRITING || state == PGRES_POLLING_READING, PQstatus(handle) != CONNECTION_BAD {
            let events = Int16(state == PGRES_POLLING_WRITING ? POLLOUT : POLLIN)
            var descriptor = pollfd(fd: PQsocket(handle), events: events, revents: 0)
            let left = CInt(clamping: ContinuousClock.now.duration(to: end).inMilliseconds)
            guard left > 0, poll(&descriptor, 1, left) > 0 else { return nil }
            state = PQconnectPoll(handle)
            // It is said to be in use while the handshake still goes on.
            if PQsslInUse(handle) == 1, let shown = shown(handle) { return shown }
        }
        return nil
    }

    private static func shown(_ handle: OpaquePointer) -> PeerCertificate? {
        guard let session = PQsslStruct(handle, "OpenSSL"),
            let certificate = SSL_get1_peer_certificate(OpaquePointer(session))
        else { return nil }
        defer { X509_free(certificate) }
        let count = i2d_X509(certificate, nil)
        guard count > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(count))
        bytes.withUnsafeMutableBufferPointer { buffer in
            // It moves the pointer that it is given.
            var place = buffer.baseAddress
            _ = i2d_X509(certificate, &place)
        }
        return PeerCertificate(der: bytes)
    }
}
