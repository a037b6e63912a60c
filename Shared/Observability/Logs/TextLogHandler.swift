// SPDX-License-Identifier: Apache-2.0

public import Logging

/// Writes one short line per log event: `03:04:05.678 INFO  label: message key=value key2="two words"`.
///
/// Times are UTC. Metadata follows the same rules as in `JSONLogHandler`, secrets included; nested metadata is shown as
/// JSON. Control characters are escaped, so a message can neither start a second line nor steer the terminal. The
/// level is coloured when the writer says that it leads to a terminal.
///
/// Threading: a value type; `log` may run on any thread and hands the finished line to the writer.
public struct TextLogHandler: LogHandler {
    public var logLevel: Logger.Level
    public var metadata: Logger.Metadata = [:]
    public var metadataProvider: Logger.MetadataProvider?

    private let label: String
    private let writer: LineWriter

    /// Creates a handler that writes to standard error unless told otherwise.
    public init(
        label: String, level: Logger.Level = .info, metadataProvider: Logger.MetadataProvider? = nil,
        writer: LineWriter = .standardError
    ) {
        self.label = label
        self.writer = writer
        self.metadataProvider = metadataProvider
        logLevel = level
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        let fields = LogFields.merged(handler: metadata, provider: metadataProvider, event: event)
        var line: [UInt8] = []
        line.reserveCapacity(256)
        Timestamp.now().appendTimeOfDay(to: &line)
        line += " \(levelName(event.level)) ".utf8
        JSONText.appendEscaped(label, quotes: false, to: &line)
        line += ": ".utf8
        JSONText.appendEscaped(event.message.description, quotes: false, to: &line)
        LogFields.appendText(fields, to: &line)
        line.append(UInt8(ascii: "\n"))
        writer.write(line)
    }

    private func levelName(_ level: Logger.Level) -> String {
        let name = level.rawValue.uppercased()
        let padded = name + String(repeating: " ", count: max(0, 5 - name.count))
        guard writer.colours else { return padded }
        let code =
            switch level {
            case .trace, .debug: "2"
            case .info: "32"
            case .notice: "36"
            case .warning: "33"
            case .error, .critical: "31"
            }
        return "\u{1B}[\(code)m\(padded)\u{1B}[0m"
    }
}
