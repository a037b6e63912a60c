// SPDX-License-Identifier: Apache-2.0

import Storage

/// The command that has an id, as the inbox knows it or the batch before it is stored.
struct IDHolder {
    /// As much of its digest as the inbox keeps.
    private let digest: [UInt8]
    /// Nothing was done.
    let isRefused: Bool

    init(_ known: KnownCommand) { self.init(known.digest, known.verdict) }

    init(_ command: AcceptedCommand<some Sendable>, _ verdict: Verdict) { self.init(Self.kept(command), verdict) }

    private init(_ digest: [UInt8], _ verdict: Verdict) {
        (self.digest, isRefused) = (digest, verdict == .rejected || verdict == .expired)
    }

    /// Whether a command says the same.
    func isRepeated(by command: AcceptedCommand<some Sendable>) -> Bool { digest == Self.kept(command) }

    private static func kept(_ command: AcceptedCommand<some Sendable>) -> [UInt8] {
        Array(command.digest.prefix(Inbox.digestByteCount))
    }
}
