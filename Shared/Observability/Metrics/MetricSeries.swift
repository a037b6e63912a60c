// SPDX-License-Identifier: Apache-2.0

/// One labelled series of a family. Updates and `write` may run on any thread at the same time; an update is visible
/// to every `write` that starts after it returned.
protocol MetricSeries: AnyObject, Sendable {
    /// The exposed name of the family.
    var family: String { get }
    var labels: LabelSet { get }

    /// Appends the sample lines of this series, each ending in a line feed.
    func write(to output: inout String)
}
