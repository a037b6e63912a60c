// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Supervision
import WireJSON

/// CSV (RFC 4180) with a header line. Rows of one user or profile that follow each other are one person: each has an install,
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
            header = first.cells
            // Spreadsheets write one.
            if header.first?.hasPrefix("\u{FEFF}") == true { header[0] = String(header[0].dropFirst()) }
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
            start: rows[0].start, end: rows[rows.count - 1].end)
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
    }

    private var lines: LineReader

    init(_ lines: LineReader) { self.lines = lines }

    /// Empty lines are passed over.
    mutating func next() throws -> Row? {
        while let line = try lines.next() {
            if line.bytes.isEmpty { continue }
            var row = Row(
                cells: [], problem: nil, line: line.number, nextLine: line.number + 1, start: line.start, end: line.end)
            var bytes = line.bytes
            // A quoted cell goes on in the next lines.
            while bytes.count(where: { $0 == UInt8(ascii: "\"") }) % 2 == 1 {
                guard bytes.count <= ImportItem.mostBytes, let more = try lines.next() else {
                    row.problem = "a quote that does not end"
                    break
                }
                bytes += [UInt8(ascii: "\n")] + more.bytes
                (row.end, row.nextLine) = (more.end, more.number + 1)
            }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                row.problem = "no UTF-8"
                row.cells = [String(decoding: bytes, as: UTF8.self)]
                return row
            }
            row.cells = Self.cells(text)
            return row
        }
        return nil
    }

    static func cells(_ text: String) -> [String] {
        var cells: [String] = []
        var cell: [UInt8] = []
        var isQuoted = false
        var bytes = text.utf8.makeIterator()
        var next = bytes.next()
        while let byte = next {
            next = bytes.next()
            switch byte {
            case UInt8(ascii: "\"") where isQuoted && next == UInt8(ascii: "\""):
                cell.append(byte)
                next = bytes.next()
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: ",") where !isQuoted:
                cells.append(String(decoding: cell, as: UTF8.self))
                cell = []
            default: cell.append(byte)
            }
        }
        return cells + [String(decoding: cell, as: UTF8.self)]
    }

    static func line(_ cells: [String]) -> String {
        cells.map { cell in
            let isPlain = !cell.utf8.contains { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }
            return isPlain ? cell : "\"\(cell.replacing("\"", with: "\"\""))\""
        }.joined(separator: ",")
    }
}
