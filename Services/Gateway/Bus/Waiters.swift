// SPDX-License-Identifier: Apache-2.0

import Contracts
import Synchronization
import WireJSON

/// What came of a command that was sent on behalf of an HTTP request.
enum Answer: Sendable {
    case reply(CommandReply)
    /// No reply until the deadline. The command may still be decided.
    case timedOut
    /// Begun, and not at its end until the deadline.
    case stillPending
    /// Kafka did not take the command, or the gateway is not connected.
    case unavailable
    /// The caller's Idempotency-Key stands for another request.
    case keyReused
    /// As many requests wait as may wait for this service, or for this app, or more than it answers in time.
    case full
}

/// A service's reply.
struct CommandReply: Sendable {
    var commandID: CommandID
    var app: AppID
    /// Of the command that is answered.
    var digest: String
    var isDryRun = false
    var status: ReplyStatus
    var reason: String?
    var message: String?
    var result: JSONValue?
    /// What a dry run would have told others.
    var events: [JSONValue] = []

    /// Pending until somebody outside of the platform does something: the caller has to know now. Otherwise the services
    /// settle it among themselves.
    var awaitsCaller: Bool { status == .pending && result?.objectValue?["awaiting"] != "platform" }

    /// - Returns: `nil` when the record is no reply.
    init?(envelope: [UInt8]) {
        guard let json = try? JSONValue(parsing: envelope), json["type"]?.stringValue == ReceivedReply.type,
            let app = json["appid"]?.stringValue, let reply = json["data"].flatMap({ ReceivedReply($0) })
        else { return nil }
        self.init(
            commandID: reply.commandId, app: AppID(app), digest: reply.commandDigest, isDryRun: reply.isDryRun,
            status: reply.status, reason: reply.reason, message: reply.message, result: reply.result)
        events = reply.events ?? []
    }

    init(
        commandID: CommandID, app: AppID, digest: String, isDryRun: Bool = false, status: ReplyStatus,
        reason: String? = nil, message: String? = nil, result: JSONValue? = nil
    ) {
        self.commandID = commandID
        self.app = app
        self.digest = digest
        self.isDryRun = isDryRun
        self.status = status
        self.reason = reason
        self.message = message
        self.result = result
    }
}

/// The requests that wait for a reply, by command id. Shared by the request handlers and the two Kafka threads.
final class Waiters: Sendable {
    /// What a request waits for.
    struct Question: Sendable {
        /// Of the command.
        var id: CommandID
        /// Whose place it takes.
        var owner: Shares.Owner
        /// Of the command: another one may have the same id, and its answer is not for this request. The digest covers
        /// the type too.
        var digest: String
        /// Whether the word that the command is pending is the answer; otherwise the final reply is.
        var acceptsPending = false
        var isDryRun = false

        var app: AppID { owner.app }

        func isAnswered(by reply: CommandReply) -> Bool {
            guard app == reply.app, digest == reply.digest, isDryRun == reply.isDryRun else { return false }
            // Nothing follows the answer to a dry run.
            return reply.status != .pending || isDryRun || acceptsPending && reply.awaitsCaller
        }
    }

    private struct Waiter {
        var question: Question
        var isPending = false
        var deadline: ContinuousClock.Instant
        var continuation: CheckedContinuation<Answer, Never>
    }

    private struct State {
        /// Several for one id: the same Idempotency-Key may come twice at once.
        var waiters: [CommandID: [Waiter]] = [:]
        var shares: Shares
        /// How fast what waits for the same services is answered.
        var paces: [Set<String>: Pace] = [:]
        var usedKeys = UsedKeys()
    }

    /// So many of a group are never too many for its pace, or an eighth of all places: a few say nothing of it.
    private static let crowd = 50

    private let state: Mutex<State>
    private let limit: Int
    private let timeout: Duration

    /// - Parameters:
    ///   - limit: how many may wait.
    ///   - timeout: for how long each of them does.
    init(limit: Int, timeout: Duration) {
        state = Mutex(State(shares: Shares(limit: limit)))
        self.limit = limit
        self.timeout = timeout
    }

    var count: Int { state.withLock(\.shares.count) }

    /// Waits for the reply to a command.
    /// - Parameter send: called once the waiter is in place, so that no reply can come too early. Not called when the
    ///   answer is known without.
    func wait(for question: Question, until deadline: ContinuousClock.Instant, send: () -> Void) async -> Answer {
        await withCheckedContinuation { continuation in
            let refusal: Answer? = state.withLock { state in
                guard isInTime(question.owner.services, &state), state.shares.take(question.owner) else { return .full }
                if question.id.isDerived, !state.usedKeys.use(question.id, for: question.digest) {
                    state.shares.giveBack(question.owner)
                    return .keyReused
                }
                state.waiters[question.id, default: []].append(
                    Waiter(question: question, deadline: deadline, continuation: continuation))
                return nil
            }
            if let refusal { continuation.resume(returning: refusal) } else { send() }
        }
    }

    /// Whether a request that comes now will be answered in time.
    private func isInTime(_ services: Set<String>, _ state: inout State) -> Bool {
        let now = ContinuousClock.now
        let waiting = state.shares.count(waitingFor: services)
        return !state.paces[services, default: Pace(timeout: timeout, crowd: max(Self.crowd, limit / 8), now: now)]
            .isTooSlow(for: waiting, at: now)
    }

    /// Whether the reply matters here: somebody waits for it, or it tells of an Idempotency-Key that another replica was
    /// asked with.
    func wants(_ reply: CommandReply) -> Bool {
        reply.commandID.isDerived || state.withLock { $0.waiters[reply.commandID] != nil }
    }

    /// Hands a reply to those who wait for it. Others' replies are on the same topic and are passed over.
    func resolve(_ reply: CommandReply) {
        note(reply)
        finish(reply.commandID, with: .reply(reply)) { $0.question.isAnswered(by: reply) }
    }

    /// What they wait for has begun; and what the Idempotency-Key stands for.
    private func note(_ reply: CommandReply) {
        state.withLock { state in
            if reply.status == .pending {
                for index in (state.waiters[reply.commandID] ?? []).indices {
                    guard let question = state.waiters[reply.commandID]?[index].question,
                        question.app == reply.app, question.digest == reply.digest
                    else { continue }
                    state.waiters[reply.commandID]?[index].isPending = true
                }
            }
            if reply.commandID.isDerived, reply.reason != "ID_REUSED" {
                _ = state.usedKeys.use(reply.commandID, for: reply.digest)
            }
        }
    }

    func fail(_ id: CommandID) { finish(id, with: .unavailable) { _ in true } }

    /// Answers those whose time is over.
    func sweep(now: ContinuousClock.Instant) {
        let due = state.withLock { state in
            state.waiters.compactMap { id, waiters in waiters.contains { $0.deadline <= now } ? id : nil }
        }
        for id in due {
            finish(id, with: .timedOut) { $0.deadline <= now && !$0.isPending }
            finish(id, with: .stillPending) { $0.deadline <= now }
        }
    }

    func failAll() {
        let ids = state.withLock { Array($0.waiters.keys) }
        for id in ids { fail(id) }
    }

    private func finish(_ id: CommandID, with answer: Answer, where isMeant: (Waiter) -> Bool) {
        let done: [Waiter] = state.withLock { state in
            guard let waiters = state.waiters[id] else { return [] }
            let done = waiters.filter(isMeant)
            let rest = waiters.filter { !isMeant($0) }
            state.waiters[id] = rest.isEmpty ? nil : rest
            for waiter in done {
                state.shares.giveBack(waiter.question.owner)
                if case .reply = answer { state.paces[waiter.question.owner.services]?.answered(at: .now) }
            }
            return done
        }
        for waiter in done { waiter.continuation.resume(returning: answer) }
    }
}

/// What the latest `Idempotency-Key`s stand for: the digest of the command that was sent under each command id. A
/// service knows that of its own commands for as long as its inbox; a key that is used for calls of two services is
/// told here.
struct UsedKeys {
    private var recent: [CommandID: String] = [:]
    private var older: [CommandID: String] = [:]
    private let limit: Int

    /// - Parameter limit: so many keys are known at least, and twice as many at most.
    init(limit: Int = 20_000) { self.limit = limit }

    /// Notes the first use.
    /// - Returns: whether the id stands for this command.
    mutating func use(_ id: CommandID, for digest: String) -> Bool {
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
