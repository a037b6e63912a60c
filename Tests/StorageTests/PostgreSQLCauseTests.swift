// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Storage

/// Why a connection cannot be made, by libpq's words and the server's.
@Suite struct PostgreSQLCauseTests {
    @Test func wordsHaveTheirCause() {
        let cases: [(String, PostgreSQLCause)] = [
            ("name or service not known", .nameNotResolved), ("Temporary failure in name resolution", .nameNotResolved),
            ("connection refused", .refused), ("no answer", .timedOut), ("no route to host", .unreachable),
            ("server closed the connection unexpectedly", .closed),
            ("server does not support SSL, but SSL was required", .tlsToPlain),
            ("received invalid response to SSL negotiation: H", .notPostgreSQL),
            ("SSL error: certificate verify failed", .certificateRefused),
            (#"server certificate for "a" does not match host name "b""#, .wrongHostName),
            (#"root certificate file "/x" does not exist"#, .noAuthorities),
            (#"no pg_hba.conf entry for host "::1", user "u", database "d", no encryption"#, .wantsTLS),
            (#"no pg_hba.conf entry for host "::1", user "u", database "d", SSL encryption"#, .noRight),
            (#"database "d" is not currently accepting connections"#, .noRight),
            (#"permission denied for database "d""#, .noRight), (#"role "u" is not permitted to log in"#, .noRight),
            (#"pg_hba.conf rejects connection for host "::1", user "u", database "d", SSL encryption"#, .noRight),
            (#"password authentication failed for user "u""#, .wrongCredentials),
            (#"role "u" does not exist"#, .wrongCredentials), (#"database "d" does not exist"#, .noDatabase),
            // With sslmode=prefer: over TLS, and then without.
            (
                #"password authentication failed for user "u"; no pg_hba.conf entry for host "::1", user "u", "#
                    + #"database "d", no encryption"#, .wrongCredentials
            ),
            (
                #"no pg_hba.conf entry for host "::1", user "u", database "d", SSL encryption; no pg_hba.conf entry for "#
                    + #"host "::1", user "u", database "d", no encryption"#, .noRight
            ),
            (
                #"database "d" does not exist; no pg_hba.conf entry for host "::1", user "u", database "d", no encryption"#,
                .noDatabase
            ),
            (
                #"sorry, too many clients already; no pg_hba.conf entry for host "::1", user "u", database "d", "#
                    + "no encryption", .full
            ),
            (#"pg_hba.conf rejects connection for host "::1", user "u", database "d", no encryption"#, .wantsTLS),
            (
                #"connection requires a valid client certificate; no pg_hba.conf entry for host "::1", user "u", "#
                    + #"database "d", no encryption"#, .clientCertificate
            ),
            (#"certificate authentication failed for user "u""#, .clientCertificate),
            ("SSL error: tlsv1 alert unknown ca", .clientCertificate),
            ("SSL error: tlsv13 alert certificate required", .clientCertificate),
            ("SSL error: sslv3 alert bad certificate", .clientCertificate),
            ("SSL error: sslv3 alert handshake failure", .clientCertificate),
            (#"could not open certificate file "/x": No such file or directory"#, .clientCertificate),
            (#"private key file "/x" has group or world access; file must have permissions"#, .clientCertificate),
            (#"invalid value for parameter "TimeZone": "Nowhere/X""#, .parameter),
            (#"unrecognized configuration parameter "nix""#, .parameter),
            ("server is not in hot standby mode", .parameter),
            (#"invalid sslmode value: "foo""#, .parameter), (#"definition of service "foo" not found"#, .parameter),
            (StorageError.transactionPooler.message, .transactionPooler),
            ("takes no writes (read-only)", .readOnly), ("sorry, too many clients already", .full), ("what?", .other),
        ]
        for (words, cause) in cases {
            #expect(PostgreSQLCause(StorageError(kind: .unavailable, message: words)) == cause, "\(words)")
        }
        #expect(Set(cases.map(\.1)) == Set(PostgreSQLCause.allCases))
    }
}
