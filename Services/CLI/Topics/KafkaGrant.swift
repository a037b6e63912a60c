// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import Supervision
import WireJSON

/// All that Kafka has to allow one of its users on one thing: a line of kafka-acls.
struct KafkaGrant {
    let resource: KafkaRight.Resource
    let name: String
    let isPrefix: Bool
    var operations: [KafkaRight.Operation]

    /// Rights to the same thing together, in their order.
    static func all(_ rights: [KafkaRight]) -> [KafkaGrant] {
        rights.reduce(into: []) { grants, right in
            let isSame =
                grants.last.map {
                    $0.resource == right.resource && $0.name == right.name && $0.isPrefix == right.isPrefix
                } ?? false
            if isSame {
                grants[grants.count - 1].operations.append(right.operation)
            } else {
                grants.append(
                    KafkaGrant(
                        resource: right.resource, name: right.name, isPrefix: right.isPrefix,
                        operations: [right.operation]))
            }
        }
    }

    func shell(_ user: String) -> String {
        let operations = operations.map { "--operation \($0.rawValue)" }.joined(separator: " ")
        let target =
            switch resource {
            case .topic: "--topic \(name)"
            case .group: "--group \(name)"
            case .cluster: "--cluster"
            }
        return #"kafka-acls --bootstrap-server "$B" --add --allow-principal "#
            + "\(Self.quoted(user)) \(operations) \(target)" + (isPrefix ? " --resource-pattern-type prefixed" : "")
    }

    func json(_ member: String, _ user: String) -> String {
        let line: [(String, JSONValue)] = [
            ("member", .string(member)), ("principal", .string(user)), ("resource", .string(resource.rawValue)),
            ("name", .string(name)), ("pattern", .string(isPrefix ? "prefixed" : "literal")),
            ("operations", .array(operations.map { .string($0.rawValue) })),
        ]
        return String(decoding: JSONValue.object(JSONObject(line)).serialized(), as: UTF8.self)
    }

    /// As a shell takes it for one word.
    private static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy {
            (0x30...0x3A).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                || [0x2D, 0x2E, 0x5F, 0x40].contains($0)
        }
        return isPlain ? text : "'" + text.replacing("'", with: #"'\''"#) + "'"
    }
}

/// Who is which Kafka user, as `--principal` says it.
struct Principals {
    private(set) var all: [(member: String, user: String)] = []

    /// - Parameters:
    ///   - options: `link=User:a,user=User:b`. A user may have commas in it: what does not begin with a member belongs to
    ///     the user before.
    ///   - members: who there is.
    /// - Throws: `Problem` that names the word that is wrong.
    init(_ options: [String], among members: [String]) throws {
        for option in options {
            var pairs: [(member: String, user: String)] = []
            for part in option.split(separator: ",", omittingEmptySubsequences: false) {
                let words = part.split(separator: "=", maxSplits: 1).map(String.init)
                if words.count == 2, words[1].contains(":") {
                    pairs.append((words[0], words[1]))
                } else if let last = pairs.popLast() {
                    pairs.append((last.member, "\(last.user),\(part)"))
                } else {
                    throw Self.problem("--principal \(option) does not say who is which user", members)
                }
            }
            for pair in pairs {
                guard members.contains(pair.member) else {
                    let guess = nearest(to: pair.member, in: members).map { " Did you mean \($0)?" } ?? ""
                    throw Self.problem("--principal names \(pair.member), which nobody is.\(guess)", members)
                }
                guard !all.contains(where: { $0.member == pair.member }) else {
                    throw Self.problem("--principal names \(pair.member) twice", members)
                }
                all.append(pair)
            }
        }
    }

    private static func problem(_ what: String, _ members: [String]) -> Problem {
        Problem(
            .usage, what.hasSuffix("?") || what.hasSuffix(".") ? what : "\(what).",
            "Such as: --principal \(members[0])=User:ib-\(members[0]). There are: \(members.joined(separator: ", ")).")
    }
}
