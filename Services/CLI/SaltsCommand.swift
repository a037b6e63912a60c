// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Runtime
import Storage
import Supervision
import WireJSON

struct SaltsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "salts",
        abstract: "Prints the salts of the services' stores, for IDENTITYBUS_SALTS.",
        discussion: """
            User ids, MPIDs, alias ids and codes follow from the salt of a store and the commands in the topics. Keep the \
            line with the backups: without it, topics that are replayed into an empty store lead to other ids, and erasures \
            do nothing. It is as secret as the stores. Reads the stores of $DATABASE_URL, or without it those under \
            --data-dir; it never writes.
            """)

    @Flag(help: "Print one JSON line.")
    var json = false

    @OptionGroup var folder: DataFolder

    func run() throws {
        let stores = try Stores(folder)
        var salts: [String: [UInt8]] = [:]
        for store in try stores.readers() {
            try store.checkWhoseItIs()
            salts[store.service] = try store.query("SELECT value FROM salt WHERE id = 1", []).first?.blob(0)
        }
        guard !salts.isEmpty else {
            throw stores.missing("no store with a salt")
        }
        complain("This line is as secret as the stores.")
        let text = Salts.text(salts)
        json ? say(json: ["variable": .string(Salts.variable), "value": .string(text)]) : say(text)
    }
}
