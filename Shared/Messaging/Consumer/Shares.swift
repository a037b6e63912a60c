// SPDX-License-Identifier: Apache-2.0

/// Shares out the room of a batch among those that have something for it.
public enum Shares {
    /// Asks each source for an equal share of what is left, and those that had a whole share again, until there is no room
    /// or nobody has more.
    ///
    /// - Parameters:
    ///   - count: how many sources there are; they have the numbers from 0.
    ///   - first: which one is asked first, and has the advantage where there is not room for all.
    ///   - take: takes at most a share of a source, and says how much it took; less means that the source has no more. Is
    ///     also told how many sources the share was made for.
    public static func deal<Failure: Error>(
        _ room: Int, among count: Int, first: Int,
        take: (_ source: Int, _ share: Int, _ waiting: Int) throws(Failure) -> Int
    ) throws(Failure) {
        var room = room
        var waiting = (0..<count).map { (first + $0) % count }
        while room > 0, !waiting.isEmpty {
            let share = max(1, room / waiting.count)
            var more: [Int] = []
            for source in waiting where room > 0 {
                let asked = min(share, room)
                let taken = try take(source, asked, waiting.count)
                room -= taken
                if taken >= asked { more.append(source) }
            }
            waiting = more
        }
    }
}
