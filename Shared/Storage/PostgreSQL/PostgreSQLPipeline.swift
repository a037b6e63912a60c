// SPDX-License-Identifier: Apache-2.0

import CLibpq
import Contracts
import Glibc

/// One exchange with the server in libpq's pipeline mode: any number of requests, one round trip.
///
/// Requests are written while answers are read, so neither side can wait for the other with full buffers, however
/// large the batch is. The exchange always runs to its end (the server's answer to the sync), so that an error in
/// the middle leaves the connection in step.
///
/// What was only sent (``send(count:request:)``) is answered in the next exchange, before its own requests.
struct PostgreSQLPipeline {
    /// Bytes handed to libpq between two looks at whether the server takes them.
    private static let flushSize = 64 * 1024

    let handle: OpaquePointer
    /// How long the server may be silent before it is given up. Nil waits as long as the connection lives.
    let patience: Duration?

    /// What was sent and not answered when the exchange began.
    struct Unanswered {
        var requests = 0
        var syncs = 0
    }

    private var sent = 0
    /// Below 0 while what was sent before is answered.
    private var answered: Int
    private var isSynced = false
    /// How many answers to a sync are to come, the exchange's own included.
    private var syncsToCome: Int
    private var isFinished: Bool { syncsToCome == 0 }
    private var isInsideAnswer = false
    private var isBlocked = false
    private var failure: StorageError?
    /// Whether the failure is that of something that was sent before the exchange.
    private(set) var hasFailedBefore = false

    /// Whether every request has its answer. If not, the connection cannot be used any more.
    var isInStep: Bool { isFinished && PQstatus(handle) == CONNECTION_OK }

    init(handle: OpaquePointer, patience: Duration?, after unanswered: Unanswered = Unanswered()) {
        self.handle = handle
        self.patience = patience
        answered = -unanswered.requests
        syncsToCome = unanswered.syncs + 1
    }

    /// Hands requests to libpq, and as much of them to the server as it takes now, and waits for no answer.
    ///
    /// They end with a sync of their own: so the server knows that it waits for its client, and for how long.
    /// - Parameter unanswered: is told what was sent, also when this throws.
    static func send(
        _ handle: OpaquePointer, count: Int, unanswered: inout Unanswered,
        request: (Int) throws(StorageError) -> Int
    ) throws(StorageError) {
        var pipeline = PostgreSQLPipeline(handle: handle, patience: nil)
        defer {
            unanswered.requests += pipeline.sent
            if pipeline.isSynced { unanswered.syncs += 1 }
        }
        while !pipeline.isSynced {
            // libpq keeps what the server does not take yet.
            pipeline.isBlocked = false
            try pipeline.fill(count, request)
            _ = try pipeline.flush()
        }
        if let failure = pipeline.failure { throw failure }
    }

    /// Runs the exchange.
    ///
    /// - Parameters:
    ///   - count: how many requests there are.
    ///   - send: hands request number n to libpq; returns the bytes it added.
    ///   - receive: takes the good answer to request number n; called in order.
    /// - Throws: the first failure, after the exchange has ended: of what was sent before, too.
    mutating func run(
        count: Int,
        send: (Int) throws(StorageError) -> Int,
        receive: (Int, OpaquePointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        while !isFinished {
            try fill(count, send)
            try exchangeBytes(wait: isSynced || isBlocked)
            try takeAnswers(receive)
        }
        if let failure { throw failure }
    }

    /// Queues requests until libpq has something to write that the server does not take yet.
    private mutating func fill(_ count: Int, _ send: (Int) throws(StorageError) -> Int) throws(StorageError) {
        guard !isBlocked, !isSynced else { return }
        var pending = 0
        while sent < count, pending < Self.flushSize {
            do {
                pending += try send(sent)
                sent += 1
            } catch {
                // What was queued is finished in order, so that the connection stays usable.
                failure = failure ?? error
                if PQstatus(handle) != CONNECTION_OK { throw error }
                return try sync()
            }
        }
        if sent == count { try sync() }
    }

    private mutating func sync() throws(StorageError) {
        guard !isSynced else { return }
        guard PQpipelineSync(handle) == 1 else { throw connectionLost() }
        isSynced = true
    }

    private mutating func exchangeBytes(wait: Bool) throws(StorageError) {
        isBlocked = try flush()
        guard wait || isBlocked, PQisBusy(handle) == 1 || isBlocked else { return }
        var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        if isBlocked { descriptor.events |= Int16(POLLOUT) }
        let milliseconds = patience.map { CInt(clamping: $0.inMilliseconds) } ?? -1
        var ready = poll(&descriptor, 1, milliseconds)
        while ready < 0, errno == EINTR { ready = poll(&descriptor, 1, milliseconds) }
        guard ready > 0 else {
            throw failure ?? .unavailable("the PostgreSQL server does not answer")
        }
        if descriptor.revents & ~Int16(POLLOUT) != 0, PQconsumeInput(handle) == 0 { throw connectionLost() }
        if isBlocked { isBlocked = try flush() }
    }

    /// Returns whether something is left to write.
    private func flush() throws(StorageError) -> Bool {
        let answer = PQflush(handle)
        // A server that ends a session closes its side first and says why: the reason is still to be read.
        if answer < 0 {
            guard PQconsumeInput(handle) == 1 else { throw connectionLost() }
            return false
        }
        return answer == 1
    }

    private mutating func takeAnswers(
        _ receive: (Int, OpaquePointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        // libpq blocks when it is asked for more answers than there are requests.
        while !isFinished, answered < sent || syncsToCome > 1 || isSynced, PQisBusy(handle) == 0 {
            guard let result = PQgetResult(handle) else {
                // libpq expects no answer where there must be one: the two are out of step.
                guard isInsideAnswer else { throw connectionLost() }
                isInsideAnswer = false
                answered += 1
                continue
            }
            defer { PQclear(result) }
            try take(result, receive)
        }
        if PQstatus(handle) != CONNECTION_OK { throw connectionLost() }
    }

    private mutating func take(
        _ result: OpaquePointer, _ receive: (Int, OpaquePointer) throws(StorageError) -> Void
    ) throws(StorageError) {
        switch PQresultStatus(result) {
        case PGRES_PIPELINE_SYNC:
            syncsToCome -= 1
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
            isInsideAnswer = true
            guard failure == nil, answered >= 0 else { return }
            do {
                try receive(answered, result)
            } catch {
                failure = error
            }
        case PGRES_PIPELINE_ABORTED:
            isInsideAnswer = true
        case PGRES_EMPTY_QUERY:
            isInsideAnswer = true
            failure = failure ?? .invalid("the statement is empty")
        default:
            isInsideAnswer = true
            guard failure == nil else { return }
            failure = .postgreSQL(result)
            hasFailedBefore = answered < 0
        }
    }

    private func connectionLost() -> StorageError {
        if let failure, failure.kind == .unavailable { return failure }
        return .unavailable("the connection was lost: \(Self.message(handle))", sqlState: "08006")
    }

    static func message(_ handle: OpaquePointer) -> String {
        PostgreSQLWords.cause(of: String(cString: PQerrorMessage(handle)))
    }
}
