// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Runtime
import Supervision
import WireJSON

/// Why a letter cannot be sent, or asked about.
struct Hindrance: Error {
    /// Such as `KEY_EXPIRED`.
    var reason: String
    var words: String

    init(_ reason: String, _ words: String) {
        self.reason = reason
        self.words = words
    }

    var text: String { "\(reason): \(words)" }
}

/// A letter as it is sent again.
struct Outgoing {
    var letter: Letter
    var record: Record
    /// Of a command.
    var event: CloudEvent<JSONValue>?
    /// The key that it is signed with anew.
    var keyID: KeyID?
    var isEdited = false

    init(
        letter: Letter, record: Record, event: CloudEvent<JSONValue>? = nil, keyID: KeyID? = nil, isEdited: Bool = false
    ) {
        (self.letter, self.record, self.event, self.keyID, self.isEdited) = (letter, record, event, keyID, isEdited)
    }

    /// What somebody has sent in the place of the letter.
    init(_ letter: Letter, found: KafkaRecord) {
        let event = try? EnvelopeReader.read(value: found.value, headers: found.headers)
        let original = letter.event()
        let signature = found.header(HeaderName.signature)
        let isSignedAnew = signature != letter.signature?.value
        self.init(
            letter: letter,
            record: Record(
                topic: found.topicPartition.topic, key: found.key, value: found.value, headers: found.headers),
            event: event,
            keyID: isSignedAnew ? signature.flatMap { Signature(header: $0) }.map { KeyID($0.keyID) } : nil,
            isEdited: event?.attributes.type != original?.attributes.type || event?.data != original?.data)
    }

    var digest: String { RecordDigest.text(key: record.key, value: record.value, headers: record.headers) }

    /// What an answer to it names; `nil` where nobody answers.
    func question(isDryRun: Bool) -> ReplyTail.Question? {
        guard letter.isCommand, let event else { return nil }
        return ReplyTail.Question(
            commandID: CommandID(event.attributes.id),
            digest: CommandDigest.text(type: event.attributes.type, data: event.data), isDryRun: isDryRun)
    }
}

/// What stands for a record wherever it stands: SHA-256 of its key, its value and its headers in their order, signature
/// included; each with its length before it. In hex.
enum RecordDigest {
    static func text(key: [UInt8]?, value: [UInt8]?, headers: [Header]) -> String {
        var hash = SHA256()
        func add(_ bytes: [UInt8]?) {
            let length = Int64(bytes?.count ?? -1)
            withUnsafeBytes(of: length.bigEndian) { hash.update(bufferPointer: $0) }
            hash.update(data: bytes ?? [])
        }
        add(key)
        add(value)
        for header in headers {
            add(Array(header.name.utf8))
            add(header.value)
        }
        return hash.finalize().hex
    }
}

/// Makes records of letters. What the services would refuse for sure, as far as this machine knows, is not sent.
struct LetterPost {
    private let deployment: Deployment
    private let topics: Topics
    private let apps: AppDirectory?
    private let authenticator: Authenticator?
    /// `nil`: everything keeps its signature.
    let signAs: KeyID?
    /// Whether what would be refused is sent all the same.
    let isForced: Bool

    init(_ deployment: Deployment, signAs: KeyID?, isForced: Bool = false) throws {
        self.deployment = deployment
        self.signAs = signAs
        self.isForced = isForced
        topics = deployment.topics
        // Without the file what keeps its signature can be sent all the same.
        apps = signAs == nil ? try? deployment.appDirectory() : try deployment.appDirectory()
        let trusts = try EnvironmentSettings(ProcessInfo.processInfo.environment)
            .choice("IDENTITYBUS_TRUST", default: Authenticator.Trust.signed)
        let keys = try deployment.keys()
        authenticator = apps.map { Authenticator(trust: trusts, apps: $0, keys: keys, topics: deployment.topics) }
        if let signAs { try check(signAs) }
    }

    /// - Throws: `Problem` when no app has such a key.
    private func check(_ keyID: KeyID) throws {
        guard let apps, ![Signature.internalKeyID, Signature.gatewayKeyID].contains(keyID.text), !apps.ownsKey(keyID)
        else { return }
        let known = Set(apps.ids.compactMap { apps[$0] }.flatMap { $0.keys.keys.map(\.text) }).sorted()
        let guess = nearest(to: keyID.text, in: known + [Signature.internalKeyID]).map { " Did you mean \($0)?" } ?? ""
        throw Problem(
            .usage, "no app of \(deployment.appsPath) has a key \(keyID).\(guess)",
            "Nothing was done. There are: \((known + [Signature.internalKeyID]).joined(separator: ", ")).")
    }

    // MARK: Sending again

    func outgoing(_ letter: Letter) throws(Hindrance) -> Outgoing {
        if letter.isWithheld {
            throw Hindrance(
                "WITHHELD",
                "the letter is without its value, which holds a secret: let the sender ask again; dismiss it")
        }
        if letter.isCut {
            throw Hindrance(
                "CUT",
                "the letter has only the beginning of its \(letter.wholeSize) bytes: let the sender send it anew; dismiss it"
            )
        }
        if let refusal = letter.refusal, !isForced {
            let way = letter.isCommand ? "dismiss it, or try edit" : "dismiss it"
            throw Hindrance(refusal.reason.rawValue, "no service can read it; \(way)")
        }
        let mark = Header(Letter.replayHeader, letter.replayMark)
        guard letter.isCommand else {
            if signAs != nil {
                throw Hindrance("NO_COMMAND", "only commands can be signed anew, and this is none: leave out --sign-as")
            }
            return Outgoing(
                letter: letter,
                record: Record(
                    topic: letter.origin.topic, key: letter.record.key, value: letter.record.value,
                    headers: letter.headers + [mark]))
        }
        guard let signAs, let event = letter.event() else {
            let record = Record(
                topic: letter.origin.topic, key: letter.record.key, value: letter.record.value,
                headers: letter.headers + [mark])
            let outgoing = Outgoing(letter: letter, record: record, event: letter.event())
            try check(outgoing)
            return outgoing
        }
        return try signed(letter, event, as: signAs)
    }

    /// - Parameters:
    ///   - event: what the command says; its attributes stay but for who signs.
    ///   - key: of the record; `nil` for the letter's.
    func signed(
        _ letter: Letter, _ event: CloudEvent<JSONValue>, as keyID: KeyID, key: [UInt8]? = nil
    ) throws(Hindrance) -> Outgoing {
        var event = event
        if keyID.text == Signature.internalKeyID {
            // Who sent it may do no more than before.
            if let signer = letter.signer, !Signature.reservedKeyIDs.contains(signer) {
                (event.attributes.authType, event.attributes.authID) = ("api_key", signer)
            }
        } else {
            (event.attributes.authType, event.attributes.authID) = (nil, nil)
        }
        var record = try sealed(event, to: letter.origin.topic, key: key ?? letter.record.key, keyID)
        record.headers.append(Header(Letter.replayHeader, letter.replayMark))
        let outgoing = Outgoing(letter: letter, record: record, event: event, keyID: keyID)
        try check(outgoing)
        return outgoing
    }

    private func sealed(
        _ event: CloudEvent<JSONValue>, to topic: String, key: [UInt8]?, _ keyID: KeyID
    ) throws(Hindrance) -> Record {
        let app = AppID(event.attributes.appID ?? "")
        do {
            let secret: SymmetricKey? =
                keyID.text == Signature.gatewayKeyID
                ? try deployment.keys().signing(.gateway) : try deployment.secret(app: app, keyID: keyID)
            guard let secret else {
                throw Problem(.setting, "the key \(keyID) is not known here")
            }
            return try Seal(keyID.text, secret).record(to: topic, key: key, event.attributes, event.data)
        } catch {
            throw Hindrance("KEY_UNKNOWN", Problem(error).what)
        }
    }

    /// What a service would say of the sender, where this machine has the apps file.
    private func check(_ outgoing: Outgoing) throws(Hindrance) {
        guard !isForced, let authenticator, let event = outgoing.event else { return }
        let record = outgoing.record
        let read = KafkaRecord(
            topicPartition: TopicPartition(topic: record.topic, partition: 0), offset: 0, key: record.key,
            value: record.value, headers: record.headers)
        do throws(AuthenticationFailure) {
            _ = try authenticator.authenticate(read, event.attributes, now: .now)
        } catch {
            // A key of the deployment that is not on this machine: nobody knows.
            let signer = record.headers.last { $0.name == HeaderName.signature }?.value
                .flatMap { Signature(header: $0) }?.keyID
            if error.reason == .keyUnknown, let signer, Signature.reservedKeyIDs.contains(signer) { return }
            throw Hindrance(
                error.reason.rawValue, "by \(deployment.appsPath) it would be a dead letter again: \(error.detail)")
        }
    }

    // MARK: Asking

    /// The same command as a dry run, signed with the same key.
    func question(_ outgoing: Outgoing) throws(Hindrance) -> Record {
        guard outgoing.letter.isCommand, var event = outgoing.event else {
            throw Hindrance("NO_COMMAND", "it is no command, so no service says what it would do")
        }
        let signer = outgoing.keyID ?? outgoing.letter.signer.map { KeyID($0) }
        guard let signer else { throw Hindrance("SIGNATURE_MISSING", "nobody signed it") }
        event.attributes.dryRun = "true"
        return try sealed(event, to: outgoing.record.topic, key: outgoing.record.key, signer)
    }

    /// Where the services may answer these.
    func replyTopics(_ letters: [Letter]) -> Set<String> {
        var names: Set<String> = [topics.replies]
        for letter in letters where letter.isCommand {
            guard let attributes = letter.attributes else { continue }
            if let named = attributes.replyTo, let topic = topics.replyTopic(named) { names.insert(topic) }
            if let app = attributes.appID, let own = apps?[AppID(app)]?.replies { names.insert(topics.prefix + own) }
        }
        return names
    }
}
