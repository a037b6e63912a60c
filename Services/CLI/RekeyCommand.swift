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
import WireJSON

struct RekeyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Brings an app's stored identity values under the caseInsensitiveIdentities of the apps file.",
        discussion: """
            The sync service refuses an apps file that ignores, or tells apart, the case of an identity type otherwise than \
            its store does. Stop all its replicas, run this with the new file, and start them with it. Works on the store \
            of $DATABASE_URL, or without it on that under --data-dir, in one transaction: when it is killed, nothing has happened. \
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

    @Flag(help: "Print one JSON line: what there is to do, and whether it was done.")
    var json = false

    @OptionGroup var files: DeploymentFiles

    func run() throws {
        let stores = try Stores(files.folder)
        let rekeying = Rekeying(try files.apps.app(app))
        do {
            if dryRun {
                guard let reader = try stores.readers(of: [SyncService.name]).first else {
                    throw stores.missing(Self.noStore)
                }
                let plan = try rekeying.plan(reader.databaseEngine, reader.query)
                show(plan)
                try refuseMeetings(plan)
                if !plan.isEmpty { tell("dry run: nothing was written") }
                tell(plan, isDone: false)
            } else {
                // What is no schema, or none of this role's, looks empty to who writes.
                if stores.arePostgreSQL, try stores.readers(of: [SyncService.name]).isEmpty {
                    throw stores.missing(Self.noStore)
                }
                guard let database = try stores.open(SyncService.name) else { throw stores.missing(Self.noStore) }
                defer { database.close() }
                var made: [Rekeying.Change] = []
                try database.exclusiveTransaction { transaction in
                    try Self.keepServicesAway(from: transaction)
                    let plan = try rekeying.plan(transaction.engine) { try transaction.query($0, $1) }
                    show(plan)
                    try refuseMeetings(plan)
                    made = plan
                    return try rekeying.run(plan, in: transaction)
                }
                .sorted { $0.key < $1.key }
                .forEach { type, count in
                    tell("done: \(amount(count)) of \(type.rawValue) got another key")
                }
                tell(made, isDone: true)
            }
        } catch is Rekeying.OlderStore {
            throw Problem(
                .setting, "the store is of an earlier version.", "Start the sync service of this version once.")
        }
    }

    private static func keepServicesAway(from transaction: any SQLTransaction) throws {
        do {
            try ServiceLock.take(in: transaction)
        } catch {
            let isHeld = error.kind == .unavailable && error.sqlState == nil
            throw isHeld ? Problem(.usage, "\(error.message).") : Problem(error)
        }
    }

    private static let noStore = "no store of the sync service"

    private func show(_ plan: [Rekeying.Change]) {
        if plan.isEmpty { tell("nothing to do: the values of app \(app) are stored as \(files.apps.path) says") }
        for change in plan {
            let (stored, wanted) = change.ignoresCase ? ("with", "without") : ("without", "with")
            tell("\(change.type.rawValue): \(amount(change.values)), stored \(stored) case, to be stored \(wanted)")
        }
    }

    /// For programs there is one line at the end; what is said meanwhile is no result.
    private func tell(_ line: String) { json ? complain(line) : say(line) }

    private func tell(_ plan: [Rekeying.Change], isDone: Bool) {
        guard json else { return }
        let changes = plan.map { change -> JSONValue in
            [
                "type": .string(change.type.rawValue), "values": .number(JSONNumber(change.values)),
                "ignoresCase": .bool(change.ignoresCase), "meetings": .number(JSONNumber(change.meetings)),
            ]
        }
        say(json: ["app": .string(app.text), "changes": .array(changes), "done": .bool(isDone)])
    }

    private func amount(_ count: Int) -> String { "\(count) value\(count == 1 ? "" : "s")" }

    /// - Throws: `ExitCode`, when values would meet.
    private func refuseMeetings(_ plan: [Rekeying.Change]) throws {
        let meeting = plan.filter { $0.meetings > 0 }
        guard !meeting.isEmpty else { return }
        for change in meeting {
            tell("\(change.type.rawValue): \(amount(change.meetings)) would be several profiles' or spellings':")
            for meeting in change.listed {
                let values = meeting.values.map { value, holders in
                    let mpids = holders.map(\.description).joined(separator: ", ")
                    return showValues ? "\(value.text.harmless): \(mpids)" : mpids
                }
                tell("  \(values.joined(separator: " | "))")
            }
            if change.meetings > change.listed.count { tell("  and \(change.meetings - change.listed.count) more") }
        }
        tell(
            """
            nothing was written. Start the sync service with the file as it was, let one profile of each line keep the \
            value (sync.modify takes it from another, sync.erase-profile erases one), then try again
            """)
        tell(plan, isDone: false)
        throw ExitCode(ExitStatus.refused.rawValue)
    }
}
