// SPDX-License-Identifier: Apache-2.0

/// What a service knows about itself at one moment.
public struct HealthReport: Sendable, Equatable {
    /// Checks whose failure only a restart can mend. Keep dependencies out: a database outage must not restart
    /// every process.
    public var live: [HealthCheck]
    /// Checks whose failure means: send no work here for now.
    public var ready: [HealthCheck]

    public init(live: [HealthCheck] = [], ready: [HealthCheck] = []) {
        self.live = live
        self.ready = ready
    }
}
