// SPDX-License-Identifier: Apache-2.0

/// The upper bounds of a histogram, ascending and finite, with their exposed text computed once per family.
/// The `+Inf` bucket is implied.
struct HistogramBuckets: Sendable {
    let bounds: [Double]
    /// `le="0.1"` and so on, one longer than `bounds`: the last is `le="+Inf"`.
    let labels: [String]

    /// Takes bounds in any order; repeated and non-finite ones are left out.
    init(_ raw: [Double]) {
        bounds = Set(raw.filter(\.isFinite)).sorted()
        labels = (bounds + [.infinity]).map { "le=\"\(MetricText.number($0))\"" }
    }

    /// The index of the first bucket that holds `value`; a bound includes the value that equals it.
    func index(of value: Double) -> Int {
        // A dozen bounds fit in two cache lines, so a scan beats a binary search.
        bounds.firstIndex { value <= $0 } ?? bounds.count
    }
}
