// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import Glibc
import Observability
import Synchronization
package import WireJSON

/// Prints a line of the result.
package func say(_ line: String) { StandardOutput.write(line) }

/// Prints a part of the result for programs: one JSON line.
package func say(json value: JSONValue) { say(String(decoding: value.serialized(), as: UTF8.self).harmless) }

/// Writes a line to the error output, if that takes any.
package func complain(_ line: String) {
    LineWriter.standardError.write(Array("\(line)\n".utf8))
    LineWriter.standardError.flush()
}

/// What people look at, as opposed to files and pipes.
package enum Terminal {
    package static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }
    package static var isErrorOutput: Bool { isatty(STDERR_FILENO) == 1 }

    /// Whether nobody reads standard output any more, as behind `| head`, or it takes no more.
    package static var isOutputGone: Bool {
        if StandardOutput.problem != nil { return true }
        var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&output, 1, 0) == 1 && Int32(output.revents) & POLLERR != 0
    }

    /// The parser's help wants room for two columns: on a narrower terminal it ends the process.
    package static func widenHelp() {
        var size = winsize()
        let told = ProcessInfo.processInfo.environment[columns].flatMap(Int.init)
        let isAsked = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        if (told ?? (isAsked ? Int(size.ws_col) : narrowest)) < narrowest { setenv(columns, "\(narrowest)", 1) }
    }

    private static let narrowest = 40
    /// The terminal's, and no setting of ours.
    private static let columns = "COLUMNS"

    /// Lines of columns under each other, the last one as long as it is.
    package static func table(_ rows: [[String]]) -> [String] {
        let count = rows.map(\.count).max() ?? 0
        let widths = (0..<count).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            row.enumerated().map { column, text in
                column == row.count - 1 ? text : text + String(repeating: " ", count: widths[column] - text.count)
            }.joined(separator: "  ")
        }
    }

    /// Puts a text in the place of the line that was written so last. Where the error output is a terminal.
    package static func rewrite(_ text: String) { put("\r\(text)\u{1B}[K") }

    /// Writes a question, behind which the answer is typed.
    package static func ask(_ question: String) { put(question) }

    private static func put(_ text: String) {
        LineWriter.standardError.flush()
        let bytes = Array(text.utf8)
        _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
    }

    /// Whether standard output takes colours where nobody has said so: on a terminal, unless NO_COLOR forbids it.
    package static var hasColours: Bool {
        isOutput && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty
    }
}

/// Notices SIGINT and SIGTERM instead of dying of them.
package final class Interruption {
    private final class Flag: Sendable {
        let value = Atomic(false)
    }

    private let flag = Flag()
    private let sources: [any DispatchSourceSignal]

    package init() {
        let flag = flag
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { flag.value.store(true, ordering: .releasing) }
            source.activate()
            return source
        }
    }

    package var isRequested: Bool { flag.value.load(ordering: .acquiring) }
}
