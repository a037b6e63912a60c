// SPDX-License-Identifier: Apache-2.0

/// One librdkafka setting and the environment variable that people know it by.
struct ClientSetting {
    let key: String
    let value: String
    let variable: String

    init(key: String, value: String, prefix: String) {
        self.key = key
        self.value = value
        self.variable = prefix + key.uppercased().replacing(".", with: "_")
    }

    var isSecret: Bool { Self.isSecret(key) }

    /// Whether a setting's value must never be shown. Rather too many than too few.
    static func isSecret(_ key: String) -> Bool {
        let marks = ["password", "secret", "username", "key.pem", "ssl.key", "token", "jaas", "oauthbearer.config"]
        let lowered = key.lowercased()
        return !lowered.hasSuffix(".location") && marks.contains { lowered.contains($0) }
    }
}
