// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What the numbers were measured on, as far as it matters to whoever compares them. No names, no dates.
struct Machine: Encodable {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let cpu: String
    let kernel: String
    /// How busy it was when the measurement began, over the last minute.
    let load: String

    init() {
        cpu =
            Self.text("/proc/cpuinfo").split(separator: "\n").first { $0.hasPrefix("model name") }
            .flatMap { $0.split(separator: ":").last }.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown"
        kernel = Self.text("/proc/sys/kernel/osrelease")
        load = Self.text("/proc/loadavg").split(separator: " ").first.map(String.init) ?? "unknown"
    }

    private static func text(_ path: String) -> String {
        let content = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return content.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
