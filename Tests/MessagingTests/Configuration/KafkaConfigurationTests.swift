// SPDX-License-Identifier: Apache-2.0

import Messaging
import Testing

@Suite struct KafkaConfigurationTests {
    private let servers = ["KAFKA_BOOTSTRAP_SERVERS": "a:1,b:2"]

    private func parse(_ more: [String: String]) throws -> KafkaConfiguration {
        try KafkaConfiguration(environment: servers.merging(more) { $1 })
    }

    @Test func theAddressIsRequired() {
        let error = #expect(throws: KafkaConfigurationError.self) { try KafkaConfiguration(environment: [:]) }
        #expect(error?.variable == "KAFKA_BOOTSTRAP_SERVERS")
        #expect(throws: KafkaConfigurationError.self) {
            try KafkaConfiguration(environment: ["KAFKA_BOOTSTRAP_SERVERS": ""])
        }
    }

    @Test func addressAndClientAreRead() throws {
        #expect(try parse([:]).bootstrapServers == "a:1,b:2")
        #expect(try parse([:]).clientID == "identitybus")
        #expect(try parse(["KAFKA_CLIENT_ID": "link-1"]).clientID == "link-1")
    }

    @Test(arguments: [
        ("KAFKA_SECURITY_PROTOCOL", "SASL_SSL", "security.protocol"),
        ("KAFKA_SASL_USERNAME", "me", "sasl.username"),
        ("KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM", "https", "ssl.endpoint.identification.algorithm"),
    ])
    func securityIsCommon(variable: String, value: String, key: String) throws {
        let access = [
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "x",
            "KAFKA_SASL_PASSWORD": "x",
        ]
        let read = try parse(access.merging([variable: value]) { $1 })
        #expect(read.common[key] == value && read.consumer.isEmpty && read.producer.isEmpty)
    }

    @Test func otherSettingsPassThrough() throws {
        let configuration = try parse([
            "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": "7", "KAFKA_PRODUCER_LINGER_MS": "3", "KAFKA_VERSION": "x", "PATH": "/",
        ])
        #expect(configuration.consumer == ["fetch.wait.max.ms": "7"])
        #expect(configuration.producer == ["linger.ms": "3"])
        #expect(configuration.common.isEmpty)
    }

    @Test func emptyVariablesCountAsUnset() throws {
        let configuration = try parse(["KAFKA_SASL_PASSWORD": "", "KAFKA_CONSUMER_FETCH_WAIT_MAX_MS": ""])
        #expect(configuration.common.isEmpty && configuration.consumer.isEmpty)
    }

    @Test(arguments: [
        "KAFKA_CONSUMER_PARTITION_ASSIGNMENT_STRATEGY", "KAFKA_CONSUMER_ENABLE_AUTO_COMMIT",
        "KAFKA_CONSUMER_ENABLE_AUTO_OFFSET_STORE", "KAFKA_CONSUMER_GROUP_ID", "KAFKA_CONSUMER_AUTO_COMMIT_ENABLE",
        "KAFKA_CONSUMER_BOOTSTRAP_SERVERS", "KAFKA_PRODUCER_ENABLE_IDEMPOTENCE", "KAFKA_PRODUCER_ACKS",
        "KAFKA_PRODUCER_REQUEST_REQUIRED_ACKS", "KAFKA_PRODUCER_TRANSACTIONAL_ID", "KAFKA_PRODUCER_CLIENT_ID",
        "KAFKA_CONSUMER_AUTO_OFFSET_RESET", "KAFKA_CONSUMER_ISOLATION_LEVEL",
        "KAFKA_CONSUMER_ENABLE_PARTITION_EOF", "KAFKA_PRODUCER_ALLOW_AUTO_CREATE_TOPICS",
    ])
    func whatTheGuaranteesStandOnCannotBeSet(variable: String) {
        let error = #expect(throws: KafkaConfigurationError.self) { try parse([variable: "false"]) }
        #expect(error?.variable == variable)
        #expect(error?.description.contains("fixed") == true)
    }

    @Test func fixedSettingsCannotBeSlippedInByCodeEither() {
        let configuration = KafkaConfiguration(bootstrapServers: "a:1", common: ["enable.auto.commit": "true"])
        #expect(throws: KafkaConfigurationError.self) { try configuration.validate() }
    }

    @Test(arguments: [
        ("KAFKA_CONSUMER_NO_SUCH_THING", "1", "is no setting of librdkafka"),
        ("KAFKA_SASL_USER", "1", "there is no sasl.user. Did you mean KAFKA_SASL_USERNAME?"),
        ("KAFKA_CONSUMER_SESSION_TIMEOUT", "1", "Did you mean KAFKA_CONSUMER_SESSION_TIMEOUT_MS?"),
        ("KAFKA_CONSUMER_FETCH_WAIT_MAX_MS", "soon", "fetch.wait.max.ms"),
        ("KAFKA_PRODUCER_COMPRESSION_TYPE", "middle-out", "compression"),
        ("KAFKA_SECURITY_PROTOCOL", "carrier-pigeon", "not one of"),
        ("KAFKA_PRODUCER_PARTITIONER", "one\ntwo", "partitioner"),
    ])
    func refusedSettingsAreNamed(variable: String, value: String, words: String) {
        let error = #expect(throws: KafkaConfigurationError.self) { try parse([variable: value]) }
        #expect(error?.variable == variable)
        #expect(error?.message.contains(words) == true)
        #expect(error?.description.contains("\n") == false)
    }

    @Test(arguments: [
        "KAFKA_SSL_KEY_PEM", "KAFKA_SSL_KEY_PASSWORD", "KAFKA_SASL_JAAS_CONFIG", "KAFKA_SASL_NO_SUCH_SECRET",
    ])
    func errorsNeverShowSecrets(variable: String) {
        let secret = "hunter2-hunter2"
        do {
            let configuration = try parse([variable: secret])
            #expect(!configuration.description.contains(secret))
        } catch {
            #expect("\(error)".contains(variable))
            #expect(!"\(error)".contains(secret))
        }
    }

    @Test(arguments: [
        "sasl.password", "sasl.username", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config",
    ])
    func secretsAreNotDescribed(key: String) {
        let secrets = [key: "hunter2"]
        let configuration = KafkaConfiguration(
            bootstrapServers: "a:1", common: secrets, consumer: secrets, producer: secrets)
        #expect(!configuration.description.contains("hunter2"))
        #expect(configuration.description.contains("\(key)=***"))
    }

    @Test func harmlessSettingsAreDescribed() {
        let configuration = KafkaConfiguration(
            bootstrapServers: "a:1", common: ["ssl.ca.location": "/ca.pem"], consumer: ["fetch.wait.max.ms": "7"])
        #expect(
            configuration.description
                == "bootstrap.servers=a:1 client.id=identitybus ssl.ca.location=/ca.pem consumer:fetch.wait.max.ms=7")
    }

    @Test func theEmbeddedPresetIsValid() throws {
        let configuration = try parse(KafkaConfiguration.embeddedEnvironment)
        #expect(configuration.consumer["session.timeout.ms"] == "3500")
    }
}
