// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Messaging
import Observability
import Supervision
import WireJSON

struct DLQShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows one dead letter: what it says, what was answered, what came after, what would happen now.",
        discussion: """
            What would happen now is asked by a dry run, a question on the commands topic that leaves nothing but its \
            answer; --no-questions asks nobody. Codes, tokens and app secrets are hidden unless --show-secrets is given. Of \
            what is no envelope only length, digest and kind are shown, unless --raw is given.
            """)

    @Argument(help: "The letter, such as link/9@0.")
    var letter: LetterID

    @Option(help: "Ask what would happen if it were signed anew with this key of its app.")
    var signAs: KeyID?

    @Flag(help: "Do not ask a service what would happen: write nothing to Kafka.")
    var noQuestions = false

    @Option(parsing: .unconditional, help: "Seconds to wait for that. Default: 40.", transform: parsedSeconds)
    var wait = 40.0

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Print authentication codes, tokens and the like too, in place of \u{2039}hidden\u{203A}.")
    var showSecrets = false

    @Flag(help: "Print the beginning of what is no envelope too. It may hold secrets of its sender.")
    var raw = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        let interruption = Interruption()
        let post = try LetterPost(deployment, signAs: signAs)
        let desk = try LetterDesk(deployment) { interruption.isRequested }
        let found = try desk.letter(letter)
        var story = LetterStory(found, showsSecrets: showSecrets, showsRaw: raw)
        let past = LetterPast(desk, found, post)
        story.answer = try past.answer()
        story.later = try past.laterCommands()
        story.handlings = try past.handlings()
        if found.state.isOpen {
            if noQuestions {
                do throws(Hindrance) {
                    _ = try post.outgoing(found.letter)
                } catch {
                    story.prospect = .hindered(reason: error.reason, words: error.words)
                }
            } else {
                let inquiry = try LetterInquiry(desk, [found.letter], post)
                try inquiry.ask([found.letter], rate: 50, patience: .seconds(wait)) { story.take($1, $2) }
            }
        }
        story.signAs = signAs?.text
        if json { return say(json: story.json) }
        for line in story.lines { say(line.harmless) }
    }
}

/// What Kafka knows of a letter's time.
struct LetterPast {
    private let desk: LetterDesk
    private let handled: HandledLetter
    private let letter: Letter
    private let post: LetterPost
    /// So long is looked, and what is found by then is told.
    private static let limit: Duration = .seconds(10)

    init(_ desk: LetterDesk, _ handled: HandledLetter, _ post: LetterPost) {
        self.desk = desk
        self.handled = handled
        letter = handled.letter
        self.post = post
    }

    /// What its sender was answered, and when.
    func answer() throws -> (time: Int64, reply: ReceivedReply)? {
        guard letter.isCommand, let event = letter.event() else { return nil }
        let wanted = post.replyTopics([letter])
        let question = ReplyTail.Question(
            commandID: CommandID(event.attributes.id),
            digest: CommandDigest.text(type: event.attributes.type, data: event.data), isDryRun: false)
        let start = Timestamp(milliseconds: letter.record.timestampMs - 60_000)
        let scan = try TopicScan(
            desk.kafka, desk.admin, TopicScan.partitions(desk.existing.filter { wanted.contains($0.key) }),
            from: .time(start))
        var found: (time: Int64, reply: ReceivedReply)?
        try scan.catchUp(within: Self.limit, unless: desk.stop) { record in
            guard let value = record.value, let envelope = try? JSONValue(parsing: value),
                let reply = envelope["data"].flatMap({ ReceivedReply($0) }), question.isAbout(reply)
            else { return }
            // The one that came with the letter: the nearest to it.
            let distance = abs(record.timestampMs - letter.record.timestampMs)
            if let found, abs(found.time - letter.record.timestampMs) <= distance { return }
            found = (record.timestampMs, reply)
        }
        return found
    }

    /// The commands under its key that came after it. Its own replay is none of them.
    func laterCommands() throws -> (count: Int, isAll: Bool, types: Set<String>)? {
        guard letter.isCommand, let key = letter.record.key, letter.origin.partition >= 0, letter.originOffset >= 0,
            desk.existing[letter.origin.topic] != nil
        else { return nil }
        let scan = try TopicScan(desk.kafka, desk.admin, letter.origin, at: letter.originOffset + 1)
        var (count, types): (Int, Set<String>) = (0, [])
        let isAll = try scan.catchUp(within: Self.limit, unless: desk.stop) { record in
            let replay = handled.state.closing?.command
            guard record.key == key, record.topicPartition != replay?.place || record.offset != replay?.offset else {
                return
            }
            let event = try? EnvelopeReader.open(value: record.value, headers: record.headers)
            if event?.attributes.isDryRun == true { return }
            count += 1
            if let type = event?.attributes.type { types.insert(RecordLine.short(type)) }
        }
        return (count, isAll, types)
    }

    /// All that was done about it, in its order.
    func handlings() throws -> [LetterHandling] {
        let topic = desk.deployment.topics.deadLetterActions(letter.id.service)
        guard desk.existing[topic] != nil else { return [] }
        let scan = try TopicScan(
            desk.kafka, desk.admin, [TopicPartition(topic: topic, partition: LetterHandling.partition)],
            from: .beginning)
        var found: [LetterHandling] = []
        try scan.catchUp(unless: desk.stop) { record in
            guard let handling = LetterHandling(record), handling.letter == letter.place else { return }
            found.append(handling)
        }
        return found
    }
}
