// SPDX-License-Identifier: Apache-2.0

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
