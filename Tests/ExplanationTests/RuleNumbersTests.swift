// SPDX-License-Identifier: Apache-2.0

import Contracts
import Explanation
import Foundation
import Testing
import WireJSON

/// The numbers that the console shows are those of the pages.
@Suite struct RuleNumbersTests {
    /// The line of a page that defines the rule: of a list, or of a table.
    private func line(_ rule: String, of page: String) throws -> String {
        let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/\(page).md")
        let lines = try String(contentsOf: path, encoding: .utf8).split(separator: "\n")
        return String(
            try #require(
                lines.first {
                    $0.hasPrefix("- **\(rule)**") || $0.hasPrefix("| \(rule) |") || $0.hasPrefix("| **\(rule)** |")
                },
                "\(page).md has no \(rule)"))
    }

    @Test func eachRuleSaysWhatItIsNamedFor() throws {
        for (service, numbers) in RuleNumbers.ofRefusals {
            for (reason, rule) in numbers {
                #expect(
                    try line(rule, of: service).contains(reason.rawValue), "\(rule) does not say \(reason.rawValue)")
            }
        }
        for (rule, number) in RuleNumbers.ofSync {
            #expect(
                try line(number, of: "sync").contains("`\(rule.rawValue)`"), "\(number) does not say \(rule.rawValue)")
        }
    }

    private func fact(_ outcome: String, reason: String? = nil, result: JSONValue? = nil, service: String = "sync")
        -> Fact
    {
        Fact(
            service: service, decidedAt: .now, topic: "t", partition: 0, offset: 0, type: "identity.sync.login.v1",
            source: "s", commandId: "c", outcome: outcome, reason: reason, result: result)
    }

    @Test func aDecisionHasTheNumberOfWhatItNames() {
        #expect(
            RuleNumbers.number(of: fact("rejected", reason: "INSTALL_LINKED_TO_OTHER_USER", service: "link")) == "L8")
        #expect(
            RuleNumbers.number(of: fact("rejected", reason: "INSTALL_LINKED_TO_OTHER_USER", service: "user")) == nil)
        #expect(RuleNumbers.number(of: fact("rejected", reason: "OF_A_LATER_VERSION")) == nil)
        #expect(RuleNumbers.number(of: fact("succeeded", result: ["rule": "kept"])) == "S89")
        #expect(RuleNumbers.number(of: fact("succeeded", result: ["rule": "matched"])) == nil)
        #expect(RuleNumbers.number(of: fact("succeeded")) == nil)
    }
}
