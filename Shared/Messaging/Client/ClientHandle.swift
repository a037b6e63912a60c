// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Contracts
internal import Dispatch
package import Logging

/// Owns one `rd_kafka_t`. Confined to the thread that owns the client.
package final class ClientHandle {
    package let pointer: OpaquePointer
    private let callbacks: ClientCallbacks
    private var password: PasswordFile?
    private var isDestroyed = false

    /// Creates the client and its threads; connecting goes on in the background.
    ///
    /// - Throws: when librdkafka refuses a setting or a combination of settings.
    package init(
        role: ClientRole,
        configuration: KafkaConfiguration,
        groupID: String? = nil,
        callbacks: ClientCallbacks
    ) throws(KafkaConfigurationError) {
        var settings = try configuration.settings(for: role, groupID: groupID)
        let token = configuration.tokenFile.map { TokenFile(path: $0) }
        callbacks.trouble = BrokerTrouble(
            bootstrapServers: configuration.bootstrapServers, lacksToken: settings.lacksToken && token == nil)
        callbacks.tokenFile = token
        password = configuration.passwordFile.map { PasswordFile(path: $0, settings) }
        if let now = password?.password {
            for place in settings.indices where settings[place].key == "sasl.password" { settings[place].value = now }
        }
        callbacks.secrets = settings.filter(\.isHidden).map(\.value)
        pointer = try Self.create(role: role, settings: settings, callbacks: callbacks)
        self.callbacks = callbacks
        // Tokens are asked for on a thread of librdkafka.
        if token != nil, let error = rd_kafka_sasl_background_callbacks_enable(pointer) {
            rd_kafka_error_destroy(error)
        }
    }

    /// Takes a password that has changed in its file. To be called wherever the client is polled.
    func renewPassword() {
        guard let change = password?.look() else { return }
        if case .password = change { password?.use(for: pointer) }
        guard password?.isNews(change) == true else { return }
        switch change {
        case .password:
            callbacks.logger.notice(
                "the Kafka password has changed; the next connection signs in with it",
                metadata: ["event": "kafka.password-changed"])
        case .problem(let words):
            callbacks.logger.warning(
                "the file of the Kafka password has changed and cannot be read; what it held before is still used",
                metadata: ["event": "kafka.password-unreadable", "error": "\(words)"])
        }
    }

    /// An owner that forgot to close still gives the threads back, without waiting for it.
    deinit { destroy(timeout: .zero) }

    /// The fatal error that the client is in, if any. Cheap enough to ask once per poll.
    var fatalError: KafkaError? { KafkaError.fatal(of: pointer) }

    /// Whether this client is on its way into its group.
    var isJoining: Bool { callbacks.joining.isJoining }

    /// Why this client does not reach its brokers.
    var trouble: BrokerTrouble { callbacks.trouble }

    /// The number that a setting has in this client.
    func number(_ key: String) throws(KafkaConfigurationError) -> Int {
        var text = [CChar](repeating: 0, count: 64)
        var size = text.count
        let result = rd_kafka_conf_get(rd_kafka_conf(pointer), key, &text, &size)
        let value = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        guard result == RD_KAFKA_CONF_OK, let number = Int(value) else {
            throw KafkaConfigurationError(variable: "KAFKA_*", message: "librdkafka does not tell \(key)")
        }
        return number
    }

    /// The cluster's id by the latest metadata; asks for the first, at most `timeout`. `nil` when there is none.
    func clusterID(timeout: Duration) -> String? {
        if let known = knownClusterID { return known }
        // rd_kafka_clusterid() itself would wait, but is woken by changes of topics alone: up to a second too late.
        var answer: UnsafePointer<rd_kafka_metadata>?
        guard rd_kafka_metadata(pointer, 0, nil, &answer, timeout.kafkaMilliseconds) == RD_KAFKA_RESP_ERR_NO_ERROR
        else { return nil }
        rd_kafka_metadata_destroy(answer)
        return knownClusterID
    }

    private var knownClusterID: String? {
        guard let id = rd_kafka_clusterid(pointer, 0) else { return nil }
        defer { rd_kafka_mem_free(pointer, id) }
        return String(cString: id)
    }

    /// Whether it is the embedded broker, whose id begins as those of librdkafka's mock clusters do: it has no admin API.
    /// False when no cluster says its id in time.
    func isEmbedded(timeout: Duration) -> Bool { clusterID(timeout: timeout)?.hasPrefix("mockCluster") == true }

    /// Ends the client on a thread of its own and waits for that, at most `timeout`. Only the first call does anything.
    ///
    /// Handles made from this client (topics, queues) must be gone.
    ///
    /// - Parameter hasLeft: false for a consumer that was not closed in time: it is first let leave its group.
    /// - Returns: false when the time was up; ending then goes on in the background for as long as it takes, and the
    ///   memory stays until it is over. librdkafka 2.0.2 has bugs that make this wait forever.
    @discardableResult
    package func destroy(timeout: Duration, hasLeft: Bool = true) -> Bool {
        if isDestroyed { return true }
        isDestroyed = true
        if !hasLeft {
            callbacks.statistics = nil
            callbacks.rebalance = { [pointer] code, list in Rebalancer.decline(pointer, code, list) }
        }
        let ending = EndingClient(pointer: pointer, callbacks: Unmanaged.passRetained(callbacks), hasLeft: hasLeft)
        let done = DispatchSemaphore(value: 0)
        DispatchQueue(label: "identitybus.kafka.destroy").async {
            ending.end()
            done.signal()
        }
        return done.wait(timeout: .now() + .milliseconds(Int(timeout.kafkaMilliseconds))) == .success
    }

    /// Lets go of the client without ending it: its threads and memory, and the callbacks, stay until the process ends.
    func abandon() {
        if isDestroyed { return }
        isDestroyed = true
        _ = Unmanaged.passRetained(callbacks)
    }

    private static func create(
        role: ClientRole, settings: [ClientSetting], callbacks: ClientCallbacks
    ) throws(KafkaConfigurationError) -> OpaquePointer {
        let native = try NativeConfiguration(settings)
        callbacks.install(in: native.pointer, role: role)
        let conf = native.take()
        var text = [CChar](repeating: 0, count: 512)
        let type = role.isConsumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER
        if let client = rd_kafka_new(type, conf, &text, text.count) { return client }
        // Ownership of the configuration passes only when a client was made.
        rd_kafka_conf_destroy(conf)
        let words = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        throw settings.refusal(words, fallback: "\(role.variablePrefix)*")
    }
}

/// A client on its way to the thread that ends it.
///
/// `@unchecked Sendable` is safe: the value is made by ``ClientHandle/destroy(timeout:hasLeft:)``, which gives up the pointer
/// in the same breath (nothing uses it afterwards), and is used once, by one thread. librdkafka allows destroying from
/// any thread that is not its own. The callbacks are kept alive until the client's last thread, which may still log,
/// is gone; those of a consumer that has still to leave refer to nothing of the thread that used it.
struct EndingClient: @unchecked Sendable {
    let pointer: OpaquePointer
    let callbacks: Unmanaged<ClientCallbacks>
    let hasLeft: Bool
    /// As long as a broker may take to let a member go.
    private static let leavingTime: Duration = .seconds(60)

    /// One that is destroyed while it leaves would keep a core busy for ever: its main thread asks without a pause whether
    /// it has left, and what it waits for stands in a queue that nobody reads. One that cannot leave stays in memory, idle.
    func end() {
        guard hasLeft || Self.serve(pointer, by: Deadline(after: Self.leavingTime)) else { return }
        rd_kafka_destroy_flags(pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
        callbacks.release()
    }

    /// Answers what a closing consumer asks for until it is closed.
    ///
    /// - Returns: false when the time was up.
    static func serve(_ pointer: OpaquePointer, by deadline: Deadline) -> Bool {
        while rd_kafka_consumer_closed(pointer) == 0 {
            if deadline.isOver { return false }
            let wait = min(deadline.remaining, .milliseconds(50))
            if let message = rd_kafka_consumer_poll(pointer, wait.kafkaMilliseconds) {
                rd_kafka_message_destroy(message)
            }
        }
        return true
    }
}

/// A moment on the monotonic clock by which something has to be over.
struct Deadline {
    private let end: ContinuousClock.Instant

    init(after timeout: Duration) {
        end = ContinuousClock.now.advanced(by: timeout)
    }

    /// What is left, never negative.
    var remaining: Duration { max(.zero, ContinuousClock.now.duration(to: end)) }

    var isOver: Bool { ContinuousClock.now >= end }
}

extension Duration {
    /// Whole milliseconds for librdkafka: rounded up, never negative, at most some 24 days.
    ///
    /// Rounding up keeps a wait of half a millisecond from becoming a busy loop of zero waits.
    package var kafkaMilliseconds: Int32 {
        let (seconds, attoseconds) = components
        if seconds < 0 || attoseconds < 0 { return 0 }
        if seconds >= 2_000_000 { return 2_000_000_000 }
        let part = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Int32(seconds * 1000 + part)
    }
}

/// What librdkafka calls back into: the `opaque` of one client.
///
/// `logger`, `trouble`, `secrets` and `tokenFile` are used from librdkafka's own threads. Everything else is touched only by the thread
/// that polls the client, because librdkafka runs these callbacks inside its poll functions; the handlers are set before
/// the first poll.
package final class ClientCallbacks {
    typealias Rebalance = (rd_kafka_resp_err_t, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) -> Void

    let logger: Logger
    /// Set once, before the client is made.
    var trouble = BrokerTrouble()
    /// What no line may hold. Set once, before the client is made.
    var secrets: [String] = []
    /// Where tokens to sign in with come from. Set once, before the client is made.
    var tokenFile: TokenFile?
    var statistics: StatisticsReporter?
    var deliveries: DeliveryCollector?
    var rebalance: Rebalance?
    /// Kept alive here, because librdkafka's threads write to them until the client's end.
    var wakeUp: WakeUp?
    fileprivate let joining = JoinWatch()

    package init(logger: Logger) {
        self.logger = logger
    }

    /// Registers the callbacks that the role needs. `self` must outlive the client.
    func install(in conf: OpaquePointer, role: ClientRole) {
        rd_kafka_conf_set_opaque(conf, Unmanaged.passUnretained(self).toOpaque())
        rd_kafka_conf_set_log_cb(conf) { client, level, facility, text in
            guard let client else { return }
            ClientCallbacks.of(rd_kafka_opaque(client))?.log(level: level, facility: facility, text: text)
        }
        rd_kafka_conf_set_stats_cb(conf) { _, json, count, opaque in
            guard let json else { return 0 }
            let bytes = UnsafeRawBufferPointer(start: json, count: count)
            ClientCallbacks.of(opaque)?.statistics?.report(json: bytes)
            return 0
        }
        // It changes nothing but that the cause is known: librdkafka's own words are the same for every certificate.
        rd_kafka_conf_set_ssl_cert_verify_cb(conf) { _, broker, _, error, depth, bytes, count, _, _, opaque in
            let address = broker.map { String(cString: $0) } ?? ""
            if depth == 0, let bytes {
                let der = Array(UnsafeRawBufferPointer(start: bytes, count: count))
                ClientCallbacks.of(opaque)?.trouble.note(certificate: PeerCertificate(der: der), of: address)
            }
            guard let error, error.pointee != 0 else { return 1 }
            ClientCallbacks.of(opaque)?.trouble.note(certificateError: error.pointee, of: address)
            return 0
        }
        if tokenFile != nil {
            // A queue of their own, or they would be for whoever polls: nobody does before the first connection.
            rd_kafka_conf_enable_sasl_queue(conf, 1)
            rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf) { client, _, opaque in
                guard let client, let callbacks = ClientCallbacks.of(opaque) else { return }
                callbacks.trouble.note(tokenProblem: callbacks.tokenFile?.give(to: client))
            }
        }
        switch role {
        case .producer, .admin:
            rd_kafka_conf_set_dr_msg_cb(conf) { _, message, opaque in
                guard let message else { return }
                ClientCallbacks.of(opaque)?.deliveries?.collect(message)
            }
        case .consumer, .tail:
            joining.install(in: conf)
            rd_kafka_conf_set_rebalance_cb(conf) { _, code, partitions, opaque in
                ClientCallbacks.of(opaque)?.rebalance?(code, partitions)
            }
            rd_kafka_conf_set_offset_commit_cb(conf) { _, code, _, opaque in
                ClientCallbacks.of(opaque)?.logCommit(code)
            }
        }
    }

    /// Says what became of an asynchronous commit, when that is worth a line.
    func logCommit(_ code: rd_kafka_resp_err_t) {
        if code == RD_KAFKA_RESP_ERR_NO_ERROR { return }
        let soft = KafkaError.softCommitCodes.contains(code.rawValue)
        logger.log(
            level: soft || KafkaError.unreachableCodes.contains(code.rawValue)
                || KafkaError.missingRights.contains(code.rawValue) ? .debug : .warning,
            "offset commit failed", metadata: ["event": "group.commit-failed", "error": "\(KafkaError(code))"])
    }

    private static func of(_ opaque: UnsafeMutableRawPointer?) -> ClientCallbacks? {
        opaque.map { Unmanaged<ClientCallbacks>.fromOpaque($0).takeUnretainedValue() }
    }

    /// What librdkafka says is for who looks into its inside: what it means stands in errors and checks.
    private func log(level: Int32, facility: UnsafePointer<CChar>?, text: UnsafePointer<CChar>?) {
        guard let text else { return }
        // What librdkafka calls its facility is the part of it that speaks.
        let facility = facility.map { String(cString: $0) } ?? "-"
        if facility == "FAIL" { trouble.note(line: String(cString: text)) }
        let inner = Logger.Level(syslog: level)
        let level = min(inner, .debug)
        guard level >= logger.logLevel else { return }
        let words = secrets.reduce(String(cString: text)) { $0.replacing($1, with: "***") }
        logger.log(
            level: level, "librdkafka reports",
            metadata: [
                "event": "librdkafka", "facility": "\(facility)", "severity": "\(inner)",
                "text": "\(words)",
            ])
    }
}

extension Logger.Level {
    /// librdkafka speaks in syslog levels: 0 emergency to 7 debug.
    init(syslog level: Int32) {
        switch level {
        case ...2: self = .critical
        case 3: self = .error
        case 4: self = .warning
        case 5: self = .notice
        case 6: self = .info
        default: self = .debug
        }
    }
}
