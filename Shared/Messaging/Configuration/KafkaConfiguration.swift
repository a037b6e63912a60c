// SPDX-License-Identifier: Apache-2.0

import Contracts
import Logging

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

    /// The file that `sasl.password` was read from, which clients read again when it changes; `nil` when none holds it.
    public var passwordFile: String?

    /// The file that holds the token of OAUTHBEARER; read again before the token ends.
    public var tokenFile: String?

    /// Whether a ``KafkaConsumer`` is told when it has read all that a partition has. Each time costs it a turn.
    public var reportsEnds = false

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

    /// The `host:port` of each of ``bootstrapServers``.
    package var bootstrapAddresses: [String] {
        bootstrapServers.split(separator: ",").map { place in
            let host = place.firstRange(of: "://").map { place[$0.upperBound...] } ?? place
            return host.split(whereSeparator: \.isWhitespace).joined()
        }
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

    /// Asks librdkafka about every setting, and has it make a client of each kind that knows no broker: what is found
    /// only then must not wait until a service runs. Files that settings name are read.
    ///
    /// - Throws: for a setting that may not be changed, one that is refused, and those that do not go together.
    public func validate() throws(KafkaConfigurationError) {
        if let problem = Self.addressProblem(bootstrapServers) {
            throw KafkaConfigurationError(variable: "KAFKA_BOOTSTRAP_SERVERS", message: problem)
        }
        for role in ClientRole.allCases {
            let settings = try settings(for: role, groupID: role.isConsumer ? "validation" : nil)
            if let problem = settings.problem { throw problem }
            _ = try NativeConfiguration(settings)
            // Last, so that a name that librdkafka does not know is told as that.
            if let problem = settings.unusedProblem { throw problem }
        }
        var nowhere = self
        nowhere.bootstrapServers = ""
        for role in [ClientRole.producer, .consumer] {
            let silent = ClientCallbacks(logger: Logger(label: "validation") { _ in SwiftLogNoOpLogHandler() })
            let client = try ClientHandle(
                role: role, configuration: nowhere, groupID: role.isConsumer ? "validation" : nil, callbacks: silent)
            client.destroy(timeout: .seconds(1))
        }
    }

    private static func shown(_ settings: [String: String], prefix: String) -> String {
        settings.sorted { $0.key < $1.key }
            .map { "\(prefix)\($0.key)=\(ClientSetting.isSecret($0.key) ? "***" : $0.value)" }
            .joined(separator: " ")
    }
}

extension KafkaConfiguration {
    /// Reads the `KAFKA_*` variables. Variables that are set but empty count as not set.
    ///
    /// - `KAFKA_BOOTSTRAP_SERVERS` (required), `KAFKA_CLIENT_ID`
    /// - `KAFKA_SECURITY_PROTOCOL`, `KAFKA_SASL_*`, `KAFKA_SSL_*`: settings of every client
    /// - `KAFKA_CONSUMER_*`, `KAFKA_PRODUCER_*`: any other setting; `KAFKA_CONSUMER_FETCH_WAIT_MAX_MS=10` is
    ///   `fetch.wait.max.ms=10`
    /// - `KAFKA_SASL_PASSWORD_FILE` and so on for each that is secret: the file that holds it
    /// - `KAFKA_OAUTHBEARER_TOKEN_FILE`: ``tokenFile``
    ///
    /// - Throws: one line naming the variable, when the address is missing, when a setting may not be changed, when
    ///   librdkafka does not know or refuses it, when it would not be used, and when a file cannot be read.
    public init(environment: [String: String]) throws(KafkaConfigurationError) {
        let given = environment.filter { !$0.value.isEmpty }
        let set = try Self.readingFiles(given)
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
        passwordFile = given["KAFKA_SASL_PASSWORD_FILE"]
        if let file = set[Self.tokenVariable] {
            guard (common["sasl.mechanism"] ?? common["sasl.mechanisms"]) == "OAUTHBEARER" else {
                throw KafkaConfigurationError(
                    variable: Self.tokenVariable, message: "is set, and KAFKA_SASL_MECHANISM is not OAUTHBEARER")
            }
            tokenFile = file
        }
        try validate()
        try checkToken()
    }

    private static let tokenVariable = "KAFKA_OAUTHBEARER_TOKEN_FILE"

    /// Whether there is a file. What it holds is read by clients, again and again: a token that is missing in it, or has ended,
    /// may come.
    private func checkToken() throws(KafkaConfigurationError) {
        guard let tokenFile else { return }
        do throws(TextFile.Problem) {
            _ = try TextFile.secret(tokenFile)
        } catch {
            throw KafkaConfigurationError(
                variable: Self.tokenVariable, message: "\(error); whoever writes it has to start first")
        }
    }

    /// The variables with what the files hold that `_FILE` variables name.
    private static func readingFiles(
        _ environment: [String: String]
    ) throws(KafkaConfigurationError) -> [String: String] {
        var read = environment
        for name in environment.keys.sorted() where name.hasSuffix("_FILE") && name != tokenVariable {
            let variable = String(name.dropLast("_FILE".count))
            guard isSecret(variable: variable) else { continue }
            read[name] = nil
            do throws(TextFile.VariableProblem) {
                read[variable] = try TextFile.secret(of: variable, in: environment)
            } catch {
                throw KafkaConfigurationError(variable: error.variable, message: error.words)
            }
        }
        return read
    }

    /// What the embedded broker needs its clients to set, as variables for the processes that use it.
    ///
    /// The embedded broker holds every change of a group's members back until the session time-out has nearly passed, so a
    /// short one makes it quick. It also makes up every topic that it is asked for; claiming to want that saves a warning
    /// per client. And it appends what comes behind a request that it refused, so a producer must have no more than one
    /// request on its way.
    public static let embeddedEnvironment: [String: String] = [
        "KAFKA_CONSUMER_SESSION_TIMEOUT_MS": "3500",
        "KAFKA_CONSUMER_HEARTBEAT_INTERVAL_MS": "200",
        "KAFKA_CONSUMER_ALLOW_AUTO_CREATE_TOPICS": "true",
        "KAFKA_PRODUCER_MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION": "1",
    ]

    /// Whether the value of a `KAFKA_*` variable must never be shown.
    public static func isSecret(variable name: String) -> Bool {
        let prefixes = ClientRole.allCases.map(\.variablePrefix) + ["KAFKA_"]
        guard let key = prefixes.lazy.compactMap({ key(of: name, after: $0) }).first else { return false }
        return ClientSetting.isSecret(key)
    }

    private static func isCommon(_ name: String) -> Bool {
        name == "KAFKA_SECURITY_PROTOCOL" || name.hasPrefix("KAFKA_SASL_") || name.hasPrefix("KAFKA_SSL_")
    }

    private static func key(of name: String, after prefix: String) -> String? {
        guard name.hasPrefix(prefix), name.utf8.count > prefix.utf8.count else { return nil }
        return name.dropFirst(prefix.count).lowercased().replacing("_", with: ".")
    }
}

/// A setting that cannot be used. The text is one line and never shows a secret value.
public struct KafkaConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The environment variable that the setting comes from, or would come from.
    public let variable: String

    /// What is wrong with it.
    public let message: String

    public init(variable: String, message: String) {
        self.variable = variable
        self.message = message
    }

    /// `VARIABLE: message`.
    public var description: String { "\(variable): \(message)" }
}
