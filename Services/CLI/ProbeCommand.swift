// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Observability
import Runtime
import Supervision
import WireJSON

struct ProbeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Asks a service or a gateway whether it is alive, or ready.",
        discussion: """
            For health checks that run a program, and for looking at one. Without an address it asks the program whose \
            environment it has: $HTTP_HOST and $HTTP_PORT. Exit status 0: yes; 3: no, and which checks fail; 69: no answer, or \
            that of another program.
            """)

    enum Question: String, ExpressibleByArgument, CaseIterable {
        case live, ready

        var path: String { self == .live ? "/livez" : "/readyz" }
    }

    @Argument(help: "live: does it work, or does it have to be restarted? ready: is all well that it needs?")
    var question: Question

    @Argument(help: "The address of its health server, such as http://127.0.0.1:8080.")
    var address: String?

    @Option(
        help: "A service, or gateway, of the deployment that `identitybus up` runs.",
        completion: .list(serviceNames + ["gateway"]))
    var service: String?

    @OptionGroup var folder: DataFolder

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Seconds to wait for an answer. Default: 2.", valueName: "seconds"),
        transform: parsedCount)
    var timeout = 2

    @Flag(help: "Print one JSON line: the list of checks.")
    var json = false

    func validate() throws {
        if address != nil, service != nil { throw ValidationError("Give an address or --service, not both") }
        if let address, !HealthProbe.isAddress(address) {
            throw ValidationError("\(address) is not an address of a health server, such as http://127.0.0.1:8080")
        }
    }

    func run() throws {
        let address = try address ?? place()
        let answer: HealthProbe.Answer
        do throws(HealthProbe.Silence) {
            answer = try HealthProbe.ask(address, question.path, within: timeout)
        } catch {
            throw Problem(
                .away, "\(address) does not answer: \(error.words).",
                "Does it run? HTTP_HOST and HTTP_PORT say where it serves health; its log has the port.")
        }
        try recognize(answer, address)
        if json, let report = answer.report {
            say(json: report)
        } else {
            show(answer)
        }
        guard answer.status == 200 else { throw ExitCode(ExitStatus.refused.rawValue) }
    }

    /// What is well by another program's answer may be gone.
    private func recognize(_ answer: HealthProbe.Answer, _ address: String) throws {
        let found = answer.program ?? "no health server of IdentityBus"
        if answer.program != nil, service == nil || service == found { return }
        throw Problem(
            .away, "\(address) answers, but is \(found)\(service.map { ", and not \($0)" } ?? "").",
            "It asks health servers: HTTP_HOST and HTTP_PORT say where a program has one, and its log has the port.")
    }

    private func show(_ answer: HealthProbe.Answer) {
        if answer.status == 200 { return say(question.rawValue) }
        say("not \(question.rawValue)")
        let failing = HealthProbe.failing(answer)
        let rows = failing.map { check -> [String] in
            var words = check.detail
            if !check.because.isEmpty { words += " (because of \(check.because.joined(separator: ", ")))" }
            if let since = check.since { words += " (since \(since))" }
            return ["  \(check.name)", words]
        }
        for line in Terminal.table(rows) { say(line.harmless) }
    }

    /// Where the program is that is asked.
    private func place() throws -> String {
        guard let service else { return try ownPlace() }
        let path = folder.healthFile
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n")
        var places: [String: String] = [:]
        for line in lines {
            let parts = line.split(separator: " ").map(String.init)
            if parts.count == 2 { places[parts[0]] = parts[1] }
        }
        if let place = places[service] { return place }
        let known = serviceNames + ["gateway"]
        guard known.contains(service) else {
            throw Problem(
                .usage, "there is no service \(service).", "It is one of: \(known.joined(separator: ", ")).")
        }
        throw Problem(
            .away, "\(path) does not say where \(service) is.",
            "`identitybus up` writes it. Does one run in \(folder.path)? Otherwise give the address.")
    }

    private func ownPlace() throws -> String {
        let settings = EnvironmentSettings(ProcessInfo.processInfo.environment)
        let port = try settings.integer(.httpPort)
        guard port > 0 else {
            throw Problem(
                .setting, "nobody is named.", "Give --service or an address, or set HTTP_PORT as the program has it.")
        }
        let host = settings.text("HTTP_HOST") ?? "127.0.0.1"
        let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        return "http://\(reachable.contains(":") ? "[\(reachable)]" : reachable):\(port)"
    }
}
