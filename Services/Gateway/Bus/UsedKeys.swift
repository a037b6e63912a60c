// SPDX-License-Identifier: Apache-2.0

/// What the latest `Idempotency-Key`s stand for: the digest of the command that was sent under each command id. A
/// service knows that of its own commands for as long as its journal; a key that is used for calls of two services is
/// told here.
struct UsedKeys {
    private var recent: [String: String] = [:]
    private var older: [String: String] = [:]
    private let limit: Int

    /// - Parameter limit: so many keys are known at least, and twice as many at most.
    init(limit: Int = 20_000) { self.limit = limit }

    /// Notes the first use.
    /// - Returns: whether the id stands for this command.
    mutating func use(_ id: String, for digest: String) -> Bool {
        if let known = recent[id] { return known == digest }
        let first = older[id] ?? digest
        if recent.count >= limit {
            older = recent
            recent.removeAll(keepingCapacity: true)
        }
        recent[id] = first
        return first == digest
    }
}
