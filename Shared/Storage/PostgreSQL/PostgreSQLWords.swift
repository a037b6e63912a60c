// SPDX-License-Identifier: Apache-2.0

/// libpq's texts, made short: each is of a session, several lines long, and repeats what the reader knows.
enum PostgreSQLWords {
    /// The cause that a text of libpq tells: without where it was tried to connect, unless hosts have causes of their own,
    /// and without advice.
    static func cause(of text: String) -> String {
        var tries: [(place: String, cause: String)] = []
        // Advice and details are indented, or stand behind the first line without saying where they are of.
        for line in text.split(whereSeparator: \.isNewline) where line.first?.isWhitespace == false {
            let place = place(of: line)
            guard place != nil || tries.isEmpty else { continue }
            let cause = plain(place?.cause ?? line)
            if !tries.contains(where: { $0 == (place?.name ?? "", cause) }) { tries.append((place?.name ?? "", cause)) }
        }
        // With sslmode=prefer whoever is refused over TLS is refused without it too, and the other way round with allow:
        // that is no cause of its own.
        func isOfPlain(_ cause: String) -> Bool {
            cause.contains("pg_hba.conf") && cause.hasSuffix(", no encryption")
        }
        let refused = Set(tries.filter { !isOfPlain($0.cause) }.map(\.place))
        tries.removeAll { isOfPlain($0.cause) && refused.contains($0.place) }
        var causes: [String] = []
        for cause in tries.map(\.cause) where !causes.contains(cause) { causes.append(cause) }
        if causes.count == 1 || Set(tries.map(\.place)).count == 1 { return causes.joined(separator: "; ") }
        return causes.map { cause in
            let places = tries.filter { $0.cause == cause && !$0.place.isEmpty }.map(\.place)
            return (places.isEmpty ? [cause] : [places.joined(separator: ", "), cause]).joined(separator: ": ")
        }.joined(separator: "; ")
    }

    /// A host with its port, as people name it.
    static func address(_ host: some StringProtocol, _ port: some StringProtocol) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    private static func place(of line: Substring) -> (name: String, cause: Substring)? {
        if let match = line.wholeMatch(of: /connection to server at "([^"]*)"(?: \([^)]*\))?, port (\d+) failed: (.*)/)
        {
            return (address(match.1, match.2), match.3)
        }
        if let match = line.wholeMatch(of: /connection to server on socket "([^"]*)" failed: (.*)/) {
            return (String(match.1), match.2)
        }
        if let match = line.wholeMatch(of: /could not translate host name "([^"]*)" to address: (.*)/) {
            return (String(match.1), match.2)
        }
        return nil
    }

    private static func plain(_ cause: Substring) -> String {
        let cause = cause.trimmingPrefix(/(?:FATAL|ERROR|PANIC): +/)
        switch cause {
        case "timeout expired": return "no answer"
        case "session is read-only": return "takes no writes (read-only)"
        default: break
        }
        // "SSL" stays as it is.
        guard let second = cause.dropFirst().first, second.isLowercase else { return String(cause) }
        return cause.prefix(1).lowercased() + cause.dropFirst()
    }
}
