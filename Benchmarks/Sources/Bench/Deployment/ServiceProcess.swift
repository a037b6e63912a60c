// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Contracts
import Foundation
import Glibc
import WireJSON

/// A replica of the service under test: a process of its own, as in production.
final class ServiceProcess {
    private let process = Process()
    private let logPath: String

    init(executable: String, environment: [String: String], logPath: String) throws {
        self.logPath = logPath
        guard FileManager.default.createFile(atPath: logPath, contents: nil) else {
            throw BenchError("\(logPath) cannot be written")
        }
        let log = try FileHandle(forWritingTo: URL(filePath: logPath))
        process.executableURL = URL(filePath: executable)
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = log
        process.standardError = log
        try process.run()
    }

    var processID: Int32 { process.processIdentifier }

    var isRunning: Bool { process.isRunning }

    var status: ProcessStatus { ProcessStatus(of: processID) }

    /// Waits until the service says that partitions were assigned to it.
    /// - Returns: when it said so.
    func assignment(within limit: Duration = .seconds(60)) throws -> Date {
        let deadline = ContinuousClock.now + limit
        while ContinuousClock.now < deadline {
            if let time = try firstAssignment() { return time }
            guard process.isRunning else { throw BenchError("the service ended:\n\(log.suffix(2000))") }
            usleep(5000)
        }
        throw BenchError("the service got no partitions within \(limit):\n\(log.suffix(2000))")
    }

    /// Warnings and errors in the log: a measurement with some is none.
    var complaints: [String] {
        log.split(separator: "\n").map(String.init).filter {
            $0.contains("\"level\":\"warning\"") || $0.contains("\"level\":\"error\"")
                || $0.contains("\"level\":\"critical\"")
        }
    }

    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        let deadline = ContinuousClock.now + .seconds(60)
        while process.isRunning, ContinuousClock.now < deadline { usleep(20_000) }
        if process.isRunning { kill(processID, SIGKILL) }
    }

    private struct LogLine: Decodable {
        var time: String
        var message: String
    }

    private func firstAssignment() throws -> Date? {
        for line in log.split(separator: "\n") where line.contains("\"message\":\"partitions assigned\"") {
            let entry = try WireJSONDecoder().decode(LogLine.self, from: Array(line.utf8))
            guard let time = Timestamp(rfc3339: entry.time) else { continue }
            return Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)
        }
        return nil
    }

    private var log: String { (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? "" }
}
