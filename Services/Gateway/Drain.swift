// SPDX-License-Identifier: Apache-2.0

import ServiceLifecycle

/// The time between the signal that ends a gateway and the end of its port: `/readyz` says that it stops, and whoever
/// distributes requests learns it, while it goes on answering.
struct Drain: Service {
    let delay: Duration
    let health: BusHealth

    func run() async throws {
        try await gracefulShutdown()
        health.drain()
        try await Task.sleep(for: delay)
    }
}
