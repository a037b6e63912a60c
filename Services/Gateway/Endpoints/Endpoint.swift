// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Runtime
import WireJSON

/// One endpoint: what is asked for and by whom, the command that it becomes, and how the reply is answered. ``all`` and
/// ``admin`` list them; the OpenAPI document of each ``Door`` describes the same ones to others, and a test compares the two.
struct Endpoint: Sendable {
    let method: String
    let path: PathTemplate
    /// In whose words it is read and answered.
    let dialect: Dialect
    let callers: Callers
    let work: Work

    /// Who may call, and what they show for it.
    enum Callers: Sendable, Equatable {
        /// The app's backend: an API key with its secret.
        case backend
        /// The same from whoever has the app: the key and the secret are in every copy of it.
        case app
        /// As ``app``, or a token of a user or an install.
        case device
        /// A token of a user or an install: the key in every copy of the app opens no install.
        case install
        /// As ``install``, also with a token that expired not long ago (U75).
        case expiredInstall
        /// As ``backend``, also with Basic authentication, as privacy tools have it.
        case privacy
        /// The identity vendor's clients, in its three ways. The operation is what the app may let a key alone ask for.
        case identity(GatewaySettings.Operation)
        /// Web pages, which show no more than a key's id.
        case page
        case anybody

        /// Whether anybody who has the app can send it: then each address gets its share.
        var areMany: Bool {
            switch self {
            case .app, .device, .install, .expiredInstall: true
            default: false
            }
        }

        /// Whether an API key is not enough.
        var areTokens: Bool { self == .install || self == .expiredInstall }

        /// Whether clients with a domain of their own may put one of the vendor's prefixes in front.
        var mayTakePrefix: Bool {
            switch self {
            case .identity, .page: true
            default: false
            }
        }
    }

    enum Work: Sendable {
        case command(Command)
        /// Event batches: taken in, and thrown away.
        case nothing
        /// openapi.json.
        case document
        /// A file of the console.
        case console
        /// What the gateway itself answers to an API key.
        case reading(Reading)
        /// What is the same for everybody.
        case fixed(@Sendable () -> APIResponse)
    }

    /// What the gateway knows without a service. The last two need the console's reader.
    enum Reading: Sendable {
        /// Whose key it is and what it may.
        case key
        /// How the replicas are doing.
        case status
        /// The app's dead letters by reason.
        case deadLetters

        /// Any of these is enough; `nil`: whoever has the key.
        var scopes: [Scope]? { self == .key ? nil : [.support, .admin] }
    }

    /// What a request becomes, and what is made of the reply.
    struct Command: Sendable {
        /// The message, and what it asks of the caller's API key. The service that decides the command checks that too.
        let type: CommandType
        /// The services that have their part in the answer, beside the one that decides the command (``Shares``).
        let others: Set<String>
        let pending: Pending
        /// What the query may say; `nil`: it is passed over.
        let parameters: Set<Query.Parameter>?
        let read: @Sendable (RequestContent) throws(APIFailure) -> JSONValue
        let answer: Answer
        /// The path of what tells how it goes on when it takes long; `nil` when nothing does.
        let progress: Progress
        /// Every service is asked, and their answers are one (``FactsCalls``); `type` is the first one's.
        var asksAll = false
        /// And they are asked about what they name, until all is known of the person (``PeopleCalls``).
        var goesOn = false
        /// What other services are asked for the answer, once this one has answered.
        var followUps: FollowUps?

        /// How long the command may be decided when somebody can ask for its answer again; `nil`: for ever. A link is about
        /// the linker's turn, and nothing behind its end.
        func lifetime(_ app: AppSettings) -> Duration? {
            type.name == LinkRequest.type ? .milliseconds(app.sdk.linkerTimeout) : nil
        }
    }

    typealias Progress = @Sendable (RequestContent) -> String?

    /// What it means that the command is pending.
    enum Pending: Sendable {
        /// Nothing yet: the final reply is waited for.
        case isAwaited
        /// The app's backend has to link first, when the body asks for it. The device is told so, and `confirm-link` brings
        /// the result.
        case asksLinker
        /// That it is begun will do if it takes long: it goes on, and nobody has to repeat it.
        case goesOn

        func isAnswer(to body: JSONObject) -> Bool { self == .asksLinker && body["linking"] == "linker" }
    }

    /// The answer to a command that succeeded, or is pending where that is an answer.
    typealias Answer = @Sendable (Outcome) -> APIResponse

    struct Outcome {
        var result: JSONObject
        var isPending: Bool
        var settings: GatewaySettings
        /// What the request's query said.
        var query = Query()
        /// What it would have led to; `nil` when it was carried out.
        var tried: Tried?
        var asked = Asked()
    }

    /// By whom, when and where it was asked, for answers that say so.
    struct Asked {
        var app: AppID = ""
        var now = Timestamp(milliseconds: 0)
        /// The request's body as it was sent.
        var body: [UInt8] = []
        /// As the request names it.
        var host: String?
        var scheme = "http"

        /// What a path of ours stands behind.
        var origin: String { host.map { "\(scheme)://\($0)" } ?? "" }
    }

    /// Questions to other services that follow from an answer, and what comes of all.
    struct FollowUps: Sendable {
        struct Question: Sendable {
            var type: CommandType
            var data: JSONValue

            init(_ type: CommandType, _ data: JSONValue) {
                self.type = type
                self.data = data
            }
        }

        var questions: @Sendable (JSONObject) -> [Question]
        /// Given the answers of those that had one.
        var merge: @Sendable (JSONObject, [JSONObject]) -> JSONObject

        init(
            questions: @escaping @Sendable (JSONObject) -> [Question],
            merge: @escaping @Sendable (JSONObject, [JSONObject]) -> JSONObject
        ) {
            self.questions = questions
            self.merge = merge
        }
    }

    /// What a dry run tells beside the result.
    struct Tried {
        /// What the services would have told others: type and data of each event.
        var events: [JSONValue]
        /// What cannot be told.
        var message: String?
    }

    /// Backends' calls carry secrets that have no place in a browser.
    var isForBrowsers: Bool {
        if case .console = work { false } else { callers != .backend && callers != .privacy }
    }
}

/// What a request says, apart from who sent it.
struct RequestContent {
    /// The id in the path; empty where there is none.
    var id: String
    /// Empty when there was no body.
    var body: JSONObject
    var query = Query()

    /// These members of the body, if they are there.
    func only(_ names: [String]) -> JSONObject {
        JSONObject(names.compactMap { name in body[name].map { (name, $0) } })
    }
}

extension Endpoint {
    /// - Parameters:
    ///   - others: the services that have their part in the answer.
    ///   - read: the command; the service checks what is in it.
    init<Message: CommandMessage>(
        _ method: String, _ path: String, _ dialect: Dialect, by callers: Callers, with others: Set<String> = [],
        pending: Pending = .isAwaited, parameters: Set<Query.Parameter>? = nil,
        _ read: @escaping @Sendable (RequestContent) throws(APIFailure) -> Message,
        answer: @escaping Answer = OwnCalls.answer, progress: @escaping Progress = { _ in nil }
    ) {
        self.init(
            method, path, dialect, by: callers, with: others, pending: pending, parameters: parameters, Message.self,
            data: { content throws(APIFailure) in try Self.data(read(content)) }, answer: answer, progress: progress)
    }

    /// - Parameters:
    ///   - others: the services that have their part in the answer.
    ///   - data: of the command, where the body's members go on as they are, right or wrong: the service checks them, and
    ///     says what is wrong.
    init<Message: CommandMessage>(
        _ method: String, _ path: String, _ dialect: Dialect, by callers: Callers, with others: Set<String> = [],
        pending: Pending = .isAwaited, parameters: Set<Query.Parameter>? = nil,
        _: Message.Type, data: @escaping @Sendable (RequestContent) throws(APIFailure) -> JSONValue,
        answer: @escaping Answer = OwnCalls.answer, progress: @escaping Progress = { _ in nil },
        followUps: FollowUps? = nil
    ) {
        self.init(
            method, path, dialect, by: callers,
            .command(
                Command(
                    type: CommandType(Message.self), others: others, pending: pending, parameters: parameters,
                    read: data, answer: answer, progress: progress, followUps: followUps)))
    }

    init(_ method: String, _ path: String, _ dialect: Dialect, by callers: Callers, _ work: Work) {
        self.init(method: method, path: PathTemplate(path), dialect: dialect, callers: callers, work: work)
    }

    private static func data(_ message: some CommandMessage) throws(APIFailure) -> JSONValue {
        do {
            let bytes = try WireJSONEncoder().encode(message)
            return try JSONValue(parsing: bytes, limits: JSONLimits(maxBytes: bytes.count))
        } catch {
            throw .defect
        }
    }
}
