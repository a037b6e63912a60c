// SPDX-License-Identifier: Apache-2.0

import Storage
import Supervision
import Testing

@testable import CLI

@Suite struct MigrateCommandTests {
    @Test func rolesAreNamedByService() throws {
        let services = ["link", "user"]
        let roles = try ServiceRoles(["link=ib_link,user=ib=user"], among: services)
        #expect(roles["link"] == "ib_link" && roles["user"] == "ib=user")
        for (wrong, words) in [
            ("ib_link", "does not name a service"), ("lnik=x", "Did you mean link?"), ("link=a,link=b", "twice"),
        ] {
            let problem = #expect(throws: Problem.self) { try ServiceRoles([wrong], among: services) }
            #expect(problem?.status == .usage && problem?.what.contains(words) == true, "\(wrong)")
        }
    }

    @Test(arguments: [("ib_link", "ib_link"), ("Ib", "\"Ib\""), ("a\"b", "\"a\"\"b\""), ("1a", "\"1a\"")])
    func namesAreQuotedWhereTheyNeedIt(_ name: String, _ quoted: String) {
        #expect(SchemaGrant.quoted(name) == quoted)
    }

    @Test func whatTakesTimeIsSaid() {
        let migration = Migration(
            number: 123, name: "search",
            statements: [
                "CREATE INDEX a ON users (name)", "CREATE UNIQUE INDEX b ON users(id)", "CREATE INDEX c ON fresh (x)",
                "ALTER TABLE users ADD COLUMN x TEXT", "UPDATE users SET x = ''", "DROP TABLE old",
            ])
        #expect(
            MigrationOutlook(migration, rows: ["users": 4_100_000, "fresh": 0]).text
                == "123 search (builds an index over 4.1 M rows, about 41 s, "
                + "builds an index over 4.1 M rows, about 41 s, changes rows of users, drops table old)")
        #expect(MigrationOutlook(migration, rows: [:]).text == "123 search (changes rows of users, drops table old)")
    }
}
