// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Observability

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Walks from any id to all others, and tells how it came to be so.",
        discussion: """
            Takes an install, an external id, a userId, an MPID, an e-mail or another identity value, or a device. \
            Prints what the services' stores hold about it now, then the commands that led there, the oldest first, \
            each with its outcome, its events and the rule that decided. Reads the stores under --data-dir, or those \
            of $DATABASE_URL; it never writes. What it prints is personal data. \
            Exit status: 0 found, 3 nothing known, 64 usage.
            """)

    @Argument(help: "The id.")
    var id: String

    @Option(help: "The app.")
    var app: String

    @Option(help: "How many commands to show, the newest ones.")
    var limit = 50

    @OptionGroup var deployment: Deployment

    func run() throws {
        guard !id.isEmpty, limit > 0 else { throw ValidationError("give an id, and a limit above 0") }
        let stores = try StoreReader.all(dataDirectory: deployment.dataDir)
        guard !stores.isEmpty else {
            throw ValidationError("no stores: set DATABASE_URL, or --data-dir to the folder of `identitybus up`")
        }
        var walk = IdentityWalk(app: app, stores: stores)
        try walk.start(from: id)
        let story = try InboxStory(app: app, stores: stores).tell(walk.ids, limit: limit)
        guard !walk.facts.isEmpty || !story.isEmpty else {
            FileHandle.standardError.write(Data("nothing is known about this id in app \(app.harmless)\n".utf8))
            throw ExitCode(3)
        }
        print("NOW")
        for fact in walk.facts { print("  \(fact.harmless)") }
        print("\nHOW IT CAME TO BE  (\(story.count) command\(story.count == 1 ? "" : "s"), oldest first)")
        for line in story.flatMap(\.lines) { print("  \(line.harmless)") }
    }
}
