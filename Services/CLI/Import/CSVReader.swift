// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Supervision
import WireJSON

/// CSV with a header line. Rows of one user or profile that follow each other are one person: each has an install,
/// or a device, or more identities.
struct CSVReader: ImportReader {
    private var rows: CSVRows
    private let kind: ImportItem.Kind
    /// Without the column that an errors file adds.
    let header: [String]
    private let errorColumn: Int?
    private let id: Int
    private var waiting: CSVRows.Row?

    private static let ofUsers: Set<String> = [
        "userId", "externalId", "createdAt", "installId", "kind", "platform", "model", "osVersion", "isActive",
        "status",
    ]
    private static let ofProfiles = Set(
        ["mpid", "firstSeen", "lastSeen", "name", "deviceId", "isCurrent", "deviceFirstSeen", "deviceLastSeen"]
            + IdentityType.allCases.map(\.rawValue))

    /// - Parameter header: the first line, where it was read before.
    init(_ lines: LineReader, header known: [String]? = nil) throws {
        rows = CSVRows(lines)
        var header = known ?? []
        if known == nil {
            guard let first = try rows.next() else { throw Problem(.usage, "the CSV is empty.", Self.advice) }
            if let problem = first.problem {
                throw Problem(.usage, "the CSV's header is broken: \(problem).", Self.advice)
            }
            header = first.cells
            if header.count == 1, header[0].contains(where: { $0 == ";" || $0 == "\t" }) {
                throw Problem(
                    .usage, "the CSV's header has no comma, and cells are separated by commas.", Self.advice)
            }
        }
        if let twice = header.first(where: { name in header.count { $0 == name } > 1 }) {
            throw Problem(
                .usage, "the CSV has the column \(twice) twice.",
                "Several values of one person stand in rows that follow each other. " + Self.advice)
        }
        errorColumn = header.firstIndex(of: JSONLinesReader.errorMember)
        self.header = header
        let names = Set(header).subtracting([JSONLinesReader.errorMember])
        switch (header.firstIndex(of: "userId"), header.firstIndex(of: "mpid")) {
        case (let id?, nil): (self.id, kind) = (id, .users)
        case (nil, let id?): (self.id, kind) = (id, .profiles)
        default: throw Problem(.usage, "the CSV's header has neither userId nor mpid.", Self.advice)
        }
        let known = kind == .users ? Self.ofUsers : Self.ofProfiles
        guard let unknown = names.subtracting(known).min() else { return }
        let guess = nearest(to: unknown, in: Array(known)).map { " Did you mean \($0)?" } ?? ""
        throw Problem(.usage, "the CSV's column \(unknown) says nothing here.\(guess)", Self.advice)
    }

    private static let advice = "Which columns there are: docs/command-line.md, \"import\"."

    mutating func next() throws -> ImportItem? {
        guard let first = try waiting ?? rows.next() else { return nil }
        waiting = nil
        var all = [first]
        let name = cell(first, id)
        var size = first.end - first.start
        while let row = try rows.next() {
            guard cell(row, id) == name, !name.isEmpty, size <= ImportItem.mostBytes else {
                waiting = row
                break
            }
            size += row.end - row.start
            all.append(row)
        }
        return item(all)
    }

    private func cell(_ row: CSVRows.Row, _ place: Int) -> String {
        row.cells.indices.contains(place) ? row.cells[place] : ""
    }

    private func item(_ rows: [CSVRows.Row]) -> ImportItem {
        var item = ImportItem(
            kind: kind, original: .rows(rows.map(\.cells)), line: rows[0].line, nextLine: rows[rows.count - 1].nextLine,
            start: rows[0].start, end: rows[rows.count - 1].end, digest: rows[rows.count - 1].digest)
        if let broken = rows.compactMap(\.problem).first {
            (item.kind, item.problem) = (nil, broken)
            return item
        }
        if rows.contains(where: { $0.cells.count > header.count }) {
            (item.kind, item.problem) = (nil, "more cells than the header has")
            return item
        }
        let records = rows.map { row in
            header.enumerated().reduce(into: [String: String]()) { record, column in
                let text = cell(row, column.offset)
                if column.offset != errorColumn, !text.isEmpty { record[column.element] = text }
            }
        }
        switch kind {
        case .users: fill(&item, "externalId", "createdAt", records, Self.user)
        case .profiles: fill(&item, "firstSeen", "lastSeen", records, Self.profile)
        }
        if item.size > ImportItem.mostBytes {
            (item.kind, item.problem) = (nil, "more than \(ImportItem.mostBytes >> 10) KiB")
        }
        return item
    }

    /// - Parameters:
    ///   - one: with `other` what the rows of one person may not say differently.
    private func fill(
        _ item: inout ImportItem, _ one: String, _ other: String, _ records: [[String: String]],
        _ make: ([[String: String]]) -> JSONValue
    ) {
        for member in [one, other, "name"] where Set(records.compactMap { $0[member] }).count > 1 {
            (item.kind, item.problem) = (nil, "its rows have several values of \(member)")
            return
        }
        item.data = make(records)
    }

    private static func user(_ records: [[String: String]]) -> JSONValue {
        let installs = records.compactMap { record -> JSONValue? in
            guard record["installId"] != nil else { return nil }
            return object([
                ("installId", text(record["installId"])),
                (
                    "device",
                    object([
                        ("kind", text(record["kind"])), ("platform", text(record["platform"])),
                        ("model", text(record["model"])), ("osVersion", text(record["osVersion"])),
                    ])
                ),
                ("isActive", flag(record["isActive"])), ("status", text(record["status"])),
            ])
        }
        return object([
            ("userId", first("userId", records)), ("externalId", first("externalId", records)),
            ("createdAt", first("createdAt", records)), ("installs", installs.isEmpty ? nil : .array(installs)),
        ])
    }

    private static func profile(_ records: [[String: String]]) -> JSONValue {
        let identities = IdentityType.allCases.compactMap { type -> (String, JSONValue)? in
            var values: [String] = []
            for value in records.compactMap({ $0[type.rawValue] }) where !values.contains(value) {
                values.append(value)
            }
            return values.isEmpty ? nil : (type.rawValue, .array(values.map { .string($0) }))
        }
        let devices = records.compactMap { record -> JSONValue? in
            guard record["deviceId"] != nil else { return nil }
            return object([
                ("deviceId", text(record["deviceId"])), ("isCurrent", flag(record["isCurrent"]) ?? false),
                ("firstSeen", text(record["deviceFirstSeen"]) ?? first("firstSeen", records)),
                ("lastSeen", text(record["deviceLastSeen"]) ?? first("lastSeen", records)),
            ])
        }
        return object([
            ("mpid", first("mpid", records)), ("identities", .object(JSONObject(identities))),
            ("firstSeen", first("firstSeen", records)), ("lastSeen", first("lastSeen", records)),
            ("name", first("name", records)), ("devices", devices.isEmpty ? nil : .array(devices)),
        ])
    }

    private static func first(_ member: String, _ records: [[String: String]]) -> JSONValue? {
        text(records.lazy.compactMap { $0[member] }.first)
    }

    private static func text(_ text: String?) -> JSONValue? { text.map { .string($0) } }

    private static func flag(_ text: String?) -> JSONValue? {
        text.map { $0 == "true" ? true : $0 == "false" ? false : .string($0) }
    }

    private static func object(_ members: [(String, JSONValue?)]) -> JSONValue {
        .object(JSONObject(members.compactMap { name, value in value.map { (name, $0) } }))
    }
}

/// The rows of a CSV.
struct CSVRows {
    struct Row {
        var cells: [String]
        var problem: String?
        var line: Int
        var nextLine: Int
        var start: Int
        var end: Int
        /// Of all before `end`.
        var digest: SHA256
    }

    private var lines: LineReader

    init(_ lines: LineReader) { self.lines = lines }

    /// Empty lines are passed over.
    mutating func next() throws -> Row? {
        while let line = try lines.next() {
            if line.bytes.isEmpty { continue }
            var row = Row(
                cells: [], problem: nil, line: line.number, nextLine: line.number + 1, start: line.start, end: line.end,
                digest: line.digest)
            guard let text = String(validating: line.bytes, as: UTF8.self) else {
                row.problem = "no UTF-8"
                row.cells = [String(decoding: line.bytes, as: UTF8.self)]
                return row
            }
            (row.cells, row.problem) = Self.cells(text)
            return row
        }
        return nil
    }

    /// The cells of a line. Quotes stand around a cell, twice inside it; in a cell that begins otherwise they are
    /// characters like others. What is quoted ends on its line, unlike in RFC 4180: no id and no name has two lines, and
    /// one quote too many takes no other person's line along.
    /// - Returns: with what is wrong also the cells as they stand, so that they can be mended.
    static func cells(_ text: String) -> (cells: [String], problem: String?) {
        var cells: [String] = []
        var problem: String?
        var rest = text.utf8[...]
        while true {
            let cell: String
            if rest.first == quote, let quoted = quoted(&rest) {
                cell = quoted
            } else {
                if rest.first == quote { problem = problem ?? "cell \(cells.count + 1) has a quote that does not end" }
                let end = rest.firstIndex(of: comma) ?? rest.endIndex
                cell = String(decoding: rest[..<end], as: UTF8.self)
                rest = rest[end...]
            }
            cells.append(cell)
            guard !rest.isEmpty else { return (cells, problem) }
            rest.removeFirst()
        }
    }

    private static let quote = UInt8(ascii: "\"")
    private static let comma = UInt8(ascii: ",")

    /// Takes a cell that begins with a quote.
    /// - Returns: `nil` when it does not end with one, before a comma or the end: nothing is taken then.
    private static func quoted(_ rest: inout String.UTF8View.SubSequence) -> String? {
        var cell: [UInt8] = []
        var place = rest.index(after: rest.startIndex)
        while let end = rest[place...].firstIndex(of: quote) {
            cell += rest[place..<end]
            place = rest.index(after: end)
            switch place == rest.endIndex ? comma : rest[place] {
            case quote:
                cell.append(quote)
                place = rest.index(after: place)
            case comma:
                rest = rest[place...]
                return String(decoding: cell, as: UTF8.self)
            default: return nil
            }
        }
        return nil
    }

    static func line(_ cells: [String]) -> String {
        cells.map { cell in
            let isPlain = !cell.utf8.contains { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }
            return isPlain ? cell : "\"\(cell.replacing("\"", with: "\"\""))\""
        }.joined(separator: ",")
    }
}
