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

/// The metric types of the Prometheus text format that this registry produces. The raw value is the word that
/// stands in a `# TYPE` line.
enum MetricKind: String, Sendable {
    case counter
    case gauge
    case histogram

    /// Every sample name that a family of this kind puts into the exposition.
    ///
    /// Two families whose sample names overlap would make a scrape invalid as a whole, so the registry claims all
    /// of them at once.
    func sampleNames(of family: String) -> [String] {
        switch self {
        case .counter, .gauge: [family]
        case .histogram: [family, family + "_bucket", family + "_sum", family + "_count"]
        }
    }
}

/// Turns the free-form labels of swift-metrics into names that the Prometheus text format accepts.
///
/// Pure functions: the same input gives the same name on every thread and in every process.
enum MetricName {
    /// A metric name: letters, digits, `_` and `:`; everything else becomes `_`.
    static func metric(_ raw: String, suffix: String = "") -> String {
        let name = sanitised(raw, allowingColon: true)
        return name.hasSuffix(suffix) ? name : name + suffix
    }

    /// A label name: letters, digits and `_`; everything else becomes `_`.
    ///
    /// `le` belongs to histogram buckets and a leading `__` to Prometheus itself, so both are moved out of the way.
    static func label(_ raw: String) -> String {
        let name = sanitised(raw, allowingColon: false)
        return name == "le" || name.hasPrefix("__") ? "exported_" + name : name
    }

    private static func sanitised(_ raw: String, allowingColon: Bool) -> String {
        guard let first = raw.utf8.first else { return "_" }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(raw.utf8.count + 1)
        if isDigit(first) { bytes.append(underscore) }
        for scalar in raw.unicodeScalars {
            let byte = UInt8(exactly: scalar.value) ?? underscore
            let keep = isLetter(byte) || isDigit(byte) || (allowingColon && byte == colon)
            bytes.append(keep ? byte : underscore)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let underscore = UInt8(ascii: "_")
    private static let colon = UInt8(ascii: ":")

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(lower)
    }
}

/// The labels of one series, in the form in which they are exposed; also the identity of the series in its family.
///
/// The order in which a caller lists dimensions does not matter: names are sorted. When two names become equal after
/// sanitising, the later one wins. A label with an empty value is left out, because Prometheus treats it as absent
/// and would otherwise see the same series twice.
struct LabelSet: Hashable, Comparable, Sendable {
    /// `a="1",b="2"`, without braces; empty when there are no labels.
    let text: String

    init(_ dimensions: [(String, String)]) {
        guard !dimensions.isEmpty else {
            text = ""
            return
        }
        var values: [String: String] = [:]
        for (name, value) in dimensions { values[MetricName.label(name)] = value }
        text =
            values
            .filter { !$0.value.isEmpty }
            .sorted { $0.key < $1.key }
            .map { "\($0.key)=\"\(MetricText.escapedLabelValue($0.value))\"" }
            .joined(separator: ",")
    }

    /// The label part of a sample line, with braces where there is something to brace.
    func braced(adding extra: String = "") -> String {
        if text.isEmpty { return extra.isEmpty ? "" : "{\(extra)}" }
        return extra.isEmpty ? "{\(text)}" : "{\(text),\(extra)}"
    }

    static func < (left: LabelSet, right: LabelSet) -> Bool {
        left.text < right.text
    }
}
