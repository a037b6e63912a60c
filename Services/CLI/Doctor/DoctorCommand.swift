// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Foundation
import Observability
import Runtime
import Supervision
import WireJSON

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Looks at the settings, Kafka and the database as the services would, and says what is wrong.",
        discussion: """
            It only reads, and takes at most 15 seconds. Without --as it looks for all that can run with these settings, or \
            for what `identitybus up` runs in this folder. Rights are tried, without effect. A check that cannot be made \
            because another one fails is skipped. \
            Exit status 0: nothing failed; there may be warnings. 3: something failed.
            """)

    @Option(
        name: .customLong("as"),
        help: ArgumentHelp("Look with the eyes of this one: a service, or the gateway.", valueName: "service"))
    var role: Role?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Look again and again until nothing fails, for so long at most: for init containers.", valueName: "seconds"),
        transform: parsedSeconds)
    var wait: Double?

    @Flag(help: "Print each finding as one JSON line.")
    var json = false

    @Flag(help: "List the checks, and when each fails. Looks at nothing.")
    var checks = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        if checks { return listChecks() }
        let interruption = Interruption()
        let end = ContinuousClock.now + .milliseconds(Int64((wait ?? 0) * 1000))
        var told: Set<CheckID> = []
        while true {
            let examination = Examination(
                deployment.servicesEnvironment(), as: role, brokerAdvice: deployment.brokerAdvice)
            let report = try examination.run { interruption.isRequested }
            let failed = Set(report.findings.filter { $0.level == .fail }.map(\.id))
            if failed.isEmpty || ContinuousClock.now + .seconds(1) >= end {
                show(report)
                if !failed.isEmpty { throw ExitCode(ExitStatus.refused.rawValue) }
                return
            }
            if failed != told {
                complain("waiting   " + failed.map(\.rawValue).sorted().joined(separator: ", "))
                told = failed
            }
            for _ in 0..<10 {
                if interruption.isRequested { throw Problem(.interrupted, "interrupted; nothing was done") }
                Thread.sleep(forTimeInterval: 0.1)
            }
        }
    }

    private func show(_ report: DoctorReport) {
        if json { return report.findings.forEach { say($0.json) } }
        var report = report
        report.isColoured = Terminal.hasColours
        let version =
            "IdentityBus \(Release.version)" + (Release.commit == "unknown" ? "" : " (\(Release.commit.prefix(7)))")
        report.lines(version: version, now: .now).forEach(say)
    }

    private func listChecks() {
        let width = CheckID.allCases.map(\.rawValue.count).max() ?? 0
        for check in CheckID.allCases {
            if json {
                let line: JSONValue = [
                    "id": .string(check.rawValue), "meaning": .string(check.meaning),
                    "causes": .array(check.causes.map { .string($0) }),
                ]
                say(String(decoding: line.serialized(), as: UTF8.self))
            } else {
                say(check.rawValue + String(repeating: " ", count: width + 2 - check.rawValue.count) + check.meaning)
            }
        }
    }
}
