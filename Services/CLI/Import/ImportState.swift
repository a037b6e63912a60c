// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Supervision
import WireJSON

/// How far an import is: what the file of `--resume` holds.
struct ImportState: Codable, Equatable {
    struct Counts: Codable, Equatable {
        var created = 0
        var same = 0
        var changed = 0
        var refused = 0

        var all: Int { created + same + changed + refused }
    }

    /// Of the form.
    var version = 1
    /// One import, however often it is stopped: the ids of its commands follow from it.
    var run: String
    var app: String
    var upsert: Bool
    var dryRun: Bool
    /// A CSV's.
    var header: [String]?
    /// Everything before this byte and line is answered.
    var offset = 0
    var line = 1
    /// The SHA-256 of all before that byte.
    var digest = ""
    /// Users were sent, and profiles come first (`fromLinks`).
    var hasUsers = false
    var counts: [String: Counts] = [:]
    /// How much of the errors file that is.
    var errorBytes = 0
    var isDone = false

    /// - Returns: `nil` where there is no such file.
    static func read(_ path: String) throws -> ImportState? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let bytes = try Data(contentsOf: URL(filePath: path))
        guard let state = try? WireJSONDecoder().decode(ImportState.self, from: Array(bytes)), state.version == 1 else {
            throw Problem(
                .usage, "\(path) is not what an import of this version writes.",
                "It is for identitybus import alone; name another file to begin anew.")
        }
        return state
    }

    /// The file is this state or the one before, whenever the process is killed.
    func write(_ path: String) throws {
        do {
            try Data(WireJSONEncoder().encode(self)).write(to: URL(filePath: path), options: .atomic)
        } catch {
            var problem = Problem(error)
            problem.what = "\(path) cannot be written: \(problem.cause)."
            throw problem
        }
    }

    /// The id of the list that begins at this byte: the same when it is sent again after a kill.
    func commandID(at start: Int) -> CommandID {
        CommandID(DerivedID.uuid(SHA256.hash(data: Array("\(run)@\(start)".utf8)), version: 8))
    }

    mutating func count(_ outcome: ImportOutcome, _ kind: ImportItem.Kind?) {
        var counts = counts[kind?.rawValue ?? "lines"] ?? Counts()
        switch outcome {
        case .created: counts.created += 1
        case .same: counts.same += 1
        case .changed: counts.changed += 1
        case .conflict, .invalid: counts.refused += 1
        }
        self.counts[kind?.rawValue ?? "lines"] = counts
    }

    var refused: Int { counts.values.reduce(0) { $0 + $1.refused } }
    var all: Int { counts.values.reduce(0) { $0 + $1.all } }
}
