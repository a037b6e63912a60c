// SPDX-License-Identifier: Apache-2.0

import Apps
public import ArgumentParser
public import Contracts
import Crypto
import Foundation
import Logging
import Messaging
import Runtime

/// Which deployment a command talks to: the one `identitybus up` runs under `--data-dir`, or whatever the environment
/// names.
struct Deployment: ParsableArguments {
    @Option(help: "The folder of the deployment that `identitybus up` runs.")
    var dataDir = ".identitybus"

    @Option(help: "The apps file. Default: $IDENTITYBUS_APPS, else config/apps.yaml.")
    var apps: String?

    @Option(help: "Kafka's address. Default: $KAFKA_BOOTSTRAP_SERVERS, else what `identitybus up` wrote.")
    var bootstrapServers: String?

    private var environment: [String: String] { ProcessInfo.processInfo.environment }

    var topics: Topics { Topics(prefix: environment["TOPIC_PREFIX"] ?? "") }

    var bootstrapFile: String { "\(dataDir)/bootstrap" }
    var gatewayFile: String { "\(dataDir)/gateway" }
    var healthFile: String { "\(dataDir)/health" }
    var internalKeyFile: String { "\(dataDir)/internal-key" }
    var appsPath: String { apps ?? environment["IDENTITYBUS_APPS"] ?? "config/apps.yaml" }

    /// - Throws: `ValidationError` (exit status 64) when no broker is named anywhere.
    func kafka() throws -> KafkaConfiguration {
        var environment = environment
        environment["KAFKA_CLIENT_ID"] = environment["KAFKA_CLIENT_ID"] ?? "identitybus-cli"
        if let bootstrapServers {
            environment["KAFKA_BOOTSTRAP_SERVERS"] = bootstrapServers
        } else if environment["KAFKA_BOOTSTRAP_SERVERS"] == nil {
            guard let address = try? String(contentsOfFile: bootstrapFile, encoding: .utf8) else {
                throw ValidationError(
                    "no broker: set KAFKA_BOOTSTRAP_SERVERS, or start `identitybus up` (it writes \(bootstrapFile))")
            }
            environment["KAFKA_BOOTSTRAP_SERVERS"] = address.trimmingCharacters(in: .whitespacesAndNewlines)
            environment.merge(KafkaConfiguration.embeddedEnvironment) { given, _ in given }
        }
        do {
            return try KafkaConfiguration(environment: environment)
        } catch {
            throw ValidationError("\(error)")
        }
    }

    /// The secret of an app's key, or what services sign commands with.
    /// - Throws: `ValidationError` that says where it was looked for.
    func secret(app: AppID, keyID: KeyID) throws -> SymmetricKey {
        if keyID.text == Signature.internalKeyID {
            guard let key = try keys().signing(.commands) else {
                throw ValidationError(
                    "no internal key: set IDENTITYBUS_INTERNAL_KEY, or start `identitybus up` (it writes "
                        + "\(internalKeyFile))")
            }
            return key
        }
        let settings = try self.app(app)
        guard let key = settings.keys[keyID] else {
            let known = (settings.keys.keys.sorted().map(\.text) + [Signature.internalKeyID]).joined(separator: ", ")
            throw ValidationError("app \(app) has no key \(keyID); it has \(known)")
        }
        return key.secret
    }

    /// Where commands of the key are answered.
    func replyTopic(app: AppID, keyID: KeyID) throws -> String {
        guard keyID.text != Signature.internalKeyID, let own = try appDirectory()[app]?.replies else {
            return topics.replies
        }
        return topics.prefix + own
    }

    /// - Throws: `ValidationError` when the apps file has no such app.
    func app(_ id: AppID) throws -> AppSettings {
        let directory = try appDirectory()
        guard let app = directory[id] else {
            throw ValidationError(
                "\(appsPath) has no app \(id); it has \(directory.ids.map(\.text).joined(separator: ", "))")
        }
        return app
    }

    /// The apps of the apps file.
    /// - Throws: `ValidationError` with what is wrong with the file.
    func appDirectory() throws -> AppDirectory {
        do {
            return try AppsSource(path: appsPath, logger: Logger(label: "identitybus.cli")).apps
        } catch {
            throw ValidationError("\(error)")
        }
    }

    /// What this environment has to sign and check with: of the internal key everything, else what it was given. Nothing
    /// when there is neither.
    /// - Throws: `ValidationError` when a variable is wrong.
    func keys() throws -> DeploymentKeys {
        do {
            let keys = try DeploymentKeys(environment: EnvironmentSettings(environment), derived: .events)
            guard keys.isEmpty, let text = try? String(contentsOfFile: internalKeyFile, encoding: .utf8) else {
                return keys
            }
            let key = text.withoutFinalNewlines
            return DeploymentKeys(internalKeys: [SymmetricKey(data: Array(key.utf8))])
        } catch {
            throw ValidationError("\(error)")
        }
    }
}

/// Ids in options and arguments.
extension ID: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}
