// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the kernel knows about this process, read from `/proc/self` on every scrape.
///
/// Safe from any thread. `/proc` is answered from memory, so a read does not wait for a disk. A value that cannot be
/// read (no `/proc`, no permission) is left out, never guessed.
struct ProcessMetrics: Sendable {
    static let names = [
        "process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes",
        "process_start_time_seconds", "log_lines_dropped_total",
    ]

    private let ticksPerSecond = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
    private let pageSize = Double(max(1, sysconf(Int32(_SC_PAGESIZE))))
    /// Read once: a value that followed every clock adjustment would look like a restart.
    private let startTime: Double?

    init() {
        startTime = Self.startTime(ticksPerSecond: ticksPerSecond)
    }

    /// The metrics as finished text blocks.
    func blocks() -> [(name: String, text: String)] {
        let stat = ProcessStat.current()
        let cpu = stat.map { Double($0.cpuTicks) / ticksPerSecond }
        let memory = stat.map { Double($0.residentPages) * pageSize }
        let descriptors = Self.openFileDescriptors().map(Double.init)
        let values: [(String, MetricKind, Double?, String)] = [
            ("process_cpu_seconds_total", .counter, cpu, "User and system CPU time spent."),
            ("process_open_fds", .gauge, descriptors, "Open file descriptors."),
            ("process_resident_memory_bytes", .gauge, memory, "Resident memory."),
            ("process_start_time_seconds", .gauge, startTime, "Start of the process since the Unix epoch."),
            (
                "log_lines_dropped_total", .counter, Double(LineWriter.standardError.droppedLines),
                "Log lines that were lost because standard error was not read."
            ),
        ]
        return values.compactMap { name, kind, value, help in
            guard let value else { return nil }
            let header = MetricText.header(name: name, kind: kind, help: help)
            return (name, "\(header)\(name) \(MetricText.number(value))\n")
        }
    }

    private static func startTime(ticksPerSecond: Double) -> Double? {
        guard let stat = ProcessStat.current(), let system = ProcFile.read("/proc/stat") else { return nil }
        let line = system.split(separator: "\n").first { $0.hasPrefix("btime ") }
        guard let bootTime = line.flatMap({ Double($0.dropFirst(6)) }) else { return nil }
        return bootTime + Double(stat.startTicks) / ticksPerSecond
    }

    private static func openFileDescriptors() -> Int? {
        guard let directory = opendir("/proc/self/fd") else { return nil }
        defer { closedir(directory) }
        var count = 0
        while let entry = readdir(directory) {
            // "." and ".." are the only names that are not numbers.
            if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        // The directory itself was open while it was read.
        return count - 1
    }
}
