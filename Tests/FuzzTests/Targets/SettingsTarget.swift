// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Runtime
import WireJSON

@testable import Apps
@testable import Gateway
@testable import Storage

/// Input: an apps file.
enum AppsTarget {
    static func run(_ bytes: [UInt8]) throws {
        guard let text = String(validating: bytes, as: UTF8.self) else { return }
        for extent in [AppsFile.Extent.everything, .gateway] {
            let apps: AppDirectory
            do throws(AppsFile.Problem) {
                apps = try AppsFile.parse(text, reading: extent) { "what stands in \($0), which is long enough" }
            } catch {
                try hold(!error.description.isEmpty, "refused without a word")
                continue
            }
            for id in apps.ids { try check(apps, id) }
        }
    }

    /// What apps and keys are called has to stand in messages.
    private static func check(_ apps: AppDirectory, _ id: AppID) throws {
        guard let app = apps[id] else { throw Broken("an app that is listed is not there") }
        let user = UserResult(
            userId: "u", installId: "i", isLinked: true, isRemoteEnabled: true,
            token: UserTokenResult(tokenId: "t", expiryDate: FuzzWorld.now), configuration: app.sdk.configuration,
            installToken: UserTokenResult(tokenId: "t", expiryDate: FuzzWorld.now))
        let reply = Reply(
            commandId: "c", commandType: CreateUser.type, commandDigest: "d", status: .succeeded, result: user)
        let answer = try Seal("k", nil).record(
            to: "t", key: nil, EventAttributes(id: "1", source: "s", type: ReceivedReply.type, appID: "a"), reply)
        do throws(EnvelopeError) {
            _ = try EnvelopeReader.read(value: answer.value, headers: answer.headers)
        } catch {
            throw Broken("the configuration of app \(id) cannot be told: \(error.detail)")
        }
        var attributes = EventAttributes(id: "1", source: "s", type: "t", appID: id.text)
        for key in app.keys.values {
            (attributes.authType, attributes.authID) = ("api_key", key.id.text)
            let record = try Seal(key.id.text, key.secret).record(to: "t", key: nil, attributes, JSONValue.null)
            let header = record.headers.first { $0.name == HeaderName.signature }?.value ?? []
            try hold(Signature(header: header)?.keyID == key.id.text, "key \(key.id) makes no signature")
            let read: CloudEvent<JSONValue>
            do throws(EnvelopeError) {
                read = try EnvelopeReader.read(value: record.value, headers: record.headers)
            } catch {
                throw Broken("no message can be for app \(id), or of its key \(key.id): \(error.detail)")
            }
            try hold(read.attributes == attributes, "app \(id) or its key has another name in a message")
            try hold(apps.key(key.id)?.app.id == id, "key \(key.id) belongs to another app")
        }
    }
}

/// Input: lines `NAME=value`. Nothing is read from files, and nothing is loaded into the process.
enum SettingsTarget {
    /// What stands in a secret may stand nowhere else.
    private static let mark = "s3cr3t"

    static func run(_ bytes: [UInt8]) throws {
        var environment = [
            "KAFKA_BOOTSTRAP_SERVERS": "localhost:9092", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef",
        ]
        var isMarkOnlyInSecrets = true
        for line in bytes.text.split(separator: "\n") {
            let halves = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard halves.count == 2, !halves[0].hasSuffix("_FILE"), !halves[0].contains("PLUGIN") else { continue }
            environment[halves[0]] = halves[1]
            if halves[0].lowercased().contains(mark) || !isSecret(halves[0]) && halves[1].contains(mark) {
                isMarkOnlyInSecrets = false
            }
        }
        for problem in problems(environment) {
            try hold(!problem.isEmpty, "refused without a word")
            try hold(!isMarkOnlyInSecrets || !problem.contains(mark), "a secret is shown: \(problem)")
        }
    }

    private static func isSecret(_ name: String) -> Bool {
        ["PASSWORD", "INTERNAL_KEY", "GATEWAY_KEYS", "DATABASE_URL"].contains { name.contains($0) }
    }

    /// What is wrong with it for a service and for the gateway.
    private static func problems(_ environment: [String: String]) -> [String] {
        var problems: [String] = []
        do {
            let configuration = try ServiceConfiguration(environment: environment, service: "link")
            _ = configuration.topicPlan.specs(for: ServiceTraffic("link"))
            problems.append("\(configuration.kafka) \(configuration.database)")
            if case .postgresql(let url, let schemas, _) = configuration.database {
                _ = try PostgreSQLSettings(
                    url: url, schema: "\(schemas)link", statementTimeout: .seconds(1),
                    idleTransactionTimeout: .seconds(1), isOfService: true)
            }
        } catch {
            problems.append("\(error)")
        }
        do {
            _ = try GatewayConfiguration(environment: environment)
        } catch {
            problems.append("\(error)")
        }
        return problems
    }
}
