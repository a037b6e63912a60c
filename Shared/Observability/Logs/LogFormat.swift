// SPDX-License-Identifier: Apache-2.0

public import Logging

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
