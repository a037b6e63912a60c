// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// What librdkafka and the engines do alone, by their own calls (`Benchmarks/floor.c`): the same topic read again in
/// batches of the service's size, as many replies and events of the same sizes written, rows of the same size stored.
struct Floor {
    let numbers: [(name: String, rate: Double, cpu: Double)]

    /// - Parameter drain: was run on the stage just before.
    static func run(_ program: String, _ stage: Stage, _ drain: Drain) throws -> Floor {
        let total = (drain.workload.preparation + drain.records).count { $0.topic == stage.commands }
        let reply = drain.output.replies.meanBytes
        let event = drain.output.events.meanBytes
        let events = Double(drain.output.events.count) / Double(max(1, drain.commands))
        let sizes = [
            "--batch", stage.batchSize, "--reply", String(reply), "--event", String(event), "--events", String(events),
        ]
        let topics = [
            "--topic", stage.commands, "--out", stage.broker.topics.prefix + Broker.limitTopics[0], "--events-out",
            stage.broker.topics.prefix + Broker.limitTopics[1], "--partitions", String(stage.broker.partitions),
            "--count", String(total),
        ]
        let store = stage.floorStore
        return Floor(
            numbers: try [
                ("librdkafka: consume, produce the same bytes", ["loop", "--store", "none"] + topics + sizes),
                ("the same, and a row for each command", ["loop", "--store", store] + topics + sizes),
                ("store: rows, a batch for each transaction", ["rows", "--store", store] + sizes),
                ("store: transactions of one row", ["rows", "--store", store] + ["--batch", "1", "--reply", "100"]),
            ].map { name, arguments in
                let (rate, cpu) = try run(program, arguments, stage)
                return (name, rate, cpu)
            })
    }

    /// - Returns: how many in a second, and the CPU-seconds of the program for 1,000.
    private static func run(_ program: String, _ arguments: [String], _ stage: Stage) throws -> (Double, Double) {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.environment = stage.floorEnvironment
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let bytes = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let numbers = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap {
            Double($0)
        }
        guard process.terminationStatus == 0, numbers.count == 2 else {
            throw BenchError("\(program) \(arguments.joined(separator: " ")) failed")
        }
        return (numbers[0], numbers[1])
    }

    func tell(_ report: inout Report) {
        for (name, rate, cpu) in numbers {
            report.add("alone, \(name)", rate, "/s")
            report.add("alone, \(name): CPU for 1,000", cpu, "s")
        }
    }
}
