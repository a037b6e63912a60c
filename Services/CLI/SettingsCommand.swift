// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Foundation
import Messaging
import Observability
import Runtime
import Supervision
import Sync
import WireJSON

struct SettingsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings",
        abstract: "Lists the environment variables that configure services, gateway and this tool.",
        discussion: """
            For each its value here, or the default, what it may be, who reads it and what it is for. Secrets are not \
            shown. Asks neither Kafka nor a database. Exit status 78: a value here cannot be used.
            """)

    @Argument(
        help: "Only these variables; KAFKA_* are all that begin so.",
        completion: .list(Setting.all.filter { !$0.isFamily }.map(\.name)))
    var names: [String] = []

    @Flag(name: .customLong("set"), help: "Only what is set here.")
    var onlySet = false

    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("Only what a program reads: a service, gateway, or identitybus.", valueName: "program"),
        completion: .list(serviceNames + ["gateway", "identitybus"]))
    var program: String?

    @Flag(help: "Print one JSON line for each.")
    var json = false

    /// A setting as it is in this environment.
    private struct Line {
        var setting: Setting
        /// The variable: of a family the member that is set.
        var name: String
        var origin: Origin
        /// What is shown: never a secret.
        var value: String?
        var problem: String?
    }

    private enum Origin: String {
        case standard = "default"
        case environment, file
    }

    private static let hidden = "‹hidden›"

    func validate() throws {
        let programs = serviceNames + ["gateway", "identitybus"]
        if let program, !programs.contains(program) {
            throw ValidationError("--as \(program): give one of \(programs.joined(separator: ", "))")
        }
    }

    func run() throws {
        let environment = ProcessInfo.processInfo.environment.filter { !$0.value.isEmpty }
        let wanted = try wantedSettings()
        let mistakes = mistakes(in: environment)
        let lines = wanted.flatMap { Self.lines(of: $0, in: environment, mistakes) }.filter { line in
            (!onlySet || line.origin != .standard || line.problem != nil)
                && (names.isEmpty || !line.setting.isFamily || isNamed(line, in: environment))
        }
        if json {
            for line in lines { say(json: Self.json(line)) }
        } else {
            show(lines)
        }
        for remark in Setting.remarks(on: environment) { complain("warning   \(remark)".harmless) }
        let problems = lines.compactMap { line in
            line.problem.map { "\(line.name)\(line.origin == .file ? "_FILE" : ""): \($0)" }
        }
        guard let first = problems.first else { return }
        throw Problem(
            .setting, first, advice: Array(problems.dropFirst()) + ["docs/operations.md says what each is for in full."]
        )
    }

    private func wantedSettings() throws -> [Setting] {
        var settings = Setting.all
        for name in names where !settings.contains(where: { Self.isMeant($0, by: name) }) {
            let known = settings.flatMap { [$0.name] + ($0.fileVariable.map { [$0] } ?? []) }
            let guess = nearest(to: name, in: known).map { " Did you mean \($0)?" } ?? ""
            throw Problem(.usage, "there is no setting \(name).\(guess)", "All: identitybus settings")
        }
        if !names.isEmpty {
            settings = settings.filter { setting in names.contains { Self.isMeant(setting, by: $0) } }
        }
        guard let program else { return settings }
        return settings.filter { $0.isRead(by: program) }
    }

    /// - Parameter name: of a variable, or with `*` at its end of several.
    private static func isMeant(_ setting: Setting, by name: String) -> Bool {
        isBeginning(name, of: setting.name) || name == setting.name || name == setting.fileVariable
            || Setting.named(name)?.name == setting.name
    }

    private static func isBeginning(_ pattern: String, of name: String) -> Bool {
        pattern.hasSuffix("*") && name.hasPrefix(pattern.dropLast())
    }

    /// What would stop the start of a service, and of the gateway, by the variable: as the programs themselves find it. That
    /// something is missing is no mistake in what is set.
    private func mistakes(in environment: [String: String]) -> [String: String] {
        // All services read the same, and one of them more.
        let programs =
            program.map { serviceNames.contains($0) || $0 == SettingsReading.gateway ? [$0] : [] }
            ?? [SyncService.name, SettingsReading.gateway]
        var filled = environment
        filled["KAFKA_BOOTSTRAP_SERVERS"] = environment["KAFKA_BOOTSTRAP_SERVERS"] ?? "127.0.0.1:1"
        filled["IDENTITYBUS_TRUST"] = environment["IDENTITYBUS_TRUST"] ?? Authenticator.Trust.cluster.rawValue
        var mistakes: [String: String] = [:]
        for mistake in programs.flatMap({ SettingsReading(filled, of: $0).mistakes }) {
            let name = mistake.variable
            if name == "IDENTITYBUS_INTERNAL_KEY", environment[name] == nil, environment["\(name)_FILE"] == nil {
                continue
            }
            mistakes[name] = mistakes[name] ?? mistake.words
        }
        if let program = programs.first, let problem = Self.problemOfApps(filled, of: program) {
            mistakes["IDENTITYBUS_APPS"] = problem
        }
        return mistakes
    }

    /// Of the apps file that is named here: the usual one need not be where this command runs.
    private static func problemOfApps(_ environment: [String: String], of program: String) -> String? {
        guard let path = environment["IDENTITYBUS_APPS"] else { return nil }
        let configuration = SettingsReading(environment, of: program).configuration
        do {
            _ = try AppsSource(
                path: path, reading: program == SettingsReading.gateway ? .gateway : .everything,
                keys: configuration?.keys ?? .none, weakSecrets: configuration?.weakSecrets ?? .refuse, logger: .quiet)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// A member of a family that is not set is shown as the family.
    private func isNamed(_ line: Line, in environment: [String: String]) -> Bool {
        names.contains { name in
            name == line.name || name == line.setting.name || Self.isBeginning(name, of: line.name)
                || line.name == line.setting.name && environment[name] == nil
                    && Setting.named(name)?.name == line.name
        }
    }

    private static func lines(
        of setting: Setting, in environment: [String: String], _ mistakes: [String: String]
    ) -> [Line] {
        guard setting.isFamily else { return [line(of: setting, in: environment, mistakes)] }
        // One that is missing may be what is wrong.
        let members = Set(environment.keys).union(mistakes.keys).sorted().filter {
            $0 != setting.name && Setting.named($0)?.name == setting.name
        }
        var family = Line(setting: setting, name: setting.name, origin: .standard)
        family.problem = mistakes[setting.name]
        return [family]
            + members.map { name in
                guard let value = environment[name] else {
                    return Line(setting: setting, name: name, origin: .standard, problem: mistakes[name])
                }
                return Line(
                    setting: setting, name: name, origin: .environment, value: shown(value, of: name),
                    problem: mistakes[name])
            }
    }

    private static func line(
        of setting: Setting, in environment: [String: String], _ mistakes: [String: String]
    ) -> Line {
        var line = Line(setting: setting, name: setting.name, origin: .standard, value: setting.standard)
        line.problem = mistakes[setting.name]
        if let value = environment[setting.name] {
            line.origin = .environment
            // What stands in the place of the token's file and names none may be the token.
            let isNoPath = setting.name.hasSuffix("_TOKEN_FILE") && !FileManager.default.fileExists(atPath: value)
            line.value = setting.isSecret || isNoPath ? hidden : shown(value)
            if !setting.isSecret { line.problem = setting.problem(of: value) ?? line.problem }
        }
        guard let file = setting.fileVariable, let path = environment[file] else { return line }
        line.origin = .file
        line.value = shownPath(path)
        do throws(ConfigurationProblem) {
            _ = try EnvironmentSettings(environment).secret(setting.name)
        } catch {
            line.problem = error.problem
        }
        return line
    }

    /// A key where its path should be is not shown.
    private static func shown(_ value: String?) -> String? {
        value.map { $0.contains("-----BEGIN ") ? hidden : $0 }
    }

    /// Of a member of a family.
    private static func shown(_ value: String, of variable: String) -> String? {
        if variable.hasSuffix("_FILE"), isSecret(String(variable.dropLast(5))) { return shownPath(value) }
        return isSecret(variable) ? hidden : shown(value)
    }

    /// What names no file may be the secret itself.
    private static func shownPath(_ path: String) -> String {
        FileManager.default.fileExists(atPath: path) ? path : hidden
    }

    /// Of a family.
    private static func isSecret(_ variable: String) -> Bool {
        KafkaConfiguration.isSecret(variable: variable)
            || ["PGPASSWORD", "PGSSLPASSWORD", "PGUSER", "PGOAUTHCLIENTSECRET"].contains(variable)
    }

    // MARK: Shown

    private static func json(_ line: Line) -> JSONValue {
        let setting = line.setting
        var object = JSONObject()
        object["name"] = .string(line.name)
        object["value"] = line.value.map(JSONValue.string) ?? .null
        object["from"] = .string(line.origin.rawValue)
        object["default"] = setting.standard.map(JSONValue.string) ?? .null
        object["remark"] = setting.remark.map(JSONValue.string)
        object["allowed"] = .string(setting.allowed)
        switch setting.kind {
        case .integer(let range):
            object["least"] = .number(JSONNumber(range.lowerBound))
            object["most"] = .number(JSONNumber(range.upperBound))
        case .choice(let values): object["choices"] = .array(values.map { .string($0) })
        case .text: break
        }
        object["readers"] = .array(setting.readers.map { .string($0.rawValue) })
        object["secret"] = .bool(setting.isSecret)
        object["file"] = setting.fileVariable.map(JSONValue.string)
        object["meaning"] = .string(setting.meaning)
        object["problem"] = line.problem.map(JSONValue.string)
        return .object(object)
    }

    private func show(_ lines: [Line]) {
        let rows = lines.map { line in
            let value =
                line.origin == .standard
                ? line.setting.shownStandard : "= \(line.value ?? "")\(line.origin == .file ? " (file)" : "")"
            return [
                line.name, value, line.setting.allowed, line.setting.readers.map(\.rawValue).joined(separator: " "),
                line.setting.meaning,
            ]
        }
        for line in Terminal.table([["VARIABLE", "DEFAULT, OR = VALUE", "ALLOWED", "READ BY", "WHAT"]] + rows) {
            say(line.harmless)
        }
    }
}

extension Setting {
    /// - Parameter program: a service, `gateway` or `identitybus`.
    fileprivate func isRead(by program: String) -> Bool {
        if let reader = Reader(rawValue: program), readers.contains(reader) { return true }
        return serviceNames.contains(program) && readers.contains(.services)
    }
}
