// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// What is sent in one measurement, the same in every run of the same size.
struct Workload {
    /// As it stands in the reports.
    var name: String
    /// Commands to be decided before.
    var preparation: [Record] = []
    /// The commands to measure, made of the results of the preparation by their command's id.
    var records: ([String: JSONValue]) throws -> [Record]
    /// Replies that end a command. Those that are no JSON get none, a repeated one gets one more.
    var replies: Int
    /// How many commands that is, without repetitions.
    var answered: Int
    var deadLetters = 0
    /// Replies that are part of it: `succeeded`, or the reason of a rejection. Any other one spoils the measurement.
    var expected: Set<String> = ["succeeded"]

    /// Every command is answered once.
    init(_ name: String, preparation: [Record] = [], _ records: [Record]) {
        self.init(name, preparation: preparation, count: records.count) { _ in records }
    }

    init(
        _ name: String, preparation: [Record], count: Int,
        records: @escaping ([String: JSONValue]) throws -> [Record]
    ) {
        self.name = name
        self.preparation = preparation
        self.records = records
        replies = count
        answered = count
    }
}
