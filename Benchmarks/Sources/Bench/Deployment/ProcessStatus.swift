// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// What the kernel says about a process. Missing numbers are 0: the process is gone then.
struct ProcessStatus {
    /// User and system time of all threads that live or lived.
    let cpuSeconds: Double
    /// The same of its busiest thread: the one that runs the loop.
    let busiestThreadSeconds: Double
    /// The most memory it ever had, in MiB.
    let peakMiB: Double

    init(of process: Int32) {
        cpuSeconds = Self.cpuSeconds("/proc/\(process)/stat")
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        busiestThreadSeconds = tasks.map { Self.cpuSeconds("/proc/\(process)/task/\($0)/stat") }.max() ?? 0
        let peak = Self.text("/proc/\(process)/status").split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        peakMiB = (peak?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
    }

    /// Fields 14 and 15 of proc(5); the second field is in brackets and may hold anything.
    private static func cpuSeconds(_ path: String) -> Double {
        let line = text(path)
        guard let bracket = line.lastIndex(of: ")") else { return 0 }
        let fields = line[bracket...].split(separator: " ")
        guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else { return 0 }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    private static func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
}
