// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Storage

/// What went in, what came out and what the link service's tables say afterwards, for the oracle
/// (`Benchmarks/contenders/oracle.py`), which knows nothing of who did the work.
enum Dump {
    private struct Message: Encodable {
        var topic: String
        var key: String?
        var value: String
    }

    /// - Parameter drain: is over, and the services are stopped.
    static func write(_ drain: Drain, _ stage: Stage, to folder: String) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let input = drain.records.map { message($0.topic, $0.key, $0.value) }
        let output = (drain.output.replies + drain.output.events + drain.output.deadLetters).map {
            message($0.topicPartition.topic, $0.key, $0.value)
        }
        try lines(input, to: "\(folder)/input.jsonl")
        try lines(output, to: "\(folder)/output.jsonl")
        let database = try stage.store(of: "link")
        defer { database.close() }
        for (table, columns) in [
            ("installs", ["install_id", "user_id", "activity"]), ("persons", ["user_id", "external_id"]),
        ] {
            let query = "SELECT \(columns.joined(separator: ", ")) FROM \(table)"
            let rows = try database.transaction { try $0.query(query) }
            let values = try rows.map { row in try columns.indices.map { try row.optionalText($0) } }
            try lines(values, to: "\(folder)/\(table).jsonl")
        }
    }

    private static func message(_ topic: String, _ key: [UInt8]?, _ value: [UInt8]?) -> Message {
        Message(
            topic: topic, key: key.map { String(decoding: $0, as: UTF8.self) },
            value: String(decoding: value ?? [], as: UTF8.self))
    }

    private static func lines(_ values: [some Encodable], to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        var text = Data()
        for value in values {
            text += try encoder.encode(value)
            text.append(UInt8(ascii: "\n"))
        }
        try text.write(to: URL(filePath: path))
    }
}
