// SPDX-License-Identifier: Apache-2.0

import Contracts
import Storage
import TestKit
import Testing

@testable import Sync

/// What stands in one column.
@Suite struct ColumnKindTests {
    @Test(arguments: ["", "5,6", "five"]) func everyIdentityHasItsMoment(_ moments: String) throws {
        let store = try SyncTestStore(.sqlite)
        var profile = Profile(app: "app", mpid: .max, seen: 1)
        profile.add(Identity(.customerID, "anna"), at: 5)
        let saved = profile
        let error = #expect(throws: StorageError.self) {
            try store.database.transaction { transaction in
                try Profile.table.insert([saved], in: transaction)
                try transaction.execute("UPDATE profiles SET given_at = $1", [.text(moments)])
                return try Profile.table.find([saved.key], in: transaction)
            }
        }
        #expect(error?.kind == .invalid)
    }

    @Test func numbersComeBack() throws {
        let ranges: [ClosedRange<Int64>] = [.min ... .max, -10...0, 7...7]
        let text = "-9223372036854775808:9223372036854775807,-10:0,7:7"
        #expect(NumberList.text(ranges) == text && NumberList.read(text) == ranges)
        #expect(NumberList.text([MPID]()).isEmpty && NumberList.read("") == [MPID]())
        let user = DeviceRecord.SeenUser(mpid: .max, firstSeen: 1, lastSeen: -2)
        #expect(NumberList.read(NumberList.text([user, user])) == [user, user])
    }

    @Test(arguments: [
        "1", "1:2:3", "a:1", ",", "1:2,", ",1:2", "1::2", "-:1", "1:2;3:4", "+1:2", "9223372036854775808:1",
        "-9223372036854775809:1", "99999999999999999999:1", "1:2 ",
    ]) func aDamagedListIsNone(_ text: String) { #expect(NumberList.read(text) as [ClosedRange<Int64>]? == nil) }
}
