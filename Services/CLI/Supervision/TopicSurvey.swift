// SPDX-License-Identifier: Apache-2.0

package import Messaging
package import Runtime

/// How the topics of a deployment are, compared with what is wanted of them.
package struct TopicSurvey {
    package enum Verdict: String {
        case ok
        case missing
        case weak
        case leaderless
        /// Whether it is there, or how it is, Kafka does not tell us.
        case hidden
    }

    package struct Finding {
        package let topic: DeploymentTopics.Topic
        package let state: TopicState
        /// By their names in Kafka; empty where it does not tell them.
        package let settings: [String: String]
        package let verdict: Verdict
        package let flaws: [TopicFlaw]
        /// What is wrong, and what may come of it.
        package let reasons: [String]
    }

    /// In the order of their names.
    package let findings: [Finding]
    /// It tells nothing of topics but their names and partitions.
    package let isEmbedded: Bool

    package func count(_ verdict: Verdict) -> Int { findings.filter { $0.verdict == verdict }.count }

    package func specs(_ verdict: Verdict) -> [TopicSpec] {
        findings.filter { $0.verdict == verdict }.map(\.topic.spec)
    }

    /// Asks Kafka; changes nothing.
    /// - Throws: `KafkaError` when no broker answers in time.
    package init(of topics: DeploymentTopics, _ reached: KafkaAccess.Reached, timeout: Duration = .seconds(10)) throws {
        let admin = reached.admin
        isEmbedded = try admin.isEmbedded(timeout: timeout)
        let brokers = try admin.reach(timeout: timeout)
        guard !isEmbedded else {
            // It would make what it is asked for.
            let existing = try admin.existingTopics(timeout: timeout)
            findings = topics.all.map { topic in
                let partitions = existing[topic.spec.name]
                let missing = TopicState(error: KafkaError(code: KafkaError.Code.unknownTopicOrPartition))
                return Finding(
                    topic, partitions.map { TopicState(partitions: $0, replicas: 1) } ?? missing, settings: [:],
                    refusal: nil, brokers: 1)
            }
            return
        }
        let names = topics.specs.map(\.name)
        try admin.watch(topics: names)
        let states = try admin.topicStates(timeout: timeout)
        let answer = try admin.topicSettings(of: names.filter { states[$0]?.exists == true }, timeout: timeout)
        findings = topics.all.compactMap { topic in
            states[topic.spec.name].map {
                Finding(
                    topic, $0, settings: answer.settings[topic.spec.name] ?? [:],
                    refusal: answer.refused[topic.spec.name], brokers: brokers)
            }
        }
    }
}

extension TopicSurvey.Finding {
    /// - Parameters:
    ///   - refusal: why Kafka does not tell the settings.
    ///   - brokers: how many the cluster has.
    package init(
        _ topic: DeploymentTopics.Topic, _ state: TopicState, settings: [String: String], refusal: KafkaError?,
        brokers: Int
    ) {
        self.topic = topic
        self.state = state
        self.settings = settings
        let spec = topic.spec
        var flaws: [TopicFlaw] = []
        if state.exists {
            if state.partitions < spec.partitions {
                flaws.append(
                    TopicFlaw(setting: "partitions", actual: "\(state.partitions)", wanted: "\(spec.partitions)"))
            }
            // Where no setting says how many, one is too few if there can be more.
            let copies = spec.replicationFactor > 0 ? spec.replicationFactor : min(brokers, 2)
            if state.replicas < copies {
                flaws.append(TopicFlaw(setting: "copies", actual: "\(state.replicas)", wanted: "\(copies)"))
            }
            flaws += spec.flaws(settings: settings, copies: state.replicas)
        }
        self.flaws = flaws
        switch state.error {
        case let error? where error.code == KafkaError.Code.topicAuthorizationFailed:
            verdict = .hidden
            reasons = ["whether it is there, Kafka tells only who may see it (Describe)"]
        case let error? where error.code != KafkaError.Code.unknownTopicOrPartition:
            verdict = .hidden
            reasons = [error.words]
        case .some:
            verdict = .missing
            reasons = topic.app.map { ["of app \($0)"] } ?? []
        case nil where !state.isUsable:
            verdict = .leaderless
            let partitions = state.leaderless.map(String.init).joined(separator: ", ")
            reasons = ["nobody can use partition \(partitions)"] + flaws.map(\.words)
        case nil:
            let hidden = refusal.map { ["its settings are not told: \($0.message) (DescribeConfigs)"] } ?? []
            verdict = !flaws.isEmpty ? .weak : hidden.isEmpty ? .ok : .hidden
            reasons = flaws.map(\.words) + hidden
        }
    }
}
