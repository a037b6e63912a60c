// SPDX-License-Identifier: Apache-2.0

import Contracts
package import Metrics

/// A timer of what took equally long several times: a batch is one observation, however many are in it.
package struct RepeatedTimer: Sendable {
    private let handler: any TimerHandler

    package init(
        label: String, dimensions: [(String, String)], factory: any MetricsFactory = MetricsSystem.factory
    ) {
        handler = factory.makeTimer(label: label, dimensions: dimensions)
    }

    package func record(_ duration: Duration, times: Int) {
        if let series = handler as? HistogramSeries {
            series.recordNanoseconds(duration.inNanoseconds, times: times)
        } else {
            for _ in 0..<times { handler.recordNanoseconds(duration.inNanoseconds) }
        }
    }
}
