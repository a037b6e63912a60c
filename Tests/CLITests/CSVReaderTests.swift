// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CLI

/// docs/command-line.md, "import".
@Suite struct CSVReaderTests {
    @Test(arguments: [
        ("", [""]), ("a,b", ["a", "b"]), ("a,", ["a", ""]), (",,", ["", "", ""]),
        ("\"a,b\",c", ["a,b", "c"]), ("\"say \"\"hi\"\"\",", ["say \"hi\"", ""]), ("\"\"", [""]),
        // Quotes that do not stand around the cell are characters.
        ("5\" tall,b", ["5\" tall", "b"]), ("an \"odd\" name", ["an \"odd\" name"]), ("a\"\",", ["a\"\"", ""]),
        // A broken line keeps its cells.
        ("\"a\"b,c", ["\"a\"b", "c"]), ("a,\"b,c", ["a", "\"b", "c"]),
    ])
    func cells(_ line: String, _ cells: [String]) {
        #expect(CSVRows.cells(line).cells == cells)
    }

    @Test(arguments: [("\"a\"b,c", 1), ("a,\"b,c", 2), ("\"", 1), ("a,b,\"c\"\" ", 3)])
    func aQuoteThatDoesNotEnd(_ line: String, _ cell: Int) {
        #expect(CSVRows.cells(line).problem == "cell \(cell) has a quote that does not end")
    }

    @Test(arguments: ["a,b", "\"a,b\",c", "5\" tall", "\"say \"\"hi\"\"\""]) func aGoodLine(_ line: String) {
        #expect(CSVRows.cells(line).problem == nil)
    }

    /// What an errors file has is read again as it was.
    @Test func thereAndBack() {
        let cells = ["a", "5\" tall", "\"b", "c,d", "", "\""]
        #expect(CSVRows.cells(CSVRows.line(cells)).cells == cells)
    }
}
