// SPDX-License-Identifier: Apache-2.0

extension Unicode.Scalar {
    /// Whether it shows: white space, control characters, what formats others (zero width space, byte order mark, tags,
    /// annotations), code points without a character and blank letters look like nothing.
    public var isVisible: Bool {
        guard !isASCII else { return value > 0x20 && value != 0x7F }
        guard !properties.isDefaultIgnorableCodePoint else { return false }
        switch properties.generalCategory {
        case .spaceSeparator, .lineSeparator, .paragraphSeparator, .control, .format, .surrogate, .unassigned:
            return false
        default: return !Self.blanks.contains(value)
        }
    }

    /// Whether it shows by itself: a mark shows on what it stands behind.
    public var isVisibleAlone: Bool {
        guard !isASCII else { return isVisible }
        switch properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return false
        default: return isVisible
        }
    }

    /// No property tells these: the empty Braille pattern, the blanks of Egyptian hieroglyphs, the null notehead, and what
    /// stands for an object or for what could not be read.
    private static let blanks: Set<UInt32> = [0x2800, 0x13441, 0x13442, 0x1D159, 0xFFFC, 0xFFFD]
}
