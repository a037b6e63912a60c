// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Observability
import Supervision
import WireJSON

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Walks from any id to all others, and tells how it came to be so.",
        discussion: """
            Takes an install, an external id, a userId, an MPID, an e-mail or another identity value, a device, \
            or a command. \
            Prints what the services' stores hold about it now, then the commands that led there, the oldest first, \
            each with its outcome, its events and the rule that decided. Reads the stores of $DATABASE_URL, or without \
            it those under --data-dir; it never writes. What it prints is personal data. Exit status 3: nothing is known.
            """)

    @Argument(help: "The id.")
    var id: String

    @Option(help: "The app.")
    var app: String

    @Option(parsing: .unconditional, help: "How many commands to show, the newest ones.", transform: parsedCount)
    var limit = 50

    @Flag(help: "Print one JSON line for each fact and each command.")
    var json = false

    @OptionGroup var files: DeploymentFiles

    func validate() throws {
        guard !id.isEmpty else { throw ValidationError("the id is empty") }
    }

    func run() throws {
        let places = try Stores(files.folder)
        let stores = try places.readers()
        guard !stores.isEmpty else { throw places.missing("no store") }
        var walk = IdentityWalk(app: app, stores: stores)
        try walk.start(from: id)
        let story = try InboxStory(app: app, stores: stores).tell(walk.ids, limit: limit)
        guard !walk.facts.isEmpty || !story.isEmpty else {
            // A mistyped app is no unknown id.
            try files.apps.refuseUnknown(AppID(app))
            throw Problem(
                .refused, "app \(app) knows nothing of \(id).",
                "Commands that were refused before they reached a store are dead letters: "
                    + "identitybus watch --from-beginning --until now --app \(app) --topic '*.dlq.v1'")
        }
        if json {
            for fact in walk.facts { say(json: ["kind": "fact", "text": .string(fact)]) }
            for command in story {
                say(json: ["kind": "command", "lines": .array(command.lines.map { .string($0) })])
            }
            return
        }
        say("NOW")
        for fact in walk.facts.isEmpty ? ["nothing"] : walk.facts { say("  \(fact.harmless)") }
        say("\nHOW IT CAME TO BE  (\(story.count) command\(story.count == 1 ? "" : "s"), oldest first)")
        for line in story.flatMap(\.lines) { say("  \(line.harmless)") }
    }
}
