// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the kernel knows about this process, read from `/proc/self` on every scrape.
///
/// Safe from any thread. `/proc` is answered from memory, so a read does not wait for a disk. A value that cannot be
/// read (no `/proc`, no permission) is left out, never guessed.
struct ProcessMetrics: Sendable {
    static let names = [
        "process_cpu_seconds_total", "process_open_fds", "process_resident_memory_bytes",
        "process_start_time_seconds", "log_lines_dropped_total", "identity_build_info",
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
        let blocks = values.compactMap { name, kind, value, help -> (name: String, text: String)? in
            guard let value else { return nil }
            let header = MetricText.header(name: name, kind: kind, help: help)
            return (name, "\(header)\(name) \(MetricText.number(value))\n")
        }
        return blocks + [Self.buildInfo]
    }

    /// A constant 1 whose label is the information, as Prometheus' own programs have it.
    private static let buildInfo = {
        let name = "identity_build_info"
        let header = MetricText.header(name: name, kind: .gauge, help: "Version and commit of the program; always 1.")
        return (name: name, text: "\(header)\(name){commit=\"\(Release.commit)\",version=\"\(Release.version)\"} 1\n")
    }()

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

/// The fields of `/proc/self/stat` that are exposed as metrics. Parsing is pure.
struct ProcessStat: Sendable, Equatable {
    /// User and system time, in clock ticks.
    let cpuTicks: UInt64
    /// Start of the process after boot, in clock ticks.
    let startTicks: UInt64
    let residentPages: UInt64

    /// Parses one line as described in proc(5); nil when it has another shape.
    init?(line: String) {
        // The command name may hold spaces and parentheses: only the last ')' ends it.
        guard let end = line.lastIndex(of: ")") else { return nil }
        let fields = line[line.index(after: end)...].split { $0 == " " || $0 == "\n" }
        // The first field here is number 3 of the manual page.
        guard fields.count > 21, let user = UInt64(fields[11]), let system = UInt64(fields[12]),
            let start = UInt64(fields[19]), let resident = UInt64(fields[21])
        else { return nil }
        cpuTicks = user + system
        startTicks = start
        residentPages = resident
    }

    /// The state of this process now; nil where there is no `/proc`.
    static func current() -> ProcessStat? {
        ProcFile.read("/proc/self/stat").flatMap(ProcessStat.init(line:))
    }
}

/// Reads whole files of the proc file system, whose sizes are not known beforehand.
enum ProcFile {
    /// The content of the file; nil when it cannot be opened or read. Bytes that are not UTF-8 are replaced.
    static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count > 0 {
                content += chunk[..<count]
            } else if count == 0 {
                return String(decoding: content, as: UTF8.self)
            } else if errno != EINTR {
                return nil
            }
        }
    }
}
