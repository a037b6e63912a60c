// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Apps

@Suite struct SyncSettingsTests {
    private struct NoFile: Error {}

    private func read(_ section: String) throws -> SyncSettings {
        let apps = try AppsFile.parse("apps: [{id: demo, sync: \(section)}]") { _ in throw NoFile() }
        return try #require(apps["demo"]?.sync)
    }

    @Test func defaults() throws {
        #expect(try read("{}") == SyncSettings())
        let apps = try AppsFile.parse("apps: [{id: demo}]") { _ in throw NoFile() }
        #expect(apps["demo"]?.sync == SyncSettings())
        let settings = SyncSettings()
        #expect(settings.strategy == .default && settings.foldedIdentities == [] && !settings.fromLinks)
        #expect(settings.loginIdentities == [.customerID] && settings.uniqueIdentities == [.customerID])
        #expect(settings.priority.first == .customerID && settings.priority.last == .deviceApplicationStamp)
        for strategy in SyncStrategy.all {
            let settings = try read("{strategy: \(strategy.name)}")
            #expect(settings.strategy == strategy)
            #expect(settings == SyncSettings.defaults(of: strategy))
        }
        #expect(try read("{strategy: userIdThenEmail}").foldedIdentities == [.email])
        #expect(try read("{strategy: bestMatch}").loginIdentities == [])
    }

    @Test func readsEverything() throws {
        let settings = try read(
            """
            {strategy: link, priority: [customerid, email, ios_idfv], loginIdentities: [customerid], \
            uniqueIdentities: [customerid, email], immutableIdentities: [customerid], \
            caseInsensitiveIdentities: [email], searchByAnyIdentity: true, fromLinks: true, joinByLowerRank: true, \
            limits: {valuesPerType: 1, profilesPerValue: 2, usersPerDevice: 3, aliasesPerProfile: 4, \
            aliasWindowDays: 5}, throttle: {devicePerSecond: 0, deviceBurst: 6, loginPerSecond: 7, loginBurst: 8}}
            """)
        #expect(settings.priority == [.customerID, .email, .iosIDFV])
        #expect(settings.loginIdentities == [.customerID] && settings.uniqueIdentities == [.customerID, .email])
        #expect(settings.immutableIdentities == [.customerID] && settings.foldedIdentities == [.email])
        #expect(settings.searchByAnyIdentity && settings.fromLinks && settings.joinByLowerRank)
        #expect(settings.limits.valuesPerType == 1 && settings.limits.profilesPerValue == 2)
        #expect(settings.limits.usersPerDevice == 3 && settings.limits.aliasesPerProfile == 4)
        #expect(settings.limits.aliasWindowDays == 5 && settings.throttle.devicePerSecond == 0)
        #expect(settings.throttle.deviceBurst == 6 && settings.throttle.loginPerSecond == 7)
        #expect(settings.throttle.loginBurst == 8)
    }

    @Test(arguments: [
        ("{strategy: best}", ["unknown strategy best", "bestMatch"]), ("{stratgy: link}", ["stratgy"]),
        ("{strategy: default, priority: [email]}", ["fixed", "priority"]),
        ("{strategy: link, priority: []}", ["priority is empty"]),
        ("{strategy: link, priority: [email, email]}", ["email twice"]),
        ("{strategy: link, priority: [e-mail]}", ["e-mail is not an identity type"]),
        ("{strategy: link, priority: [email]}", ["login identity customerid", "priority"]),
        ("{strategy: link, immutableIdentities: [ios_idfv]}", ["immutable identity ios_idfv"]),
        ("{strategy: link, immutableIdentities: [email]}", ["first in priority"]),
        ("{strategy: bestMatch, loginIdentities: [email]}", ["bestMatch has no login identities"]),
        ("{strategy: userIdThenEmail, uniqueIdentities: [customerid, email]}", ["email not unique"]),
        ("{strategy: userIdThenEmail, joinByLowerRank: true}", ["joinByLowerRank"]),
        ("{strategy: bestMatch, fromLinks: true}", ["fromLinks", "customerid"]),
        ("{strategy: link, loginIdentities: [email], fromLinks: true}", ["fromLinks", "customerid"]),
        ("{strategy: link, uniqueIdentities: [email], fromLinks: true}", ["fromLinks", "uniqueIdentities"]),
        ("{strategy: link, caseInsensitiveIdentities: [customerid]}", ["case-sensitive"]),
        ("{limits: {values: 1}}", ["limits", "values", "valuesPerType"]),
        ("{limits: {valuesPerType: 0}}", ["valuesPerType", "1 to 100000"]),
        ("{throttle: {deviceBurst: -1}}", ["deviceBurst", "0 to 1000000"]), ("{limits: many}", ["sync.limits"]),
        // S79, S80, S117.
    ]) func everyMistakeIsOneClearLine(_ section: String, _ names: [String]) throws {
        let problem = try #require(throws: AppsFile.Problem.self) { try read(section) }
        for name in names + ["sync"] { #expect(problem.description.contains(name), "\(problem)") }
        #expect(!problem.description.contains("\n"))
    }

    /// S77, S78.
    @Test(arguments: VerificationSettings.Mode.allCases, VerificationSettings.SignedFields.allCases)
    func whoeverIsVerifiedIsFound(
        _ mode: VerificationSettings.Mode, _ fields: VerificationSettings.SignedFields
    ) throws {
        for strategy in SyncStrategy.all {
            let text =
                "apps: [{id: demo, sync: {strategy: \(strategy.name)}, verification: {mode: '\(mode.rawValue)', "
                + "signedFields: \(fields.rawValue), keys: [{id: k, secret: 0123456789012345678901234567890123}]}}]"
            let isFound =
                fields == .email
                ? [.conversion, .link, .isolation, .userIDThenEmail].contains(strategy) : strategy != .bestMatch
            do {
                _ = try AppsFile.parse(text) { _ in throw NoFile() }
                #expect(isFound || mode == .off, "\(strategy.name)")
            } catch {
                #expect(!isFound && mode != .off, "\(strategy.name): \(error)")
                #expect(error.description.hasPrefix("app demo, sync: "))
            }
        }
    }

    /// S105, S106, S107.
    @Test(arguments: [
        ("loginIdentities: [customerid, device_application_stamp]", "device_application_stamp", "needs no vouching"),
        ("loginIdentities: [customerid, push_token], priority: [customerid, push_token]", "push_token", "device's"),
        ("priority: [email, customerid], immutableIdentities: [email]", "customerid", "immutableIdentities"),
        ("priority: [customerid, ios_idfv, email]", "email", "priority has ios_idfv before"),
    ]) func whoeverIsVerifiedIsFoundByWhatIsSigned(_ sync: String, _ type: String, _ reason: String) throws {
        for mode in VerificationSettings.Mode.allCases {
            let text =
                "apps: [{id: demo, sync: {strategy: link, \(sync)}, verification: {mode: '\(mode.rawValue)', "
                + "signedFields: userId, keys: [{id: k, secret: 0123456789012345678901234567890123}]}}]"
            guard mode != .off else {
                _ = try AppsFile.parse(text) { _ in throw NoFile() }
                continue
            }
            let problem = try #require(throws: AppsFile.Problem.self) {
                try AppsFile.parse(text) { _ in throw NoFile() }
            }
            for part in ["app demo, sync: ", "mode \(mode.rawValue)", type, reason] {
                #expect(problem.description.contains(part), "\(problem)")
            }
            #expect(!problem.description.contains("\n"))
        }
    }
}
