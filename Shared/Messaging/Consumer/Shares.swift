// SPDX-License-Identifier: Apache-2.0

/// Shares out the room of a batch among those that have something for it.
public enum Shares {
    /// Asks each source for an equal share of what is left, and those that had a whole share again, until there is no room
    /// or nobody has more.
    ///
    /// - Parameters:
    ///   - count: how many sources there are; they have the numbers from 0.
    ///   - first: which one is asked first, and has the advantage where there is not room for all.
    ///   - take: takes at most a share of a source, and says how much it took; less means that the source has no more.
    public static func deal<Failure: Error>(
        _ room: Int, among count: Int, first: Int,
        take: (_ source: Int, _ share: Int) throws(Failure) -> Int
    ) throws(Failure) {
        var room = room
        var waiting = (0..<count).map { (first + $0) % count }
        while room > 0, !waiting.isEmpty {
            let share = max(1, room / waiting.count)
            var more: [Int] = []
            for source in waiting where room > 0 {
                let asked = min(share, room)
                let taken = try take(source, asked)
                room -= taken
                if taken >= asked { more.append(source) }
            }
            waiting = more
        }
    }

    /// Gives those that have no more than an equal share waiting all of it, and what is left to the others, one after the
    /// other. So nobody with little waits for a backlog, and what of backlogs is decided together is of few of them: what
    /// it leads to goes to few partitions as well, in batches as large.
    ///
    /// - Parameters:
    ///   - waiting: how much each source has.
    ///   - first: which source is the first of the others. Whoever calls goes on behind the one that came last.
    /// - Returns: who gives how much, the ones with little first.
    public static func runs(_ room: Int, waiting: [Int], first: Int) -> [(source: Int, count: Int)] {
        let sources = waiting.indices.map { (first + $0) % waiting.count }.filter { waiting[$0] > 0 }
        let share = room / max(1, sources.count)
        let (few, many) = (sources.filter { waiting[$0] <= share }, sources.filter { waiting[$0] > share })
        var room = room
        var runs: [(source: Int, count: Int)] = []
        for source in few + many where room > 0 {
            let count = min(waiting[source], room)
            runs.append((source, count))
            room -= count
        }
        return runs
    }
}
