// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// What one measurement says: one line of JSON, to be compared with others of the same kind.
struct Report: Encodable {
    struct Number: Encodable {
        var name: String
        var value: Double
        /// Such as `/s` or `ms`; empty for a mere count.
        var unit: String
    }

    let subject: String
    let mode: String
    let engine: String
    var machine = Machine()
    /// What somebody has to know who wants to measure the same.
    var setting: [String: String] = [:]
    var numbers: [Number] = []
    /// What makes the numbers worthless.
    var problems: [String] = []

    init(subject: Subject, mode: BenchCommand.Mode, engine: Engine) {
        self.subject = subject.rawValue
        self.mode = mode.rawValue
        self.engine = engine.rawValue
    }

    mutating func add(_ name: String, _ value: Double, _ unit: String = "") {
        numbers.append(Number(name: name, value: value, unit: unit))
    }

    func print() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        FileHandle.standardOutput.write(try encoder.encode(self) + Data("\n".utf8))
    }
}

/// How often `work` runs in a second. It is run for about a second, in rounds that do `count` pieces each.
func rate(of count: Int, _ work: () throws -> Void) rethrows -> Double {
    try work()
    let start = ContinuousClock.now
    var rounds = 0
    while ContinuousClock.now - start < .seconds(1) {
        try work()
        rounds += 1
    }
    return Double(rounds * count) / (ContinuousClock.now - start).inSeconds
}
