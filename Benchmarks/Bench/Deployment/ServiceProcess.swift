// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc
import WireJSON

/// A replica of a service: a process of its own, as in production.
final class ServiceProcess {
    let name: String
    private let process = Process()
    private let logPath: String

    /// - Parameter command: the program and its arguments.
    init(name: String, command: [String], environment: [String: String], logPath: String) throws {
        self.name = name
        self.logPath = logPath
        guard FileManager.default.createFile(atPath: logPath, contents: nil) else {
            throw BenchError("\(logPath) cannot be written")
        }
        let log = try FileHandle(forWritingTo: URL(filePath: logPath))
        process.executableURL = URL(filePath: command[0])
        process.arguments = Array(command.dropFirst())
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = log
        process.standardError = log
        try process.run()
    }

    var processID: Int32 { process.processIdentifier }

    var isRunning: Bool { process.isRunning }

    var status: ProcessStatus { ProcessStatus(of: processID) }

    /// When the service said that partitions were assigned to it, or the gateway that it serves.
    /// - Returns: `nil` as long as it has not.
    /// - Throws: when it ended instead.
    func readySince() throws -> Date? {
        if let time = try entry("partitions assigned", "gateway is up")?.instant { return time }
        guard process.isRunning else { throw BenchError("\(name) ended:\n\(log.suffix(2000))") }
        return nil
    }

    /// How many loops it runs, as its log says; none of a gateway and of whoever else is measured.
    var loops: Int { log.split(separator: "\n").count { $0.contains("\"message\":\"service is up\"") } }

    /// The port that the gateway serves on.
    func port() throws -> UInt16 {
        guard let port = try entry("gateway is up")?.fields?.port else {
            throw BenchError("\(name) says no port")
        }
        return port
    }

    /// Warnings and errors in the log: a measurement with some is none. Not those of a start that takes long, as one does
    /// whose instructions are counted.
    var complaints: [String] {
        let lines = log.split(separator: "\n").map(String.init)
        let isReady = lines.firstIndex { $0.contains("\"event\":\"service.ready\"") }
        return lines.dropFirst(isReady ?? 0).filter {
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

    private struct Fields: Decodable {
        var port: UInt16?
    }

    private struct LogLine: Decodable {
        var time: String
        var message: String
        var fields: Fields?

        var instant: Date? {
            Timestamp(rfc3339: time).map { Date(timeIntervalSince1970: Double($0.milliseconds) / 1000) }
        }
    }

    /// The first line of the log with one of these messages.
    private func entry(_ messages: String...) throws -> LogLine? {
        try log.split(separator: "\n")
            .first { line in messages.contains { line.contains("\"message\":\"\($0)\"") } }
            .map { try WireJSONDecoder().decode(LogLine.self, from: Array($0.utf8)) }
    }

    private var log: String { (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? "" }
}
