// SPDX-License-Identifier: Apache-2.0

import Apps
import Logging
import Messaging
import Observability
import Storage

extension Setting {
    /// Every environment variable that a program of IdentityBus reads.
    public static let all = [
        kafka, topics, store, apps, trust, work, process, [conventions], traces, gateway, children,
    ].flatMap { $0 }

    private static let everybody: [Reader] = [.services, .gateway]
    private static let everyProgram: [Reader] = [.services, .gateway, .identitybus]

    // MARK: Kafka

    private static let kafka = [
        Setting(
            "KAFKA_BOOTSTRAP_SERVERS", .text("host:port,…"), nil, "required", by: everyProgram,
            "the Kafka brokers, each with its port"),
        Setting(
            "KAFKA_CLIENT_ID", .text("text"), "identity.<service>", by: everyProgram,
            "the name in the brokers' logs and quotas"),
        Setting(
            "KAFKA_SECURITY_PROTOCOL", .choice(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), "PLAINTEXT",
            by: everyProgram, "how brokers are spoken to"),
        Setting(
            "KAFKA_SASL_*", .text("librdkafka's"), nil, "librdkafka's", by: everyProgram,
            "who signs in, and how: KAFKA_SASL_MECHANISM is sasl.mechanism"),
        Setting(
            "KAFKA_SSL_*", .text("librdkafka's"), nil, "librdkafka's", by: everyProgram,
            "TLS: KAFKA_SSL_CA_LOCATION is ssl.ca.location"),
        Setting(
            "KAFKA_OAUTHBEARER_TOKEN_FILE", .text("file"), by: everyProgram,
            "the token to sign in with where KAFKA_SASL_MECHANISM is OAUTHBEARER; read again before it ends"),
        Setting(
            "KAFKA_CONSUMER_GROUP_INSTANCE_ID", .text("text, another one for each replica"), by: [.services],
            "the name of this replica in its consumer groups: when it comes back, it has its partitions at once"),
        Setting(
            "KAFKA_CONSUMER_*", .text("librdkafka's"), nil, "ours, else librdkafka's", by: everyProgram,
            "any other setting of clients that read"),
        Setting(
            "KAFKA_PRODUCER_*", .text("librdkafka's"), nil, "ours, else librdkafka's", by: everyProgram,
            "any other setting of clients that write"),
    ]

    // MARK: Topics

    static let topicPartitions = Setting(
        "TOPIC_PARTITIONS", 1...1000, 12, by: everyProgram, "partitions of the topics that a service creates")
    static let topicReplicationFactor = Setting(
        "TOPIC_REPLICATION_FACTOR", -1...100, -1, "the broker's default", by: everyProgram,
        "copies of the topics that a service creates")

    private static let topics = [
        Setting(
            "TOPIC_PREFIX", .text("up to 100 of A-Z a-z 0-9 . _ -"), nil, "empty", by: everyProgram,
            "put in front of every topic and consumer group"),
        topicPartitions, topicReplicationFactor,
        Setting(
            "TOPIC_CREATE", TopicCreate.missing, by: everyProgram,
            "whether a service creates the topics that are missing, or waits for somebody else to"),
    ]

    // MARK: Store

    private static let store = [
        Setting(
            "DATABASE_URL", .text("postgresql://… or postgres://…"), nil, "SQLite", by: [.services, .identitybus],
            isSecret: true, "PostgreSQL, with a schema for each service"),
        Setting(
            "DATABASE_SCHEMA_PREFIX", .text("a letter, then up to 39 of a-z 0-9 _"),
            DatabaseConfiguration.usualSchemas, by: [.services, .identitybus],
            "what the names of the schemas begin with"),
        Setting(
            "DATA_DIR", .text("folder"), ".identitybus", by: [.services, .identitybus],
            "where the SQLite files are, and `identitybus up` runs"),
        Setting(
            "SQLITE_SYNCHRONOUS", .choice(["full", "normal"]), "full", by: [.services],
            "normal survives kill -9, but a power failure may lose the last commits"),
        Setting(
            "MIGRATE", MigrationTime.start, by: [.services, .identitybus],
            "whether a service migrates an older store at its start, or waits for `identitybus migrate`"),
        Setting("PGAPPNAME", .text("text"), "identitybus", by: [.services, .identitybus], "the name of connections"),
        Setting(
            "PG*", .text("libpq's"), nil, "libpq's", by: [.services, .identitybus],
            "what the URL leaves open, such as PGSSLROOTCERT"),
        Setting(
            "IDENTITYBUS_SALTS", .text("what `identitybus salts` prints"), by: [.services], isSecret: true,
            "the salts that empty stores begin with"),
        Setting(
            "REPLAY_UNTIL", .text("a time such as 2030-01-31T12:00:00Z, not in the future"), by: [.services],
            "what was logged before it is read in the order of time, and decided as of then"),
    ]

    // MARK: Apps and keys

    private static let apps = [
        Setting("IDENTITYBUS_APPS", .text("file"), "config/apps.yaml", by: everyProgram, "the apps file"),
        Setting(
            "IDENTITYBUS_WEAK_SECRETS", WeakSecrets.refuse, by: everyProgram,
            "what to do with secrets of the apps file that are short or known"),
    ]

    private static let trust = [
        Setting(
            "IDENTITYBUS_TRUST", Authenticator.Trust.signed, by: everybody,
            "who is believed: who signs, or who may write to Kafka"),
        Setting(
            "IDENTITYBUS_INTERNAL_KEY", .text("16 bytes or more"), nil, "required, unless trust is cluster",
            by: everyProgram, isSecret: true, "the key that all other keys of the deployment come from"),
        Setting(
            "IDENTITYBUS_PREVIOUS_INTERNAL_KEYS", .text("keys of 16 bytes or more, with commas between them"),
            by: everyProgram, isSecret: true, "what they signed or encrypted is accepted too"),
        Setting(
            "IDENTITYBUS_GATEWAY_KEYS", .text("what `identitybus derive-keys --for gateway` prints"), by: [.gateway],
            isSecret: true, "the gateway's keys, instead of both of the above"),
        Setting(
            "IDENTITYBUS_EVENTS_KEYS", .text("what `identitybus derive-keys --for events-reader` prints"),
            by: [.identitybus], isSecret: true, "the keys of watch and send --wait, instead of both"),
    ]

    // MARK: Work

    static let batchSize = Setting(
        "BATCH_SIZE", 1...10_000, 1000, by: [.services], "commands decided in one transaction at most")
    static let journalRetention = Setting(
        "JOURNAL_RETENTION_HOURS", 1...87_600, 336, "14 days", by: everyProgram,
        "how long a command is remembered; topics keep their records as long")
    static let deadLetterRetention = Setting(
        "DEAD_LETTER_RETENTION_HOURS", 1...87_600, 720, "30 days", by: everyProgram,
        "how long a dead letter topic keeps its letters")
    public static let aliasDelay = Setting(
        "ALIAS_DELAY", 0...31_536_000, 86_400, "24 h", by: [.sync], "seconds until an accepted alias is applied")
    static let loops = Setting(
        "LOOPS", 1...64, 1, by: [.services], "loops in one process, each as a replica of its own; with SQLite only 1")
    static let drainTimeout = Setting(
        "DRAIN_TIMEOUT_SECONDS", 0...600, 10, by: everybody, "how long a stop waits for messages to be delivered")

    private static let work = [batchSize, journalRetention, deadLetterRetention, aliasDelay, loops, drainTimeout]

    // MARK: Process

    public static let httpPort = Setting(
        "HTTP_PORT", 0...65_535, 0, "any; the image sets 8080",
        by: everyProgram, "where health and metrics are served, and probe looks")

    private static let process = [
        Setting(
            "HTTP_HOST", .text("address"), "127.0.0.1", "the image sets 0.0.0.0", by: everyProgram,
            "where health and metrics are served, and probe looks"),
        httpPort,
        Setting("LOG_LEVEL", Logger.Level.info, by: everybody, "the least important lines that are written"),
        Setting(
            "LOG_FORMAT", LogFormat.json, "text under `identitybus up`", by: everybody,
            "logs go to standard error; text has colours on a terminal"),
        Setting("NO_COLOR", .text("anything"), by: everyProgram, "no colours"),
        Setting("VISUAL", .text("a program"), by: [.identitybus], "the editor of dlq edit"),
        Setting("EDITOR", .text("a program"), nil, "vi", by: [.identitybus], "the same, where VISUAL is not set"),
        Setting("COLUMNS", .text("a number"), by: [.identitybus], "the width of a terminal, for --help"),
        Setting(
            "IDENTITYBUS_COMMIT", .text("7 to 64 of 0-9a-f"), nil, "the image sets it", by: everyProgram,
            "the commit that the program was built from, where the build could not know it"),
    ]

    // MARK: Metrics

    static let conventions = Setting(
        "OTEL_SEMCONV_STABILITY_OPT_IN", .text("http, messaging, or both with a comma between them"), by: everybody,
        "whose metrics are shown under OpenTelemetry's names too; a /dup behind one changes nothing")

    // MARK: Traces

    static let tracesEndpoint = Setting(
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", .text("http(s)://host:port/path"), by: everybody,
        "the same, with the path for spans")
    static let tracesHeaders = Setting(
        "OTEL_EXPORTER_OTLP_HEADERS", .text("name=value,name=value"), by: everybody, isSecret: true,
        "headers of the requests to the collector")
    static let tracesCertificate = Setting(
        "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", .text("PEM file"), by: everybody, "the same, for spans alone")
    static let samplerArgument = Setting(
        "OTEL_TRACES_SAMPLER_ARG", .text("a number from 0 to 1"), "1", by: everybody,
        "which part of the traces is told of, of the samplers by ratio")
    static let spanQueue = Setting(
        "OTEL_BSP_MAX_QUEUE_SIZE", 1...1_000_000, 2048, by: everybody,
        "spans that wait to be sent; what is more is dropped")
    static let spanBatch = Setting(
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1...10_000, 512, by: everybody, "spans of a request at most")
    static let spanDelay = Setting(
        "OTEL_BSP_SCHEDULE_DELAY", 1...600_000, 5000, by: everybody,
        "milliseconds that a span waits for others")
    static let spanTimeout = Setting(
        "OTEL_BSP_EXPORT_TIMEOUT", 1...600_000, 30_000, by: everybody,
        "milliseconds that a request may take")

    private static let traces = [
        Setting(
            "OTEL_EXPORTER_OTLP_ENDPOINT", .text("http(s)://host:port"), by: everybody,
            "the OpenTelemetry collector that spans are sent to; without it there are none"),
        tracesEndpoint, tracesHeaders,
        Setting(
            "OTEL_EXPORTER_OTLP_CERTIFICATE", .text("PEM file"), nil, "the system's authorities", by: everybody,
            "the authorities that may vouch for a collector at https"),
        tracesCertificate,
        Setting(
            "OTEL_EXPORTER_OTLP_PROTOCOL", .choice([TraceSettings.protocolName]), TraceSettings.protocolName,
            by: everybody, "how the collector is spoken to"),
        Setting(
            "OTEL_TRACES_EXPORTER", TraceSettings.Exporter.otlp, "where an endpoint is set",
            by: everybody, "otlp without an endpoint: to http://localhost:4318"),
        Setting(
            "OTEL_SDK_DISABLED", TraceSettings.TrueOrFalse.false, by: everybody,
            "true: no spans, whatever else is set"),
        Setting(
            "OTEL_SERVICE_NAME", .text("text"), "identitybus-<service>", by: everybody,
            "the name of the process in traces"),
        Setting(
            "OTEL_RESOURCE_ATTRIBUTES", .text("name=value,name=value"), by: everybody,
            "what else is said of the process in traces"),
        Setting(
            "OTEL_TRACES_SAMPLER", TraceSampler.Name.parentOrOn, by: everybody, "which traces are told of"),
        samplerArgument, spanQueue, spanBatch, spanDelay, spanTimeout,
    ]

    private static let children = [
        Setting(
            "IDENTITYBUS_PARENT", .text("process id"), nil, "set by `identitybus up`", by: everybody,
            "a child of `identitybus up` ends when this process ends"),
        Setting(
            "IDENTITYBUS_HEALTH_FILE", .text("file"), nil, "set by `identitybus up`", by: everybody,
            "where a child of `identitybus up` writes the address of its health server"),
        Setting(
            "IDENTITYBUS_ADMIN_FILE", .text("file"), nil, "set by `identitybus up`", by: [.gateway],
            "where the admin port's address is written"),
        Setting(
            "IDENTITYBUS_GATEWAY_FILE", .text("file"), nil, "set by `identitybus up`", by: [.gateway],
            "where the gateway writes its address"),
    ]

    // MARK: Gateway

    public static let gatewayPort = Setting(
        "GATEWAY_PORT", 0...65_535, 0, "any; the log says which", by: [.gateway],
        "where the API is served")
    static let console = Setting(
        "CONSOLE", ConsoleMode.no, by: [.gateway], "whether the admin port shows the console")
    public static let adminPort = Setting(
        "GATEWAY_ADMIN_PORT", 0...65_535, nil, "no such port", by: [.gateway],
        "where support's calls are served; 0: any, the log says which")
    public static let replyTimeout = Setting(
        "GATEWAY_REPLY_TIMEOUT_MS", 100...300_000, 8000, by: [.gateway], "how long a request waits for its reply")
    public static let maxInFlight = Setting(
        "GATEWAY_MAX_IN_FLIGHT", 1...1_000_000, 2000, by: [.gateway], "requests that wait for a reply; then 503")
    public static let maxConnections = Setting(
        "GATEWAY_MAX_CONNECTIONS", 1...1_000_000, 4000, by: [.gateway], "over that, the longest idle one is closed")
    public static let maxConnectionsPerAddress = Setting(
        "GATEWAY_MAX_CONNECTIONS_PER_ADDRESS", 1...1_000_000, nil, "an eighth of all", by: [.gateway],
        "connections of one client address")
    public static let maxBodyBytes = Setting(
        "GATEWAY_MAX_BODY_BYTES", 1024...200_000, 131_072, by: [.gateway], "of a request, after decompression; then 413"
    )
    public static let clientTimeout = Setting(
        "GATEWAY_CLIENT_TIMEOUT_SECONDS", 1...3600, 15, by: [.gateway],
        "how long a client may take to send a request, or to read an answer")
    public static let drainDelay = Setting(
        "GATEWAY_DRAIN_DELAY_SECONDS", 0...300, 0, "the image sets 5", by: [.gateway],
        "how long requests are still taken after the signal to end, while /readyz says that it stops")
    public static let wrongCredentials = Setting(
        "GATEWAY_WRONG_CREDENTIALS_PER_MINUTE", 0...1_000_000, 60, "0: no limit", by: [.gateway],
        "wrong secrets and signatures of one client address")

    private static let gateway = [
        Setting("GATEWAY_HOST", .text("address"), "127.0.0.1", by: [.gateway], "where the API is served"),
        gatewayPort,
        Setting(
            "GATEWAY_ADMIN_HOST", .text("address"), "127.0.0.1", by: [.gateway], "where support's calls are served"),
        adminPort,
        console,
        replyTimeout, maxInFlight, maxConnections, maxConnectionsPerAddress, maxBodyBytes, clientTimeout,
        drainDelay,
        Setting(
            "GATEWAY_TRUSTED_PROXIES", .text("addresses and networks with commas between them, or none"),
            by: [.gateway], "whose X-Forwarded-For is believed"),
        wrongCredentials,
        Setting(
            "GATEWAY_LOG_CLIENTS", .choice(["yes", "no"]), "yes", by: [.gateway],
            "whether the access log has clients' addresses"),
        Setting("GATEWAY_TLS_CERTIFICATE", .text("PEM file"), by: [.gateway], "the certificate chain of the API"),
        Setting("GATEWAY_TLS_KEY", .text("PEM file"), by: [.gateway], "the private key of the API"),
    ]
}
