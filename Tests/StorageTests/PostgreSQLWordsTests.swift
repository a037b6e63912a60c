// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Storage

@Suite struct PostgreSQLWordsTests {
    /// What libpq says of one address; its advice follows in a line of its own.
    private static func at(_ host: String, _ port: Int, _ cause: String) -> String {
        """
        connection to server at \(host), port \(port) failed: \(cause)
        \tIs the server running on that host and accepting TCP/IP connections?

        """
    }

    private static let socket = """
        connection to server on socket "/run/.s.PGSQL.1" failed: No such file or directory
        \tIs the server running locally and accepting connections on that socket?

        """
    private static let nowhere = "could not translate host name \"c\" to address: Name or service not known\n"
    private static let lost = """
        server closed the connection unexpectedly
        \tThis probably means the server terminated abnormally
        \tbefore or while processing the request.

        """
    private static let password = "password authentication failed for user \"u\""

    private static func entry(_ encryption: String) -> String {
        "no pg_hba.conf entry for host \"::1\", user \"u\", database \"d\", \(encryption)"
    }

    private static let oneHost: [(String, String)] = [
        (at("\"127.0.0.1\"", 22078, "Connection refused"), "connection refused"),
        (at("\"db\" (10.0.0.1)", 5432, "Connection refused"), "connection refused"),
        (
            at("\"db\" (::1)", 1, "Connection refused") + at("\"db\" (127.0.0.1)", 1, "No route to host"),
            "connection refused; no route to host"
        ),
        (at("\"h\"", 1, "FATAL:  \(password)") + at("\"h\"", 1, "FATAL:  \(password)"), password),
        (at("\"h\"", 1, "FATAL:  role \"x\" does not exist"), "role \"x\" does not exist"),
        // Over TLS and then without, or the other way round.
        (at("\"h\"", 1, "FATAL:  \(password)") + at("\"h\"", 1, "FATAL:  \(entry("no encryption"))"), password),
        (at("\"h\"", 1, "FATAL:  \(entry("no encryption"))") + at("\"h\"", 1, "FATAL:  \(password)"), password),
        (
            at("\"h\"", 1, "FATAL:  \(entry("SSL encryption"))") + at("\"h\"", 1, "FATAL:  \(entry("no encryption"))"),
            entry("SSL encryption")
        ),
        (at("\"h\"", 1, "FATAL:  \(entry("no encryption"))"), entry("no encryption")),
        (at("\"h\"", 1, "FATAL:  no entry\nDETAIL:  a\nHINT:  b"), "no entry"),
        (at("\"h\"", 1, "timeout expired"), "no answer"),
        (at("\"h\"", 1, "session is read-only"), "takes no writes (read-only)"),
        (at("\"h\"", 1, "SSL error: x"), "SSL error: x"),
        (at("\"h\"", 1, lost), "server closed the connection unexpectedly"),
        (socket, "no such file or directory"),
        (nowhere, "name or service not known"),
    ]
    private static let withoutHost: [(String, String)] = [
        ("", ""), ("timeout expired\n", "no answer"), (lost, "server closed the connection unexpectedly"),
        ("FATAL:  terminating connection\n" + lost, "terminating connection"),
    ]
    private static let severalHosts: [(String, String)] = [
        (at("\"a\"", 1, "Connection refused") + at("\"b\"", 2, "Connection refused"), "connection refused"),
        (
            at("\"a\" (10.0.0.1)", 1, "Connection refused") + at("\"::1\"", 2, "session is read-only"),
            "a:1: connection refused; [::1]:2: takes no writes (read-only)"
        ),
        (
            at("\"a\"", 1, "Connection refused") + at("\"b\"", 1, "Connection refused") + nowhere + socket,
            "a:1, b:1: connection refused; c: name or service not known; /run/.s.PGSQL.1: no such file or directory"
        ),
    ]

    @Test(arguments: oneHost + withoutHost + severalHosts)
    func textsOfLibpq(_ text: String, _ cause: String) {
        #expect(PostgreSQLWords.cause(of: text) == cause)
    }

    /// The server repeats names: a URL whose question mark is another letter has the password in one.
    @Test(arguments: [
        ("database \"x&password=hunter2\" does not exist", "database \"x&password=***\" does not exist"),
        ("database \"x password=hunter2&a=b\" does not exist", "database \"x password=***&a=b\" does not exist"),
        ("database \"x\" does not exist", "database \"x\" does not exist"),
    ])
    func noPasswordIsRepeated(said: String, told: String) throws {
        let settings = try PostgreSQLSettings(
            url: "postgresql://u@h/x", schema: "s", statementTimeout: .seconds(1), idleTransactionTimeout: .seconds(1),
            isOfService: true)
        #expect(settings.withoutPassword(said) == told)
    }
}
