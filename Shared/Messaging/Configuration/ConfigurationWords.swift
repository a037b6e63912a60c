// SPDX-License-Identifier: Apache-2.0

import Contracts
import Glibc

/// What librdkafka finds only when a client is made, or tells in words of its own, by the variable that people know.
extension [ClientSetting] {
    private static let protocols = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    private static let mechanisms = ["GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

    /// What is wrong with them, as far as it can be known without librdkafka.
    var problem: KafkaConfigurationError? {
        let given = setting("security.protocol")
        let protocolName = given?.value.uppercased() ?? "PLAINTEXT"
        if let given, !Self.protocols.contains(protocolName) { return given.isNot(oneOf: Self.protocols) }
        if protocolName.hasPrefix("SASL"), let problem = signingInProblem { return problem }
        guard protocolName.hasSuffix("SSL") else { return nil }
        return lazy.compactMap(\.fileProblem).first ?? keyProblem
    }

    /// Settings of signing in or of TLS that the protocol has no use for: whoever gave them believes that they are in force.
    var unusedProblem: KafkaConfigurationError? {
        let given = setting("security.protocol")
        let protocolName = given?.value.uppercased() ?? "PLAINTEXT"
        let (signsIn, encrypts) = (protocolName.hasPrefix("SASL"), protocolName.hasSuffix("SSL"))
        let unused = filter { $0.key.hasPrefix("sasl.") && !signsIn || $0.key.hasPrefix("ssl.") && !encrypts }
        guard !unused.isEmpty else { return nil }
        let fitting = Self.protocols.filter { name in
            unused.allSatisfy { $0.key.hasPrefix("sasl.") ? name.hasPrefix("SASL") : name.hasSuffix("SSL") }
                && (!signsIn || name.hasPrefix("SASL")) && (!encrypts || name.hasSuffix("SSL"))
        }
        let names = unused.map(\.variable).sorted().joined(separator: ", ")
        return KafkaConfigurationError(
            variable: given?.variable ?? "KAFKA_SECURITY_PROTOCOL",
            message: (given.map { "is \($0.value), which" } ?? "is not set, and \(protocolName)")
                + " does not use \(names): set it to \(fitting.joined(separator: " or ")), or leave "
                + (unused.count == 1 ? "that out" : "those out"))
    }

    /// A certificate without its key is not shown to anybody, and librdkafka says nothing of it.
    private var keyProblem: KafkaConfigurationError? {
        guard let certificate = setting("ssl.certificate.location", "ssl.certificate.pem"),
            setting("ssl.key.location", "ssl.key.pem") == nil
        else { return nil }
        let isFile = certificate.key.hasSuffix("location")
        return KafkaConfigurationError(
            variable: certificate.variable.replacing("_CERTIFICATE_", with: "_KEY_"),
            message: "is not set, and \(certificate.variable) is; it \(isFile ? "names the file of" : "is") its key")
    }

    private func setting(_ keys: String...) -> ClientSetting? { last { keys.contains($0.key) } }

    private var signingInProblem: KafkaConfigurationError? {
        guard let mechanism = setting("sasl.mechanism", "sasl.mechanisms") else {
            return KafkaConfigurationError(
                variable: "KAFKA_SASL_MECHANISM",
                message: "is not set, and KAFKA_SECURITY_PROTOCOL asks for SASL; it is one of "
                    + Self.mechanisms.joined(separator: ", "))
        }
        guard Self.mechanisms.contains(mechanism.value) else { return mechanism.isNot(oneOf: Self.mechanisms) }
        if mechanism.value == "GSSAPI", let keytab = setting("sasl.kerberos.keytab"),
            let words = TextFile.problem(of: keytab.value)
        {
            return KafkaConfigurationError(variable: keytab.variable, message: words)
        }
        guard mechanism.value == "PLAIN" || mechanism.value.hasPrefix("SCRAM") else { return nil }
        for key in ["sasl.username", "sasl.password"] where setting(key) == nil {
            return KafkaConfigurationError(
                variable: ClientSetting(key: key, value: "", prefix: "KAFKA_").variable,
                message: "is not set, and \(mechanism.value) needs it")
        }
        return nil
    }

    /// What librdkafka's words mean, with which it has refused to make a client.
    /// - Parameter fallback: the variable to name when the words name no setting.
    func refusal(_ words: String, fallback: String) -> KafkaConfigurationError {
        if let file = first(where: { words.contains("\($0.key) failed") }), let holds = file.contentProblem(words) {
            return KafkaConfigurationError(variable: file.variable, message: "\(file.value) \(holds)")
        }
        // What kinit is to be called with.
        if let key = words.firstMatch(of: /Property not available: "([^"]+)"/)?.output.1 {
            return KafkaConfigurationError(
                variable: ClientSetting(key: String(key), value: "", prefix: "KAFKA_").variable,
                message: "is not set, and GSSAPI needs it, or a KAFKA_SASL_KERBEROS_KINIT_CMD without it")
        }
        // The first one is what has to change; of `a.b` and `a.b.c` at one place the longer one is meant.
        var named: (setting: ClientSetting, place: String.Index)?
        for setting in self {
            guard let place = words.firstRange(of: setting.key)?.lowerBound else { continue }
            if let best = named {
                if place > best.place { continue }
                if place == best.place, setting.key.count < best.setting.key.count { continue }
            }
            named = (setting, place)
        }
        return KafkaConfigurationError(variable: named?.setting.variable ?? fallback, message: hidingSecrets(words))
    }

    /// librdkafka's words with every secret value taken out.
    private func hidingSecrets(_ text: String) -> String {
        filter { $0.isSecret && !$0.value.isEmpty }.reduce(text) { $0.replacing($1.value, with: "***") }
    }
}

extension ClientSetting {
    /// Settings of TLS that name a file, and what must be in it; librdkafka takes a folder of authorities too.
    private static let files: [String: String] = [
        "ssl.ca.location": "holds no certificate in PEM form",
        "ssl.certificate.location": "holds no certificate in PEM form",
        "ssl.key.location": "holds no private key in PEM form, or one that needs another KAFKA_SSL_KEY_PASSWORD",
        "ssl.crl.location": "holds no list of revoked certificates in PEM form",
        "ssl.keystore.location": "holds no PKCS #12 store, or one that needs another KAFKA_SSL_KEYSTORE_PASSWORD",
    ]

    fileprivate func isNot(oneOf values: [String]) -> KafkaConfigurationError {
        KafkaConfigurationError(
            variable: variable, message: "\(value) is not one of \(values.joined(separator: ", "))")
    }

    /// Why the file that the setting names cannot be read.
    fileprivate var fileProblem: KafkaConfigurationError? {
        // librdkafka looks for the system's authorities itself.
        guard Self.files[key] != nil, !value.isEmpty, !(key == "ssl.ca.location" && value == "probe") else {
            return nil
        }
        var status = stat()
        let isFolder = stat(value, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
        if key == "ssl.ca.location", isFolder, access(value, R_OK) == 0 { return nil }
        return TextFile.problem(of: value).map { KafkaConfigurationError(variable: variable, message: $0) }
    }

    /// What is wrong with the content of the file, by what librdkafka says of it.
    fileprivate func contentProblem(_ words: String) -> String? {
        if words.contains("key values mismatch") { return "is not the key of KAFKA_SSL_CERTIFICATE_LOCATION" }
        return Self.files[key]
    }
}

extension KafkaConfiguration {
    /// What is wrong with the addresses. librdkafka leaves out what it cannot read, and says so only in its log.
    package static func addressProblem(_ servers: String) -> String? {
        let addresses = servers.split(separator: ",").map { $0.trimming(while: \.isWhitespace) }
        guard !addresses.isEmpty else { return "must be host:port, or several with commas between them" }
        return addresses.first { !isAddress($0) }
            .map { "'\($0)' is not host:port, such as localhost:9092; several have commas between them" }
    }

    /// With its port, as Kafka's own clients want it: librdkafka would take 9092.
    private static func isAddress(_ text: Substring) -> Bool {
        var rest = text
        if let scheme = rest.firstRange(of: "://") {
            guard ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"].contains(rest[..<scheme.lowerBound].lowercased())
            else { return false }
            rest = rest[scheme.upperBound...]
        }
        guard let colon = rest.lastIndex(of: ":"), let port = Int(rest[rest.index(after: colon)...]),
            (1...65_535).contains(port)
        else { return false }
        var host = rest[..<colon]
        if host.first == "[", host.last == "]" {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return false
        }
        return !host.isEmpty && !host.contains { $0.isWhitespace || "/\\@\"'[]".contains($0) }
    }
}

extension Substring {
    fileprivate func trimming(while isLeftOut: (Character) -> Bool) -> Substring {
        var text = drop(while: isLeftOut)
        while let last = text.last, isLeftOut(last) { text.removeLast() }
        return text
    }
}
