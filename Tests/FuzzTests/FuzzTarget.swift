// SPDX-License-Identifier: Apache-2.0

/// The parsers of everything that comes from outside, each with what must hold whatever it is given. `scripts/fuzz` looks
/// for bytes with which something does not; `CorpusTests` repeats those that were kept.
enum FuzzTarget: String, CaseIterable, Sendable {
    /// JSON documents.
    case json
    /// Records as CloudEvents in both modes.
    case envelope
    /// The data of all commands, events and results.
    case messages
    /// Records to all services: envelope, credential, scope, data, and what is written about those that are refused.
    case record
    /// Records one after the other, decided by all services, with what they tell each other.
    case story
    /// HTTP requests to the gateway, as far as the service that reads the command.
    case request
    /// JSON Web Tokens, authentication tokens of backends.
    case tokens
    /// The apps file.
    case apps
    /// The environment of services and the gateway, as lines `NAME=value`.
    case settings
    /// Whatever is one short text: times, MPIDs, addresses, topics, signatures, paths.
    case texts
    /// The inbox's column `receipt`.
    case receipt
    /// The outbox's column `messages`.
    case outbox
    /// Compressed request bodies.
    case gzip

    /// - Throws: `Broken`, when something does not hold that should.
    func run(_ bytes: [UInt8]) throws {
        switch self {
        case .json: try JSONTarget.run(bytes)
        case .envelope: try EnvelopeTarget.run(bytes)
        case .messages: try MessagesTarget.run(bytes)
        case .record: try RecordTarget.run(bytes)
        case .story: try StoryTarget.run(bytes)
        case .request: try RequestTarget.run(bytes)
        case .tokens: try TokensTarget.run(bytes)
        case .apps: try AppsTarget.run(bytes)
        case .settings: try SettingsTarget.run(bytes)
        case .texts: try TextsTarget.run(bytes)
        case .receipt: try ReceiptTarget.run(bytes)
        case .outbox: try OutboxTarget.run(bytes)
        case .gzip: try GzipTarget.run(bytes)
        }
    }
}

/// What should hold and does not.
struct Broken: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

func hold(_ condition: Bool, _ what: @autoclosure () -> String) throws(Broken) {
    if !condition { throw Broken(what()) }
}

extension [UInt8] {
    /// The bytes as text; what is not UTF-8 is replaced.
    var text: String { String(decoding: self, as: UTF8.self) }
}
