// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Messaging
import Runtime
import Supervision

/// What somebody needs of Kafka: of the deployment's topics its own, and the rights to them.
struct KafkaNeeds: Sendable {
    let topics: DeploymentTopics
    let rights: [KafkaRight]
    /// By their names: services, and the gateway.
    let roles: [String]
    /// What becomes of a topic that is missing.
    let create: TopicCreate

    init(_ configuration: ServiceConfiguration, apps: AppDirectory?, roles: [Role]) {
        topics = DeploymentTopics(configuration.topicPlan, apps: apps ?? AppDirectory([]))
        create = configuration.topicPlan.create
        self.roles = roles.map(\.name)
        let topics = topics
        rights = Set(roles.flatMap { topics.rights(of: $0.name) }).sorted()
    }

    /// Whether a topic has to be there: answers go to those of other services only when they ask.
    func contains(_ topic: String) -> Bool {
        let isOthers = topics.plan.topics.isOwn(replyTopic: topic)
        return rights.contains { $0.covers(topic) && !(isOthers && $0.isPrefix) }
    }

    /// The topics among these that something is to be done with.
    func topics(to operation: KafkaRight.Operation, among existing: some Sequence<String>) -> [String] {
        let wanted = rights.filter { $0.operation == operation }
        return existing.filter { topic in wanted.contains { $0.covers(topic) } }.sorted()
    }

    var groups: [String] { rights.filter { $0.resource == .group }.map(\.name) }
}

extension KafkaRight {
    /// Whether it is one to this topic.
    func covers(_ name: String) -> Bool {
        resource == .topic && (isPrefix ? name.hasPrefix(self.name) : name == self.name)
    }
}
