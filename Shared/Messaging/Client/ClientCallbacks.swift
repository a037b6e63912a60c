// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Contracts
internal import Logging

/// What librdkafka calls back into: the `opaque` of one client.
///
/// `logger` is used from librdkafka's own threads. Everything else is touched only by the thread that polls the
/// client, because librdkafka runs these callbacks inside its poll functions; the handlers are set before the first
/// poll.
final class ClientCallbacks {
    typealias Rebalance = (rd_kafka_resp_err_t, UnsafeMutablePointer<rd_kafka_topic_partition_list_t>?) -> Void

    let logger: Logger
    var statistics: StatisticsReporter?
    var deliveries: DeliveryCollector?
    var rebalance: Rebalance?
    /// Kept alive here, because librdkafka's threads write to it until the client's end.
    var wakeUp: WakeUp?

    init(logger: Logger) {
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
        switch role {
        case .producer:
            rd_kafka_conf_set_dr_msg_cb(conf) { _, message, opaque in
                guard let message else { return }
                ClientCallbacks.of(opaque)?.deliveries?.collect(message)
            }
        case .consumer, .tail:
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
        logger.log(level: soft ? .debug : .warning, "offset commit failed", metadata: ["error": "\(KafkaError(code))"])
    }

    private static func of(_ opaque: UnsafeMutableRawPointer?) -> ClientCallbacks? {
        opaque.map { Unmanaged<ClientCallbacks>.fromOpaque($0).takeUnretainedValue() }
    }

    private func log(level: Int32, facility: UnsafePointer<CChar>?, text: UnsafePointer<CChar>?) {
        var level = Logger.Level(syslog: level)
        guard level >= logger.logLevel, let text else { return }
        // librdkafka warns of settings that it calls experimental. This one is set on purpose.
        if String(cString: text).contains("enable.gapless.guarantee is experimental") { level = .debug }
        // What librdkafka calls its facility is the part of it that speaks.
        let facility = facility.map { String(cString: $0) } ?? "-"
        logger.log(
            level: level, "librdkafka reports",
            metadata: ["facility": "\(facility)", "text": "\(String(cString: text))"])
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
