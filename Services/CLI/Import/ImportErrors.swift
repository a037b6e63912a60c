// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Supervision
import WireJSON

/// The errors file: what was refused, as it stands in the input, with the reason; so it can be mended and fed again.
final class ImportErrors {
    private let path: String
    private let descriptor: Int32
    /// Of a CSV, which the file begins with; it may have the errors' column already.
    private let header: [String]?
    private(set) var length: Int

    /// - Parameter length: what a run before has written and counted; the rest is written again.
    init(path: String, header: [String]?, length: Int) throws {
        self.path = path
        self.header = header
        self.length = length
        descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Problem(
                .noRight, "\(path) cannot be written: \(String(cString: strerror(errno))).", "Nothing was sent.")
        }
        guard ftruncate(descriptor, off_t(length)) == 0, lseek(descriptor, 0, SEEK_END) == off_t(length) else {
            throw Problem(
                .usage, "\(path) is not what the run before left: it cannot be cut to \(length) bytes.",
                "Give the --errors that was given then, or another --resume to begin anew.")
        }
        if length == 0, let header { try write(CSVRows.line(named(header)) + "\n") }
    }

    deinit { Glibc.close(descriptor) }

    private func named(_ header: [String]) -> [String] {
        header.contains(JSONLinesReader.errorMember) ? header : header + [JSONLinesReader.errorMember]
    }

    func add(_ item: ImportItem, because reason: String) throws {
        switch item.original {
        case .json(let bytes): try write(Self.line(bytes, reason) + "\n")
        case .rows(let rows):
            let place = header.flatMap { named($0).firstIndex(of: JSONLinesReader.errorMember) } ?? 0
            for row in rows {
                var cells = row + Array(repeating: "", count: max(0, place + 1 - row.count))
                cells[place] = reason
                try write(CSVRows.line(cells) + "\n")
            }
        }
    }

    /// The line with the reason in front; what is no object stands in a member.
    static func line(_ bytes: [UInt8], _ reason: String) -> String {
        var members = [(JSONLinesReader.errorMember, JSONValue.string(reason))]
        if case .object(let object)? = try? JSONValue(parsing: bytes) {
            members += object.members.filter { $0.name != JSONLinesReader.errorMember }.map { ($0.name, $0.value) }
        } else {
            members.append(("importLine", .string(String(decoding: bytes, as: UTF8.self))))
        }
        return String(decoding: JSONValue.object(JSONObject(members)).serialized(), as: UTF8.self)
    }

    private func write(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw Problem(
                    .unwritten, "\(path) cannot be written: \(String(cString: strerror(errno))).",
                    "Make room; the same line goes on.")
            }
            bytes = bytes.dropFirst(count)
            length += count
        }
    }
}
