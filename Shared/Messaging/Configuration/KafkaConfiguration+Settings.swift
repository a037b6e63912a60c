// SPDX-License-Identifier: Apache-2.0

extension KafkaConfiguration {
    /// Every setting of one client, sorted by key.
    ///
    /// - Throws: when a setting was given that this library keeps to itself.
    func settings(for role: ClientRole, groupID: String?) throws(KafkaConfigurationError) -> [ClientSetting] {
        var merged: [String: ClientSetting] = [:]
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
        put(["client.id": clientID], prefix: "KAFKA_")
        // librdkafka takes no empty list; the host of the embedded broker has none.
        if !bootstrapServers.isEmpty { put(["bootstrap.servers": bootstrapServers], prefix: "KAFKA_") }
        if let groupID { put(["group.id": groupID], prefix: role.variablePrefix) }
        return merged.values.sorted { $0.key < $1.key }
    }
}
