// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Runtime

/// A service as a child process: started, watched, started again when it dies, stopped. Used by one thread.
package final class ChildService {
    package let name: String
    package let logPath: String
    private let program: String
    private let environment: [String: String]
    private let reports: [String: String]
    private var process: Process?
    private var startAt = ContinuousClock.now
    private var startedAt = ContinuousClock.now
    private var backoff = Backoff(from: .milliseconds(200), upTo: .seconds(10))
    private var addresses: [String: String] = [:]
    package private(set) var isReady = false
    /// What keeps it from being ready, as it said last.
    package private(set) var problem: String?
    private var lookAt = ContinuousClock.now

    /// The variable that names the file into which a child writes where its health is served.
    package static let healthReport = "IDENTITYBUS_HEALTH_FILE"

    /// - Parameters:
    ///   - name: for people.
    ///   - service: whose program it runs; the one of that name, when absent.
    ///   - reports: files into which the child writes an address once it has bound it, by the variable that names them
    ///     to it. Nobody chooses a port beforehand: another program could take it meanwhile.
    package init(
        name: String, service: String? = nil, environment: [String: String], reports: [String: String],
        logDirectory: String
    ) {
        self.name = name
        program = "identitybus-\(service ?? name)"
        self.reports = reports
        self.environment = environment.merging(reports) { _, own in own }.merging(["HTTP_PORT": "0"]) { _, own in own }
        logPath = "\(logDirectory)/\(name).log"
    }

    package var processID: Int32 { process?.processIdentifier ?? 0 }

    package var isRunning: Bool { process?.isRunning == true }

    /// The address that the running process has reported, such as `http://127.0.0.1:40123`.
    package func address(_ report: String = healthReport) -> String? { addresses[report] }

    /// Sends it a signal, if it runs.
    package func signal(_ number: Int32) {
        if let process, process.isRunning { kill(process.processIdentifier, number) }
    }

    /// Starts the process when it is not running, after a pause that grows while it keeps dying.
    /// - Parameter ended: is told how it ended, such as `was killed (signal 9, SIGKILL)`, with what follows.
    /// - Throws: when it cannot be started at all, or ended because of its configuration.
    package func tend(ended: (String) -> Void) throws {
        if let process {
            if process.isRunning {
                if !isReady { look() }
                if ContinuousClock.now - startedAt > .seconds(10) { backoff.reset() }
                return
            }
            if process.terminationStatus == ExitStatus.setting.rawValue, process.terminationReason == .exit {
                throw Problem(.setting, "\(name) refused its configuration:", lastLine(), "Its log is \(logPath).")
            }
            let pause = backoff.next()
            let how = Self.end(process.terminationStatus, isBySignal: process.terminationReason == .uncaughtSignal)
            let seconds = (pause / .seconds(1)).formatted()
            ended("\(how). It is started again in \(seconds) s. Its last line: \(lastLine())")
            self.process = nil
            forgetReports()
            startAt = .now + pause
        }
        if ContinuousClock.now >= startAt { try start() }
    }

    /// Asks the process to end, waits for it, and ends it by force when it takes over 20 seconds.
    package func stop() {
        if let process, process.isRunning {
            process.terminate()
            let deadline = ContinuousClock.now + .seconds(20)
            while process.isRunning, ContinuousClock.now < deadline { usleep(50_000) }
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }
        forgetReports()
    }

    private func start() throws {
        let folder = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let log = URL(filePath: logPath)
        try FileManager.default.createDirectory(at: log.deletingLastPathComponent(), withIntermediateDirectories: true)
        if !FileManager.default.fileExists(atPath: logPath) {
            _ = FileManager.default.createFile(atPath: logPath, contents: nil)
        }
        let output = try FileHandle(forWritingTo: log)
        try output.seekToEnd()
        forgetReports()
        let process = Process()
        process.executableURL = folder.appending(path: program)
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        self.process = process
        startedAt = .now
    }

    private func look() {
        readReports()
        guard addresses.count == reports.count else {
            problem = "starting"
            return
        }
        // Who waits for a broker is asked less often.
        guard ContinuousClock.now >= lookAt else { return }
        problem = HealthProbe.problem(addresses[Self.healthReport])
        isReady = problem == nil
        lookAt = .now + .milliseconds(250)
    }

    private func readReports() {
        for (variable, path) in reports where addresses[variable] == nil {
            // It is moved there whole; what is there is an address.
            let text = try? String(contentsOfFile: path, encoding: .utf8)
            addresses[variable] = text?.trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }

    private func forgetReports() {
        isReady = false
        problem = nil
        addresses = [:]
        for path in reports.values { try? FileManager.default.removeItem(atPath: path) }
    }

    /// How a process ended, and who does such things, in words for people.
    package static func end(_ number: Int32, isBySignal: Bool) -> String {
        guard isBySignal else { return "ended with exit status \(number)" }
        let name = "signal \(number)" + (signals[number].map { ", \($0)" } ?? "")
        return switch number {
        case SIGKILL: "was killed (\(name)): often by the kernel's out-of-memory killer, as dmesg tells"
        case SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: "crashed (\(name)): please report it with its log"
        default: "was ended (\(name))"
        }
    }

    private static let signals = [
        SIGHUP: "SIGHUP", SIGINT: "SIGINT", SIGQUIT: "SIGQUIT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
        SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGKILL: "SIGKILL", SIGSEGV: "SIGSEGV",
        SIGPIPE: "SIGPIPE", SIGTERM: "SIGTERM",
    ]

    private func lastLine() -> String {
        guard let log = FileHandle(forReadingAtPath: logPath) else { return "see \(logPath)" }
        defer { try? log.close() }
        // A log may have grown for months.
        let size = (try? log.seekToEnd()) ?? 0
        try? log.seek(toOffset: size - min(size, 8192))
        let text = String(decoding: (try? log.readToEnd()) ?? Data(), as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).last.map(String.init) ?? "see \(logPath)"
    }
}
