// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import WireJSON

/// A dead letter as people name it: `link/9@0` is at offset 0 of partition 9 of the link service's topic.
struct LetterID: Hashable, Comparable, CustomStringConvertible, ExpressibleByArgument {
    var service: String
    var partition: Int32
    var offset: Int64

    init(service: String, partition: Int32, offset: Int64) {
        self.service = service
        self.partition = partition
        self.offset = offset
    }

    init?(argument: String) {
        guard let slash = argument.firstIndex(of: "/"), let at = argument.lastIndex(of: "@"), slash < at,
            let partition = Int32(argument[argument.index(after: slash)..<at]),
            let offset = Int64(argument[argument.index(after: at)...]), partition >= 0, offset >= 0
        else { return nil }
        self.init(service: String(argument[..<slash]), partition: partition, offset: offset)
    }

    var description: String { "\(service)/\(partition)@\(offset)" }

    static func < (left: LetterID, right: LetterID) -> Bool {
        (left.service, left.partition, left.offset) < (right.service, right.partition, right.offset)
    }
}

/// A record of a dead letter topic, taken apart. What stands in it was written by others.
struct Letter {
    /// What a record that is sent again has beside its own headers: the letter that it was. Signatures do not cover it.
    static let replayHeader = "dlq_replay"

    let id: LetterID
    let record: KafkaRecord
    let reason: String
    let step: String
    let error: String
    /// Where the record came from. The partition of a message that could not be delivered is -1.
    let origin: TopicPartition
    let originOffset: Int64
    /// When it was written there, in milliseconds since 1970; -1 when that is not known.
    let originTime: Int64
    /// As they were, without those of the letter.
    let headers: [Header]
    /// `nil` when no envelope can be read from it.
    let attributes: EventAttributes?
    /// Why.
    let unreadable: EnvelopeError?

    /// - Returns: `nil` for a record that is no dead letter.
    init?(_ record: KafkaRecord, of service: String) {
        // What the service adds stands behind what was there, and begins with this one.
        guard let start = record.headers.lastIndex(where: { $0.name == "dlq_reason" }) else { return nil }
        func text(_ name: String) -> String? {
            record.header(name).map { String(decoding: $0, as: UTF8.self) }
        }
        id = LetterID(
            service: service, partition: record.topicPartition.partition, offset: record.offset)
        self.record = record
        reason = text("dlq_reason") ?? ""
        step = text("dlq_step") ?? ""
        error = text("dlq_error") ?? ""
        origin = TopicPartition(
            topic: text("dlq_original_topic") ?? "",
            partition: text("dlq_original_partition").flatMap { Int32($0) } ?? -1)
        originOffset = text("dlq_original_offset").flatMap { Int64($0) } ?? -1
        originTime = text("dlq_original_timestamp").flatMap { Int64($0) } ?? -1
        headers = record.headers[..<start].filter { $0.name != Self.replayHeader }
        do throws(EnvelopeError) {
            attributes = try EnvelopeReader.open(value: record.value, headers: headers).attributes
            unreadable = nil
        } catch {
            attributes = nil
            unreadable = error
        }
    }

    var place: LetterPlace {
        LetterPlace(partition: id.partition, offset: id.offset, written: record.timestampMs)
    }

    /// As it stands on the record that is sent again.
    var replayMark: String { "\(record.topicPartition)@\(record.offset)" }

    var key: String? { record.key.map { String(decoding: $0, as: UTF8.self) } }

    /// The app as the record says it, whether that is so or not.
    var app: String? {
        attributes?.appID ?? key.flatMap { key in key.firstIndex(of: "/").map { String(key[..<$0]) } }
    }

    /// The key that it says it was signed with.
    var signer: String? {
        headers.last { $0.name == HeaderName.signature }?.value.flatMap { Signature(header: $0) }?.keyID
    }

    /// Whether the service has found the signature right: it looks at keys that are over, and at who may send what, only then.
    var isSignatureRight: Bool {
        switch step {
        case DeadLetter.Step.decide.rawValue: true
        case DeadLetter.Step.authenticate.rawValue:
            ["KEY_EXPIRED", "KEY_REVOKED"].contains(reason) || isCommand && reason == "PRINCIPAL_INVALID"
        default: false
        }
    }

    var signature: Header? { headers.last { $0.name == HeaderName.signature } }

    /// What a letter is in the way of: another one with the same lane comes after it. `nil`: of nothing.
    var lane: String? { key.map { "\(id.service)/\($0)" } }

    /// Of a record that is larger than a letter may be, only the beginning is kept.
    var isCut: Bool { record.header("dlq_value_bytes") != nil }
    var isWithheld: Bool { record.header("dlq_value") != nil }
    var wholeSize: Int {
        record.header("dlq_value_bytes").flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? record.value?.count
            ?? 0
    }

    /// Whether it is a command, and not an event or a reply that could not be read or delivered.
    var isCommand: Bool { step != DeadLetter.Step.publish.rawValue && Topics.isOfCommands(origin.topic) }

    /// Why no service can read it, wherever it is sent; `nil` for what a service has made and could not deliver.
    var refusal: EnvelopeError? { step == DeadLetter.Step.publish.rawValue ? nil : unreadable }

    /// The data and what stands around it.
    func event() -> CloudEvent<JSONValue>? { try? EnvelopeReader.read(value: record.value, headers: headers) }

    /// The final answer that the sender has got, in words; `nil` for none.
    var told: String? {
        guard isCommand, attributes != nil else { return nil }
        switch step {
        case DeadLetter.Step.authenticate.rawValue: return "rejected UNAUTHENTICATED"
        default: return "rejected \(reason)"
        }
    }
}

/// Which letters somebody means.
struct LetterChoice {
    /// Empty: of all.
    var ids: Set<LetterID> = []
    var services: Set<String> = []
    var reason: String?
    var app: String?
    /// `*` stands for anything.
    var key: String?
    /// Short or in full.
    var type: String?
    var since: Timestamp?
    var until: Timestamp?

    /// Whether anything is chosen at all.
    var isEmpty: Bool { ids.isEmpty && services.isEmpty && isAnywhere }

    private var isAnywhere: Bool {
        [reason, app, key, type].allSatisfy { $0 == nil } && since == nil && until == nil
    }

    func contains(_ letter: Letter) -> Bool {
        if !ids.isEmpty, !ids.contains(letter.id) { return false }
        if !services.isEmpty, !services.contains(letter.id.service) { return false }
        if let reason, letter.reason.lowercased() != reason.lowercased() { return false }
        if let type, letter.attributes?.type != CommandType.fullName(type) { return false }
        return RecordFilter(app: nil, key: key, since: since, until: until).passes(letter.record)
            && (app == nil || letter.app == app)
    }
}
