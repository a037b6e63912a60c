// SPDX-License-Identifier: Apache-2.0

import Apps
import Messaging
import Runtime
import Supervision

/// What somebody needs of Kafka: of the deployment's topics its own, and the rights to them.
struct KafkaNeeds: Sendable {
    let topics: DeploymentTopics
    let rights: [KafkaRight]
    /// What becomes of a topic that is missing.
    let create: TopicCreate

    init(_ configuration: ServiceConfiguration, apps: AppDirectory?, roles: [Role]) {
        topics = DeploymentTopics(configuration.topicPlan, apps: apps ?? AppDirectory([]))
        create = configuration.topicPlan.create
        let topics = topics
        rights = Set(roles.flatMap { topics.rights(of: $0.name) }).sorted()
    }

    /// Whether a topic is one that there are rights to.
    func contains(_ topic: String) -> Bool { rights.contains { $0.resource == .topic && $0.covers(topic) } }

    /// The topics among these that something is to be done with.
    func topics(to operation: KafkaRight.Operation, among existing: some Sequence<String>) -> [String] {
        let wanted = rights.filter { $0.resource == .topic && $0.operation == operation }
        return existing.filter { topic in wanted.contains { $0.covers(topic) } }.sorted()
    }

    var groups: [String] { rights.filter { $0.resource == .group }.map(\.name) }
}

extension KafkaRight {
    func covers(_ name: String) -> Bool { isPrefix ? name.hasPrefix(self.name) : name == self.name }
}
