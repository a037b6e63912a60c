// SPDX-License-Identifier: Apache-2.0

/// The key that a replica asks for its replies under, and the partitions of the reply topic that it reads for that
/// (docs/decisions/0008-gateway-replies.md). Pure.
struct ReplyAddress: Sendable, Equatable {
    /// The key of replies that all replicas read: those to commands whose ids are derived.
    static let sharedKey = "shared"

    /// The key of all others. Its partition is not the shared one, if there are several.
    let ownKey: String
    /// How many partitions the topic has.
    let count: Int
    /// What is read, in order.
    let partitions: [Int32]

    /// - Parameters:
    ///   - count: how many partitions the topic has, at least 1.
    ///   - before: where this replica had its replies while the topic had others. Services learn of new partitions some
    ///     seconds sooner or later, so it goes on reading where their replies would otherwise come.
    ///   - partition: that of a key; `nil` when it cannot be told, all are read then.
    ///   - newKey: random.
    init(
        among count: Int, after before: ReplyAddress? = nil, partition: (String) -> Int32?, newKey: () -> String
    ) {
        self.count = count
        let shared = partition(Self.sharedKey)
        func isApart(_ key: String) -> Bool { count == 1 || shared == nil || partition(key) != shared }
        var key = before?.ownKey ?? newKey()
        while !isApart(key) { key = newKey() }
        ownKey = key
        let all = 0..<Int32(clamping: count)
        guard let shared, let own = partition(key) else {
            partitions = Array(all)
            return
        }
        partitions = Set([shared, own] + (before?.partitions ?? [])).filter(all.contains).sorted()
    }
}
