// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Foundation
import Glibc

/// A service as a child process: started, watched, started again when it dies, stopped. Used by one thread.
final class ChildService {
    let name: String
    let logPath: String
    private let environment: [String: String]
    private var process: Process?
    private var port: UInt16 = 0
    private var startAt = ContinuousClock.now
    private var startedAt = ContinuousClock.now
    private var backoff = Duration.milliseconds(200)
    private(set) var isReady = false

    init(name: String, environment: [String: String], logDirectory: String) {
        self.name = name
        self.environment = environment
        logPath = "\(logDirectory)/\(name).log"
    }

    var processID: Int32 { process?.processIdentifier ?? 0 }

    /// Starts the process when it is not running, after a pause that grows while it keeps dying.
    /// - Throws: when it cannot be started at all, or ended because of its configuration.
    func tend() throws {
        if let process {
            if process.isRunning {
                if !isReady { isReady = HealthProbe.isReady(port: port) }
                if ContinuousClock.now - startedAt > .seconds(10) { backoff = .milliseconds(200) }
                return
            }
            if process.terminationStatus == 64, process.terminationReason == .exit {
                throw StartFailure(description: "\(name) refused its configuration:\n\(lastLine())")
            }
            say("service   \(name) ended (\(reason(process))), starting it again")
            self.process = nil
            isReady = false
            startAt = .now + backoff
            backoff = min(backoff * 2, .seconds(10))
        }
        if ContinuousClock.now >= startAt { try start() }
    }

    /// Asks the process to end, waits for it, and ends it by force when it takes over 20 seconds.
    func stop() {
        guard let process, process.isRunning else { return }
        process.terminate()
        let deadline = ContinuousClock.now + .seconds(20)
        while process.isRunning, ContinuousClock.now < deadline { usleep(50_000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    private struct StartFailure: Error, CustomStringConvertible {
        var description: String
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
        port = HealthProbe.freePort()
        let process = Process()
        process.executableURL = folder.appending(path: "identitybus-\(name)")
        process.environment = environment.merging(["HTTP_PORT": String(port)]) { _, own in own }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        self.process = process
        startedAt = .now
    }

    private func reason(_ process: Process) -> String {
        process.terminationReason == .uncaughtSignal
            ? "signal \(process.terminationStatus)" : "exit status \(process.terminationStatus)"
    }

    private func lastLine() -> String {
        let text = (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").last.map(String.init) ?? "see \(logPath)"
    }
}
