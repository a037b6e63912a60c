// SPDX-License-Identifier: Apache-2.0

public import Logging

/// Writes one JSON object per log event:
/// `{"time":"2026-01-02T03:04:05.678Z","level":"info","logger":"label","message":"…","fields":{…}}`.
///
/// `fields` holds the metadata, sorted by key, and is left out when there is none. Dictionaries and arrays stay nested;
/// every other value is a string, so that one key never changes its type. Later sources win: handler metadata, then
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
        let fields = LogFields.merged(handler: metadata, provider: metadataProvider, event: event)
        var line: [UInt8] = []
        line.reserveCapacity(256)
        line += "{\"time\":\"".utf8
        Timestamp.now().appendRFC3339(to: &line)
        line += "\",\"level\":\"".utf8
        line += event.level.rawValue.utf8
        line += "\",\"logger\":".utf8
        JSONText.append(label, to: &line)
        line += ",\"message\":".utf8
        JSONText.append(event.message.description, to: &line)
        if !fields.isEmpty {
            line += ",\"fields\":".utf8
            LogFields.appendJSON(fields, to: &line)
        }
        line += "}\n".utf8
        writer.write(line)
    }
}
