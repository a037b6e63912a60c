// SPDX-License-Identifier: Apache-2.0

import Apps
import Logging
import Observability
import Testing

@testable import Runtime

@Suite struct SettingTests {
    @Test func eachIsListedOnce() {
        let names = Setting.all.map(\.name)
        #expect(Set(names).count == names.count)
        for setting in Setting.all {
            #expect(!setting.meaning.isEmpty && !setting.readers.isEmpty, "\(setting.name)")
            let standard = setting.standard.flatMap { setting.problem(of: $0) }
            #expect(standard == nil, "\(setting.name)")
        }
    }

    /// What a program does without any is what the list says.
    @Test func defaultsAreThoseOfTheReaders() throws {
        let least = ["KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef"]
        let configuration = try ServiceConfiguration(environment: least, service: "link")
        func standard(_ name: String) -> String? { Setting.named(name)?.standard }
        #expect(configuration.weakSecrets.rawValue == standard("IDENTITYBUS_WEAK_SECRETS"))
        #expect(configuration.trust.rawValue == standard("IDENTITYBUS_TRUST"))
        #expect(configuration.logLevel.rawValue == standard("LOG_LEVEL"))
        #expect(configuration.logFormat.rawValue == standard("LOG_FORMAT"))
        #expect(configuration.httpHost == standard("HTTP_HOST"))
        #expect(configuration.appsPath == standard("IDENTITYBUS_APPS"))
        #expect("\(configuration.batchSize)" == standard("BATCH_SIZE"))
        #expect("\(configuration.database)" == "SQLite in \(standard("DATA_DIR") ?? "")")
    }

    @Test(arguments: [
        ("BATCHSIZE", "5", "BATCHSIZE is read by nothing. Did you mean BATCH_SIZE?"),
        ("LOG_LEVL", "x", "LOG_LEVL is read by nothing. Did you mean LOG_LEVEL?"),
        ("DATABASE_URI", "x", "DATABASE_URI is read by nothing. Did you mean DATABASE_URL?"),
        (
            "IDENTITYBUS_INTERNAL_KEY_FLE", "x",
            "IDENTITYBUS_INTERNAL_KEY_FLE is read by nothing. Did you mean IDENTITYBUS_INTERNAL_KEY_FILE?"
        ),
        ("KAFKA_BROKERS", "x", "KAFKA_BROKERS is read by nothing."),
        ("PGHOSTT", "x", "PGHOSTT is read by nothing. Did you mean PGHOST?"),
        ("PG_SSLMODE", "x", "PG_SSLMODE is read by nothing. Did you mean PGSSLMODE?"),
        (
            "BATCH_SIZE_FILE", "x",
            "BATCH_SIZE_FILE is read by nothing. Only secrets have a _FILE variant: set BATCH_SIZE."
        ),
    ])
    func whatNothingReadsIsTold(_ variable: String, _ value: String, _ words: String) {
        #expect(Setting.remarks(on: [variable: value]).map(\.description) == [words])
    }

    /// Of other programs, of Kubernetes, of libraries, and what counts as not set.
    @Test(arguments: [
        ("PATH", "/bin"), ("HTTP_PROXY", "http://p:1"), ("KAFKA_SASL_PASSWORD", "x"), ("PGSSLROOTCERT", "x"),
        ("KAFKA_SERVICE_HOST", "10.0.0.1"), ("KAFKA_SERVICE_PORT_SASL", "9092"), ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
        ("GATEWAY_PORT_80_TCP_ADDR", "10.0.0.1"), ("BATCHSIZE", ""), ("DATABASE_URL_FILE", "/run/secrets/url"),
        ("KAFKA_CONSUMER_FETCH_WAIT_MAX_MS", "10"), ("HOME", "/"), ("HOST", "x"), ("PGDATA", "/x"),
        ("PG_MAJOR", "15"), ("PGUSER", "x"), ("PGTZ", "UTC"), ("PGDATABASE", "x"), ("XDG_DATA_DIRS", "/usr/share"),
    ])
    func whatIsNoneOfOursIsNotTold(_ variable: String, _ value: String) {
        #expect(Setting.remarks(on: [variable: value]).isEmpty)
    }

    @Test func aSecretThatIsGivenTwiceIsTold() {
        let remarks = Setting.remarks(on: ["DATABASE_URL": "postgresql://me:secret@h/x", "DATABASE_URL_FILE": "/url"])
        #expect(remarks.map(\.description) == ["DATABASE_URL and DATABASE_URL_FILE are both set. Keep one of them."])
        #expect(remarks.map(\.event) == [.twice])
    }

    /// Kubernetes sets `GATEWAY_PORT` where a service is called gateway.
    @Test func anAddressInPlaceOfAPortIsExplained() {
        let problem = Setting.gatewayPort.problem(of: "tcp://10.0.0.1:80")
        #expect(problem?.hasSuffix("set enableServiceLinks to false") == true)
    }
}
