// SPDX-License-Identifier: Apache-2.0

extension PrometheusRegistry {
    /// What the registry needs to know beforehand. Names in the dictionaries are exposed names, such as
    /// `outbox_batch_size` or `database_commit_seconds`.
    public struct Configuration: Sendable {
        /// The most series that one metric name may have. Further label combinations are dropped and counted in
        /// `metrics_dropped_series_total`.
        public var seriesLimit = 1_000

        /// Bucket bounds of every `Timer`, in seconds.
        public var timerBuckets: [Double] = [
            0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
        ]

        /// Bucket bounds of every aggregating `Recorder`; made for counts and batch sizes.
        public var recorderBuckets: [Double] = [
            1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 100_000, 1_000_000,
        ]

        /// Bucket bounds of single histograms, in place of the two lists above.
        public var bucketsByName: [String: [Double]] = [:]

        /// HELP texts. A metric without one is exposed without a HELP line.
        public var help: [String: String] = [:]

        public init() {}
    }
}
