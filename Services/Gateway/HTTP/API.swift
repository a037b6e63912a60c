// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Explanation
import Foundation
import HTTPTypes
import Runtime
import WireJSON

/// What answers commands: the bus, or a stand-in in tests.
protocol CommandBus: Sendable {
    var apps: AppDirectory { get }
    /// How much of what may wait at once does, 0 to 1.
    var load: Double { get }
    /// - Throws: `CommandTooLarge`, or what is a mistake of this program.
    func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer
}

/// Answers requests: credential, command, reply, response.
struct API: Sendable {
    let bus: any CommandBus
    /// Checks user and install tokens; `nil` without keys.
    let secrets: DerivedSecrets?
    let limits: RequestLimits
    let replyTimeout: Duration
    let now: @Sendable () -> Timestamp
    /// What the console shows of the deployment; `nil` where there is no console.
    var reader: ConsoleReader?
    /// Of the port that it serves; a proxy in front may say another one.
    var scheme = "http"

    /// - Parameters:
    ///   - credential: what ``admit(_:_:)`` said of the request.
    ///   - note: collects what the access log says.
    func respond(
        to call: Call, of credential: Credential, trace: TraceContext, note: inout AccessNote
    ) async -> APIResponse {
        note.ref = CommandID.random()
        do {
            let caller = try confirm(credential, call, &note)
            var response = try await answer(call, caller, trace, &note)
            Preference.confirm(in: &response, to: call.request)
            if call.dialect.isIdentityVendors {
                response.set("X-mp-rate-limit-percentage-used", String(Int((bus.load * 100).rounded(.up))))
            }
            return response
        } catch {
            var failure = error
            failure.message = call.dialect.translated(failure.message)
            if let caller = credential.caller, caller.isMasked { failure.message = Mask.masked(failure.message) }
            note.code = failure.code
            var response = call.dialect.response(failure, ref: note.ref)
            Preference.confirm(in: &response, to: call.request)
            return response
        }
    }

    private func answer(
        _ call: Call, _ caller: Caller, _ trace: TraceContext, _ note: inout AccessNote
    ) async throws(APIFailure) -> APIResponse {
        let command = call.command
        let body = try Self.object(call.request.body)
        let content = RequestContent(
            id: call.route.id, body: body, query: try Query(call.request.query, command.parameters))
        let data = try command.read(content)
        let acceptsPending = command.pending.isAnswer(to: body)
        let isDryRun =
            try call.dialect.isDryRun(body) || content.query.isDryRun || Preference.isDryRun(call.request)
        // A dry run takes no key: the request itself may come later under it. Nor does a question to several services: a key
        // stands for one command.
        let named = try Self.idempotencyKey(call.request)
        let key = isDryRun || command.asksAll ? nil : named
        if let key {
            note.ref = CommandID.derived(caller: caller, idempotencyKey: key)
        }
        // Without a key nobody can ask for the answer again: what was not decided in time shall not be decided. But what
        // waits for the app's linker takes the linker's time.
        let outgoing = OutgoingCommand(
            id: note.ref, type: command.type, others: command.others, data: data, caller: caller, trace: trace,
            expires: isDryRun || key == nil && !acceptsPending
                ? now().adding(replyTimeout) : command.lifetime(caller.app).map { now().adding($0) },
            isDryRun: isDryRun)
        if command.goesOn { return Self.masked(try await walk(outgoing), for: caller) }
        if command.asksAll { return try await askAll(outgoing, call) }
        // A dry run makes nothing that goes on.
        let progress = isDryRun ? nil : command.progress(content)
        let answer = try await ask(outgoing, acceptsPending: acceptsPending)
        if case .stillPending = answer, command.pending == .goesOn, !isDryRun { return .accepted(progress) }
        guard let reply = try Self.reply(answer) else { throw .timedOut }
        let result = reply.result?.objectValue ?? [:]
        var response = command.answer(
            Endpoint.Outcome(
                result: try await followed(result, command, outgoing), isPending: reply.status == .pending,
                settings: caller.app.gateway, query: content.query,
                tried: isDryRun ? Endpoint.Tried(events: reply.events, message: reply.message) : nil,
                asked: asked(call, caller)))
        if response.status == 202 { response.goesOn(progress) }
        response = Self.masked(response, for: caller)
        if call.isRead, !caller.needsTokens { EntityTag.apply(to: &response, request: call.request) }
        return response
    }

    private func asked(_ call: Call, _ caller: Caller) -> Endpoint.Asked {
        let forwarded = call.request.header("X-Forwarded-Proto").flatMap { ["http", "https"].contains($0) ? $0 : nil }
        return Endpoint.Asked(
            app: caller.app.id, now: now(), body: call.request.body, host: call.request.host,
            scheme: forwarded ?? scheme)
    }

    /// With what other services say of it.
    private func followed(
        _ result: JSONObject, _ command: Endpoint.Command, _ outgoing: OutgoingCommand
    ) async throws(APIFailure) -> JSONObject {
        guard let followUps = command.followUps, !outgoing.isDryRun else { return result }
        var answers: [JSONObject] = []
        for question in followUps.questions(result) {
            var one = outgoing
            (one.type, one.data) = (question.type, question.data)
            do throws(APIFailure) {
                answers.append(try await allPages(one))
            } catch {
                // Nobody any more.
                guard [404, 410].contains(error.status) else { throw error }
            }
        }
        return followUps.merge(result, answers)
    }

    /// An answer whose installs come in pages, whole.
    private func allPages(_ question: OutgoingCommand) async throws(APIFailure) -> JSONObject {
        func page(after end: JSONValue?) async throws(APIFailure) -> JSONObject {
            var one = question
            (one.id, one.expires) = (CommandID.random(), now().adding(replyTimeout))
            if let end, var data = one.data.objectValue {
                data["after"] = end
                one.data = .object(data)
            }
            guard let reply = try Self.reply(try await ask(one)) else { throw .timedOut }
            return reply.result?.objectValue ?? [:]
        }
        var whole = try await page(after: nil)
        while let end = whole["next"] {
            let more = try await page(after: end)
            let installs = [whole, more].flatMap { $0["installs"]?.arrayValue ?? [] }
            (whole["installs"], whole["next"]) = (.array(installs), more["next"])
        }
        return whole
    }

    private func ask(_ command: OutgoingCommand, acceptsPending: Bool = false) async throws(APIFailure) -> Answer {
        do {
            return try await bus.ask(command, acceptsPending: acceptsPending)
        } catch is CommandTooLarge {
            throw .tooLarge
        } catch {
            throw .defect
        }
    }

    /// Each service under the same id, by which the one request is found in the logs of all. A service that does not answer
    /// is named; the others' answers are worth having without it.
    private func askAll(_ command: OutgoingCommand, _ call: Call) async throws(APIFailure) -> APIResponse {
        let questions = try FactsCalls.questions(command.data).map { question in
            var one = command
            (one.type, one.data) = (question.type, question.data)
            return one
        }
        var results: [String: JSONObject] = [:]
        var silent: [String] = []
        for (question, answer) in zip(questions, await askTogether(questions)) {
            let service = FactsCalls.service(question.type)
            if let reply = try Self.reply(answer.get()) {
                results[service] = reply.result?.objectValue ?? [:]
            } else {
                silent.append(service)
            }
        }
        if results.isEmpty { throw .timedOut }
        let told = APIResponse.json(200, .object(FactsCalls.result(command.data, results, silent: silent)))
        var response = Self.masked(told, for: command.caller)
        if call.isRead { EntityTag.apply(to: &response, request: call.request) }
        return response
    }

    /// - Returns: the answers in the questions' order.
    private func askTogether(_ questions: [OutgoingCommand]) async -> [Result<Answer, APIFailure>] {
        // No tuple: optimised code of Swift 6.3 destroys one that a task of a group returns.
        struct Told: Sendable {
            var place: Int
            var answer: Result<Answer, APIFailure>
        }
        let answers = await withTaskGroup { group in
            for (place, question) in questions.enumerated() {
                group.addTask {
                    do throws(APIFailure) {
                        return Told(place: place, answer: .success(try await ask(question)))
                    } catch {
                        return Told(place: place, answer: .failure(error))
                    }
                }
            }
            return await group.reduce(into: [:]) { $0[$1.place] = $1.answer }
        }
        return questions.indices.map { answers[$0] ?? .failure(.defect) }
    }

    /// Asks all services about an id, and then about what they name, until all is known of the person. Each question is a
    /// command of its own; the trace is one.
    private func walk(_ command: OutgoingCommand) async throws(APIFailure) -> APIResponse {
        var walk = try PeopleCalls.walk(command.data)
        while !walk.questions.isEmpty {
            let asked = walk.questions
            var questions: [OutgoingCommand] = []
            for question in asked {
                var one = command
                (one.type, one.data) = try PeopleCalls.command(question)
                one.id = CommandID.random()
                one.expires = now().adding(replyTimeout)
                questions.append(one)
            }
            var told: [IdentityWalk.Question: FactsResult] = [:]
            for (question, answer) in zip(asked, await askTogether(questions)) {
                told[question] = try Self.reply(answer.get()).flatMap(PeopleCalls.result)
            }
            walk.take(told)
        }
        let found = walk.findings
        if found.rows.isEmpty, found.decisions.isEmpty, !found.silent.isEmpty { throw .timedOut }
        return .json(200, PeopleCalls.answer(command.data["id"]?.stringValue ?? "", found))
    }

    /// - Returns: `nil` when none came in time.
    private static func reply(_ answer: Answer) throws(APIFailure) -> CommandReply? {
        switch answer {
        case .timedOut, .stillPending: return nil
        case .unavailable: throw .unavailable
        case .full: throw .full
        case .keyReused: throw .keyReused
        case .reply(let reply):
            if reply.status == .rejected { throw APIFailure(reply) }
            return reply.status == .expired ? nil : reply
        }
    }

    private static func object(_ body: [UInt8]) throws(APIFailure) -> JSONObject {
        if body.isEmpty { return [:] }
        do {
            // One level is the envelope's.
            let json = try JSONValue(
                parsing: body, limits: JSONLimits(maxDepth: EnvelopeReader.maxDepth - 1, maxBytes: body.count))
            guard let object = json.objectValue else { throw APIFailure.invalid("The body must be a JSON object.") }
            return object
        } catch let error as JSONParseError {
            throw .invalid("The body is not valid JSON: \(error.description)")
        } catch let failure as APIFailure {
            throw failure
        } catch {
            throw .invalid("The body cannot be read.")
        }
    }

    private static func idempotencyKey(_ request: APIRequest) throws(APIFailure) -> String? {
        let keys = HTTPField.Name("Idempotency-Key").map { request.headers[values: $0] } ?? []
        guard let key = keys.first else { return nil }
        // Joined they would be a third key.
        guard keys.count == 1 else { throw .invalid("There is more than one Idempotency-Key.") }
        guard (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { throw .invalid("Idempotency-Key must be 1 to 255 printable ASCII characters.") }
        return key
    }
}

extension Timestamp {
    fileprivate func adding(_ duration: Duration) -> Timestamp {
        Timestamp(milliseconds: milliseconds + duration.inMilliseconds)
    }
}
