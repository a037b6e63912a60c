// SPDX-License-Identifier: Apache-2.0

@testable import Observability

/// An exposition cut into what tests ask for.
struct Samples {
    let lines: [Substring]

    /// The registry's exposition without the families that depend on the machine.
    init(_ registry: PrometheusRegistry) {
        lines = registry.exposition().split(separator: "\n").filter {
            !$0.contains("process_") && !$0.contains("log_lines_dropped_total") && !$0.contains("identity_build_info")
                && !$0.contains("metrics_dropped_series_total")
        }
    }

    var text: String { lines.map { $0 + "\n" }.joined() }

    /// The value of the sample with exactly this name and these labels.
    func value(_ series: String) -> String? {
        lines.first { $0.hasPrefix(series + " ") }.map { String($0.dropFirst(series.count + 1)) }
    }
}
