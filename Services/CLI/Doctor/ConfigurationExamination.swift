// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import Foundation
import Logging
import Messaging
import Runtime
import Supervision
import Sync

/// Reads the settings as a service does, and goes on where that would stop, to find all that is wrong at once.
struct ConfigurationExamination {
    private(set) var findings: [Finding] = []
    /// What the rest is looked at with; `nil` when it cannot be read at all.
    private(set) var configuration: ServiceConfiguration?
    private(set) var apps: AppDirectory?
    /// Whether what it says of Kafka, or of the database, is not what was set.
    private(set) var isKafkaUnknown = false
    private(set) var isDatabaseUnknown = false

    private var environment: [String: String]
    /// Whose they are: a service, or the gateway.
    private let program: String
    private let roles: [Role]

    /// - Parameter roles: whose settings they are.
    init(_ environment: [String: String], of roles: [Role]) {
        self.environment = environment
        self.roles = roles
        // It reads what all services do, and more.
        program = (roles.first { $0.name == SyncService.name } ?? roles.first ?? .gateway).name
        look(at: Setting.remarks(on: environment))
        read()
        readApps()
    }

    // MARK: Settings

    /// Of a variable and its file that are both set, the rest is looked at with the file: the service would not start.
    private mutating func look(at remarks: [Setting.Remark]) {
        for remark in remarks {
            switch remark.event {
            case .twice:
                environment[remark.variable] = nil
                findings.append(
                    .fail(
                        .twice, remark.description, subject: remark.variable, fix: "A service does not start with both."
                    ))
            case .unknown:
                findings.append(.warn(.unknownVariable, remark.description, subject: remark.variable))
            }
        }
    }

    private mutating func read() {
        let reading = SettingsReading(environment, of: program)
        var mistakes = reading.mistakes
        if program != Role.gateway.name, roles.contains(.gateway) {
            // The rest it reads as services do.
            mistakes += SettingsReading(environment, of: Role.gateway.name).mistakes.filter {
                $0.variable.hasPrefix("GATEWAY_") || $0.variable.hasPrefix("IDENTITYBUS_GATEWAY_")
            }
        }
        let environment = environment
        findings += mistakes.map { mistake in
            .fail(
                .settings, "\(mistake.variable) \(mistake.words)", subject: mistake.variable,
                fix: Self.advice(mistake.variable, environment[mistake.variable]))
        }
        (isKafkaUnknown, isDatabaseUnknown) = (reading.isKafkaUnknown, reading.isDatabaseUnknown)
        guard let configuration = reading.configuration else { return }
        self.configuration = configuration
        if mistakes.isEmpty {
            let count = environment.keys.count { name in Self.isOurs(name) }
            let fromFiles = environment.keys.count { Self.isOurs($0) && $0.hasSuffix("_FILE") }
            let files = fromFiles == 0 ? "" : ", \(fromFiles) of them name\(fromFiles == 1 ? "s a file" : " files")"
            findings.insert(.ok(.settings, "\(count) variable\(count == 1 ? "" : "s") read\(files)"), at: 0)
        }
        look(at: configuration)
    }

    private static func advice(_ variable: String, _ value: String?) -> String {
        switch variable {
        case "KAFKA_BOOTSTRAP_SERVERS", "IDENTITYBUS_INTERNAL_KEY":
            "Set it; or start `identitybus up` here, or name its folder with --data-dir."
        case "IDENTITYBUS_INTERNAL_KEY_FILE" where value?.hasSuffix("/internal-key") == true:
            "The key that `identitybus up` has made is for the user who has started it: be that one."
        case "KAFKA_OAUTHBEARER_TOKEN_FILE":
            "Who writes this file puts a token (a JWT) of our Kafka user there, and a new one before that one ends."
        default: "docs/operations.md lists the settings and what each may be."
        }
    }

    private static func isOurs(_ name: String) -> Bool {
        Setting.named(name) != nil
            || name.hasSuffix("_FILE") && Setting.named(String(name.dropLast(5)))?.isSecret == true
    }

    private mutating func look(at configuration: ServiceConfiguration) {
        if let problem = configuration.weakInternalKey {
            findings.append(.warn(.internalKey, "\(problem.variable) \(problem.problem)", subject: problem.variable))
        } else if let key = configuration.keys.internalKeys.first {
            findings.append(.ok(.internalKey, "\(key.bitCount / 8) bytes"))
        }
        if roles.contains(.gateway), let path = environment["GATEWAY_TLS_CERTIFICATE"],
            let certificate = (try? String(contentsOfFile: path, encoding: .utf8)).flatMap({ PeerCertificate(pem: $0) })
        {
            findings.append(
                KafkaExamination.certificate(.gatewayCertificate, certificate, of: path, isOurs: true, now: .now))
        }
    }

    // MARK: The apps file

    private mutating func readApps() {
        let path = environment["IDENTITYBUS_APPS"] ?? "config/apps.yaml"
        do {
            let source = try AppsSource(
                path: path, reading: program == Role.gateway.name ? .gateway : .everything,
                keys: configuration?.keys ?? .none, weakSecrets: .warn, logger: .quiet)
            let apps = source.apps
            let keys = apps.ids.compactMap { apps[$0]?.keys.count }.reduce(0, +)
            findings.append(
                .ok(
                    .apps,
                    "\(path)  \(apps.count) app\(apps.count == 1 ? "" : "s"), \(keys) key\(keys == 1 ? "" : "s"), digest "
                        + source.digest.prefix(6), subject: path))
            findings += apps.remarks.map { .warn(.apps, $0, subject: path) }
            self.apps = apps
            look(at: apps, path)
        } catch {
            findings.append(
                .fail(
                    .apps, "\(error)", subject: path,
                    fix:
                        "No service starts with it; those that run keep the one before. All of it: identitybus check-config \(path)"
                ))
            findings += [.skip(.weakSecret, needs: "the apps file"), .skip(.keyExpiry, needs: "the apps file")]
        }
    }

    private mutating func look(at apps: AppDirectory, _ path: String) {
        let refuses = configuration?.weakSecrets != .warn
        for weakness in apps.weaknesses {
            findings.append(
                refuses
                    ? .fail(
                        .weakSecret, weakness, subject: path,
                        fix: "IDENTITYBUS_WEAK_SECRETS=warn accepts it until there is another one.")
                    : .warn(.weakSecret, weakness, subject: path))
        }
        if apps.weaknesses.isEmpty {
            findings.append(.ok(.weakSecret, apps.demo ?? "none is short or known to everybody"))
        }
        let keys = apps.ids.compactMap { apps[$0] }.flatMap { app in app.keys.values.map { (app.id, $0) } }
            .filter { !$1.isRevoked }
        let ends = keys.compactMap { Self.ending(of: $1, $0, now: .now) }.sorted { $0.subject < $1.subject }
        let over = keys.count { $1.expires.map { $0 <= .now } ?? false }
        // They stay in the file for what they have signed.
        let words = "none within \(Self.soon) days" + (over == 0 ? "" : "; \(over) \(over == 1 ? "has" : "have") ended")
        findings += ends.isEmpty ? [.ok(.keyExpiry, words)] : ends
    }

    /// Days before something ends on which somebody should know.
    static let soon: Int64 = 14

    private static func ending(of key: APIKey, _ app: AppID, now: Timestamp) -> Finding? {
        guard let end = key.expires, end > now else { return nil }
        let days = (end.milliseconds - now.milliseconds) / 86_400_000
        guard days < soon else { return nil }
        let name = "\(app)/\(key.id)"
        return .warn(
            .keyExpiry, "\(name) ends on \(end.rfc3339.prefix(10)) (\(days) day\(days == 1 ? "" : "s"))", subject: name,
            fix: "Give its holder another key, or this one a later end.")
    }
}
