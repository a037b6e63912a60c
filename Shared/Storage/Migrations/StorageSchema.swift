// SPDX-License-Identifier: Apache-2.0

/// The tables that every service has: ``Inbox``, ``Outbox``, ``Progress``, ``Sagas``, ``Forwards``,
/// ``DryRuns``, ``DecisionTimes`` and ``Salt`` live in them.
public enum StorageSchema {
    /// To be run before (and together with) the service's own, which start at number 100.
    public static let migrations: [Migration] = [
        Migration(
            number: progressNumber, name: "shared tables",
            statements: [progress, setAside, logs] + Inbox.tables.map(inbox) + Mentions.tables.map(mentions) + [
                inboxState, "INSERT INTO inbox_state (id, newest, begun_at) VALUES (1, 1, -1)", decider, outbox,
                saga, "CREATE INDEX saga_begun_at ON saga (begun_at)",
                forward, "CREATE INDEX forward_next_ask ON forward (next_ask)",
                "CREATE INDEX forward_begun_at ON forward (begun_at)",
                dryRun, "CREATE INDEX dry_run_begun_at ON dry_run (begun_at)",
                salt, DecisionTimes.table,
            ])
    ]

    /// The migration that makes the table of claims.
    static let progressNumber = 1

    private static let progress = """
        CREATE TABLE progress (
            topic TEXT NOT NULL,
            partition BIGINT NOT NULL,
            incarnation BIGINT NOT NULL,
            cluster_id TEXT NOT NULL,
            epoch BIGINT NOT NULL,
            owner TEXT NOT NULL,
            next_offset BIGINT NOT NULL,
            published_through BIGINT NOT NULL,
            idle_claims BIGINT NOT NULL,
            suspect_offset BIGINT,
            suspect_count BIGINT NOT NULL,
            log_time BIGINT NOT NULL,
            forgotten_before BIGINT NOT NULL,
            last_time BIGINT,
            PRIMARY KEY (topic, partition)
        )
        """

    /// Older incarnations with messages still to be published. A claim puts them here, so that a crash between the
    /// claim and the publishing loses none of them.
    private static let setAside = """
        CREATE TABLE set_aside (
            topic TEXT NOT NULL,
            partition BIGINT NOT NULL,
            incarnation BIGINT NOT NULL,
            published_through BIGINT NOT NULL,
            PRIMARY KEY (topic, partition, incarnation)
        )
        """

    /// The logs that claims have named, see ``Logs``.
    private static let logs = """
        CREATE TABLE logs (
            number BIGINT NOT NULL PRIMARY KEY,
            topic TEXT NOT NULL,
            partition BIGINT NOT NULL,
            incarnation BIGINT NOT NULL,
            UNIQUE (topic, partition, incarnation)
        )
        """

    /// What was decided, a table for each generation, see ``Inbox``. The wide columns come first, because PostgreSQL
    /// aligns them.
    private static func inbox(_ table: String) -> String {
        """
        CREATE TABLE \(table) (
            log_offset BIGINT NOT NULL,
            logged_at BIGINT NOT NULL,
            decided_at BIGINT NOT NULL,
            log BIGINT NOT NULL,
            decider SMALLINT NOT NULL,
            outcome SMALLINT NOT NULL,
            key BYTEA NOT NULL PRIMARY KEY,
            digest BYTEA NOT NULL,
            receipt BYTEA NOT NULL,
            before BYTEA NOT NULL
        )
        """
    }

    /// Which decisions are found from an id that no row leads to, a table for each generation, see ``Mentions``.
    private static func mentions(_ table: String) -> String {
        """
        CREATE TABLE \(table) (
            subject BIGINT NOT NULL,
            decided_at BIGINT NOT NULL,
            link BIGINT NOT NULL,
            PRIMARY KEY (subject, decided_at, link)
        )
        """
    }

    /// What is to be published.
    private static let outbox = """
        CREATE TABLE outbox (
            log BIGINT NOT NULL,
            log_offset BIGINT NOT NULL,
            messages BYTEA NOT NULL,
            PRIMARY KEY (log, log_offset)
        )
        """

    /// PostgreSQL would compress rows of more than 2 kB, and put what is still too long elsewhere, which takes a quarter of
    /// its time and more. The outbox's rows are gone in a moment; a saga's is long because of an answer that is
    /// encrypted, so it gets no shorter. Says nothing about what is in the tables, so it is no migration; done once, by
    /// whoever owns them.
    static func keepRowsPlain(in transaction: any SQLTransaction) throws(StorageError) {
        for table in try compressedTables(in: transaction) {
            try transaction.execute("ALTER TABLE \(table) SET (toast_tuple_target = 8160)")
        }
    }

    /// The tables of which that is still to be said, and may be.
    static func compressedTables(in transaction: any SQLTransaction) throws(StorageError) -> [String] {
        guard transaction.engine == .postgresql else { return [] }
        return try transaction.query(
            """
            SELECT relname::text FROM pg_catalog.pg_class
            WHERE oid IN (pg_catalog.to_regclass('outbox'), pg_catalog.to_regclass('saga'))
                AND NOT COALESCE(reloptions, '{}') @> ARRAY['toast_tuple_target=8160']
                AND pg_catalog.pg_has_role(relowner, 'USAGE')
            ORDER BY relname
            """
        ).map { row throws(StorageError) in try row.text(0) }
    }

    /// One row: the newest generation of the inbox, and the log's time when it began.
    private static let inboxState = """
        CREATE TABLE inbox_state (
            id BIGINT NOT NULL PRIMARY KEY,
            newest BIGINT NOT NULL,
            begun_at BIGINT NOT NULL
        )
        """

    /// The numbers of ``Decider``s.
    private static let decider = """
        CREATE TABLE decider (
            number BIGINT NOT NULL PRIMARY KEY,
            apps TEXT NOT NULL,
            code TEXT NOT NULL,
            UNIQUE (apps, code)
        )
        """

    /// Commands whose final answer comes later, and their latest reply once there is one.
    private static let saga = """
        CREATE TABLE saga (
            app TEXT NOT NULL,
            source TEXT NOT NULL,
            id TEXT NOT NULL,
            inbox_key BYTEA NOT NULL,
            origin BYTEA NOT NULL,
            record_key BYTEA,
            reply BYTEA,
            is_settled BIGINT NOT NULL,
            begun_at BIGINT NOT NULL,
            PRIMARY KEY (app, source, id)
        )
        """

    /// Commands that were sent to another service and are not yet answered.
    private static let forward = """
        CREATE TABLE forward (
            app TEXT NOT NULL,
            id TEXT NOT NULL,
            message BYTEA NOT NULL,
            asked BIGINT NOT NULL,
            next_ask BIGINT NOT NULL,
            begun_at BIGINT NOT NULL,
            PRIMARY KEY (app, id)
        )
        """

    /// Dry runs that wait for other services, see ``DryRuns``.
    private static let dryRun = """
        CREATE TABLE dry_run (
            app TEXT NOT NULL,
            id TEXT NOT NULL,
            number BIGINT NOT NULL,
            begun_at BIGINT NOT NULL,
            decided_at BIGINT NOT NULL,
            topic TEXT NOT NULL,
            partition BIGINT NOT NULL,
            incarnation BIGINT NOT NULL,
            log_offset BIGINT NOT NULL,
            logged_at BIGINT NOT NULL,
            is_brokers_time BIGINT NOT NULL,
            message BYTEA NOT NULL,
            PRIMARY KEY (app, id, number)
        )
        """

    /// One row, see ``Salt``.
    private static let salt = """
        CREATE TABLE salt (
            id BIGINT NOT NULL PRIMARY KEY,
            value BYTEA NOT NULL
        )
        """
}

/// 32 random bytes that a store makes once and keeps: what keys the ids and codes that its service gives out.
///
/// It is part of the store, so it outlives every key of the deployment, and a copy that is put back decides again with
/// the salt that it decided with.
public enum Salt {
    public static let byteCount = 32

    /// The store's salt, made now if it has none. To be called in the transaction that claims partitions: whoever holds
    /// a valid claim then knows the salt of the store that it is valid in.
    ///
    /// - Throws: `conflict` when another replica makes it at the same time.
    public static func read(in transaction: any SQLTransaction) throws(StorageError) -> [UInt8] {
        if let known = try stored(in: transaction) { return known }
        var generator = SystemRandomNumberGenerator()
        let made = (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        try keep(made, in: transaction)
        guard let known = try stored(in: transaction) else {
            throw StorageError(kind: .conflict, message: "another replica makes the salt")
        }
        return known
    }

    /// Gives the store this salt, unless it has one.
    public static func keep(_ salt: [UInt8], in transaction: any SQLTransaction) throws(StorageError) {
        try transaction.execute(
            "INSERT INTO salt (id, value) VALUES (1, $1) ON CONFLICT (id) DO NOTHING", [.blob(salt)])
    }

    /// The store's salt; `nil` where nothing was ever claimed.
    public static func stored(in transaction: any SQLTransaction) throws(StorageError) -> [UInt8]? {
        try transaction.query("SELECT value FROM salt WHERE id = 1").first?.blob(0)
    }
}
