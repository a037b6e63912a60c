// SPDX-License-Identifier: Apache-2.0

package import Logging
import Synchronization

/// Keeps log lines for a test to look at.
package final class LogRecorder: Sendable {
    package struct Line: Sendable {
        package let level: Logger.Level
        package let text: String
        package let metadata: Logger.Metadata
    }

    private let storage = Mutex<[Line]>([])

    package init() {}

    package var lines: [Line] { storage.withLock { $0 } }

    package var logger: Logger {
        Logger(label: "messaging-tests") { _ in Handler(recorder: self) }
    }

    private struct Handler: LogHandler {
        let recorder: LogRecorder
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level = .debug

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            let line = Line(level: event.level, text: event.message.description, metadata: all)
            recorder.storage.withLock { $0.append(line) }
        }
    }
}
