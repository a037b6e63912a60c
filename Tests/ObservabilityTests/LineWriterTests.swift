// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

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

    @Test func aStalledReaderCostsLinesNotTime() {
        let pipe = LogPipe(nonBlocking: true)
        let writer = LineWriter(fileDescriptor: pipe.writer, patience: .milliseconds(30))
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 9_999) + [0x0A]
        let clock = ContinuousClock()
        let spent = clock.measure { for _ in 0..<200 { writer.write(line) } }
        #expect(spent < .seconds(2))
        #expect(writer.droppedLines > 150)

        let before = pipe.drain()
        writer.write(Array("after\n".utf8))
        writer.write(Array("again\n".utf8))
        let after = String(decoding: pipe.drain(), as: UTF8.self)
        // The pipe holds 65,536 bytes: the last line in it was cut off, so the next one brings its own line feed.
        #expect(before.last != 0x0A)
        #expect(after == "\nafter\nagain\n")
    }

    @Test(.enabled(if: access("/dev/ptmx", R_OK | W_OK) == 0))
    func onlyTerminalsGetColours() {
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        defer { close(terminal) }
        #expect(LineWriter(fileDescriptor: terminal).colours == (getenv("NO_COLOR") == nil))
        #expect(!LineWriter(fileDescriptor: LogPipe().writer).colours)
    }

    @Test func aClosedDescriptorIsNotFatal() {
        let writer = LineWriter(fileDescriptor: -1)
        writer.write(Array("lost\n".utf8))
        #expect(writer.droppedLines == 1)
        #expect(!writer.colours)
    }
}
