// SPDX-License-Identifier: Apache-2.0

/// The lexical rules of the Prometheus text exposition format 0.0.4.
enum MetricText {
    /// A sample value. Whole numbers carry no fraction; the non-finite values have the spelling Prometheus parses.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        // Beyond 2^53 not every whole number is a Double, and the shortest form is the honest one.
        if value == value.rounded(.towardZero), value.magnitude < 9_007_199_254_740_992 {
            return String(Int64(value))
        }
        return value.description
    }

    /// Escapes what would end a label value early: backslash, quote and line feed.
    static func escapedLabelValue(_ value: String) -> String {
        escaped(value, quotes: true)
    }

    /// Escapes a HELP text, in which a quote has no meaning.
    static func escapedHelp(_ value: String) -> String {
        escaped(value, quotes: false)
    }

    /// The `# HELP` (when there is a text) and `# TYPE` lines of a family.
    static func header(name: String, kind: MetricKind, help: String?) -> String {
        let type = "# TYPE \(name) \(kind.rawValue)\n"
        guard let help else { return type }
        return "# HELP \(name) \(escapedHelp(help))\n" + type
    }

    private static func escaped(_ value: String, quotes: Bool) -> String {
        // Scalars, not characters: "\r\n" is one Character, and its line feed must not get through.
        var result = String.UnicodeScalarView()
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": result.append(contentsOf: "\\\\".unicodeScalars)
            case "\n": result.append(contentsOf: "\\n".unicodeScalars)
            case "\"" where quotes: result.append(contentsOf: "\\\"".unicodeScalars)
            default: result.append(scalar)
            }
        }
        return String(result)
    }
}
