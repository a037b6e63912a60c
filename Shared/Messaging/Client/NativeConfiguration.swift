// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

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

    /// What is wrong with the setting, or `nil`.
    private static func apply(_ setting: ClientSetting, to conf: OpaquePointer) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
            text.initialize(repeating: 0)
            let result = rd_kafka_conf_set(conf, setting.key, setting.value, text.baseAddress, text.count)
            if result == RD_KAFKA_CONF_OK { return nil }
            // librdkafka quotes the value in its message, so a secret's message is not repeated.
            if setting.isSecret && result != RD_KAFKA_CONF_UNKNOWN { return "librdkafka refuses the value (not shown)" }
            // It quotes values of several lines, such as certificates, as they are.
            let words = text.baseAddress.map { String(cString: $0) } ?? "refused by librdkafka"
            return words.split(whereSeparator: \.isNewline).joined(separator: " ")
        }
    }
}
