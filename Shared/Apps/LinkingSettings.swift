// SPDX-License-Identifier: Apache-2.0

public import Contracts

extension AppSettings {
    /// How installs are linked (docs/link.md).
    public struct Linking: Sendable {
        public var isEnabled: Bool
        /// External ids that are refused because an upstream bug sends them for many people.
        public var nobody: NobodyValues
        /// By how much the clocks of those who send commands may differ, in milliseconds (L46).
        public var clockTolerance: Int64
        /// How long an external id that was changed names nobody, in milliseconds (L66).
        public var hold: Int64

        public init(
            isEnabled: Bool = true, nobody: NobodyValues = .standard, clockTolerance: Int64 = 5000,
            hold: Int64 = 30 * 86_400_000
        ) {
            self.isEnabled = isEnabled
            self.nobody = nobody
            self.clockTolerance = clockTolerance
            self.hold = hold
        }

        /// Refuses external ids that cannot be one person's: outer white space, and values that name nobody (L3).
        public func check(externalID: ExternalID) throws(Rejection) {
            let scalars = externalID.text.unicodeScalars
            if scalars.first?.properties.isWhitespace == true || scalars.last?.properties.isWhitespace == true {
                throw Rejection(.invalidRequest, "data.externalId starts or ends with white space.")
            }
            if nobody.contains(externalID.text) {
                throw Rejection(.invalidRequest, "data.externalId is a value that names nobody.")
            }
        }
    }
}

/// Values that name nobody: what upstream bugs, and devices whose owner does not want to be known, send for many people.
/// Taken for an identity, one of them would make all these people one person (S49).
public struct NobodyValues: Sendable, Hashable {
    /// The default words without regard to ASCII case, an app's own to the letter: it may well mean one of two. They are
    /// compared byte by byte, as whatever names people.
    private let words: Set<IdentityValue>
    private let ignoresCase: Bool
    private let longestWord: Int
    /// What stands before the `@` of e-mail addresses that are nobody's, in small letters.
    public var emailWords = Self.defaultEmailWords

    /// The words for e-mail addresses, unless the app has its own list.
    public static let defaultEmailWords: Set<IdentityValue> = ["null", "noreply"]

    /// The words that are refused unless the app has its own list.
    public static let defaultWords: Set<IdentityValue> = [
        "null", "nil", "none", "(null)", "<null>", "undefined", "unknown", "anonymous", "guest", "0", "-1",
        "[object Object]", "NaN",
    ]

    /// With the default words.
    public static let standard = NobodyValues()

    /// All characters the same: with so many of them it is no one's id, but the mask of one.
    private static let maskLengths = 16...64

    private init() {
        self.init(Set(Self.defaultWords.map { IdentityValue($0.text.asciiLowercased) }), ignoresCase: true)
    }

    private init(_ words: Set<IdentityValue>, ignoresCase: Bool) {
        self.words = words
        self.ignoresCase = ignoresCase
        longestWord = words.reduce(0) { max($0, $1.text.utf8.count) }
    }

    /// S50.
    /// - Parameter words: in place of the default ones.
    public init(_ words: Set<IdentityValue>) {
        self.init(words, ignoresCase: false)
    }

    public func contains(_ identity: Identity) -> Bool {
        identity.type == .email ? contains(email: identity.value.text) : contains(identity.value.text)
    }

    /// Whether nobody has this e-mail address, by what stands before the `@` (S81).
    public func contains(email: String) -> Bool {
        guard !contains(email) else { return true }
        // Not of characters: a mark behind the `@` makes another one of it.
        guard let at = email.utf8.firstIndex(of: UInt8(ascii: "@")) else { return false }
        return Self.visible(of: email[..<at]).map { emailWords.contains(IdentityValue(String($0).asciiLowercased)) }
            ?? true
    }

    /// Whether the value is blank, one of the words, only dashes and zeros, or, as advertising ids without consent are,
    /// one character over and over. White space and what nobody sees around it do not count.
    public func contains(_ value: String) -> Bool {
        guard let bytes = Self.visible(of: value[...])?.utf8 else { return true }
        guard !Self.isMask(bytes) else { return true }
        guard bytes.count <= longestWord else { return false }
        let word = String(Substring(bytes))
        return words.contains(IdentityValue(ignoresCase ? word.asciiLowercased : word))
    }

    /// Without what nobody sees around it; `nil` when nothing is left.
    private static func visible(of text: Substring) -> Substring? {
        let scalars = text.unicodeScalars
        guard let start = scalars.firstIndex(where: { $0.isVisibleAlone }),
            let last = scalars.lastIndex(where: { $0.isVisible })
        else { return nil }
        return text[start..<scalars.index(after: last)]
    }

    private static func isMask(_ bytes: Substring.UTF8View) -> Bool {
        var first: UInt8?
        var count = 0
        for byte in bytes where byte != UInt8(ascii: "-") {
            let byte = byte.asciiLowercased
            guard byte == first ?? byte else { return false }
            first = byte
            count += 1
        }
        return first == nil || first == UInt8(ascii: "0") || maskLengths.contains(count)
    }
}

extension String {
    /// `A` to `Z` in lower case and nothing else: other scripts' case folding takes characters for equal that look
    /// alike (the Kelvin sign for `k`), which for an address is another person.
    public var asciiLowercased: String {
        guard utf8.contains(where: { $0 != $0.asciiLowercased }) else { return self }
        return String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var asciiLowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self + 0x20 : self
    }
}
