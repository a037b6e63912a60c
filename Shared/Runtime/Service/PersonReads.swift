// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Logging
import Metrics
import Storage
import WireJSON

/// Whom a command is about (``CommandMessage/subject``), as its data says it.
struct PersonAsked: Sendable, Hashable {
    var kind: String
    var name: String

    static func reader<Message: CommandMessage>(_: Message.Type) -> @Sendable (JSONView) -> PersonAsked? {
        { data in
            guard let command = try? WireJSONDecoder().read(Message.self, from: data) else { return nil }
            return PersonAsked(kind: command.subject.kind, name: command.subject.name)
        }
    }

    /// The same for the same name in the same app, and nothing that the name can be guessed from without the store's salt:
    /// 32 hexadecimal digits.
    func digest(in app: AppID, _ secrets: DerivedSecrets) -> String {
        secrets.bytes("person-read", [app.text, kind, name]).prefix(16).hex
    }
}

/// Says in the log who has read what about whom, and counts it (docs/operations.md "Who reads about people"). Whoever holds
/// the right to read holds everybody's data: this is how it is seen what they do with it.
struct PersonReads {
    let service: String
    let logger: Logger

    /// To be called when a batch is committed, before its answers go out.
    /// - Parameter entries: what the batch came to.
    func note<Command: Sendable>(_ batch: [Inbound<Command>], _ entries: [Entry], _ secrets: DerivedSecrets) {
        for inbound in batch {
            guard let command = inbound.accepted, let asked = command.isAbout,
                let entry = entries.first(where: { $0.isOf(command.record) }), entry.tells,
                command.isQuestion || command.learns(entry)
            else { continue }
            note(command, asked, entry, secrets)
        }
    }

    private func note<Command: Sendable>(
        _ command: AcceptedCommand<Command>, _ asked: PersonAsked, _ entry: Entry, _ secrets: DerivedSecrets
    ) {
        let app = command.key.app
        let reader = command.principal.kind.authID
        Counter(
            label: "identity_person_reads", dimensions: [("service", service), ("app", app.text), ("key", reader)]
        ).increment()
        var metadata: Logger.Metadata = [
            "event": "person.read", "service": "\(service)", "app": "\(app)", "authid": "\(reader)",
            "type": "\(command.attributes.type)", "subject": "\(asked.digest(in: app, secrets))",
            "outcome": "\(entry.outcome.rawValue)", "ref": "\(command.key.id)",
        ]
        if let reason = entry.reason { metadata["reason"] = "\(reason)" }
        logger.notice("somebody reads about a person", metadata: metadata)
    }
}

extension AcceptedCommand {
    /// Whether somebody outside learns about the person although nothing is changed, so that no event says who has asked: by a
    /// dry run, or by hand, of what is so already.
    fileprivate func learns(_ entry: Entry) -> Bool {
        principal.kind != .service && !entry.messages.contains { $0.role == .event }
    }
}

extension Entry {
    fileprivate func isOf(_ record: KafkaRecord) -> Bool {
        position.offset == record.offset && place == record.topicPartition
    }

    /// Whether whoever asked learns anything of the person, also that there is none.
    fileprivate var tells: Bool { outcome != .expired && reason != ReasonCode.idReused.rawValue }
}

extension Principal.Kind {
    /// Whose key or token it is; one of the deployment's own services is `internal`.
    fileprivate var authID: String {
        switch self {
        case .apiKey(let id): id.text
        case .user(let id): id.text
        case .install(let creation), .expiredInstall(let creation): creation
        case .service: Signature.internalKeyID
        }
    }
}
