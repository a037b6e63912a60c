// SPDX-License-Identifier: Apache-2.0

import Contracts
import TestKit
import Testing

@testable import Storage

/// A row is described once; what is read, written and deleted follows.
@Suite struct TableTests {
    private enum Colour: String { case red, green }

    private struct Part: Stored, Hashable {
        var name: String
        var sizes: [Int]

        init(name: String, sizes: [Int]) { (self.name, self.sizes) = (name, sizes) }

        func store(in bytes: inout StoredWriter) {
            name.store(in: &bytes)
            sizes.store(in: &bytes)
        }

        init(stored bytes: inout StoredReader) throws(StorageError) {
            (name, sizes) = (try bytes.next(), try bytes.next())
        }
    }

    private struct Thing: SQLKeyedRecord, Hashable {
        static let table = SQLTable<Thing>("things")
        static let blank = Thing(key: Scoped(app: "", id: ""))
        static let migration = """
            CREATE TABLE things (
              app TEXT NOT NULL, id TEXT NOT NULL, colour TEXT NOT NULL, shade TEXT, label TEXT, label_key BYTEA,
              amount BIGINT NOT NULL, seen BIGINT, mpid BIGINT, bytes BYTEA, is_gone BIGINT NOT NULL,
              made_by TEXT NOT NULL, uses BIGINT NOT NULL, part BYTEA NOT NULL, PRIMARY KEY (app, id))
            """

        var key: Scoped<CommandID>
        var colour = Colour.red
        var shade: Colour?
        var label: String?
        var amount: Int64 = 0
        var seen: Timestamp?
        var mpid: MPID?
        var bytes: [UInt8]?
        var isGone = false
        var madeBy = ""
        var uses = 0
        var part = Part(name: "", sizes: [])

        mutating func columns(_ columns: SQLColumns) throws(StorageError) {
            try columns.column("app", &key.app, .key)
            try columns.column("id", &key.id, .key)
            try columns.column("colour", &colour)
            try columns.column("shade", &shade)
            try columns.column("label", &label)
            try columns.written("label_key", label.map { TextDigest(of: $0) })
            try columns.column("amount", &amount)
            try columns.column("seen", &seen)
            try columns.column("mpid", &mpid)
            try columns.column("bytes", &bytes)
            try columns.column("is_gone", &isGone, .highest)
            try columns.column("made_by", &madeBy, .fixed)
            try columns.column("uses", &uses, .sum)
            try columns.stored("part", &part)
        }
    }

    private static func key(_ app: AppID, _ id: CommandID) -> Scoped<CommandID> { Scoped(app: app, id: id) }

    private static let things = [
        Thing(
            key: key("a", "Ren\u{e9} %_'"), colour: .green, shade: .red, label: "it's \u{1F44B}", amount: .min,
            seen: Timestamp(milliseconds: 1 << 50), mpid: MPID(-7), bytes: [0, 255], isGone: true, madeBy: "me",
            uses: 3, part: Part(name: "\"", sizes: [1, 2])),
        Thing(key: key("a", "Rene\u{301} %_'"), bytes: []), Thing(key: key("b", "")),
    ]

    private func store(_ engine: SQLEngine) throws -> (TestStore, any SQLDatabase) {
        let store = try TestStore(engine)
        let database = try store.open()
        try database.transaction { try $0.execute(Thing.migration) }
        return (store, database)
    }

    @Test(arguments: SQLEngine.allCases) func rowsComeBackAsTheyWere(_ engine: SQLEngine) throws {
        let (store, database) = try store(engine)
        defer { withExtendedLifetime(store) {} }
        try database.transaction { (transaction) throws in
            try Thing.table.insert(Self.things, in: transaction)
            let keys = Self.things.map(\.key) + [Self.key("c", "")]
            #expect(try Thing.table.find(keys.reversed(), in: transaction) == Self.things.sorted { $0.key < $1.key })
            #expect(try Thing.table.find([Self.key("b", "x")], in: transaction).isEmpty)
            let label = Scoped(app: "a", id: TextDigest(of: "it's \u{1F44B}"))
            #expect(
                try Thing.table.find("app = $1 AND label_key = $2", [label], in: transaction) == [Self.things[0]])
            #expect(
                try Thing.table.find("amount = $1 ORDER BY app, id", [0], in: transaction) == Array(Self.things[1...]))
        }
    }

    /// PostgreSQL has many rows in one execution; what it comes to is the same.
    @Test(arguments: SQLEngine.allCases, [8, 9, 700]) func manyRowsComeBackAsTheyWere(
        _ engine: SQLEngine, _ count: Int
    ) throws {
        let (store, database) = try store(engine)
        defer { withExtendedLifetime(store) {} }
        var things = (0..<count).map { index in
            var thing = Self.things[index % Self.things.count]
            thing.key = Self.key(index % 2 == 0 ? "a" : "b", CommandID("\(index) \(thing.key.id)"))
            thing.amount = Int64(index)
            return thing
        }
        things.sort { $0.key < $1.key }
        try database.transaction { (transaction) throws in
            try Thing.table.insert(things, in: transaction)
            let keys = things.map(\.key) + [Self.key("c", "")]
            #expect(try Thing.table.find(keys.reversed(), in: transaction) == things)
            // A value with several rows has them one after the other, in the order of the values.
            let amounts = (0..<Int64(count)).map { Scoped(app: AppID("a"), id: CommandID("\($0)")) }
            #expect(
                try Thing.table.find("app = $1 AND CAST(amount AS TEXT) = $2", amounts, in: transaction).map(\.amount)
                    == things.filter { $0.key.app == "a" }.map(\.amount).sorted { "\($0)" < "\($1)" })
        }
        for index in things.indices {
            things[index].label = index % 2 == 0 ? nil : "new"
            things[index].uses = 1
        }
        let found = try database.transaction { (transaction) throws in
            try Thing.table.save(things, in: transaction)
            return try Thing.table.find(things.map(\.key), in: transaction)
        }
        #expect(found.map(\.label) == things.map(\.label))
        #expect(found.map(\.uses).allSatisfy { $0 == 1 || $0 == 4 })
        for index in things.indices { things[index].madeBy = "\(index)" }
        let nobody = things.map { thing in
            var other = thing
            other.key.app = "nobody"
            return other
        }
        let updated = try database.transaction { (transaction) throws in
            try Thing.table.update(things + nobody, in: transaction)
            return try Thing.table.find((things + nobody).map(\.key), in: transaction)
        }
        #expect(updated == things, "an update writes everything, and makes no row")
        #expect(failure { try database.transaction { try Thing.table.insert(things, in: $0) } }?.kind == .conflict)
        let left = try database.transaction { (transaction) throws in
            try Thing.table.remove(nobody.map(\.key) + things.dropLast().map(\.key), in: transaction)
            return try transaction.query("SELECT made_by FROM things").map { try $0.text(0) }
        }
        #expect(left == [things[count - 1].madeBy], "what has these keys is deleted, and nothing else")
    }

    /// Of few rows, which are deleted one by one, and of many, which are deleted at once.
    @Test(arguments: [1, 20], ["UPDATE things SET uses = 5", "DELETE FROM things"])
    func whatIsDeletedAndHasChangedMeanwhileIsAConflict(_ count: Int, _ meanwhile: String) throws {
        let (store, one) = try store(.postgresql)
        let two = try store.open()
        let things = (0..<count).map { Thing(key: Self.key("a", CommandID("\($0)"))) }
        try one.transaction { try Thing.table.insert(things, in: $0) }
        let error = failure {
            try one.transaction { (transaction) throws in
                _ = try Thing.table.find(things.map(\.key), in: transaction)
                try two.transaction { try $0.execute("\(meanwhile) WHERE id = '0'") }
                try Thing.table.remove(things.map(\.key), in: transaction)
            }
        }
        #expect(error?.kind == .conflict)
    }

    /// What stands there stays, is replaced, raised or added to, as its column says.
    @Test(arguments: SQLEngine.allCases) func aSecondWriteMergesByRole(_ engine: SQLEngine) throws {
        let (store, database) = try store(engine)
        defer { withExtendedLifetime(store) {} }
        var again = Self.things[0]
        again.label = nil
        again.isGone = false
        again.madeBy = "you"
        again.uses = 4
        let rows = [again, Thing(key: Self.key("z", "new"))]
        let found = try database.transaction { (transaction) throws in
            try Thing.table.insert(Self.things, in: transaction)
            try Thing.table.save(rows, in: transaction)
            return try Thing.table.find(rows.map(\.key), in: transaction)
        }
        var merged = again
        merged.isGone = true
        merged.madeBy = "me"
        merged.uses = 7
        #expect(found == [merged, rows[1]])
        let updated = try database.transaction { (transaction) throws in
            try Thing.table.update([again, Thing(key: Self.key("nobody", ""))], in: transaction)
            return try Thing.table.find([again.key, Self.key("nobody", "")], in: transaction)
        }
        #expect(updated == [again], "an update writes everything, and makes no row")
    }

    @Test(arguments: SQLEngine.allCases) func aRowThatIsThereIsNotInserted(_ engine: SQLEngine) throws {
        let (store, database) = try store(engine)
        defer { withExtendedLifetime(store) {} }
        let error = failure {
            try database.transaction { try Thing.table.insert([Self.things[0], Self.things[0]], in: $0) }
        }
        #expect(error?.kind == .conflict)
    }

    @Test(arguments: SQLEngine.allCases) func damageIsNamed(_ engine: SQLEngine) throws {
        let (store, database) = try store(engine)
        defer { withExtendedLifetime(store) {} }
        let bytes = engine == .sqlite ? "x'01ff'" : "'\\x01ff'::bytea"
        for (column, value) in [("colour", "'blue'"), ("part", bytes), ("mpid", "0")] {
            let error = failure {
                try database.transaction { (transaction) throws in
                    try Thing.table.save(Self.things, in: transaction)
                    try transaction.execute("UPDATE things SET \(column) = \(value)")
                    _ = try Thing.table.find(Self.things.map(\.key), in: transaction)
                }
            }
            #expect(error?.kind == .invalid, "\(column)")
        }
    }

    @Test(arguments: SQLEngine.allCases) func changesAreSavedAndRemovalsDeleted(_ engine: SQLEngine) throws {
        let (store, database) = try store(engine)
        defer { withExtendedLifetime(store) {} }
        try database.transaction { try Thing.table.insert(Self.things, in: $0) }
        let left = try database.transaction { (transaction) throws in
            var table = Table<Thing>()
            try Thing.table.find(Self.things.map(\.key), in: transaction).forEach { table.load($0) }
            var changed = Self.things[1]
            changed.amount = 5
            table.put(changed)
            table.remove(Self.things[2].key)
            table.put(Thing(key: Self.key("d", "short-lived")))
            table.remove(Self.key("d", "short-lived"))
            try Thing.table.save(table, in: transaction)
            return try Thing.table.find("amount <= $1 ORDER BY app, id", [.integer(.max)], in: transaction)
        }
        var changed = Self.things[1]
        changed.amount = 5
        #expect(Set(left) == [Self.things[0], changed])
    }

    /// What another transaction has done meanwhile to a row that was read, or was not there, is never written over.
    ///
    /// ```
    /// one                                two
    /// BEGIN, read b, look for d
    ///                                    delete b or insert d, COMMIT
    /// write b and d -> conflict
    /// ```
    @Test(arguments: ["DELETE FROM things WHERE app = 'b'", "UPDATE things SET app = 'd' WHERE app = 'b'"])
    func whatWentOrCameMeanwhileIsAConflict(_ meanwhile: String) throws {
        let (store, one) = try store(.postgresql)
        let two = try store.open()
        try one.transaction { try Thing.table.insert(Self.things, in: $0) }
        let error = failure {
            try one.transaction { (transaction) throws in
                var table = Table<Thing>()
                let keys = [Self.key("b", ""), Self.key("d", "")]
                try Thing.table.find(keys, in: transaction).forEach { table.load($0) }
                try two.transaction { try $0.execute(meanwhile) }
                let isGone = meanwhile.hasPrefix("DELETE")
                table.put(Thing(key: keys[isGone ? 0 : 1], label: "written"))
                try Thing.table.save(table, in: transaction)
            }
        }
        #expect(error?.kind == .conflict)
        let count = try two.transaction { try $0.query("SELECT 1 FROM things WHERE label = 'written'").count }
        #expect(count == 0)
    }

    /// Others meet in it; where there are none, it need not be written.
    @Test func aRowThatIsPutAsItStandsIsWrittenForOthers() {
        var table = Table<Thing>()
        let (stored, new) = (Thing(key: Self.key("app", "a"), label: "stored"), Thing(key: Self.key("app", "b")))
        table.load(stored)
        table.load(new, isStored: false)
        table.put(stored)
        table.put(new)
        for isAlone in [true, false] {
            let written = table.written(isAlone: isAlone)
            #expect(written.created == [new])
            #expect(written.updated == (isAlone ? [] : [stored]))
        }
        var changed = stored
        changed.label = "changed"
        table.put(changed)
        table.put(stored)
        #expect(table.written(isAlone: true).updated == [stored], "it was changed in between")
    }

    @Test func aTableKnowsWhatIsToBeWritten() {
        var table = Table<Thing>()
        let keys = ["b", "a", "c", "d"].map { Self.key("app", $0) }
        let loaded = [
            table.load(Thing(key: keys[0], label: "stored")), table.load(Thing(key: keys[0], label: "again")),
            table.load(Thing(key: keys[3]), isStored: false),
        ]
        #expect(loaded == [true, false, true], "what is here stays as it is")
        #expect(table.changed.isEmpty && table.removed.isEmpty)
        let before = [
            table.put(Thing(key: keys[0], label: "new")), table.put(Thing(key: keys[1])),
            table.put(Thing(key: keys[3], label: "was not stored")),
        ]
        #expect(before.map(\.?.label) == ["stored", nil, nil] && before.map { $0 == nil } == [false, true, false])
        #expect(table.changed.map(\.key) == [keys[1], keys[0], keys[3]], "in the order of the keys")
        let written = table.written(isAlone: true)
        #expect(written.created.map(\.key) == [keys[1], keys[3]])
        #expect(written.updated.map(\.key) == [keys[0]])
        let taken = [table.remove(keys[0]), table.remove(keys[2])]
        #expect(taken.map(\.?.label) == ["new", nil])
        #expect(table.removed == [keys[0], keys[2]])
        let isBack = table.load(Thing(key: keys[0]))
        #expect(!isBack, "what was taken away does not come back")
        #expect(table[keys[0]] == nil && table[keys[1]] != nil)
        #expect(table.count == 2 && !table.isEmpty)
    }

    /// The parts of a key are told apart, and spellings that only look the same.
    @Test func scopedKeysAreComparedByBytes() {
        #expect(Self.key("a", "Ren\u{e9}") != Self.key("a", "Rene\u{301}"))
        #expect(Self.key("a", "b") != Self.key("b", "b"))
        #expect(Set([Self.key("ab", "c"), Self.key("a", "bc"), Self.key("ab", "c")]).count == 2)
        #expect(
            [Self.key("b", "a"), Self.key("a", "z"), Self.key("a", "b")].sorted()
                == [Self.key("a", "b"), Self.key("a", "z"), Self.key("b", "a")])
        #expect(TextDigest(of: "").bytes.hex == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    }
}
