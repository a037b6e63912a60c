// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The processes of one deployment; the service under test is the first.
struct ServiceGroup {
    let processes: [ServiceProcess]

    var subject: ServiceProcess { processes[0] }
    var isRunning: Bool { processes.allSatisfy(\.isRunning) }
    var complaints: [String] { processes.flatMap(\.complaints) }
    var cpuSeconds: Double { processes.reduce(0) { $0 + $1.status.cpuSeconds } }

    /// Waits until all are ready.
    /// - Returns: when the last one was.
    @discardableResult
    func ready() throws -> Date { try processes.map { try $0.ready() }.max() ?? .now }

    func stop() { processes.forEach { $0.stop() } }
}
