// SPDX-License-Identifier: Apache-2.0

/// All series of one exposed name. A plain value that the registry guards with its lock.
struct MetricFamily: Sendable {
    let kind: MetricKind
    /// Only for histograms; the first creator of a family decides for all of its series.
    let buckets: HistogramBuckets?
    var series: [LabelSet: any MetricSeries]
}
