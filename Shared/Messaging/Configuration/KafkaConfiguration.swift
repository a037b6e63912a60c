// SPDX-License-Identifier: Apache-2.0

/// How clients reach Kafka. A plain value: nothing is connected or read while it is made.
///
/// Only what differs from this library's own settings is kept here. The order of precedence, weakest first: the
/// library's defaults, ``common``, then ``consumer`` or ``producer``. The settings that the guarantees of IdentityBus
/// stand on (``KafkaConfigurationError`` names them when tried) cannot be set at all.
public struct KafkaConfiguration: Sendable, Hashable, CustomStringConvertible {
    /// `host:port` pairs, separated by commas.
    public var bootstrapServers: String

    /// The name that brokers show in their logs and quotas.
    public var clientID: String

    /// librdkafka settings of every client, such as `security.protocol`.
    public var common: [String: String]

    /// librdkafka settings of consumers only.
    public var consumer: [String: String]

    /// librdkafka settings of producers (and of the admin client) only.
    public var producer: [String: String]

    /// Makes a configuration. Settings are checked when a client is made from it, or by ``validate()``.
    public init(
        bootstrapServers: String,
        clientID: String = "identitybus",
        common: [String: String] = [:],
        consumer: [String: String] = [:],
        producer: [String: String] = [:]
    ) {
        self.bootstrapServers = bootstrapServers
        self.clientID = clientID
        self.common = common
        self.consumer = consumer
        self.producer = producer
    }

    /// All that was set, on one line, with secrets and user names replaced by `***`.
    public var description: String {
        let parts = [
            "bootstrap.servers=\(bootstrapServers)", "client.id=\(clientID)",
            Self.shown(common, prefix: ""), Self.shown(consumer, prefix: "consumer:"),
            Self.shown(producer, prefix: "producer:"),
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// Asks librdkafka about every setting, without connecting.
    ///
    /// - Throws: for a setting that may not be changed, and for one that librdkafka refuses, with its own words.
    public func validate() throws(KafkaConfigurationError) {
        for role in ClientRole.allCases {
            let settings = try settings(for: role, groupID: role.isConsumer ? "validation" : nil)
            _ = try NativeConfiguration(settings)
        }
    }

    private static func shown(_ settings: [String: String], prefix: String) -> String {
        settings.sorted { $0.key < $1.key }
            .map { "\(prefix)\($0.key)=\(ClientSetting.isSecret($0.key) ? "***" : $0.value)" }
            .joined(separator: " ")
    }
}
