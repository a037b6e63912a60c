// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Logging
import MessagingTestKit
import Testing

@testable import Apps

/// The apps file on disk, and its changes.
@Suite struct AppsSourceTests {
    private let folder: URL
    private let log = LogRecorder()
    private var lines: [String] { log.lines.map { "\($0.text) \($0.metadata)" } }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "identitybus-apps-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private var path: String { folder.appending(path: "apps.yaml").path }

    private func write(_ text: String, to name: String = "apps.yaml") throws {
        try Data(text.utf8).write(to: folder.appending(path: name), options: .atomic)
    }

    private func source(_ keys: DeploymentKeys = .none) throws -> AppsSource {
        try AppsSource(path: path, keys: keys, logger: log.logger)
    }

    private func file(secret: String = "secret-one") -> String {
        "apps: [{id: demo, keys: [{id: k, secret: \(secret), scopes: [sdk]}]}]"
    }

    /// Once when it is asked for, and after that only what is new.
    @Test func weakSecretsAreTold() throws {
        try write(file())
        let source = try source()
        #expect(lines.isEmpty)
        source.logWarnings()
        #expect(lines.count == 1)
        #expect(lines[0].contains("app demo, key k") && !lines[0].contains("secret-one"))
        try write(
            "apps: [{id: demo, keys: [{id: k, secret: secret-two, scopes: []}, {id: l, secret: secret-3, scopes: []}]}]"
        )
        #expect(source.reload())
        #expect(lines.count == 3)
        #expect(lines[2].contains("app demo, key l"))
        let strict = try AppsSource(path: path, logger: Logger(label: "test"))
        #expect(!strict.apps.warnings.isEmpty)
        #expect(throws: AppsFile.Problem.self) {
            try AppsSource(path: path, weakSecrets: .refuse, logger: Logger(label: "test"))
        }
    }

    @Test func aChangeIsTakenUp() throws {
        try write(file())
        let source = try source()
        #expect(!source.reload())
        try write("apps: [{id: demo}, {id: new}]")
        #expect(source.reload())
        #expect(source.apps.ids == ["demo", "new"])
        #expect(!source.reload())
        #expect(lines.count == 1)
    }

    /// What is valid in itself may still not fit to what is stored.
    @Test func aVersionThatMayNotComeIntoForceIsRefusedUntilItMay() throws {
        struct Away: Error {}
        try write(file())
        let source = try source()
        var asked: [[AppID]] = []
        func reload(_ problem: String?) -> Bool {
            source.reload { apps in
                asked.append(apps.ids)
                return problem.map { AppsFile.Problem($0) }
            }
        }
        #expect(!reload("no") && asked.isEmpty, "nothing has changed")
        try write("apps: [{id: demo}, {id: new}]")
        for _ in 0..<3 { #expect(!reload("app new: no")) }
        #expect(source.apps.ids == ["demo"])
        #expect(source.problem?.contains("apps.yaml: app new: no") == true)
        #expect(throws: Away.self) { try source.reload { _ throws(Away) in throw Away() } }
        #expect(source.apps.ids == ["demo"])
        #expect(reload(nil) && source.apps.ids == ["demo", "new"])
        #expect(asked == Array(repeating: ["demo", "new"], count: 4))
    }

    @Test func anInvalidVersionIsRefusedOnceAndTheOldOneStays() throws {
        try write(file())
        let source = try source()
        try write("apps: [{id: demo, keys: [{id: k, secret: hunter2, scopes: [sdk]}]}]")
        for _ in 0..<3 { #expect(!source.reload()) }
        #expect(source.apps["demo"]?.keys["k"] != nil)
        #expect(source.problem?.contains("app demo, key k") == true)
        #expect(source.problem?.contains("hunter2") == false)
        for (text, words) in [("apps: []", "has no apps"), ("", "is empty"), ("# later\n", "is empty")] {
            try write(text)
            #expect(!source.reload())
            #expect(source.problem?.contains(words) == true)
        }
        // Back to what is in force is no news.
        try write(file())
        #expect(!source.reload() && source.problem == nil)
        try write("apps: [{id: later}]")
        #expect(source.reload())
        #expect(source.apps.ids == ["later"])
    }

    /// An app that knew an internal key could send as a service.
    @Test func theInternalKeyIsNobodysSecret() throws {
        let keys = DeploymentKeys(
            internalKeys: ["internal-one", "internal-two"].map { SymmetricKey(data: Array($0.utf8)) })
        try write(file(secret: "internal-two"))
        let problem = try #require(throws: AppsFile.Problem.self) { try source(keys) }
        #expect(problem.description.contains("key k has the internal key"))
        try write(file())
        let current = try source(keys)
        try write(file(secret: "internal-one"))
        #expect(!current.reload())
        #expect(current.problem?.contains("internal-one") == false)
    }

    /// It has only what is derived from it.
    @Test func theGatewayKnowsTheInternalKeyWhenItSeesIt() throws {
        let all = DeploymentKeys(
            internalKeys: ["internal-one", "internal-two"].map { SymmetricKey(data: Array($0.utf8)) })
        let purposes = DeploymentKeys.gatewayPurposes
        let keys = try #require(DeploymentKeys(text: all.text(for: purposes), purposes: purposes))
        for secret in ["internal-one", "internal-two"] {
            try write(file(secret: secret))
            #expect(throws: AppsFile.Problem.self) {
                try AppsSource(path: path, reading: .gateway, keys: keys, logger: Logger(label: "test"))
            }
        }
        try write(file())
        #expect(
            try AppsSource(path: path, reading: .gateway, keys: keys, logger: Logger(label: "test")).apps.count == 1)
    }

    /// Of what is no secret, too, and at each start.
    @Test func whatShouldNotStaySoIsTold() throws {
        let good = "0123456789abcdef0123456789abcdef"
        try write("apps: [{id: shop, keys: [{id: both, secret: \(good), scopes: [sdk, support]}]}]")
        let source = try source()
        source.logWarnings()
        #expect(lines.count == 1)
        #expect(lines[0].contains("app shop, key both: has the scope sdk") && lines[0].contains("support"))
        #expect(source.apps.remarks.count == 1 && source.apps.warnings.isEmpty)
        let gateway = try AppsSource(path: path, reading: .gateway, logger: Logger(label: "test"))
        #expect(gateway.apps.remarks == source.apps.remarks)
        // Of a demo one line is enough.
        try write("apps: [{id: shop, keys: [{id: shop-a, secret: demo-secret-shop-a, scopes: [sdk, support]}]}]")
        #expect(source.reload() && source.apps.remarks.isEmpty && source.apps.warnings.count == 1)
    }

    @Test func aFileThatGoesAwayChangesNothing() throws {
        try write(file())
        let source = try source()
        try FileManager.default.removeItem(atPath: path)
        #expect(!source.reload())
        #expect(source.apps["demo"] != nil)
        try write("apps: [{id: back}]")
        #expect(source.reload())
    }

    @Test func aRotatedSecretFileIsTakenUp() throws {
        try write("apps: [{id: demo, keys: [{id: k, secretFile: k.txt, scopes: [sdk]}]}]")
        try write("secret-one\n", to: "k.txt")
        let source = try source()
        let before = try #require(source.apps["demo"]?.keys["k"]?.secret)
        #expect(!source.reload())
        try write("secret-two\n", to: "k.txt")
        #expect(source.reload())
        #expect(source.apps["demo"]?.keys["k"]?.secret != before)
        // A secret file that goes away keeps the key in force.
        try FileManager.default.removeItem(at: folder.appending(path: "k.txt"))
        #expect(!source.reload())
        #expect(source.apps["demo"]?.keys["k"] != nil)
    }

    @Test func secretFilesMayHaveAbsolutePaths() throws {
        try write("secret-one", to: "k.txt")
        let secretPath = folder.appending(path: "k.txt").path
        try write("apps: [{id: demo, keys: [{id: k, secretFile: \(secretPath), scopes: [sdk]}]}]")
        #expect(try source().apps["demo"]?.keys["k"]?.secret.bitCount == 80)
    }

    @Test func theFirstVersionMustBeGood() throws {
        let missing = try #require(throws: AppsFile.Problem.self) { try source() }
        #expect(missing.description.contains(path))
        try write("apps: []")
        let empty = try #require(throws: AppsFile.Problem.self) { try source() }
        #expect(empty.description.contains(path))
        try Data([0xFF]).write(to: URL(filePath: path))
        let bytes = try #require(throws: AppsFile.Problem.self) { try source() }
        #expect(bytes.description.contains("UTF-8"))
    }
}
