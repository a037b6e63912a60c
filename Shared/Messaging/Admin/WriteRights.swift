// SPDX-License-Identifier: Apache-2.0

/// Whether topics may be written to, asked again and again: every 10 s, and every 5 s while one may not be.
package struct WriteRights {
    private static let period = (usual: Duration.seconds(10), missing: Duration.seconds(5))

    private var topics: Set<String> = []
    private var next = ContinuousClock.now

    /// Which right is missing, as of the last answer; `nil` when none is.
    package private(set) var problem: String?

    package init() {}

    /// Asks when it is time, and about other topics than before at once. Blocks for `timeout` at most. What has not answered
    /// then is asked about in the next turn.
    ///
    /// - Throws: as ``KafkaAdmin/deniedWrites(to:timeout:)``.
    package mutating func look(
        at topics: Set<String>, _ admin: KafkaAdmin, timeout: Duration
    ) throws(KafkaError) {
        guard topics != self.topics || next <= .now else { return }
        self.topics = topics
        let (denied, unanswered) = try admin.deniedWrites(to: topics, timeout: timeout)
        problem = denied.isEmpty ? nil : KafkaError.noRight("write (Write) to", topics: denied.keys.sorted())
        next = .now
        if problem != nil { next += Self.period.missing } else if unanswered.isEmpty { next += Self.period.usual }
    }
}
