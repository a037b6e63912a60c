// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import Runtime

/// The identifiers of a login, as they count: at least a user id or an e-mail.
public struct Identifiers: Sendable, Hashable {
    public var userID: String?
    public var email: String?
    /// Vouched for by nobody, and never used to find anybody.
    public var name: String?

    public init(userID: String? = nil, email: String? = nil, name: String? = nil) {
        self.userID = userID
        self.email = email
        self.name = name
    }
}

/// Who somebody says they are.
public enum Claimant: Sendable, Hashable {
    case anonymous(AnonymousReason)
    case user(Identifiers)

    /// Applies the vendor's rules (facts/linking-and-verification.md B1.1): what is empty after trimming is absent; an
    /// identifier that is not valid makes the login an anonymous one, also when the other would do.
    public init(
        userID: String?, email: String?, name: String? = nil, fullPrivacy: Bool, nobody: NobodyValues = .standard
    ) {
        let userID = userID.flatMap { $0.isBlank ? nil : $0 }
        let email = fullPrivacy ? nil : email.flatMap { $0.isBlank ? nil : $0 }
        if let problem = userID.flatMap({ Self.problem(ofUserID: $0, nobody) }) ?? email.flatMap(Self.problem(ofEmail:))
        {
            self = .anonymous(problem)
        } else if userID == nil, email == nil {
            self = .anonymous(fullPrivacy ? .fullPrivacyWithoutUserId : .noIdentifier)
        } else {
            let name = fullPrivacy ? nil : name.flatMap(Self.shortened)
            self = .user(Identifiers(userID: userID, email: email, name: name))
        }
    }

    static func problem(ofUserID text: String, _ nobody: NobodyValues) -> AnonymousReason? {
        if text.hasOuterWhiteSpace { return .userIdOuterWhiteSpace }
        if text.unicodeScalars.count > 750 { return .userIdTooLong }
        // Also what keeps `delimited` unambiguous: no user id has a line feed.
        if text.hasControlCharacter { return .userIdControlCharacter }
        return nobody.contains(text) ? .userIdNamesNobody : nil
    }

    private static func problem(ofEmail text: String) -> AnonymousReason? {
        if text.hasOuterWhiteSpace { return .userEmailOuterWhiteSpace }
        return EmailAddress.isValid(text) ? nil : .userEmailInvalid
    }

    /// At most 255 code points, no character torn apart, no control characters.
    private static func shortened(_ name: String) -> String? {
        var short = ""
        var length = 0
        for character in name where !String(character).hasControlCharacter {
            length += character.unicodeScalars.count
            guard length <= 255 else { break }
            short.append(character)
        }
        return short.isBlank ? nil : short
    }
}

extension String {
    /// Empty after trimming.
    var isBlank: Bool { unicodeScalars.allSatisfy(\.properties.isWhitespace) }

    var hasOuterWhiteSpace: Bool {
        unicodeScalars.first?.properties.isWhitespace == true || unicodeScalars.last?.properties.isWhitespace == true
    }

    var hasControlCharacter: Bool {
        unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
    }
}
