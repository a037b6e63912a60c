// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Foundation
import Observability
import Runtime
import Storage
import Supervision
import Sync

struct RekeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Brings an app's stored identity values under the caseInsensitiveIdentities of the apps file.",
        discussion: """
            The sync service refuses an apps file that ignores, or tells apart, the case of an identity type otherwise than \
            its store does. Stop all its replicas, run this with the new file, and start them with it. Works on the store \
            under --data-dir, or on that of $DATABASE_URL, in one transaction: when it is killed, nothing has happened. \
            Values that would become one are listed, and nothing is written. With --dry-run it only looks, also beside \
            running services. \
            Exit status 3: values would meet. 64: the service runs.
            """)

    @Option(help: "The app.")
    var app: AppID

    @Flag(help: "Say what would be done, and do nothing.")
    var dryRun = false

    @Flag(help: "Show the values that would meet. They are personal data.")
    var showValues = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        let rekeying = Rekeying(try deployment.app(app))
        do {
            if dryRun {
                let reader = try StoreReader.all(dataDirectory: deployment.dataDir)
                    .first { $0.service == SyncService.name }
                guard let reader else { throw noStore }
                let plan = try rekeying.plan(reader.databaseEngine, reader.query)
                tell(plan)
                try refuseMeetings(plan)
                if !plan.isEmpty { say("dry run: nothing was written") }
            } else {
                let database = try open()
                defer { database.close() }
                try database.exclusiveTransaction { transaction in
                    do throws(StorageError) {
                        try ServiceLock.take(in: transaction)
                    } catch {
                        throw Problem(.usage, "\(error.message).")
                    }
                    let plan = try rekeying.plan(transaction.engine) { try transaction.query($0, $1) }
                    tell(plan)
                    try refuseMeetings(plan)
                    return try rekeying.run(plan, in: transaction)
                }
                .sorted { $0.key < $1.key }
                .forEach { type, count in
                    say("done: \(amount(count)) of \(type.rawValue) got another key")
                }
            }
        } catch is Rekeying.OlderStore {
            throw Problem(
                .setting, "the store is of an earlier version.", "Start the sync service of this version once.")
        }
    }

    private var noStore: Problem { StoreReader.noStore(deployment.dataDir, "no store of the sync service") }

    private func open() throws -> any SQLDatabase {
        let settings = EnvironmentSettings(ProcessInfo.processInfo.environment)
        if let url = try settings.secret("DATABASE_URL") {
            let schema = try ServiceConfiguration.schemas(settings) + SyncService.name
            return try PostgreSQLDatabase(url: url, schema: schema, makesSchema: false, logger: .quiet)
        }
        let path = "\(deployment.dataDir)/\(SyncService.name).sqlite"
        guard FileManager.default.fileExists(atPath: path) else { throw noStore }
        do {
            return try SQLiteDatabase(path: path)
        } catch {
            throw Problem(.usage, "\(error.message).", "Stop the sync service first.")
        }
    }

    private func tell(_ plan: [Rekeying.Change]) {
        if plan.isEmpty { say("nothing to do: the values of app \(app) are stored as \(deployment.appsPath) says") }
        for change in plan {
            let (stored, wanted) = change.ignoresCase ? ("with", "without") : ("without", "with")
            say("\(change.type.rawValue): \(amount(change.values)), stored \(stored) case, to be stored \(wanted)")
        }
    }

    private func amount(_ count: Int) -> String { "\(count) value\(count == 1 ? "" : "s")" }

    /// - Throws: `ExitCode`, when values would meet.
    private func refuseMeetings(_ plan: [Rekeying.Change]) throws {
        let meeting = plan.filter { $0.meetings > 0 }
        guard !meeting.isEmpty else { return }
        for change in meeting {
            say("\(change.type.rawValue): \(amount(change.meetings)) would be several profiles' or spellings':")
            for meeting in change.listed {
                let values = meeting.values.map { value, holders in
                    let mpids = holders.map(\.description).joined(separator: ", ")
                    return showValues ? "\(value.text.harmless): \(mpids)" : mpids
                }
                say("  \(values.joined(separator: " | "))")
            }
            if change.meetings > change.listed.count { say("  and \(change.meetings - change.listed.count) more") }
        }
        say(
            """
            nothing was written. Start the sync service with the file as it was, let one profile of each line keep the \
            value (sync.modify takes it from another, sync.erase-profile erases one), then try again
            """)
        throw ExitCode(ExitStatus.refused.rawValue)
    }
}
