// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Contracts
import Glibc

/// The kinds of librdkafka client.
package enum ClientRole: CaseIterable {
    /// A member of a group.
    case consumer
    /// A reader outside every group.
    case tail
    case producer
    /// A producer of which nothing is ever written: it looks at topics, and asks what it may do.
    case admin

    /// What the environment variables of this role begin with.
    var variablePrefix: String {
        switch self {
        case .consumer, .tail: "KAFKA_CONSUMER_"
        case .producer, .admin: "KAFKA_PRODUCER_"
        }
    }

    /// Settings that hold unless the configuration says otherwise.
    var defaults: [String: String] {
        switch self {
        case .consumer, .tail: Self.shared.merging(Self.consumerDefaults) { _, own in own }
        case .producer, .admin: Self.shared.merging(Self.producerDefaults) { _, own in own }
        }
    }

    /// Settings that the guarantees stand on.
    var fixed: [String: String] {
        switch self {
        // A position that the log does not have must come to light: going on somewhere else would skip commands.
        case .consumer: Self.fixedForReaders.merging(["auto.offset.reset": "error"]) { $1 }
        // Nothing is promised to those who look on: they go on with what there is.
        case .tail: Self.fixedForReaders.merging(["auto.offset.reset": "earliest"]) { $1 }
        // Topics are named by senders too, who must not be able to create them.
        case .producer: ["enable.idempotence": "true", "acks": "all", "allow.auto.create.topics": "false"]
        // Kafka writes nothing of a request that wants two acknowledgements (``KafkaAdmin/deniedWrites(timeout:)``), and an
        // idempotent producer would need a right of its own for asking.
        case .admin: ["enable.idempotence": "false", "acks": "2", "allow.auto.create.topics": "false"]
        }
    }

    var isConsumer: Bool { self == .consumer || self == .tail }

    /// Settings that may not be given: the fixed ones, their other names, and those that have a variable of their own.
    var reserved: Set<String> {
        let own: Set<String> =
            switch self {
            case .consumer, .tail: ["group.id", "auto.commit.enable"]
            case .producer, .admin: ["request.required.acks", "transactional.id"]
            }
        return own.union(fixed.keys).union(["bootstrap.servers", "metadata.broker.list", "client.id"])
    }

    private static let fixedForReaders = [
        "partition.assignment.strategy": "cooperative-sticky",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "enable.partition.eof": "false",
        "isolation.level": "read_committed",
    ]

    /// Nagle's algorithm and delayed acknowledgements together cost 40 ms per batch: a batch is one request for each
    /// partition, and the second would wait for the peer to acknowledge the first.
    private static let shared = [
        "socket.nagle.disable": "true",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "1000",
        "topic.metadata.refresh.interval.ms": "30000",
        "statistics.interval.ms": "5000",
    ]

    /// What is fetched ahead counts for each partition of a group's member: so much that a broker which waits for other
    /// partitions' news (`fetch.wait.max.ms`) does not keep the loop waiting, and so little that all partitions together
    /// fit into memory. A larger message than `fetch.message.max.bytes` comes alone, and one of 8 MiB must fit through;
    /// librdkafka wants the receive limit above the fetch limit. The session is
    /// as short as a broker allows by default, because being thrown out is harmless (the database says who owns a
    /// partition) and because its end is waited for: by the partitions of a killed replica, and by a whole group after
    /// a broker was away for longer, since the broker still counts its members of before.
    private static let consumerDefaults = [
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "fetch.wait.max.ms": "250",
        "queued.min.messages": "2500",
        "queued.max.messages.kbytes": "2048",
        "fetch.message.max.bytes": "1048576",
        "fetch.max.bytes": "16777216",
        "receive.message.max.bytes": "100000000",
        "allow.auto.create.topics": "false",
    ]

    /// Lingering is not needed: a batch is handed over at once, and messages gather while requests are on their way.
    /// Delivery is waited for without end: the outbox in the database knows what is still to be sent. A topic that is
    /// missing is soon told, and soon used when it is back.
    private static let producerDefaults = [
        "linger.ms": "0",
        "batch.size": "1000000",
        "message.timeout.ms": "0",
        "message.max.bytes": "4000000",
        "compression.type": "lz4",
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": "200000",
        "queue.buffering.max.kbytes": "262144",
        "topic.metadata.propagation.max.ms": "2000",
        "topic.metadata.refresh.interval.ms": "5000",
    ]
}

extension KafkaConfiguration {
    private static let instance = "group.instance.id"
    package static let instanceVariable = "KAFKA_CONSUMER_GROUP_INSTANCE_ID"

    /// The name under which a member that comes back has its place in its group again; `nil` when it is a new member each time.
    /// Kafka throws out the one before that has the same name.
    package var groupInstance: String? {
        get { consumer[Self.instance] }
        set { consumer[Self.instance] = newValue }
    }

    /// After how long a broker takes a silent member's partitions away.
    public var sessionTimeout: Duration {
        let name = "session.timeout.ms"
        let given = consumer[name] ?? common[name] ?? ClientRole.consumer.defaults[name]
        return .milliseconds(given.flatMap { Int($0) } ?? 0)
    }

    /// Every setting of one client, sorted by key.
    ///
    /// - Throws: when a setting was given that this library keeps to itself.
    func settings(for role: ClientRole, groupID: String?) throws(KafkaConfigurationError) -> [ClientSetting] {
        var merged: [String: ClientSetting] = [:]
        var consumer = self.consumer
        // Who is in no group has no place to come back to.
        if role == .tail { consumer[Self.instance] = nil }
        func put(_ settings: [String: String], prefix: String) {
            for (key, value) in settings { merged[key] = ClientSetting(key: key, value: value, prefix: prefix) }
        }
        let own = role.isConsumer ? consumer : producer
        put(role.defaults, prefix: role.variablePrefix)
        for (settings, prefix) in [(common, "KAFKA_"), (own, role.variablePrefix)] {
            if let key = settings.keys.sorted().first(where: { role.reserved.contains($0) }) {
                throw KafkaConfigurationError(
                    variable: ClientSetting(key: key, value: "", prefix: prefix).variable,
                    message: "\(key) is fixed by IdentityBus and cannot be set")
            }
            put(settings, prefix: prefix)
        }
        put(role.fixed, prefix: role.variablePrefix)
        if role == .consumer, reportsEnds { put(["enable.partition.eof": "true"], prefix: role.variablePrefix) }
        put(["client.id": clientID], prefix: "KAFKA_")
        // librdkafka takes no empty list; the host of the embedded broker has none.
        if !bootstrapServers.isEmpty { put(["bootstrap.servers": bootstrapServers], prefix: "KAFKA_") }
        if let groupID { put(["group.id": groupID], prefix: role.variablePrefix) }
        return merged.values.sorted { $0.key < $1.key }
    }
}

/// One librdkafka setting and the environment variable that people know it by.
struct ClientSetting {
    let key: String
    var value: String
    let variable: String

    init(key: String, value: String, prefix: String) {
        self.key = key
        self.value = value
        self.variable = prefix + key.uppercased().replacing(".", with: "_")
    }

    var isSecret: Bool { Self.isSecret(key) }

    /// Whether its value is taken out of what librdkafka says. Names of users are what somebody looks for there.
    var isHidden: Bool { isSecret && !key.contains("username") && !value.isEmpty }

    /// Whether a setting's value must never be shown. Rather too many than too few.
    static func isSecret(_ key: String) -> Bool {
        let marks = ["password", "secret", "username", "key.pem", "ssl.key", "token", "jaas", "oauthbearer.config"]
        let lowered = key.lowercased()
        return !lowered.hasSuffix(".location") && marks.contains { lowered.contains($0) }
    }
}

extension [ClientSetting] {
    /// Whether they ask for signing in with a token, and say nowhere where one comes from.
    var lacksToken: Bool {
        func value(_ keys: String...) -> String? { last { keys.contains($0.key) }?.value.lowercased() }
        return value("sasl.mechanism", "sasl.mechanisms") == "oauthbearer"
            && value("security.protocol")?.hasPrefix("sasl") == true
            && value("enable.sasl.oauthbearer.unsecure.jwt") != "true"
            && value("sasl.oauthbearer.method") != "oidc"
    }
}

/// Owns an `rd_kafka_conf_t` until a client takes it over.
struct NativeConfiguration: ~Copyable {
    let pointer: OpaquePointer

    /// Applies the settings in order.
    ///
    /// - Throws: for the first one that librdkafka refuses.
    init(_ settings: [ClientSetting]) throws(KafkaConfigurationError) {
        guard let conf = rd_kafka_conf_new() else {
            throw KafkaConfigurationError(variable: "KAFKA_*", message: "librdkafka made no configuration")
        }
        for setting in settings {
            if let problem = Self.apply(setting, to: conf) {
                rd_kafka_conf_destroy(conf)
                throw KafkaConfigurationError(variable: setting.variable, message: problem)
            }
        }
        pointer = conf
    }

    deinit { rd_kafka_conf_destroy(pointer) }

    /// Hands the pointer to the caller, who owns it from here on.
    consuming func take() -> OpaquePointer {
        let taken = pointer
        discard self
        return taken
    }

    /// The names of librdkafka's settings: in its table for people the first column.
    private static var properties: [String] {
        var text: UnsafeMutablePointer<CChar>?
        var size = 0
        guard let file = open_memstream(&text, &size) else { return [] }
        rd_kafka_conf_properties_show(file)
        fclose(file)
        defer { free(text) }
        guard let text else { return [] }
        return String(cString: text).split(whereSeparator: \.isNewline).compactMap { line in
            line.firstIndex(of: "|").map { line[..<$0].filter { !$0.isWhitespace } }
        }
    }

    /// With the one that was meant where its name begins like this one, or this one like it.
    private static func unknown(_ setting: ClientSetting) -> String {
        let near = properties.filter { $0.hasPrefix(setting.key) || setting.key.hasPrefix("\($0).") }
            .min { ($0.count, $0) < ($1.count, $1) }
        let prefix = setting.variable.dropLast(setting.key.utf8.count)
        let guess = near.map { ClientSetting(key: $0, value: "", prefix: String(prefix)).variable }
        return "is no setting of librdkafka: there is no \(setting.key)."
            + (guess.map { " Did you mean \($0)?" } ?? "")
    }

    /// What is wrong with the setting, or `nil`.
    private static func apply(_ setting: ClientSetting, to conf: OpaquePointer) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
            text.initialize(repeating: 0)
            let result = rd_kafka_conf_set(conf, setting.key, setting.value, text.baseAddress, text.count)
            if result == RD_KAFKA_CONF_OK { return nil }
            if result == RD_KAFKA_CONF_UNKNOWN { return unknown(setting) }
            // librdkafka quotes the value in its message, so a secret's message is not repeated.
            if setting.isSecret { return "librdkafka refuses the value (not shown)" }
            // It quotes values of several lines, such as certificates, as they are.
            let words = text.baseAddress.map { String(cString: $0) } ?? "refused by librdkafka"
            return words.split(whereSeparator: \.isNewline).joined(separator: " ")
        }
    }
}
