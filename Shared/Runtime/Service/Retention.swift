// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Metrics
public import Storage

/// What a service looks through for rows of an app whose days are over (docs/sync.md "Retention"), in the order of their keys:
/// a few at a time, and when it has come to the end, again after a while. An index on when a row was seen last would cost a
/// write for each command.
public struct RetentionWalk: Sendable {
    /// One row for each app and kind of row.
    public static let table = """
        CREATE TABLE retention_walks (
          app TEXT NOT NULL, what TEXT NOT NULL, place TEXT NOT NULL, pass BIGINT NOT NULL, ask_at BIGINT NOT NULL,
          PRIMARY KEY (app, what))
        """

    /// How long after its end a walk begins again, in milliseconds.
    public static let pause: Int64 = 3_600_000

    /// One row whose days seem to be over.
    public struct Found: Sendable {
        /// Names the row within its app and kind.
        var key: String
        /// Since when.
        var end: Int64
        /// Decides it: whoever was seen meanwhile stays.
        var command: any CommandMessage

        public init(key: String, end: Int64, command: any CommandMessage) {
            self.key = key
            self.end = end
            self.command = command
        }
    }

    /// The rows behind a place.
    public struct Step: Sendable {
        /// The key of the last row that was looked at; `nil` at the end.
        var last: String?
        var found: [Found]

        public init(last: String?, found: [Found]) {
            self.last = last
            self.found = found
        }
    }

    let app: AppID
    let what: String

    public init(_ app: AppID, _ what: String) {
        self.app = app
        self.what = what
    }

    /// Goes on by one step.
    /// - Parameter look: the rows behind the key, which is empty at the beginning.
    public func due(
        now: Timestamp, in transaction: any SQLTransaction, look: (_ after: String) throws -> Step
    ) throws -> [DueCommand] {
        let key: [SQLValue] = [.text(app.text), .text(what)]
        let row = try transaction.query(
            "SELECT place, pass, ask_at FROM retention_walks WHERE app = $1 AND what = $2", key
        ).first
        let (place, pass) = (try row?.text(0) ?? "", try row?.integer(1) ?? 0)
        // A clock that was ahead does not keep it from looking.
        if let row, case let askAt = try row.integer(2), now.milliseconds < askAt,
            askAt <= now.milliseconds + Self.pause
        {
            return []
        }
        let step = try look(place)
        let isOver = step.last == nil
        try transaction.execute(
            """
            INSERT INTO retention_walks (app, what, place, pass, ask_at) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (app, what) DO UPDATE SET place = excluded.place, pass = excluded.pass,
            ask_at = excluded.ask_at
            """,
            key + [
                .text(step.last ?? ""), .integer(isOver ? pass + 1 : pass),
                .integer(isOver ? now.milliseconds + Self.pause : 0),
            ])
        return step.found.map { found in
            // The next pass asks anew: what held a row may have let it go by then.
            let source = SourceID("retention/\(what)/\(pass)/\(found.end)")
            let id = DerivedID.forward(
                of: CommandKey(app: app, source: source, id: CommandID(found.key)), number: 0)
            return DueCommand(
                app: app, id: id, dueAt: Timestamp(milliseconds: found.end), command: found.command)
        }
    }

    /// Counts what has gone.
    public static func count(_ what: String, _ count: Int) {
        if count > 0 { Counter(label: "identity_expired", dimensions: [("what", what)]).increment(by: count) }
    }
}

extension DecisionContext {
    /// What a clock may be ahead by.
    static let clockDoubt: Int64 = 14 * 86_400_000

    /// Whether so long has passed since then, in milliseconds. What is taken away does not come back, so the service's clock is
    /// not believed alone: the broker's, by which the command was logged, must say so too. Where the log has the time of its
    /// producer, which is the service itself, two weeks more must have passed (S204).
    public func hasPassed(_ period: Int64, since: Int64) -> Bool {
        let end = since + period
        guard let logged, logged.isBrokers else { return now.milliseconds >= end + Self.clockDoubt }
        return min(now.milliseconds, logged.milliseconds) >= end
    }
}
