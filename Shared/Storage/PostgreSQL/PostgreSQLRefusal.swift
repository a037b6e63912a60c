// SPDX-License-Identifier: Apache-2.0

import CLibpq
import Contracts
import Glibc

extension PostgreSQLDatabase {
    /// The `PG*` variables that libpq reads.
    public static let variables: [String] = {
        // These say where files are, or are told to the server, and are no parameters of a connection.
        var names = [
            "PGDATESTYLE", "PGTZ", "PGGEQO", "PGLOCALEDIR", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE", "PGSYSCONFDIR",
        ]
        guard let defaults = PQconndefaults() else { return names }
        defer { PQconninfoFree(defaults) }
        var option = defaults
        while option.pointee.keyword != nil {
            if let name = option.pointee.envvar { names.append(String(cString: name)) }
            option += 1
        }
        return names
    }()

    /// What is wrong with the URL, or with the `PG*` variables that say what it leaves open, before anybody is asked: what libpq
    /// refuses, and files that cannot be read, without some of which libpq would go on as if they had not been named.
    ///
    /// - Returns: the variable, `nil` for the URL, and what is wrong, in words that go behind it.
    public static func refusal(of url: String) -> (variable: String?, words: String)? {
        if let refusal = refusalByLibpq(of: url) { return refusal }
        let given = options(of: url)
        for (option, variable) in files {
            guard let path = parameter(option, variable, given), !path.isEmpty,
                // The authorities of the machine, and a key in an engine.
                path != "system", !path.contains(":"), let words = TextFile.problem(of: path)
            else { continue }
            return given[option] == nil ? (variable, words) : (nil, "has \(option), whose file \(words)")
        }
        return nil
    }

    private static let files = [
        ("sslrootcert", "PGSSLROOTCERT"), ("sslcert", "PGSSLCERT"), ("sslkey", "PGSSLKEY"), ("sslcrl", "PGSSLCRL"),
        ("passfile", "PGPASSFILE"),
    ]

    private static func refusalByLibpq(of url: String) -> (variable: String?, words: String)? {
        // A place that is there: only the beginning of the connection is looked at.
        let keywords = [("dbname", url), ("host", "localhost"), ("hostaddr", "127.0.0.1"), ("port", "1")]
        var names: [UnsafePointer<CChar>?] = keywords.map { UnsafePointer(strdup($0.0)) } + [nil]
        var values: [UnsafePointer<CChar>?] = keywords.map { UnsafePointer(strdup($0.1)) } + [nil]
        defer { for pointer in names + values { free(UnsafeMutablePointer(mutating: pointer)) } }
        guard let handle = PQconnectStartParams(&names, &values, 1) else { return nil }
        defer { PQfinish(handle) }
        guard PQstatus(handle) == CONNECTION_BAD, let text = PQerrorMessage(handle) else { return nil }
        let words = String(cString: text).split(whereSeparator: \.isNewline).joined(separator: " ")
        // The words of a connection that was begun.
        if words.hasPrefix("connection to server") || words.hasPrefix("could not") { return nil }
        return (variable(refusedWith: words, url), "is refused by libpq: \(words)")
    }

    /// The variable whose parameter libpq's words name; `nil` where none is set that the URL does not say itself.
    private static func variable(refusedWith words: String, _ url: String) -> String? {
        guard let defaults = PQconndefaults() else { return nil }
        defer { PQconninfoFree(defaults) }
        let given = options(of: url)
        var best: (variable: String, keyword: String)?
        var option = defaults
        while let keyword = option.pointee.keyword {
            let (name, variable) = (String(cString: keyword), option.pointee.envvar.map { String(cString: $0) })
            option += 1
            guard let variable, given[name] == nil, let value = getenv(variable), value.pointee != 0,
                words.contains(name), name.count > best?.keyword.count ?? 0
            else { continue }
            best = (variable, name)
        }
        return best?.variable
    }
}
