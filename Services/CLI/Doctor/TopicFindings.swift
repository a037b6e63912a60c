// SPDX-License-Identifier: Apache-2.0

import Messaging
import Runtime
import Supervision

/// What topics promise less of than is wanted, by check.
struct TopicFindings {
    private let topics: [TopicSurvey.Finding]

    init(_ topics: [TopicSurvey.Finding]) { self.topics = topics.filter(\.state.exists) }

    /// What each check looks at: settings of a topic, or its copies.
    static let settings: [CheckID: [String]] = [
        .kafkaRetention: ["retention.ms", "retention.bytes", "cleanup.policy"],
        .kafkaCopies: ["copies", "min.insync.replicas"],
        .kafkaTime: ["message.timestamp.type"], .kafkaMessageSize: ["max.message.bytes"],
    ]

    var all: [Finding] {
        let told = topics.filter { !$0.settings.isEmpty }
        return CheckID.allCases.flatMap { check -> [Finding] in
            guard let settings = Self.settings[check] else { return [] }
            guard !topics.isEmpty else { return [.skip(check, needs: "topics that it may see")] }
            guard !told.isEmpty || check == .kafkaCopies else {
                return [.skip(check, needs: "the right DescribeConfigs on the topics")]
            }
            // Topics with the same flaw have one line.
            var flaws: [(flaw: TopicFlaw, names: [String])] = []
            for topic in topics {
                for flaw in topic.flaws where settings.contains(flaw.setting) {
                    if let place = flaws.firstIndex(where: { $0.flaw == flaw }) {
                        flaws[place].names.append(topic.topic.spec.name)
                    } else {
                        flaws.append((flaw, [topic.topic.spec.name]))
                    }
                }
            }
            return flaws.isEmpty ? [well(check, told)] : flaws.map { Self.weak(check, $0, $1) }
        }
    }

    private static func weak(_ check: CheckID, _ flaw: TopicFlaw, _ names: [String]) -> Finding {
        let words = "\(ClusterExamination.list(names)): \(flaw.words)"
        let subject = names.joined(separator: ",")
        // More copies cannot be had by a setting of the topic.
        if flaw.setting == "copies" { return .warn(check, words, subject: subject, cause: flaw.setting) }
        return .fail(
            check, words, subject: subject,
            fix: "kafka-configs --bootstrap-server \"$B\" --alter --entity-type topics --entity-name "
                + "\(names.count == 1 ? names[0] : "TOPIC") --add-config \(flaw.setting)=\(flaw.wanted)",
            cause: flaw.setting)
    }

    private func well(_ check: CheckID, _ told: [TopicSurvey.Finding]) -> Finding {
        func least(_ setting: String) -> String? {
            told.filter { $0.topic.spec.config[setting] != nil }.compactMap { $0.settings[setting] }
                .min { (Int64($0) ?? 0) < (Int64($1) ?? 0) }
        }
        switch check {
        case .kafkaRetention:
            // Some are wanted for a day, most for two weeks.
            let wanted = Set(told.compactMap { $0.topic.spec.config["retention.ms"] })
                .sorted { (Int64($0) ?? 0) < (Int64($1) ?? 0) }.map { TopicSpec.time($0) }
            return .ok(
                check,
                wanted.isEmpty
                    ? "what services read is kept long enough"
                    : "what services read is kept for the \(wanted.joined(separator: " or ")) that is wanted, or longer"
            )
        case .kafkaCopies:
            let copies = ClusterExamination.counts(topics.map(\.state.replicas))
            let insync = least("min.insync.replicas") ?? told.compactMap { $0.settings["min.insync.replicas"] }.min()
            return .ok(check, "\(copies) of each" + (insync.map { ", min.insync.replicas \($0)" } ?? ""))
        case .kafkaTime: return .ok(check, "of what services read, the broker's")
        default:
            return .ok(
                check, "commands of \(least("max.message.bytes").map { TopicSpec.size($0) } ?? "any size") are taken")
        }
    }
}
