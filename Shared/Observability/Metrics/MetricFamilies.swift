// SPDX-License-Identifier: Apache-2.0

/// Every family of a registry, by exposed name. A plain value without a lock; the registry guards it.
///
/// Invariants: a name has one kind; no two families put the same sample name into the exposition; no family has more
/// than `limit` series; a family without series does not exist.
struct MetricFamilies: Sendable {
    private(set) var byName: [String: MetricFamily] = [:]
    /// Every sample name in use, see `MetricKind.sampleNames`.
    private var claimed: Set<String>
    private let limit: Int

    /// `reserved` names are never given to a family.
    init(limit: Int, reserved: [String]) {
        self.limit = limit
        claimed = Set(reserved)
    }

    /// The series for this name and these labels, made on first use; nil when the name belongs to something else or
    /// the family is full. `buckets` and `make` are only called for what does not exist yet.
    mutating func series(
        _ name: String, kind: MetricKind, labels: LabelSet, buckets: () -> HistogramBuckets?,
        make: (HistogramBuckets?) -> any MetricSeries
    ) -> (any MetricSeries)? {
        if let family = byName[name] {
            guard family.kind == kind else { return nil }
            if let existing = family.series[labels] { return existing }
            guard family.series.count < limit else { return nil }
            let created = make(family.buckets)
            byName[name]?.series[labels] = created
            return created
        }
        let sampleNames = kind.sampleNames(of: name)
        guard limit > 0, claimed.isDisjoint(with: sampleNames) else { return nil }
        claimed.formUnion(sampleNames)
        let familyBuckets = buckets()
        let created = make(familyBuckets)
        byName[name] = MetricFamily(kind: kind, buckets: familyBuckets, series: [labels: created])
        return created
    }

    /// Removes this very series; one that is not held, or has been replaced, changes nothing.
    mutating func remove(_ series: any MetricSeries) {
        guard let family = byName[series.family], family.series[series.labels] === series else { return }
        byName[series.family]?.series[series.labels] = nil
        guard family.series.count == 1 else { return }
        byName[series.family] = nil
        claimed.subtract(family.kind.sampleNames(of: series.family))
    }
}
