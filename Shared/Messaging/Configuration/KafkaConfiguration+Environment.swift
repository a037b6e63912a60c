// SPDX-License-Identifier: Apache-2.0

extension KafkaConfiguration {
    /// Reads the `KAFKA_*` variables. Variables that are set but empty count as not set.
    ///
    /// - `KAFKA_BOOTSTRAP_SERVERS` (required), `KAFKA_CLIENT_ID`
    /// - `KAFKA_SECURITY_PROTOCOL`, `KAFKA_SASL_*`, `KAFKA_SSL_*`: settings of every client
    /// - `KAFKA_CONSUMER_*`, `KAFKA_PRODUCER_*`: any other setting; `KAFKA_CONSUMER_FETCH_WAIT_MAX_MS=10` is
    ///   `fetch.wait.max.ms=10`
    ///
    /// - Throws: one line naming the variable, when the address is missing, when a setting may not be changed, and
    ///   when librdkafka does not know or refuses it.
    public init(environment: [String: String]) throws(KafkaConfigurationError) {
        let set = environment.filter { !$0.value.isEmpty }
        guard let servers = set["KAFKA_BOOTSTRAP_SERVERS"] else {
            throw KafkaConfigurationError(
                variable: "KAFKA_BOOTSTRAP_SERVERS", message: "must name the Kafka brokers, such as localhost:9092")
        }
        self.init(bootstrapServers: servers, clientID: set["KAFKA_CLIENT_ID"] ?? "identitybus")
        for (name, value) in set {
            if let key = Self.key(of: name, after: "KAFKA_CONSUMER_") {
                consumer[key] = value
            } else if let key = Self.key(of: name, after: "KAFKA_PRODUCER_") {
                producer[key] = value
            } else if Self.isCommon(name), let key = Self.key(of: name, after: "KAFKA_") {
                common[key] = value
            }
        }
        try validate()
    }

    /// What the embedded broker needs its clients to set, as variables for the processes that use it.
    ///
    /// The embedded broker holds every change of a group's members back until the session time-out has nearly passed,
    /// and answers a fetch that finds nothing only when its wait is over: short times there are what makes it quick. 12 ms
    /// is as short as leaves an idle service under 1 % of a core. The broker also makes up every topic that it is asked
    /// for; claiming to want that saves a warning per client. And it appends what comes behind a request that it refused, so
    /// a producer must have no more than one request on its way.
    public static let embeddedEnvironment: [String: String] = [
        "KAFKA_CONSUMER_SESSION_TIMEOUT_MS": "3500",
        "KAFKA_CONSUMER_HEARTBEAT_INTERVAL_MS": "200",
        "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "12",
        "KAFKA_CONSUMER_ALLOW_AUTO_CREATE_TOPICS": "true",
        "KAFKA_PRODUCER_MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION": "1",
    ]

    private static func isCommon(_ name: String) -> Bool {
        name == "KAFKA_SECURITY_PROTOCOL" || name.hasPrefix("KAFKA_SASL_") || name.hasPrefix("KAFKA_SSL_")
    }

    private static func key(of name: String, after prefix: String) -> String? {
        guard name.hasPrefix(prefix), name.utf8.count > prefix.utf8.count else { return nil }
        return name.dropFirst(prefix.count).lowercased().replacing("_", with: ".")
    }
}
