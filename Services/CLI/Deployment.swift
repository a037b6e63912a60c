// SPDX-License-Identifier: Apache-2.0

import Apps
public import ArgumentParser
public import Contracts
import Crypto
import Foundation
import Glibc
import Logging
import Messaging
import Runtime
import Supervision

/// The folder of a deployment on this machine: what `identitybus up` runs there, and SQLite files.
struct DataFolder: ParsableArguments {
    @Option(
        help: "The folder that `identitybus up` runs in, and of SQLite files. Default: $DATA_DIR, else .identitybus.",
        completion: .directory)
    var dataDir: String?

    var path: String {
        dataDir ?? EnvironmentSettings(ProcessInfo.processInfo.environment).text("DATA_DIR") ?? ".identitybus"
    }

    var bootstrapFile: String { "\(path)/bootstrap" }
    var gatewayFile: String { "\(path)/gateway" }
    var adminFile: String { "\(path)/admin" }
    var healthFile: String { "\(path)/health" }
    var internalKeyFile: String { "\(path)/internal-key" }
}

/// The apps file.
struct AppsOption: ParsableArguments {
    @Option(
        name: .customLong("apps"), help: "The apps file. Default: $IDENTITYBUS_APPS, else config/apps.yaml.",
        completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    var path: String {
        file ?? EnvironmentSettings(ProcessInfo.processInfo.environment).text("IDENTITYBUS_APPS") ?? "config/apps.yaml"
    }

    func directory() throws -> AppDirectory {
        try AppsSource(path: path, logger: Logger(label: "identitybus.cli")).apps
    }

    /// - Throws: `Problem` when the apps file has no such app.
    func app(_ id: AppID) throws -> AppSettings {
        let directory = try directory()
        guard let app = directory[id] else {
            throw unknown("\(path) has no app \(id)", id.text, known: directory.ids.map(\.text))
        }
        return app
    }

    /// - Throws: `Problem` when there is an apps file that can be read, and it has no such app. The file need not be here.
    func refuseUnknown(_ id: AppID) throws {
        if let apps = try? directory(), apps[id] == nil { _ = try app(id) }
    }

    fileprivate func unknown(_ what: String, _ name: String, known: [String]) -> Problem {
        let guess = nearest(to: name, in: known).map { " Did you mean \($0)?" } ?? ""
        return Problem(.usage, "\(what).\(guess)", "It has: \(known.sorted().joined(separator: ", ")).")
    }
}

/// What a deployment has in files: keys, and the apps with theirs.
struct DeploymentFiles: ParsableArguments {
    @OptionGroup var folder: DataFolder
    @OptionGroup var apps: AppsOption

    /// The secret of an app's key, or what services sign commands with.
    /// - Throws: `Problem` that says where it was looked for.
    func secret(app: AppID, keyID: KeyID) throws -> SymmetricKey {
        if keyID.text == Signature.internalKeyID {
            guard let key = try keys().signing(.commands) else {
                let path = folder.internalKeyFile
                if access(path, F_OK) == 0, access(path, R_OK) != 0 {
                    throw Problem(
                        .noRight, "\(path) cannot be read.",
                        "It is for the user who has started `identitybus up`. Be that one, or sign with an API key.")
                }
                throw Problem(
                    .setting, "the internal key is not known.",
                    "Set IDENTITYBUS_INTERNAL_KEY, or start `identitybus up` (it writes \(path)).")
            }
            return key
        }
        let settings = try apps.app(app)
        guard let key = settings.keys[keyID] else {
            throw apps.unknown(
                "app \(app) has no key \(keyID)", keyID.text,
                known: settings.keys.keys.map(\.text) + [Signature.internalKeyID])
        }
        return key.secret
    }

    /// What this environment has to sign and check with: of the internal key everything, else what it was given. Nothing
    /// when there is neither.
    func keys() throws -> DeploymentKeys {
        let settings = EnvironmentSettings(ProcessInfo.processInfo.environment)
        let keys = try DeploymentKeys(environment: settings, derived: .events)
        guard keys.isEmpty, let text = try? String(contentsOfFile: folder.internalKeyFile, encoding: .utf8) else {
            return keys
        }
        let key = text.withoutFinalNewlines
        return DeploymentKeys(internalKeys: [SymmetricKey(data: Array(key.utf8))])
    }
}

/// Which deployment a command talks to: the one `identitybus up` runs under `--data-dir`, or whatever the environment
/// names.
struct Deployment: ParsableArguments {
    @OptionGroup var files: DeploymentFiles

    @Option(help: "Kafka's address. Default: $KAFKA_BOOTSTRAP_SERVERS, else what `identitybus up` wrote.")
    var bootstrapServers: String?

    @OptionGroup var debugging: KafkaDebugging

    func validate() throws {
        if let bootstrapServers, let problem = KafkaConfiguration.addressProblem(bootstrapServers) {
            throw ValidationError("--bootstrap-servers: \(problem)")
        }
    }

    /// Without what is set and empty: that counts as not set.
    private var environment: [String: String] { ProcessInfo.processInfo.environment.filter { !$0.value.isEmpty } }

    var topics: Topics { Topics(prefix: environment["TOPIC_PREFIX"] ?? "") }

    var dataDir: String { files.folder.path }
    var bootstrapFile: String { files.folder.bootstrapFile }
    var appsPath: String { files.apps.path }

    func secret(app: AppID, keyID: KeyID) throws -> SymmetricKey { try files.secret(app: app, keyID: keyID) }
    func keys() throws -> DeploymentKeys { try files.keys() }

    /// The key to ask about people with, where none is named: the app's first one that may, else the services' own.
    func supportKey(of app: AppID) -> KeyID {
        let keys = (try? self.app(app).keys) ?? [:]
        return keys.filter { $0.value.scopes.contains(.support) }.keys.min() ?? KeyID(Signature.internalKeyID)
    }

    func app(_ id: AppID) throws -> AppSettings { try files.apps.app(id) }
    func appDirectory() throws -> AppDirectory { try files.apps.directory() }
    func refuseUnknown(_ id: AppID) throws { try files.apps.refuseUnknown(id) }

    /// - Throws: `Problem` when no Kafka is named anywhere, or a setting is wrong.
    func kafka() throws -> KafkaAccess {
        var environment = debugging.begin(environment)
        environment["KAFKA_CLIENT_ID"] = environment["KAFKA_CLIENT_ID"] ?? "identitybus-cli"
        nameBroker(in: &environment)
        guard environment["KAFKA_BOOTSTRAP_SERVERS"] != nil else {
            throw Problem(
                .setting, "no broker is named.",
                "Set KAFKA_BOOTSTRAP_SERVERS, or start `identitybus up` (it writes \(bootstrapFile)).")
        }
        return KafkaAccess(try KafkaConfiguration(environment: environment), advice: brokerAdvice)
    }

    /// Puts Kafka's address in, from where it is to be had, if that is anywhere.
    private func nameBroker(in environment: inout [String: String]) {
        if let bootstrapServers {
            environment["KAFKA_BOOTSTRAP_SERVERS"] = bootstrapServers
        } else if environment["KAFKA_BOOTSTRAP_SERVERS"] == nil, let address = addressOfUp {
            environment["KAFKA_BOOTSTRAP_SERVERS"] = address
            environment.merge(KafkaConfiguration.embeddedEnvironment) { given, _ in given }
        }
    }

    /// What to do when nothing is at Kafka's address: that says where the address is from.
    var brokerAdvice: String {
        if bootstrapServers != nil { return "Does Kafka run there? Its address is from --bootstrap-servers." }
        if environment["KAFKA_BOOTSTRAP_SERVERS"] == nil {
            return "The address is from \(bootstrapFile). Does that `identitybus up` still run?"
        }
        return "Does Kafka run there? Its address is from KAFKA_BOOTSTRAP_SERVERS."
    }

    /// The environment that the deployment's services have: of those that `identitybus up` runs in this folder, what it gives
    /// to them.
    func servicesEnvironment() -> [String: String] {
        var environment = debugging.begin(environment)
        environment["IDENTITYBUS_APPS"] = appsPath
        nameBroker(in: &environment)
        environment["DATA_DIR"] = dataDir
        let keys = ["IDENTITYBUS_INTERNAL_KEY", "IDENTITYBUS_GATEWAY_KEYS"].flatMap { [$0, "\($0)_FILE"] }
        // One that this user may not read is no key that is missing.
        let isThere = access(files.folder.internalKeyFile, F_OK) == 0 || errno == EACCES
        if !keys.contains(where: { environment[$0] != nil }), isThere {
            environment["IDENTITYBUS_INTERNAL_KEY_FILE"] = files.folder.internalKeyFile
        }
        return environment
    }

    /// Kafka's address, as `identitybus up` has written it.
    private var addressOfUp: String? {
        (try? String(contentsOfFile: bootstrapFile, encoding: .utf8))?.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Where commands of the key are answered.
    func replyTopic(app: AppID, keyID: KeyID) throws -> String {
        guard keyID.text != Signature.internalKeyID, let own = try appDirectory()[app]?.replies else {
            return topics.replies
        }
        return topics.prefix + own
    }
}

/// Ids in options and arguments.
extension ID: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
}

/// A number of an option. Given with `parsing: .unconditional`, so that `-1` is refused as a number and not taken for
/// another option.
func parsedSeconds(_ text: String) throws -> Double {
    guard let seconds = Double(text), seconds >= 0, seconds <= 1_000_000 else {
        throw ValidationError("give seconds, 0 or more")
    }
    return seconds
}

/// The same, of whole things.
func parsedCount(_ text: String) throws -> Int {
    guard let count = Int(text), count > 0 else { throw ValidationError("give a whole number, 1 or more") }
    return count
}
