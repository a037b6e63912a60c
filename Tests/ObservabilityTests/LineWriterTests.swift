// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Logging
import Testing

@testable import Observability

@Suite struct LineWriterTests {
    @Test func concurrentLinesStayWhole() async throws {
        let pipe = LogPipe()
        let writer = LineWriter(fileDescriptor: pipe.writer)
        let collected = Task.detached {
            var content: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 4_096)
            while content.count < 400 * 9_001 {
                let count = read(pipe.reader, &chunk, chunk.count)
                if count > 0 { content += chunk[..<count] }
            }
            return content
        }
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    let letter = UInt8(ascii: "a") + UInt8(task)
                    for _ in 0..<100 { writer.write(Array(repeating: letter, count: 9_000) + [0x0A]) }
                }
            }
        }
        let lines = await collected.value.split(separator: 0x0A)
        #expect(lines.count == 400)
        #expect(lines.allSatisfy { $0.count == 9_000 && Set($0).count == 1 })
        #expect(writer.droppedLines == 0)
    }

    /// A collector that stalls: the pipe is full, and whoever logs goes on.
    @Test(arguments: [false, true]) func aStalledReaderCostsLinesNotTime(_ nonBlocking: Bool) {
        let pipe = LogPipe(nonBlocking: nonBlocking)
        let writer = LineWriter(fileDescriptor: pipe.writer, capacity: 100_000)
        let spent = ContinuousClock().measure {
            for number in 0..<2000 { writer.write(line(number)) }
        }
        #expect(spent < .seconds(20))
        let dropped = writer.droppedLines
        #expect(dropped > 1500)

        // What got into the queue comes out whole and in order once it is read, and all lines after that.
        var read = pipe.drain(lines: 2000 - dropped)
        writer.write(line(2000))
        read += pipe.drain(lines: 1)
        let numbers = read.split(separator: 0x0A).map { Int(String(decoding: $0.prefix(4), as: UTF8.self)) ?? -1 }
        #expect(numbers.count == 2001 - dropped && numbers == numbers.sorted() && numbers.last == 2000)
        #expect(read.split(separator: 0x0A).allSatisfy { $0.count == 999 })
        #expect(writer.droppedLines == dropped)
    }

    private func line(_ number: Int) -> [UInt8] {
        let digits = String(number)
        return Array((String(repeating: "0", count: 4 - digits.count) + digits).utf8)
            + [UInt8](repeating: UInt8(ascii: "x"), count: 995) + [0x0A]
    }

    @Test func flushWaitsForTheLastLineAndNotForEver() {
        let pipe = LogPipe()
        let writer = LineWriter(fileDescriptor: pipe.writer)
        for number in 0..<50 { writer.write(line(number)) }
        writer.flush(within: .seconds(60))
        #expect(pipe.readNow().count == 50_000)
        for number in 0..<500 { writer.write(line(number)) }
        #expect(ContinuousClock().measure { writer.flush(within: .milliseconds(50)) } < .seconds(20))
        _ = pipe.drain()
    }

    @Test(.enabled(if: access("/dev/ptmx", R_OK | W_OK) == 0))
    func onlyTerminalsGetColours() {
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        defer { close(terminal) }
        let noColour = ProcessInfo.processInfo.environment["NO_COLOR"] ?? ""
        #expect(LineWriter(fileDescriptor: terminal).colours == noColour.isEmpty)
        #expect(!LineWriter(fileDescriptor: LogPipe().writer).colours)
    }

    @Test func aClosedDescriptorIsNotFatal() {
        let writer = LineWriter(fileDescriptor: -1)
        writer.write(Array("lost\n".utf8))
        writer.flush()
        #expect(writer.droppedLines == 1)
        #expect(!writer.colours)
    }
}
