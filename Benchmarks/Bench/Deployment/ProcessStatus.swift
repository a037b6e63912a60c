// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// What the kernel says about a process and its children. Missing numbers are 0: the process is gone then.
struct ProcessStatus {
    /// User and system time of all threads that live or lived.
    let cpuSeconds: Double
    /// The same of its own busiest thread: the one that runs the loop.
    let busiestThreadSeconds: Double
    /// The most memory they ever had, in MiB.
    let peakMiB: Double

    init(of process: Int32) {
        let children = Self.children(of: process).map { ProcessStatus(of: $0) }
        cpuSeconds = Self.cpuSeconds("/proc/\(process)/stat") + children.reduce(0) { $0 + $1.cpuSeconds }
        busiestThreadSeconds = Self.threads(of: process).map { Self.cpuSeconds("\($0)/stat") }.max() ?? 0
        let peak = Self.text("/proc/\(process)/status").split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        let own = peak?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? 0
        peakMiB = own / 1024 + children.reduce(0) { $0 + $1.peakMiB }
    }

    /// CPU-seconds of the threads of this process that have that name.
    static func ownThreads(named name: String) -> Double {
        threads(of: getpid()).filter { text("\($0)/comm").hasPrefix(name) }.reduce(0) { $0 + cpuSeconds("\($1)/stat") }
    }

    static func children(of parent: Int32) -> [Int32] {
        threads(of: parent).flatMap { text("\($0)/children").split(separator: " ").compactMap { Int32($0) } }
    }

    private static func threads(of process: Int32) -> [String] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return tasks.map { "/proc/\(process)/task/\($0)" }
    }

    private static func cpuSeconds(_ path: String) -> Double {
        guard let fields = fields(path), let user = Double(fields[12]), let system = Double(fields[13]) else {
            return 0
        }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Those of proc(5) from the second on; that one is in brackets and may hold anything.
    private static func fields(_ path: String) -> [Substring]? {
        let line = text(path)
        guard let bracket = line.lastIndex(of: ")") else { return nil }
        let fields = line[bracket...].split(separator: " ")
        return fields.count > 13 ? fields : nil
    }

    private static func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
}
