// SPDX-License-Identifier: Apache-2.0

/// A plain text table. The first column is left-aligned, the others right-aligned.
struct Table {
    private var rows: [[String]]

    init(_ header: String...) { rows = [header] }

    mutating func add(_ cells: String...) { rows.append(cells) }

    /// The table's lines, each ended by a newline.
    var text: String {
        let columns = rows.map(\.count).max() ?? 0
        let widths = (0..<columns).map { column in
            rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
        }
        var lines = rows.map { row in
            row.enumerated().map { index, cell in
                let space = String(repeating: " ", count: widths[index] - cell.count)
                return index == 0 ? cell + space : space + cell
            }.joined(separator: "  ")
        }
        lines.insert(widths.map { String(repeating: "-", count: $0) }.joined(separator: "  "), at: 1)
        return lines.map { $0 + "\n" }.joined()
    }
}
