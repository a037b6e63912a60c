// SPDX-License-Identifier: Apache-2.0

public import Contracts
public import WireJSON

/// One kind of message that a service reads, and what it is to the service's decider. ``CommandService/inputs`` lists
/// them all: topics, consumer groups, scopes and decoding follow from it.
public struct Input<Command: Sendable>: Sendable {
    /// The CloudEvents type.
    public let type: String
    public let source: InputSource
    /// `nil` for events and replies.
    public let command: CommandType?
    /// - Throws: `Rejection`, or a decoding error that the runtime turns into `INVALID_REQUEST`.
    public let read: @Sendable (JSONView) throws -> Command
    /// Whom a command is about; `nil` for events and replies.
    let isAbout: (@Sendable (JSONView) -> PersonAsked?)?
    /// Whether it asks about that person (``PersonQuery``).
    let isQuestion: Bool
    /// Whether it is about many people (``ImportCommand``).
    let isList: Bool

    private init(
        _ type: String, _ source: InputSource, command: CommandType? = nil,
        isAbout: (@Sendable (JSONView) -> PersonAsked?)? = nil, isQuestion: Bool = false, isList: Bool = false,
        _ read: @escaping @Sendable (JSONView) throws -> Command
    ) {
        self.type = type
        self.source = source
        self.command = command
        (self.isAbout, self.isQuestion, self.isList) = (isAbout, isQuestion, isList)
        self.read = read
    }

    /// A command to this service.
    public static func command<Message: CommandMessage>(
        _: Message.Type, _ command: @escaping @Sendable (Message) -> Command
    ) -> Input {
        let isByHand = Message.self is any CommandByHand.Type
        return Input(
            Message.type, .commands, command: CommandType(Message.self), isAbout: PersonAsked.reader(Message.self),
            isQuestion: Message.self is any PersonQuery.Type, isList: Message.self is any ImportCommand.Type
        ) { data in
            let message = try WireJSONDecoder().read(Message.self, from: data)
            try message.validate()
            if isByHand { try checkMembers(of: data, message) }
            return command(message)
        }
    }

    /// See ``Contracts/CommandByHand``.
    private static func checkMembers(of data: JSONView, _ message: some Encodable) throws {
        guard case .object(let given) = data.value,
            case .object(let known) = try JSONValue(parsing: WireJSONEncoder().encode(message))
        else { return }
        for member in given.members where member.value != .null && known[member.name] == nil {
            throw Rejection(
                .invalidRequest, "data.\(member.name.prefix(64)) is not a member of this command. Nothing was done.")
        }
    }

    /// An event of another service. Events that are not listed are passed over.
    public static func event<Message: EventMessage>(
        _: Message.Type, of service: String, _ command: @escaping @Sendable (Message) -> Command
    ) -> Input {
        Input(Message.type, .events(of: service)) {
            command(try WireJSONDecoder().read(Message.self, from: $0))
        }
    }

    /// The replies to what this service forwards to the services named. Listed once.
    public static func reply(
        from services: Set<String>, _ command: @escaping @Sendable (ReceivedReply) -> Command
    ) -> Input {
        Input(ReceivedReply.type, .replies(from: services)) { data in
            guard let reply = ReceivedReply(data.value) else {
                throw Rejection(.invalidRequest, "data does not say which command it answers, and how.")
            }
            return command(reply)
        }
    }
}

/// A topic that a service reads. What stands on another topic than its commands is believed only when one of the
/// deployment's own services wrote it.
public enum InputSource: Sendable, Hashable {
    case commands
    case events(of: String)
    /// To whom it forwards: their commands topics are created too when they are missing, so that services may start in
    /// any order.
    case replies(from: Set<String>)

    package func topic(_ topics: Topics, of service: String) -> String {
        switch self {
        case .commands: topics.commands(service)
        case .events(let other): topics.events(other)
        case .replies: topics.replies(to: service)
        }
    }

    var isOfEvents: Bool { if case .events = self { true } else { false } }

    /// The consumer group that reads it: each topic has one of its own.
    package func group(_ topics: Topics, of service: String) -> String {
        switch self {
        case .commands: topics.group(service)
        case .events(let other): "\(topics.group(service)).events.\(other)"
        case .replies: "\(topics.group(service)).replies"
        }
    }
}

extension CommandService {
    /// The commands that it reads.
    public static var commandTypes: [CommandType] { inputs.compactMap(\.command) }
}

extension Array {
    /// What the service knows as its commands, and what their senders must be allowed to do.
    func scopes<Command>() -> [String: Scope] where Element == Input<Command> {
        reduce(into: [:]) { scopes, input in scopes[input.type] = input.command?.scope }
    }

    /// - Throws: `Rejection` with `UNKNOWN_TYPE`, or what ``Input/read`` throws.
    func read<Command>(_ type: String, _ data: JSONValue) throws -> Command where Element == Input<Command> {
        guard let input = first(where: { $0.type == type }) else { throw Rejection(.unknownType) }
        return try input.read(JSONView(data))
    }
}

extension CommandService {
    /// The topics that it reads; its commands always.
    static var sources: [InputSource] {
        inputs.reduce(into: [.commands]) { sources, input in
            if !sources.contains(input.source) { sources.append(input.source) }
        }
    }
}
