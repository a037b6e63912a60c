// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Dispatch
import HTTPTypes
import Link
import Sync
import Synchronization
import User
import Verification
import WireJSON

@testable import Gateway
@testable import Runtime

/// Input: an HTTP request as text: `POST /v1/login?a=b`, header lines, an empty line, the body.
enum RequestTarget {
    static func run(_ bytes: [UInt8]) throws {
        guard let request = request(bytes) else { return }
        let routes = Door.allCases.flatMap { Route.at(request.path, $0) }
        for route in routes where route.endpoint.method == request.method {
            let bus = StandIn(result: (try? JSONValue(parsing: request.body))?["result"])
            let api = API(
                bus: bus, secrets: FuzzWorld.secrets, limits: RequestLimits(), replyTimeout: .seconds(1),
                now: { FuzzWorld.now })
            let response = answer(request, route, api)
            if let problem = bus.problem.withLock({ $0 }) { throw Broken(problem) }
            try check(response, route)
        }
    }

    private static func request(_ bytes: [UInt8]) -> APIRequest? {
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        let words = String(decoding: line, as: UTF8.self).split(separator: " ")
        guard words.count == 2 else { return nil }
        let uri = words[1].split(separator: "?", maxSplits: 1).map(String.init)
        guard let path = uri.first else { return nil }
        // A body that begins with a brace must not stand for all of it.
        let rest = Array(bytes.dropFirst(line.count + 1))
        let text = RecordText(rest.first == UInt8(ascii: "{") ? [UInt8(ascii: "\n")] + rest : rest)
        var request = APIRequest(
            method: String(words[0]), path: path, query: uri.count > 1 ? uri[1] : nil, headers: [:],
            body: text.value ?? [])
        for header in text.headers {
            guard let name = HTTPField.Name(header.name) else { continue }
            request.headers[name] = (header.value ?? []).text
        }
        request.client = Client(address: IPAddress("203.0.113.7"), isLimited: true)
        return request
    }

    private static func answer(_ request: APIRequest, _ route: Route, _ api: API) -> APIResponse {
        let done = DispatchSemaphore(value: 0)
        let response = Mutex(APIResponse(status: 0))
        // What is waited for waits for nobody else.
        Task {
            let answer = await respond(request, route, api)
            response.withLock { $0 = answer }
            done.signal()
        }
        done.wait()
        return response.withLock { $0 }
    }

    /// As `GatewayResponder` does.
    private static func respond(_ request: APIRequest, _ route: Route, _ api: API) async -> APIResponse {
        var note = AccessNote()
        let trace = TraceContext(parent: request.header("traceparent"), state: request.header("tracestate"))
        guard case .command(let command) = route.endpoint.work else { return APIResponse(status: 202) }
        let call = Call(request: request, route: route, command: command)
        do throws(APIFailure) {
            let credential = try api.admit(call, &note)
            return await api.respond(to: call, of: credential, trace: trace, note: &note)
        } catch {
            return route.endpoint.dialect.response(error, ref: "r")
        }
    }

    private static func check(_ response: APIResponse, _ route: Route) throws {
        try hold(response.status != 500, "a defect, says \(response.body.text)")
        let isJSON = response.headers[.contentType]?.contains("json") ?? false
        guard isJSON else { return }
        let limits = JSONLimits(maxDepth: 64, maxBytes: response.body.count)
        try hold((try? JSONValue(parsing: response.body, limits: limits)) != nil, "no JSON: \(response.body.text)")
    }
}

/// Writes commands and answers them, if the service that they are for can read them.
private final class StandIn: CommandBus {
    let result: JSONValue?
    let problem = Mutex<String?>(nil)
    private let writer = CommandWriter(topics: FuzzWorld.topics, keys: FuzzWorld.keys)

    init(result: JSONValue?) { self.result = result }

    var apps: AppDirectory { FuzzWorld.apps }
    var load: Double { 0.5 }

    func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer {
        let record = try writer.record(command, ownKey: "own", now: FuzzWorld.now)
        let read = KafkaRecord(
            topicPartition: TopicPartition(topic: record.topic, partition: 0), offset: 0, key: record.key,
            value: record.value, headers: record.headers)
        let refusals = [
            refusal(of: read, LinkService.self), refusal(of: read, UserService.self),
            refusal(of: read, SyncService.self), refusal(of: read, VerificationService.self),
        ].compactMap(\.self)
        if let refusal = refusals.first { problem.withLock { $0 = refusal } }
        return .reply(
            CommandReply(
                commandID: command.id, app: command.caller.app.id, digest: command.digest,
                isDryRun: command.isDryRun, status: acceptsPending ? .pending : .succeeded, result: result))
    }

    /// Why the service does not take it for a command of somebody who may send it.
    private func refusal<Service: CommandService>(of record: KafkaRecord, _: Service.Type) -> String? {
        guard record.topicPartition.topic == FuzzWorld.topics.commands(Service.name) else { return nil }
        let authenticator = Authenticator(
            trust: .signed, apps: FuzzWorld.apps, keys: FuzzWorld.keys, topics: FuzzWorld.topics)
        let reader = InboundReader<Service>(authenticator: authenticator, topics: FuzzWorld.topics)
        guard case .refused(let refusal) = reader.read(record, now: FuzzWorld.now) else { return nil }
        let why = refusal.deadLetter?.detail ?? refusal.answer?.rejection.message ?? ""
        return "the gateway sends what the service refuses: \(why) in \((record.value ?? []).text)"
    }
}

/// Input: gzip.
enum GzipTarget {
    static func run(_ bytes: [UInt8]) throws {
        let limit = 100_000
        guard let content = try? Gzip.decompress(bytes, limit: limit) else { return }
        try hold(content.count <= limit, "\(content.count) bytes, although \(limit) are the limit")
        try hold(try Gzip.decompress(bytes, limit: content.count) == content, "another content")
    }
}
