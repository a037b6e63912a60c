// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// The processes of one deployment; the service under test is the first.
struct ServiceGroup {
    let processes: [ServiceProcess]

    var subject: ServiceProcess { processes[0] }
    var isRunning: Bool { processes.allSatisfy(\.isRunning) }
    var complaints: [String] { processes.flatMap(\.complaints) }
    /// Of the first one that has loops; 0 when none has, as of who is no service of ours.
    var loops: Int { processes.lazy.map(\.loops).first { $0 > 0 } ?? 0 }
    var cpuSeconds: Double { processes.reduce(0) { $0 + $1.status.cpuSeconds } }

    /// Waits until all are ready.
    /// - Parameter begins: called when the first one is.
    /// - Returns: when the first one was, and what each had used when it was: from then on it works.
    @discardableResult
    func ready(
        within limit: Duration = .seconds(120), begins: () -> Void = {}
    ) throws -> (first: Date, status: [ProcessStatus]) {
        let deadline = ContinuousClock.now + limit
        var status: [ProcessStatus?] = processes.map { _ in nil }
        var first = Date.distantFuture
        while status.contains(where: { $0 == nil }) {
            for (index, process) in processes.enumerated() where status[index] == nil {
                guard let time = try process.readySince() else { continue }
                if status.allSatisfy({ $0 == nil }) { begins() }
                status[index] = process.status
                first = min(first, time)
            }
            guard ContinuousClock.now < deadline else { throw BenchError("not ready within \(limit)") }
            usleep(2000)
        }
        return (first, status.compactMap(\.self))
    }

    func stop() { processes.forEach { $0.stop() } }
}
