// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Seconds of CPU that those around the services have used until now.
struct CPUTime {
    /// PostgreSQL's processes that serve a connection each.
    let backends: Double
    /// Its others: log writer, checkpointer, autovacuum.
    let postgres: Double
    let broker: Double

    /// - Parameters:
    ///   - postgres: PostgreSQL's first process, whose children the others are.
    ///   - broker: Kafka's process; without one the embedded broker's threads in this process count.
    init(postgres: Int32?, broker: Int32?) {
        var (backends, others) = (0.0, 0.0)
        for child in postgres.map(ProcessStatus.children) ?? [] {
            let seconds = ProcessStatus(of: child).cpuSeconds
            if Self.isBackend(child) { backends += seconds } else { others += seconds }
        }
        self.backends = backends
        self.postgres = others
        self.broker = broker.map { ProcessStatus(of: $0).cpuSeconds } ?? ProcessStatus.ownThreads(named: "rdk:mock")
    }

    /// Its title names the address of the client.
    private static func isBackend(_ process: Int32) -> Bool {
        let title = (try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)) ?? ""
        return title.contains("127.0.0.1(") || title.contains("::1(") || title.contains("[local]")
            || title.contains("parallel worker")
    }
}
