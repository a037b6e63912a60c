// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Messaging
import Runtime
import WireJSON

/// The forms in which topics are written out for others to make.
enum TopicFormat: String, ExpressibleByArgument, CaseIterable { case properties, terraform, strimzi, sh }

/// Writes the wanted topics out.
struct TopicWriter {
    let topics: DeploymentTopics
    /// The name of Strimzi's Kafka resource.
    let cluster: String

    init(_ topics: DeploymentTopics, cluster: String) {
        self.topics = topics
        self.cluster = cluster
    }

    /// How many copies are written: what is written out is read by people and by programs that know no default of a broker.
    var copies: Int {
        topics.plan.replicationFactor > 0 ? topics.plan.replicationFactor : TopicSpec.replicasForTwoInSync
    }

    func text(_ format: TopicFormat) -> String {
        switch format {
        case .properties: properties
        case .terraform: terraform
        case .strimzi: strimzi
        case .sh: shell
        }
    }

    private func config(_ spec: TopicSpec) -> [(key: String, value: String)] {
        spec.config(copies: copies).sorted { $0.key < $1.key }
    }

    private var properties: String {
        topics.specs.flatMap { spec in
            ["\(spec.name).partitions=\(spec.partitions)", "\(spec.name).replication.factor=\(copies)"]
                + config(spec).map { "\(spec.name).config.\($0.key)=\($0.value)" }
        }.joined(separator: "\n")
    }

    private var shell: String {
        let lines = topics.specs.map { spec in
            let settings = config(spec).map { " --config \($0.key)=\($0.value)" }.joined()
            return #"kafka-topics --bootstrap-server "$B" --create --if-not-exists --topic \#(spec.name)"#
                + " --partitions \(spec.partitions) --replication-factor \(copies)" + settings
        }
        let head =
            "# B is the address of a broker. The program may be called kafka-topics.sh; it takes --command-config."
        return ([head] + lines).joined(separator: "\n")
    }

    /// For the provider Mongey/kafka, as JSON, which Terraform reads from files that end with .tf.json.
    private var terraform: String {
        var resources: [(String, JSONValue)] = []
        var taken: Set<String> = []
        for spec in topics.specs {
            var name = String(spec.name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
            if name.first?.isNumber == true { name = "_" + name }
            while !taken.insert(name).inserted { name += "_" }
            let config = config(spec).map { ($0.key, JSONValue.string($0.value)) }
            let resource: [(String, JSONValue)] = [
                ("name", .string(spec.name)), ("partitions", .number(JSONNumber(spec.partitions))),
                ("replication_factor", .number(JSONNumber(copies))), ("config", .object(JSONObject(config))),
            ]
            resources.append((name, .object(JSONObject(resource))))
        }
        let provider: JSONValue = ["required_providers": ["kafka": ["source": "Mongey/kafka"]]]
        let all: JSONValue = [
            "terraform": provider, "resource": ["kafka_topic": .object(JSONObject(resources))],
        ]
        return String(decoding: all.serialized(), as: UTF8.self)
    }

    /// Names of resources are lower-case and have no underscores; the topic's own name stands beside.
    private var strimzi: String {
        topics.specs.map { spec in
            let name = spec.name.lowercased().replacing("_", with: "-")
            let head = """
                apiVersion: kafka.strimzi.io/v1beta2
                kind: KafkaTopic
                metadata:
                  name: "\(name)"
                  labels:
                    strimzi.io/cluster: "\(cluster)"
                spec:
                  topicName: "\(spec.name)"
                  partitions: \(spec.partitions)
                  replicas: \(copies)
                  config:
                """
            let settings = config(spec).map {
                "    \($0.key): \(Int64($0.value) == nil ? "\"\($0.value)\"" : $0.value)"
            }
            return ([head] + settings).joined(separator: "\n")
        }.joined(separator: "\n---\n")
    }
}
