// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Testing

@testable import Apps

/// The check of a file and its reading by a service say the same; the files of Tests/EndToEnd/apps show what it finds.
@Suite struct AppsCheckTests {
    private static let demo: String = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        return (try? String(contentsOf: root.appending(path: "config/apps.yaml"), encoding: .utf8)) ?? ""
    }()

    private static func check(_ text: String) -> AppsFile.Report {
        AppsFile.check(
            text, path: "/nowhere/apps.yaml", weakSecrets: .refuse, keys: .none, readsSecrets: true, now: .now)
    }

    private static func isAccepted(_ text: String, _ extent: AppsFile.Extent = .everything) -> Bool {
        let apps = try? AppsFile.parse(text, reading: extent, weakSecrets: .refuse) {
            try TextFile.read(AppsSource.secretPath($0, besides: "/nowhere/apps.yaml"))
        }
        return apps != nil
    }

    /// Each line of the demo file is left out, given another value, misspelt and moved.
    @Test func whatItRefusesServicesRefuse() {
        let lines = Self.demo.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        #expect(lines.count > 100)
        var refused = 0
        for (number, line) in lines.enumerated() where line.contains(":") && !line.hasPrefix("#") {
            let name = line.prefix { $0 != ":" }
            for changed in [nil, "\(name): x", "\(name)x\(line.dropFirst(name.count))"] {
                let text = (lines[..<number] + (changed.map { [$0] } ?? []) + lines[(number + 1)...])
                    .joined(separator: "\n")
                let report = Self.check(text)
                let isRefused = report.findings.contains { $0.level == .error }
                #expect(isRefused == !Self.isAccepted(text), "line \(number + 1): \(changed ?? "left out")")
                if changed?.hasSuffix(": x") == true {
                    #expect(isRefused == !Self.isAccepted(text, .gateway), "line \(number + 1), in the gateway")
                }
                #expect(isRefused == (report.apps == nil))
                if isRefused { refused += 1 }
            }
        }
        #expect(refused > 100)
    }

    /// What is found does not hide what is elsewhere, and elements that were taken out do not move the others.
    @Test func twoMistakesAreTwoFindings() {
        let text = """
            apps:
              - { id: one, colour: red }
              - { id: two, replies: demo }
              - { id: two }
              - { id: three, colour: blue }
            """
        let found = Self.check(text).findings.map { "\($0.line):\($0.column) \($0.message)" }
        let expected = [
            "2:16 apps[0]: unknown member colour;", "3:25 app two: replies must be identity.replies.",
            "4:11 lists app two twice", "5:18 apps[3]: unknown member colour;",
        ]
        #expect(found.count == expected.count && zip(found, expected).allSatisfy { $0.hasPrefix($1) }, "\(found)")
    }

    /// Also where all apps go, and something at the top is wrong.
    @Test func whatStandsBesideTheAppsIsFoundToo() {
        let text = """
            colour: red
            apps:
              - one
              - two
            size: 1
            """
        let found = Self.check(text).findings.map { "\($0.line):\($0.column) \($0.message.prefix(8))" }
        #expect(found == ["1:1 the file", "3:5 apps[0]:", "4:5 apps[1]:", "5:1 the file"], "\(found)")
    }

    /// Of several that share one thing, each but the first is told.
    @Test func whatIsWrongBetweenAppsIsFoundForEach() {
        let secret = String(repeating: "v", count: 32)
        let apps = (0..<5).map {
            "  - { id: a\($0), replies: identity.replies.x, verification: { keys: [{ id: v, secret: \(secret) }] } }"
        }
        let found = Self.check("apps:\n" + apps.joined(separator: "\n")).findings.map(\.message)
        #expect(found.count(where: { $0.contains("same reply topic") }) == 4, "\(found)")
        #expect(found.count(where: { $0.contains("each app needs secrets of its own") }) == 4, "\(found)")
    }

    /// A mistake costs a reading of its app, and not of all.
    @Test(arguments: ["colour: red", "replies: demo", "replies: identity.replies.x"])
    func manyMistakesTakeNotMuchLonger(mistake: String) {
        func seconds(_ more: (Int) -> String) -> Double {
            let apps = (0..<150).map { "  - { id: a\($0), \(more($0)) }" }.joined(separator: "\n")
            let began = ContinuousClock.now
            _ = Self.check("apps:\n\(apps)")
            return began.duration(to: .now) / .seconds(1)
        }
        let good = seconds { "replies: identity.replies.a\($0)" }
        let bad = seconds { _ in mistake }
        #expect(bad < 20 * good + 0.5, "\(bad) s; without mistakes \(good) s")
    }

    @Test(arguments: ["~", "null", "NULL", "'~'"]) func nothingIsNoName(id: String) {
        let report = Self.check("apps:\n  - { id: \(id), replies: identity.replies.a }")
        #expect(report.apps == nil && report.findings.map(\.line) == [2])
        #expect(report.findings.first?.message.contains("which is nothing in YAML") == true)
    }

    @Test(arguments: [
        ("colour: red", 500), ("colour: red", 201), ("colour: red", 200), ("replies: no", 201), ("replies: no", 200),
    ])
    func thereIsAnEndToIt(mistake: String, count: Int) {
        let apps = (0..<count).map { "  - { id: a\($0), \(mistake) }" }.joined(separator: "\n")
        let report = Self.check("apps:\n\(apps)")
        #expect(report.findings.count == 200 && report.hasMore == (count > 200))
    }
}
