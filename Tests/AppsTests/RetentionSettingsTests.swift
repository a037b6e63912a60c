// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Apps

/// The sections `retention` and `dsr` (docs/sync.md "Retention").
@Suite struct RetentionSettingsTests {
    private struct NoFile: Error {}

    private func parse(_ retention: String, _ more: String = "") throws -> AppDirectory {
        try AppsFile.parse("apps: [{ id: demo, retention: { \(retention) }\(more) }]") { _ in throw NoFile() }
    }

    /// S200: off unless it is named.
    @Test func daysAreOffUnlessTheyAreNamed() throws {
        #expect(try parse("")["demo"]?.retention == RetentionSettings())
        let all = try parse("anonymousDays: 100, orphanDays: 1, deviceDays: 400, sessionDays: 30, unlinkedDays: 3650")
        let day: Int64 = 86_400_000
        #expect(
            all["demo"]?.retention
                == RetentionSettings(
                    anonymous: 100 * day, orphan: day, device: 400 * day, session: 30 * day, unlinked: 3650 * day))
    }

    /// S200, U200.
    @Test(arguments: [
        ("anonymousDays: 0", "", "retention, anonymousDays: is not between 1 and 3650"),
        ("deviceDays: 3651", "", "retention, deviceDays: is not between 1 and 3650"),
        ("days: 7", "", "days"),
        ("unlinkedDays: 406", "", "a user may come back by a token for 407 days"),
        ("unlinkedDays: 8", ", sdk: { tokenGraceSeconds: 172800 }", "a user may come back by a token for 9 days"),
    ])
    func whatCannotWorkIsRefused(_ retention: String, _ more: String, _ expected: String) throws {
        let problem = #expect(throws: AppsFile.Problem.self) { try parse(retention, more) }
        #expect(problem?.description.contains(expected) == true, "\(problem?.description ?? "")")
    }

    /// U200.
    @Test func daysBehindTheLastTokenAreTaken() throws {
        #expect(try parse("unlinkedDays: 407")["demo"]?.retention.unlinked != nil)
        #expect(try parse("unlinkedDays: 7", ", sdk: { tokenGraceSeconds: 0 }")["demo"]?.retention.unlinked != nil)
    }

    /// S201.
    @Test(arguments: [("anonymousDays: 13", true), ("anonymousDays: 14", false), ("orphanDays: 1", true), ("", false)])
    func theInboxOutlivesIt(_ retention: String, _ isRefused: Bool) throws {
        let problem = try parse(retention).refusal(ofRetentionBelow: .seconds(336 * 3600))
        #expect((problem != nil) == isRefused)
        if isRefused { #expect(problem?.description.contains("JOURNAL_RETENTION_HOURS, 336") == true) }
    }

    /// S201.
    @Test(arguments: [("anonymousDays: 89", 1), ("anonymousDays: 90", 0)])
    func whatAnSDKMayStillAliasIsWarnedOf(_ retention: String, _ count: Int) throws {
        let report = AppsFile.check(
            "apps: [{ id: demo, retention: { \(retention) } }]", path: "apps.yaml", weakSecrets: .refuse, keys: .none,
            readsSecrets: false, now: .now)
        #expect(report.findings.count { $0.message.contains("aliasWindowDays") } == count, "\(report.findings)")
    }

    /// S212.
    @Test(arguments: [("", 72), (", dsr: { delayHours: 0 }", 0), (", dsr: { delayHours: 720 }", 720)])
    func requestsWaitSoLong(_ more: String, _ hours: Int64) throws {
        #expect(try parse("", more)["demo"]?.requests.delay == hours * 3_600_000)
    }

    @Test func nobodyWaitsLongerThanTheLawAllows() {
        #expect(throws: AppsFile.Problem.self) { try parse("", ", dsr: { delayHours: 721 }") }
    }
}
