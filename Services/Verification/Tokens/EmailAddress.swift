// SPDX-License-Identifier: Apache-2.0

/// Whether a text has the form of an e-mail address, such as `my@email.com` (seed 004). A check of form only: quoted
/// local parts and addresses without a dot in the domain are not taken.
enum EmailAddress {
    static func isValid(_ text: String) -> Bool {
        let scalars = Array(text.unicodeScalars)
        guard scalars.count <= 320, let at = scalars.lastIndex(of: "@") else { return false }
        let local = scalars[..<at]
        let labels = scalars[(at + 1)...].split(separator: ".", omittingEmptySubsequences: false)
        return (1...64).contains(local.count) && local.allSatisfy(isLocal) && labels.count >= 2
            && labels.allSatisfy { label in
                (1...63).contains(label.count) && label.first != "-" && label.last != "-" && label.allSatisfy(isDomain)
            }
    }

    private static func isLocal(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return scalar.value > 0x20 && scalar.value < 0x7F && !#"@"(),:;<>[\]"#.unicodeScalars.contains(scalar)
        }
        return isLetterElsewhere(scalar)
    }

    private static func isDomain(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar == "-" || scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) }
        return isLetterElsewhere(scalar)
    }

    /// Beyond ASCII all that is neither white space nor a control character.
    private static func isLetterElsewhere(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value > 0x9F && !scalar.properties.isWhitespace
    }
}
