// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Where the service spends its time while it drains, as `perf` samples it. (Valgrind gives up on the debug
/// information of Swift's executables, and is no way round a missing `perf`.)
struct Profile {
    /// A function and its share of all samples.
    struct Entry {
        var share: Double
        var object: String
        var symbol: String
    }

    let entries: [Entry]

    static func run(_ stage: Stage, _ workload: Workload) throws -> (Drain, Profile) {
        guard let perf = find("perf") else { throw BenchError("perf is not installed (Debian: linux-perf)") }
        let probe = try run([perf, "record", "-q", "-o", "\(stage.folder)/probe.data", "true"])
        guard probe.status == 0 else {
            throw BenchError("perf may not record here: see /proc/sys/kernel/perf_event_paranoid")
        }
        return try withPerf(perf, stage, workload)
    }

    // MARK: perf

    private static func withPerf(_ perf: String, _ stage: Stage, _ workload: Workload) throws -> (Drain, Profile) {
        let data = "\(stage.folder)/perf.data"
        let drain = try Drain.run(stage, workload) { service in
            let recorder = Process()
            recorder.executableURL = URL(filePath: perf)
            recorder.arguments = [
                "record", "-q", "-F", "499", "--call-graph", "dwarf,32768", "-o", data, "-p", String(service.processID),
            ]
            try recorder.run()
            return {
                recorder.interrupt()
                recorder.waitUntilExit()
            }
        }
        // Kept on request, to be looked at with `perf report` or as a flame graph.
        if let copy = ProcessInfo.processInfo.environment["BENCH_PERF_DATA"] {
            try? FileManager.default.removeItem(atPath: copy)
            try FileManager.default.copyItem(atPath: data, toPath: copy)
        }
        let report = try run([
            perf, "report", "-i", data, "--stdio", "--no-children", "-g", "none", "-F", "overhead,dso,symbol",
            "--field-separator", "|", "--percent-limit", "0",
        ])
        return (drain, Profile(entries: report.output.split(separator: "\n").compactMap(perfEntry)))
    }

    /// `12.34%|library.so|[.] symbol`
    private static func perfEntry(_ line: Substring) -> Entry? {
        let fields = line.split(separator: "|", maxSplits: 2).map { $0.trimmingCharacters(in: .whitespaces) }
        guard fields.count == 3, fields[0].hasSuffix("%"), let share = Double(fields[0].dropLast()) else { return nil }
        return Entry(share: share / 100, object: fields[1], symbol: String(fields[2].drop { $0 != " " }.dropFirst()))
    }

    // MARK: Report

    func tell(_ report: inout Report) {
        var groups: [ProfileGroup: Double] = [:]
        for entry in entries { groups[ProfileGroup(entry), default: 0] += entry.share }
        for (group, share) in groups.sorted(by: { $0.value > $1.value }) where share >= 0.002 {
            report.add("share of \(group.rawValue)", share * 100, "%")
        }
        for entry in entries.sorted(by: { $0.share > $1.share }).prefix(40) {
            let name = String(Self.demangled(entry.symbol).prefix(100))
            report.add("\(name) (\(ProfileGroup(entry).rawValue))", entry.share * 100, "%")
        }
    }

    private static func demangled(_ symbol: String) -> String {
        guard symbol.hasPrefix("$s"), let tool = find("swift-demangle") ?? find("swift"),
            let answer = try? run(
                [tool] + (tool.hasSuffix("swift") ? ["demangle"] : []) + ["--simplified", "--compact", symbol])
        else { return symbol }
        return answer.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    // MARK: Tools

    private static func find(_ tool: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(tool)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    private static func run(_ command: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(filePath: command[0])
        process.arguments = Array(command.dropFirst())
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        try process.run()
        let bytes = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: bytes, as: UTF8.self))
    }
}
