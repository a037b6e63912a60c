// SPDX-License-Identifier: Apache-2.0

/// The path of an endpoint: fixed words, and ids in braces.
///
/// Ids are percent-encoded, `{plain}` ones never are. A word has one spelling, so that rules of a proxy about paths mean
/// what we do; where clients write it in several ways, `|` stands between them, the usual one first.
struct PathTemplate: Sendable {
    enum Part: Sendable {
        case words([Substring])
        case id(isPlain: Bool)

        func isWord(_ text: Substring) -> Bool {
            if case .words(let words) = self { words.contains(text) } else { false }
        }

        /// The id that stands there; `nil` when it cannot be one.
        func id(_ text: Substring) -> String? {
            switch self {
            case .words: nil
            case .id(isPlain: true): text.contains("%") ? nil : String(text)
            case .id(isPlain: false): text.percentDecoded.flatMap { $0.isEmpty ? nil : $0 }
            }
        }
    }

    let parts: [Part]
    /// With the usual words, and ids' names: as docs/openapi.json, logs and metrics have it, which hold no ids.
    let text: String
    /// The names of its ids.
    let idNames: [String]
    /// The name of the last one, which is what a request is about.
    var idName: String? { idNames.last }

    init(_ template: String) {
        var parts: [Part] = []
        var text = ""
        var idNames: [String] = []
        for part in template.split(separator: "/") {
            if part.hasPrefix("{") {
                let words = part.dropFirst().dropLast().split(separator: ":")
                let name = words.first.map(String.init) ?? ""
                idNames.append(name)
                parts.append(.id(isPlain: words.last == "plain"))
                text += "/{\(name)}"
            } else {
                let words = part.split(separator: "|")
                parts.append(.words(words))
                text += "/\(words.first ?? "")"
            }
        }
        self.parts = parts
        self.text = text
        self.idNames = idNames
    }
}

/// What a request asks for.
struct Route: Sendable {
    let endpoint: Endpoint
    /// The last id in its path; empty where there is none.
    let id: String

    /// The API key that the path names.
    var apiKey: String? { endpoint.path.idName == "api_key" ? id : nil }

    /// What clients with a domain of their own put in front (F21); not part of what they sign.
    private static let prefixes: Set<Substring> = ["identity", "webevents", "nativeevents"]

    /// The path without such a prefix.
    static func signedPath(_ path: String) -> String {
        guard path.hasPrefix("/") else { return path }
        let first = path.dropFirst().prefix { $0 != "/" }
        return prefixes.contains(first) ? String(path.dropFirst(first.count + 1)) : path
    }

    /// - Parameters:
    ///   - path: as it was sent.
    ///   - door: where it was sent.
    ///   - others: what is behind it beside its own endpoints.
    /// - Returns: the endpoints with this path, one for each method; empty when there are none.
    static func at(_ path: String, _ door: Door = .api, and others: [Endpoint] = []) -> [Route] {
        var parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.removeFirst().isEmpty, parts.allSatisfy({ !$0.isEmpty }) else { return [] }
        let isPrefixed = parts.first.map(prefixes.contains) ?? false
        if isPrefixed { parts.removeFirst() }
        var found = (door.endpoints + others).filter { endpoint in
            endpoint.path.parts.count == parts.count && (!isPrefixed || endpoint.callers.mayTakePrefix)
        }
        var id = ""
        for (place, text) in parts.enumerated() {
            let words = found.filter { $0.path.parts[place].isWord(text) }
            // What is a word here is no id: nobody is called auth-code.
            guard words.isEmpty else {
                found = words
                continue
            }
            found = found.filter { $0.path.parts[place].id(text) != nil }
            id = found.first?.path.parts[place].id(text) ?? id
        }
        return found.map { Route(endpoint: $0, id: id) }
    }
}

/// The ports on which the gateway is called. What is behind the one is not behind the other.
enum Door: String, Sendable, CaseIterable {
    /// For apps and their backends.
    case api
    /// For those who help users: inside only.
    case admin

    var endpoints: [Endpoint] {
        switch self {
        case .api: Endpoint.all
        case .admin: Endpoint.admin
        }
    }
}

extension Substring {
    /// Foundation drops a byte order mark that stands first, which makes one id of two.
    /// - Returns: `nil` when a `%` does not begin an encoded byte, or the bytes are no UTF-8.
    var percentDecoded: String? {
        guard utf8.contains(UInt8(ascii: "%")) else { return String(self) }
        var bytes: [UInt8] = []
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(\.hexDigit), let low = rest.popFirst().flatMap(\.hexDigit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var hexDigit: UInt8? {
        Character(Unicode.Scalar(self)).hexDigitValue.flatMap { UInt8(exactly: $0) }
    }
}
