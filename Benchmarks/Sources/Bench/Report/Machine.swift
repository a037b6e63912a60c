// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What the numbers were measured on, as far as it matters to whoever compares them.
enum Machine {
    /// Cores, kernel and how busy the machine was when the run began. No names, no dates.
    static var line: String {
        let kernel = text("/proc/sys/kernel/osrelease")
        let load = text("/proc/loadavg").split(separator: " ").first.map(String.init) ?? "?"
        let model =
            text("/proc/cpuinfo").split(separator: "\n").first { $0.hasPrefix("model name") }
            .flatMap { $0.split(separator: ":").last }.map { $0.trimmingCharacters(in: .whitespaces) } ?? "cpu unknown"
        return "machine: \(ProcessInfo.processInfo.activeProcessorCount) cores, \(model), Linux \(kernel), load \(load)"
    }

    private static func text(_ path: String) -> String {
        let content = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return content.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
