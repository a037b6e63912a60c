// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Foundation
import Observability
import Runtime
import Supervision
import WireJSON

struct CheckConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Looks for mistakes in an apps file, and says what a change of it would do.",
        discussion: """
            Tells everything that is wrong, each with its line and column. A service accepts the file if, and only if, \
            there is no error. Asks nobody: it needs neither Kafka nor a database, nor anything that runs. Exit status 78: \
            services would refuse the file.
            """)

    @Argument(
        help: "The apps file. Default: $IDENTITYBUS_APPS, else config/apps.yaml.",
        completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    @Option(
        help: ArgumentHelp("The file that is in force: tells what would change.", valueName: "file"),
        completion: .file(extensions: ["yaml", "yml"]))
    var against: String?

    @Flag(
        name: .customLong("without-secret-files"),
        help: "Where the files that `secretFile` names are not here: takes each for a good secret.")
    var withoutSecretFiles = false

    @Flag(help: "Print one JSON line for each finding, for each change, and for the result.")
    var json = false

    func run() throws {
        let settings = EnvironmentSettings(ProcessInfo.processInfo.environment)
        let path = file ?? settings.text("IDENTITYBUS_APPS") ?? "config/apps.yaml"
        let report = try report(on: path, settings)
        let errors = report.findings.count(where: { $0.level == .error })
        // What is in force was accepted once; warnings about it help nobody.
        let old = try against.map { (path: $0, report: try self.report(on: $0, settings, isInForce: true)) }
        show(report.findings, of: path)
        guard let apps = report.apps else {
            tell(path, errors, report.findings.count - errors, hasMore: report.hasMore)
            throw ExitCode(ExitStatus.setting.rawValue)
        }
        guard let old else { return tell(path, 0, report.findings.count) }
        guard let before = old.report.apps else {
            show(old.report.findings.filter { $0.level == .error }, of: old.path)
            throw Problem(
                .setting, "\(old.path) cannot be compared with: services would refuse it.",
                "Its errors are above. --against names the file that is in force.")
        }
        let comparison = AppsComparison(
            topics: Topics(prefix: settings.text("TOPIC_PREFIX") ?? ""),
            oldSecrets: old.report.secrets, newSecrets: report.secrets)
        show(comparison.changes(from: before, to: apps), path, report.findings.count)
    }

    private func report(
        on path: String, _ settings: EnvironmentSettings, isInForce: Bool = false
    ) throws -> AppsFile.Report {
        let text: String
        do {
            text = try TextFile.read(path)
        } catch {
            if let report = AppsFile.report(on: error) { return report }
            throw Problem(
                .setting, "\(path) cannot be read: \(error).",
                isInForce
                    ? "--against names the file that is in force."
                    : "Name the apps file: identitybus check-config FILE, or IDENTITYBUS_APPS.")
        }
        return AppsFile.check(
            text, path: path, weakSecrets: try settings.choice("IDENTITYBUS_WEAK_SECRETS", default: .refuse),
            keys: try DeploymentKeys(environment: settings), readsSecrets: !withoutSecretFiles, now: .now)
    }

    // MARK: Shown

    private func show(_ findings: [AppsFile.Finding], of path: String) {
        if json {
            for finding in findings {
                say(json: [
                    "file": .string(path), "line": .number(JSONNumber(finding.line)),
                    "column": .number(JSONNumber(finding.column)), "level": .string(finding.level.rawValue),
                    "message": .string(finding.message),
                ])
            }
            return
        }
        let rows = findings.map { ["\(path):\($0.line):\($0.column)", $0.level.rawValue, $0.message] }
        for line in Terminal.table(rows) { say(line.harmless) }
    }

    /// The last line.
    private func tell(_ path: String, _ errors: Int, _ warnings: Int, hasMore: Bool = false) {
        if json {
            return say(json: [
                "file": .string(path), "accepted": .bool(errors == 0), "errors": .number(JSONNumber(errors)),
                "more": .bool(hasMore), "warnings": .number(JSONNumber(warnings)),
            ])
        }
        let counts = [Self.count(errors, "error"), Self.count(warnings, "warning")].compactMap { $0 }
        if errors == 0 {
            say("\(path): fine\(counts.isEmpty ? "" : ", \(counts.joined(separator: ", "))")".harmless)
        } else {
            let words = (hasMore ? "the first " : "") + counts.joined(separator: ", ") + (hasMore ? ", and more" : "")
            say("\(words): services would refuse this file and keep the one before")
        }
    }

    private static func count(_ number: Int, _ noun: String) -> String? {
        number == 0 ? nil : "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    private func show(_ changes: [AppsComparison.Change], _ path: String, _ warnings: Int) {
        if json {
            for change in changes {
                say(json: [
                    "app": .string(change.app.text), "change": .string(change.what),
                    "meaning": .string(change.meaning),
                ])
            }
            return tell(path, 0, warnings)
        }
        if changes.isEmpty { return say("\(path): fine, and says the same".harmless) }
        say("\(path): fine. What would change within 10 s, without a restart:".harmless)
        for line in Terminal.table(changes.map { ["  \($0.app)", $0.what, $0.meaning] }) { say(line.harmless) }
    }
}
