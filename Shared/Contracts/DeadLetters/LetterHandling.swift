// SPDX-License-Identifier: Apache-2.0

import WireJSON

/// A dead letter in its service's topic. With the time of its record: a topic that was made anew gives its offsets out
/// again.
package struct LetterPlace: Sendable, Hashable {
    package var partition: Int32
    package var offset: Int64
    /// Milliseconds since 1970, by whichever clock the topic has.
    package var written: Int64

    package init(partition: Int32, offset: Int64, written: Int64) {
        self.partition = partition
        self.offset = offset
        self.written = written
    }
}

/// What an operator does about a dead letter: the data of a record on `identity.<service>.dlq-actions.v1`
/// (docs/contracts.md "Handling dead letters").
package struct LetterHandling: Sendable, Hashable {
    package static let type = "identity.dlq.handling.v1"
    /// All records stand in one partition, so that everybody reads them in one order.
    package static let partition: Int32 = 0

    package enum Act: String, Sendable, Hashable, CaseIterable {
        /// A run is about to send the letter, and nobody else may for as long as ``HandledLetters/lease``.
        case claimed
        /// The run that has claimed it does not send it after all.
        case released
        /// The letter's command stands on its topic again.
        case sent
        /// What the service answered to that.
        case answered
        /// Nobody will send it.
        case dismissed
    }

    /// The command that was sent.
    package struct Command: Sendable, Hashable {
        package var id: String?
        package var place: TopicPartition
        package var offset: Int64
        /// The key that it was signed with anew; `nil` where the signature is the first one.
        package var keyID: String?
        /// Whether it says something else than the letter.
        package var isEdited: Bool

        package init(id: String?, place: TopicPartition, offset: Int64, keyID: String?, isEdited: Bool) {
            self.id = id
            self.place = place
            self.offset = offset
            self.keyID = keyID
            self.isEdited = isEdited
        }
    }

    package struct Answer: Sendable, Hashable {
        /// A ``ReplyStatus``, or a word of a later version.
        package var status: String
        package var reason: String?

        package init(status: String, reason: String?) {
            self.status = status
            self.reason = reason
        }

        /// Of what nobody answers: it stands on its topic, and that is all.
        package static let delivered = Answer(status: "delivered", reason: nil)

        /// Of a command that was sent although no service can read it: nobody answers, and it becomes a dead letter again.
        package static func unreadable(_ reason: String) -> Answer { Answer(status: "unreadable", reason: reason) }

        /// Whether what comes behind it may follow.
        package var isGood: Bool {
            [ReplyStatus.succeeded.rawValue, ReplyStatus.pending.rawValue, Self.delivered.status].contains(status)
        }
        package var text: String { [status, reason].compactMap(\.self).joined(separator: " ") }
    }

    /// The record's own.
    package var id: String
    package var act: Act
    package var letter: LetterPlace
    /// One call of a command of an operator.
    package var run: String
    /// Who it was, as they say themselves.
    package var by: String
    /// Why, in their words.
    package var note: String?
    package var command: Command?
    package var answer: Answer?
    /// Of a claim: the digest of the record that its run is about to send, so that others know it when they see it.
    package var digest: String?
    /// When the record was written, in milliseconds since 1970; of one that is read.
    package var time: Int64
    /// Whether the broker has said so, and not whoever wrote it.
    package var isDated: Bool

    package init(
        _ act: Act, _ letter: LetterPlace, id: String, run: String, by: String, note: String? = nil,
        command: Command? = nil, answer: Answer? = nil, digest: String? = nil, time: Int64 = -1, isDated: Bool = true
    ) {
        self.id = id
        self.act = act
        self.letter = letter
        self.run = run
        self.by = by
        self.note = note
        self.command = command
        self.answer = answer
        self.digest = digest
        self.time = time
        self.isDated = isDated
    }
}

// MARK: Wire form

extension LetterHandling {
    package func record(to topic: String, service: String, key: [UInt8]?, now: Timestamp) throws -> Record {
        var attributes = EventAttributes(id: id, source: Topics.toolSource, type: Self.type, time: now.rfc3339)
        attributes.subject = "\(service)/\(letter.partition)@\(letter.offset)"
        return Record(
            topic: topic, key: key, value: try CloudEvent(attributes: attributes, data: data).encoded(),
            headers: [Header(HeaderName.contentType, HeaderName.structuredContentType)], partition: Self.partition)
    }

    private var data: JSONValue {
        var data: JSONObject = [
            "act": .string(act.rawValue),
            "letter": [
                "partition": .number(JSONNumber(letter.partition)), "offset": .number(JSONNumber(letter.offset)),
                "written": .number(JSONNumber(letter.written)),
            ],
            "run": .string(run), "by": .string(by),
        ]
        if let note { data["reasonText"] = .string(note) }
        if let digest { data["digest"] = .string(digest) }
        if let command {
            var object: JSONObject = [:]
            if let id = command.id { object["id"] = .string(id) }
            object["topic"] = .string(command.place.topic)
            object["partition"] = .number(JSONNumber(command.place.partition))
            object["offset"] = .number(JSONNumber(command.offset))
            if let keyID = command.keyID { object["keyId"] = .string(keyID) }
            if command.isEdited { object["edited"] = true }
            data["command"] = .object(object)
        }
        if let answer {
            var object: JSONObject = ["status": .string(answer.status)]
            if let reason = answer.reason { object["reason"] = .string(reason) }
            data["answer"] = .object(object)
        }
        return .object(data)
    }

    /// - Returns: `nil` for what is no handling, or one of a later version.
    package init?(_ record: KafkaRecord) {
        guard record.topicPartition.partition == Self.partition, let value = record.value,
            let envelope = try? JSONValue(parsing: value), envelope["type"]?.stringValue == Self.type,
            let data = envelope["data"], let act = data["act"]?.stringValue.flatMap(Act.init(rawValue:)),
            let letter = data["letter"], let partition = letter["partition"]?.int64Value,
            let offset = letter["offset"]?.int64Value, let written = letter["written"]?.int64Value,
            let number = Int32(exactly: partition), let run = data["run"]?.stringValue
        else { return nil }
        self.init(
            act, LetterPlace(partition: number, offset: offset, written: written),
            id: envelope["id"]?.stringValue ?? "", run: run, by: data["by"]?.stringValue ?? "?",
            note: data["reasonText"]?.stringValue,
            command: data["command"].flatMap(Command.init), answer: data["answer"].flatMap(Answer.init),
            digest: data["digest"]?.stringValue, time: record.timestampMs, isDated: record.clock == .broker)
    }
}

extension LetterHandling.Command {
    fileprivate init?(_ value: JSONValue) {
        guard let topic = value["topic"]?.stringValue,
            let partition = value["partition"]?.int64Value.flatMap({ Int32(exactly: $0) }),
            let offset = value["offset"]?.int64Value
        else { return nil }
        self.init(
            id: value["id"]?.stringValue, place: TopicPartition(topic: topic, partition: partition), offset: offset,
            keyID: value["keyId"]?.stringValue, isEdited: value["edited"] == true)
    }
}

extension LetterHandling.Answer {
    fileprivate init?(_ value: JSONValue) {
        guard let status = value["status"]?.stringValue else { return nil }
        self.init(status: status, reason: value["reason"]?.stringValue)
    }
}
