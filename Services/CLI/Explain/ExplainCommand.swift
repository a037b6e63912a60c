// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Explanation
import Foundation
import Observability
import Supervision
import WireJSON

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Walks from any id to all others, and tells how it came to be so.",
        discussion: """
            Takes an install, an external id, a userId, an MPID, an e-mail or another identity value, a device, or the id \
            of a command. Asks the services over Kafka, from any machine, with a key that has the scope `support`. Prints \
            what they hold about it now, then in words what was done and what came of it, the oldest first. Nothing is \
            changed. What it prints is personal data. Exit status 3: nothing \
            is known; 4: a service did not answer, and what it knows is missing.
            """)

    @Argument(help: "The id.")
    var id: String

    @Option(
        help: """
            Of a command's id: the source that it was sent with. Default: those of the gateway and `identitybus send`.
            """)
    var source: SourceID?

    @Option(parsing: .unconditional, help: "How many decisions to show, the newest ones.", transform: parsedCount)
    var limit = 50

    @Flag(help: "Print one JSON line for each row and each decision.")
    var json = false

    @Flag(
        name: .shortAndLong,
        help: """
            Show every decision as the services have it: types, members, rules, where each record stands, and what the \
            services ask each other.
            """)
    var verbose = false

    @OptionGroup var asking: InquiryOptions

    private var app: AppID { asking.app }

    func validate() throws {
        do throws(Rejection) {
            try ReadFacts<FactsOf.Link>(FactsQuery(id: id, source: source)).validate()
        } catch {
            throw ValidationError("no service knows such an id: \(error.message)".harmless)
        }
    }

    func run() throws {
        let interruption = Interruption()
        let inquiry = try asking.inquiry { interruption.isRequested }
        defer { inquiry.close() }
        let walk = try found(inquiry)
        guard !walk.rows.isEmpty || !walk.decisions.isEmpty || !walk.silent.isEmpty else {
            throw nothing
        }
        if json { tellPrograms(walk) } else { tellPeople(walk) }
        guard walk.silent.isEmpty else { throw asking.unanswered(walk.silent, "What they know is missing.") }
    }

    /// - Throws: `Problem` when a service refuses.
    private func found(_ inquiry: Inquiry) throws -> IdentityWalk.Findings {
        var walk = IdentityWalk(from: id, source: source, limit: limit, services: serviceNames)
        while !walk.questions.isEmpty {
            let asked = walk.questions.map { (walked: $0, question: Inquiry.Question($0.query, of: $0.service)) }
            let answers = try inquiry.ask(asked.map { $0.question })
            var told: [IdentityWalk.Question: FactsResult] = [:]
            for (walked, question) in asked {
                guard let reply = answers[question] else { continue }
                guard reply.status == .succeeded, reply.result != nil else {
                    throw Inquiry.refusal(reply, of: question)
                }
                told[walked] = reply.result(as: FactsResult.self)
            }
            walk.take(told)
        }
        return walk.findings
    }

    /// A command is remembered whatever came of it, and found by nothing but its id and source.
    private var nothing: Problem {
        let tried =
            source.map { "It is no command of the source \($0) either, or that is forgotten" }
            ?? "The id of a command is found with its source: those of the gateway and of `identitybus send` were tried; "
            + "give another one with --source. Then it is told also where nothing changed, until it is forgotten"
        return Problem(
            .refused, "app \(app) knows nothing of \(id).",
            "\(tried) (JOURNAL_RETENTION_HOURS). A dry run is not kept.",
            "What was refused before a service decided it is not searched. Of a scope that was wrong only the reply "
                + "tells; the others are dead letters: identitybus dlq list --app \(app) --each")
    }

    private func tellPeople(_ walk: IdentityWalk.Findings) {
        say("NOW")
        let silent = walk.silent.sorted().map { "\($0): no answer; what it knows is missing" }
        let rows = walk.rows.map(RowWords.text) + silent
        for row in rows.isEmpty ? ["nothing"] : rows { say("  \(row.harmless)") }
        let steps = verbose ? walk.decisions : walk.decisions.filter(StepWords.isShown)
        say("\nHOW IT CAME TO BE  (\(counted(steps.count, verbose ? "decision" : "step")), oldest first; times in UTC)")
        let people = walk.people
        for step in steps {
            let words = { StepWords.lines(step, others: walk.others(in: step), among: people) }
            let lines = verbose ? FactLines.lines(step) : words()
            for line in lines { say("  \(line.harmless)") }
        }
        let hidden = walk.decisions.count - steps.count
        if hidden > 0 {
            say("  \(counted(hidden, "step")) between the services \(hidden == 1 ? "is" : "are") not shown: --verbose")
        }
        if walk.hasMore { say("  Older decisions are not shown: --limit \(2 * limit) shows more.") }
        if !walk.leftOut.isEmpty {
            let ids = walk.leftOut.sorted().joined(separator: ", ")
            say("  Not asked about, because there are too many: \(ids)".harmless)
        }
        say("Dead letters were not searched: identitybus dlq list --app \(app) --each".harmless)
    }

    private func counted(_ count: Int, _ what: String) -> String { "\(count) \(what)\(count == 1 ? "" : "s")" }

    private func tellPrograms(_ walk: IdentityWalk.Findings) {
        for row in walk.rows {
            say(json: ["kind": "row", "service": .string(row.service), "row": row.value])
        }
        for decision in walk.decisions {
            guard let bytes = try? WireJSONEncoder().encode(decision), let value = try? JSONValue(parsing: bytes) else {
                continue
            }
            say(json: ["kind": "decision", "decision": value])
        }
        for id in walk.leftOut.sorted() { say(json: ["kind": "leftOut", "id": .string(id)]) }
        for service in walk.silent.sorted() { say(json: ["kind": "silent", "service": .string(service)]) }
    }
}
