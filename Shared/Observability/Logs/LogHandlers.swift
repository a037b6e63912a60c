// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Logging

/// Writes one JSON object per log event:
/// `{"time":"2026-01-02T03:04:05.678Z","level":"info","logger":"label","event":"…","message":"…","fields":{…}}`.
///
/// `event` is the metadata of that key: the stable name of what happened, while messages may be worded anew. `fields`
/// holds the rest of the metadata, sorted by key; both are left out when there is none. Dictionaries and arrays stay
/// nested, numbers and booleans given as such (`.stringConvertible`) stay that; every other value is a string. Later sources win: handler metadata, then
/// the provider's, then the event's. An event's error becomes `error.message` and `error.type`. The values of secret
/// keys (`Redaction`) are never written. Control characters are escaped, so an event is always exactly one line.
///
/// Threading: a value type; `log` may run on any thread and hands the finished line to the writer.
public struct JSONLogHandler: LogHandler {
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
        var fields = LogFields.merged(handler: metadata, provider: metadataProvider, event: event)
        var line: [UInt8] = []
        line.reserveCapacity(256)
        line += "{\"time\":\"".utf8
        line += Timestamp.now.rfc3339.utf8
        line += "\",\"level\":\"".utf8
        line += event.level.rawValue.utf8
        line += "\",\"logger\":".utf8
        HarmlessText.append(label, to: &line)
        if let event = LogFields.takeEvent(&fields) {
            line += ",\"event\":".utf8
            HarmlessText.append(event, to: &line)
        }
        line += ",\"message\":".utf8
        HarmlessText.append(event.message.description, to: &line)
        if !fields.isEmpty {
            line += ",\"fields\":".utf8
            LogFields.appendJSON(fields, to: &line)
        }
        line += "}\n".utf8
        writer.write(line)
    }
}

/// Writes one short line per log event: `2026-01-02T03:04:05.678Z INFO  label event: message key=value
/// key2="two words"`.
///
/// Metadata follows the same rules as in `JSONLogHandler`, secrets included; nested metadata is shown as
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
        var fields = LogFields.merged(handler: metadata, provider: metadataProvider, event: event)
        var line: [UInt8] = []
        line.reserveCapacity(256)
        line += Timestamp.now.rfc3339.utf8
        line += " \(levelName(event.level)) ".utf8
        HarmlessText.appendEscaped(label, quotes: false, to: &line)
        if let event = LogFields.takeEvent(&fields) {
            line += " ".utf8
            HarmlessText.appendEscaped(event, quotes: false, to: &line)
        }
        line += ": ".utf8
        HarmlessText.appendEscaped(event.message.description, quotes: false, to: &line)
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

/// How log lines look. The raw values are the words used in configuration.
public enum LogFormat: String, Sendable, CaseIterable {
    /// One JSON object per line, for collectors.
    case json
    /// One short readable line, for people at a terminal.
    case text

    /// A handler for this format, in the shape that `LoggingSystem.bootstrap` wants:
    ///
    /// ```swift
    /// LoggingSystem.bootstrap(
    ///     { label, provider in format.handler(label: label, level: level, metadataProvider: provider) },
    ///     metadataProvider: nil)
    /// ```
    public func handler(
        label: String, level: Logger.Level = .info, metadataProvider: Logger.MetadataProvider? = nil,
        writer: LineWriter = .standardError
    ) -> any LogHandler {
        switch self {
        case .json: JSONLogHandler(label: label, level: level, metadataProvider: metadataProvider, writer: writer)
        case .text: TextLogHandler(label: label, level: level, metadataProvider: metadataProvider, writer: writer)
        }
    }
}
