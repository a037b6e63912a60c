// SPDX-License-Identifier: Apache-2.0

package import Apps
package import Contracts
package import Messaging

/// All topics of a deployment, and what each of its processes has to be allowed to do with them: by its settings, its
/// apps file and what its services read. Needs no broker.
package struct DeploymentTopics: Sendable {
    /// A topic, and whose it is.
    package struct Topic: Sendable {
        package let spec: TopicSpec
        /// The app that has it for itself.
        package let app: AppID?
    }

    package let plan: TopicPlan
    /// In the order of their names; each once.
    package let all: [Topic]
    private let services: [ServiceTraffic]
    private let apps: AppDirectory

    /// - Parameter services: all services of the deployment.
    package init(_ plan: TopicPlan, services: [ServiceTraffic], apps: AppDirectory) {
        self.plan = plan
        self.services = services
        self.apps = apps
        let topics = plan.topics
        var found: [String: Topic] = [:]
        func add(_ specs: [TopicSpec], of app: AppID? = nil) {
            for spec in specs where found[spec.name] == nil { found[spec.name] = Topic(spec: spec, app: app) }
        }
        for service in services { add(plan.specs(for: service)) }
        add([plan.gatewayReplies])
        for app in apps.ownersOfCommandsTopics {
            add(services.map { plan.commands(topics.commands($0.name, of: app)) }, of: app)
        }
        for (replies, app) in apps.replyTopics { add([plan.replies(topics.prefix + replies)], of: app) }
        all = found.values.sorted { $0.spec.name < $1.spec.name }
    }

    package var specs: [TopicSpec] { all.map(\.spec) }

    // MARK: Rights

    /// The processes and people that have rights of their own, by the names that a command line gives them: the services, the
    /// gateway, and who uses the command line.
    package var members: [String] { services.map(\.name) + [Self.gateway, Self.operator] }

    package static let gateway = "gateway"
    /// Who uses `identitybus`: looks at topics, reads what is said, sends commands, and handles dead letters.
    package static let `operator` = "operator"

    /// What Kafka has to allow, each once, in order: topics first, then groups.
    /// - Parameter member: one of ``members``. Nobody else has rights.
    package func rights(of member: String) -> [KafkaRight] {
        let rights: [KafkaRight] =
            switch member {
            case Self.gateway: gatewayRights
            case Self.operator: operatorRights
            default: services.first { $0.name == member }.map(serviceRights) ?? []
            }
        return Set(rights).sorted()
    }

    private func serviceRights(_ service: ServiceTraffic) -> [KafkaRight] {
        let topics = plan.topics
        let own = plan.appTopics(apps, for: service)
        let sources = service.sources.map {
            (topic: $0.topic(topics, of: service.name), group: $0.group(topics, of: service.name))
        }
        let appSources = apps.ownersOfCommandsTopics.map {
            (topic: topics.commands(service.name, of: $0), group: topics.group(service.name, of: $0))
        }
        // Senders name the topic of their answers.
        let answers = KafkaRight(.topic, topics.anyReplies, .write, isPrefix: true)
        let written = plan.written(by: service).union(own.written).filter { !$0.hasPrefix(topics.anyReplies) }
        let counted = [topics.deadLetters(service.name), topics.deadLetterActions(service.name)]
        return [answers] + counted.map { KafkaRight(.topic, $0, .read) }
            + written.map { KafkaRight(.topic, $0, .write) }
            + (sources + appSources).flatMap {
                [KafkaRight(.topic, $0.topic, .read), KafkaRight(.group, $0.group, .read)]
            }
            + made(plan.specs(for: service) + own.specs)
    }

    private var gatewayRights: [KafkaRight] {
        let topics = plan.topics
        let shared = services.map { topics.commands($0.name) }
        let own = services.flatMap { service in
            apps.ownersOfCommandsTopics.map { topics.commands(service.name, of: $0) }
        }
        let shown =
            services.flatMap { [topics.deadLetters($0.name), topics.deadLetterActions($0.name)] } + [topics.status]
        let read = (plan.hasConsole ? shown : []) + [topics.gatewayReplies]
        return (shared + own + [topics.status]).map { KafkaRight(.topic, $0, .write) }
            + read.map { KafkaRight(.topic, $0, .read) } + made([plan.gatewayReplies])
    }

    private var operatorRights: [KafkaRight] {
        let actions = Set(services.map { plan.topics.deadLetterActions($0.name) })
        return specs.flatMap { spec in
            [KafkaRight(.topic, spec.name, .read), KafkaRight(.topic, spec.name, .describeConfigs)]
                + (Topics.isOfCommands(spec.name) || actions.contains(spec.name)
                    ? [KafkaRight(.topic, spec.name, .write)] : [])
        }
    }

    /// Whoever makes what is missing looks whether what is there is as it should be; and asks a broker how many copies there
    /// will be, where no setting says so.
    private func made(_ specs: [TopicSpec]) -> [KafkaRight] {
        guard plan.create == .missing else { return [] }
        return specs.flatMap { [KafkaRight(.topic, $0.name, .create), KafkaRight(.topic, $0.name, .describeConfigs)] }
            + (plan.replicationFactor < 0 ? [KafkaRight(.cluster, KafkaRight.cluster, .describeConfigs)] : [])
    }
}

/// Something that Kafka has to allow one of its users. Every right to a topic brings that of seeing it (`Describe`); the
/// right to write to one brings `IdempotentWrite`, since Kafka 2.8.
package struct KafkaRight: Hashable, Sendable, Comparable {
    /// In the order in which they are listed, by Kafka's names.
    package enum Resource: String, Sendable, CaseIterable {
        case topic = "Topic"
        case group = "Group"
        case cluster = "Cluster"
    }

    /// By Kafka's names.
    package enum Operation: String, Sendable, CaseIterable {
        case read = "Read"
        case write = "Write"
        case create = "Create"
        case describeConfigs = "DescribeConfigs"
    }

    package let resource: Resource
    package let name: String
    package let operation: Operation
    /// To everything whose name begins so.
    package let isPrefix: Bool

    /// The name that Kafka has for the one cluster there is.
    package static let cluster = "kafka-cluster"

    package init(_ resource: Resource, _ name: String, _ operation: Operation, isPrefix: Bool = false) {
        self.resource = resource
        self.name = name
        self.operation = operation
        self.isPrefix = isPrefix
    }

    private var order: (Int, String, Int, Int) {
        (
            Resource.allCases.firstIndex(of: resource) ?? 0, name, isPrefix ? 1 : 0,
            Operation.allCases.firstIndex(of: operation) ?? 0
        )
    }

    package static func < (left: KafkaRight, right: KafkaRight) -> Bool { left.order < right.order }
}
