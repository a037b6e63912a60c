// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// Erasures that were decided later than their messages say.
///
/// Two replicas decide about a person at once, in transactions that do not see each other: one erases her, the other finds
/// her there and changes nothing. Its reply says so, at a later time than the erasure's. A replay that went by these times
/// would make her again. So the erasure comes behind the last reply that names her (docs/loop.md, "A replay").
struct LaterTimes {
    /// For how long two transactions may stand side by side, and the clocks of their replicas apart.
    private static let limit: Int64 = 60_000
    /// How many messages an erasure leads to at most before the one that says who is gone.
    private static let messagesLookedThrough = 1000

    private struct Erased {
        var message: String
        var time: Int64
        var later: Int64?
    }

    /// The commands that only ask. Their answers name the erased too, and nothing came of them.
    private let questions: Set<String>
    /// By the id of who is gone.
    private var erased: [String: Erased] = [:]
    /// The times of those that were later, and that of each by its message.
    private var times: Set<Int64> = []
    private var messages: [String: Int64] = [:]

    /// - Parameter questions: types of commands that only ask.
    init(questions: Set<String> = []) { self.questions = questions }

    /// Takes in what the service told once; events before replies.
    mutating func note(_ message: CloudEvent<JSONView>, at time: Int64) {
        let data = message.data
        switch message.attributes.type {
        case UserErased.type:
            note((try? WireJSONDecoder().decode(UserErased.self, from: data))?.userId.text, message, at: time)
        case ProfileErased.type:
            note((try? WireJSONDecoder().decode(ProfileErased.self, from: data))?.mpid.description, message, at: time)
        case ReceivedReply.type where !erased.isEmpty:
            guard let reply = ReceivedReply(data.value), reply.status == .succeeded,
                !questions.contains(reply.commandType), reply.result?["isErased"] != true
            else { return }
            see(reply.result?["userId"]?.stringValue, at: time)
            see(reply.result?["mpid"]?.stringValue, at: time)
        default: break
        }
    }

    private mutating func note(_ person: String?, _ message: CloudEvent<JSONView>, at time: Int64) {
        guard let person else { return }
        // A later one is a replay's.
        if let known = erased[person], known.time <= time { return }
        erased[person] = Erased(message: message.attributes.id, time: time)
    }

    private mutating func see(_ person: String?, at time: Int64) {
        guard let person, var erasure = erased[person] else { return }
        // At the same time: in the same batch, which a replay decides in its own order.
        guard time > erasure.time, time <= erasure.time + Self.limit, time >= erasure.later ?? .min else { return }
        erasure.later = time
        erased[person] = erasure
        times.insert(erasure.time)
        messages[erasure.message] = time + 1
    }

    /// - Parameter time: when it was decided, as its messages say; in milliseconds.
    func time(of command: CommandKey, _ time: Int64) -> Int64 {
        guard times.contains(time) else { return time }
        for index in 0..<Self.messagesLookedThrough {
            if let later = messages[DerivedID.message(of: command, index: index)] { return later }
        }
        return time
    }
}
