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
            (#"no pg_hba.conf entry for host "::1", user "u", database "d", SSL encryption"#, .wrongCredentials),
            (#"password authentication failed for user "u""#, .wrongCredentials),
            (#"role "u" does not exist"#, .wrongCredentials), (#"database "d" does not exist"#, .noDatabase),
            ("takes no writes (read-only)", .readOnly), ("sorry, too many clients already", .full), ("what?", .other),
        ]
        for (words, cause) in cases {
            #expect(PostgreSQLCause(StorageError(kind: .unavailable, message: words)) == cause, "\(words)")
        }
        #expect(Set(cases.map(\.1)) == Set(PostgreSQLCause.allCases))
    }
}
