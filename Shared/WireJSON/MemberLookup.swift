// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

/// Finds members by name, in constant time as long as they are asked for in document order.
///
/// That is how a struct is usually read, and always how a dictionary is, so that decoding a hostile object
/// with very many members into a dictionary stays linear.
final class MemberLookup {
    let members: [JSONObject.Member]
    private var cursor = 0

    init(_ members: [JSONObject.Member]) {
        self.members = members
    }

    /// The value of the member with exactly these UTF-8 bytes as its name. Repeating a question is cheap too.
    @inline(__always)
    func find(_ name: String) -> JSONValue? {
        let start = cursor
        let count = members.count
        var index = start
        for _ in 0..<count {
            if JSONText.sameBytes(members[index].name, name) {
                cursor = index
                return members[index].value
            }
            index &+= 1
            if index == count { index = 0 }
        }
        return nil
    }
}
