// SPDX-License-Identifier: Apache-2.0

import CLibpq

/// What libpq makes of a URL. It would find some of the mistakes only when it connects, and its words quote the password.
struct PostgreSQLURL {
    /// What the URL says, by libpq's names.
    let options: [String: String]

    /// - Throws: `invalid`, with what is wrong, in words that go behind "the URL", and without anything that may be a part of
    ///   the password.
    init(_ url: String) throws(StorageError) {
        guard url.hasPrefix("postgres://") || url.hasPrefix("postgresql://") else {
            throw .invalid("does not start with postgresql://")
        }
        if Self.hasStrayAt(url) {
            throw .invalid("has an @ or a / that belongs to a user name or a password: they are written %40 and %2F")
        }
        var words: UnsafeMutablePointer<CChar>?
        guard let parsed = PQconninfoParse(url, &words) else {
            defer { PQfreemem(words) }
            throw .invalid(Self.flaw(of: url, words.map { String(cString: $0) } ?? ""))
        }
        defer { PQconninfoFree(parsed) }
        options = Self.values(parsed)
        if let flaw = flawOfPorts ?? flawOfWords ?? flawOfNumbers { throw .invalid(flaw) }
    }

    /// Whether libpq would take a part of a password for a host, a database or a parameter, and tell it to everybody. For
    /// libpq a user ends with the first @, unless a / comes before it; there is to be no other one.
    private static func hasStrayAt(_ url: String) -> Bool {
        var place = url.drop { $0 != "/" }.dropFirst(2)
        if let end = place.firstIndex(where: { $0 == "@" || $0 == "/" }), place[end] == "@" {
            place = place[place.index(after: end)...]
        }
        return place.contains("@") || place.prefix { $0 != "/" }.contains("%40")
    }

    /// A list of hosts or ports; an empty one is libpq's default.
    func list(_ name: String) -> [Substring]? {
        options[name]?.split(separator: ",", omittingEmptySubsequences: false)
    }

    private var flawOfPorts: String? {
        guard let ports = list("port") else { return nil }
        guard ports.allSatisfy({ $0.isEmpty || (1...65_535).contains(Int($0) ?? 0) }) else {
            return "has a port that is no number from 1 to 65535 (in a password, / is written as %2F)"
        }
        let hosts = (list("hostaddr") ?? list("host"))?.count ?? 1
        return ports.count == 1 || ports.count == hosts ? nil : "has \(ports.count) ports for \(hosts) hosts"
    }

    private var flawOfWords: String? {
        for (name, words) in Self.words {
            guard let word = options[name], !words.contains(word) else { continue }
            return "has a value of \(name) that is not one of \(words.joined(separator: ", "))"
        }
        return nil
    }

    private var flawOfNumbers: String? {
        for name in Self.numbers {
            guard let number = options[name], !number.isEmpty, Int32(number) == nil else { continue }
            return "has a value of \(name) that is no whole number"
        }
        return nil
    }

    private static let words = [
        ("sslmode", ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]),
        ("target_session_attrs", ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"]),
        ("channel_binding", ["disable", "prefer", "require"]), ("gssencmode", ["disable", "prefer", "require"]),
    ]
    private static let numbers = [
        "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout",
    ]

    private static func flaw(of url: String, _ words: String) -> String {
        if words.contains("percent-encoded") {
            return "has a % that no two hexadecimal digits follow, or %00 (in a password, % is written as %25)"
        }
        let isParameter = words.contains("query parameter")
        guard isParameter else { return "cannot be parsed; expected postgresql://user@host:port/database" }
        // A ? in a password would look like the beginning of the parameters.
        let query = url.split(separator: "?", maxSplits: 1).last ?? ""
        let name = words.firstMatch(of: /query parameter: "([a-z_]+)"/)?.1
        guard let name, !query.contains("@"), !query.contains("password=") else {
            return "has a parameter that is not known or has no value"
        }
        return "has a parameter that \(words.contains("missing") ? "has no value" : "is not known"): \(name)"
    }

    private static func values(_ options: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
        var (option, values) = (options, [String: String]())
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        return values
    }
}
