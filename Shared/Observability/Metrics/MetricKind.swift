// SPDX-License-Identifier: Apache-2.0

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
