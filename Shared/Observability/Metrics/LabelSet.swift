// SPDX-License-Identifier: Apache-2.0

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
