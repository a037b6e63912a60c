// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Logging
import Testing

@testable import Messaging

/// docs/operations.md "Passwords, tokens and certificates that change".
@Suite struct SignInTests {
    /// A file of its own, which goes away again.
    private final class Secret {
        let path = FileManager.default.temporaryDirectory.appending(path: "secret-\(UUID().uuidString)").path

        init(_ text: String) throws { try write(text) }

        /// As what mounts secrets does: another file takes the name.
        func write(_ text: String) throws {
            let other = path + ".new"
            try Data(text.utf8).write(to: URL(filePath: other))
            guard rename(other, path) == 0 else { throw CocoaError(.fileWriteUnknown) }
        }

        deinit { unlink(path) }
    }

    private func configuration(_ settings: [String: String]) throws -> KafkaConfiguration {
        let plain = [
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "link",
        ]
        return try KafkaConfiguration(environment: plain.merging(settings) { $1 })
    }

    private func problem(_ settings: [String: String]) -> String? {
        do {
            _ = try configuration(settings)
            return nil
        } catch {
            return "\(error)"
        }
    }

    // MARK: Passwords

    @Test func aPasswordIsReadFromItsFile() throws {
        let secret = try Secret("hunter2\n")
        let read = try configuration(["KAFKA_SASL_PASSWORD_FILE": secret.path])
        #expect(read.common["sasl.password"] == "hunter2" && read.passwordFile == secret.path)
        #expect(!read.description.contains("hunter2"))
        #expect(try configuration(["KAFKA_SASL_PASSWORD": "x"]).passwordFile == nil)
        #expect(try configuration(["KAFKA_SASL_PASSWORD": "x", "KAFKA_SASL_PASSWORD_FILE": ""]).passwordFile == nil)
    }

    @Test func everySecretMayStandInAFile() throws {
        let secret = try Secret("one")
        let read = try configuration([
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_PASSWORD": "x",
            "KAFKA_SSL_KEY_PASSWORD_FILE": secret.path,
            "KAFKA_CONSUMER_SSL_KEYSTORE_PASSWORD_FILE": secret.path,
        ])
        #expect(read.common["ssl.key.password"] == "one" && read.consumer["ssl.keystore.password"] == "one")
    }

    @Test func aFileThatCannotBeReadStopsTheStart() throws {
        let words = problem(["KAFKA_SASL_PASSWORD_FILE": "/no/such/hunter2"]) ?? ""
        #expect(
            words.hasPrefix("KAFKA_SASL_PASSWORD_FILE: names a file that is not there, in /")
                && !words.contains("hunter2"))
        let secret = try Secret("x")
        #expect(
            problem(["KAFKA_SASL_PASSWORD": "y", "KAFKA_SASL_PASSWORD_FILE": secret.path])
                == "KAFKA_SASL_PASSWORD: is set together with KAFKA_SASL_PASSWORD_FILE; set one of them")
    }

    /// Of a client of a process that read "one" at its start.
    private func file(_ secret: Secret) -> PasswordFile {
        PasswordFile(path: secret.path, [ClientSetting(key: "sasl.password", value: "one", prefix: "KAFKA_")])
    }

    /// Clients are made as long as a process runs.
    @Test func aClientThatIsMadeLaterHasThePasswordOfThen() throws {
        let secret = try Secret("one")
        try secret.write("two\n")
        var later = file(secret)
        #expect(later.password == "two")
        #expect(later.look() == nil)
        unlink(secret.path)
        later = file(secret)
        #expect(later.password == "one")
        try secret.write("three")
        #expect(later.look() == .password("three") && later.password == "three")
    }

    @Test func theSamePasswordIsNoChange() throws {
        let secret = try Secret("one")
        var file = self.file(secret)
        let start = ContinuousClock.now
        try secret.write("one\n")
        #expect(file.look(now: start) == nil)
        try secret.write("two")
        #expect(file.look(now: start + .seconds(1)) == .password("two"))
    }

    @Test func aPasswordIsToldOnceAfterEachChange() throws {
        let secret = try Secret("one")
        var file = self.file(secret)
        let start = ContinuousClock.now
        #expect(file.look(now: start) == nil)
        try secret.write("two\n")
        // Less than a second after the last look.
        #expect(file.look(now: start + .milliseconds(900)) == nil)
        #expect(file.look(now: start + .seconds(1)) == .password("two"))
        #expect(file.look(now: start + .seconds(2)) == nil)
        unlink(secret.path)
        guard case .problem(let words) = file.look(now: start + .seconds(3)) else {
            Issue.record("a file that went away was not told")
            return
        }
        #expect(!words.contains("two"))
        #expect(file.look(now: start + .seconds(4)) == nil)
        try secret.write("three")
        #expect(file.look(now: start + .seconds(5)) == .password("three"))
    }

    /// Each client of a process looks at the file; one of them says what it found.
    @Test func aChangeIsSaidOnceByAProcess() throws {
        let secret = try Secret("one")
        var files = (0..<3).map { _ in file(secret) }
        let start = ContinuousClock.now
        for second in 1...2 {
            try secret.write("\(second)")
            let news = files.indices.map { place in
                let change = files[place].look(now: start + .seconds(second))
                #expect(change == .password("\(second)"))
                return change.map { files[place].isNews($0) }
            }
            #expect(news == [true, false, false])
        }
    }

    /// Also where whoever signed in with the one before is gone before it looked.
    @Test func aClientThatIsMadeAfterAChangeSaysIt() throws {
        let secret = try Secret("one")
        _ = file(secret)
        try secret.write("two")
        var (later, last) = (file(secret), file(secret))
        #expect(later.password == "two" && later.look() == .password("two") && later.isNews(.password("two")))
        #expect(last.look().map { last.isNews($0) } != true)
        var next = file(secret)
        #expect(next.look() == nil)
        try secret.write("two\n")
        next = file(secret)
        #expect(next.look() == nil)
    }

    // MARK: Tokens

    private static func jwt(_ claims: String) -> String {
        let parts = [#"{"alg":"none"}"#, claims, "signature"].map { part in
            Data(part.utf8).base64EncodedString().filter { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
        }
        return parts.map { String($0) }.joined(separator: ".")
    }

    private let now = Timestamp(milliseconds: 1_900_000_000_000)

    @Test(arguments: [
        (#"{"exp":1900000600,"sub":"link"}"#, 1_900_000_600_000, "link"),
        // Fractions are allowed, and so is a token for nobody.
        (#"{"exp":1900000600.5}"#, 1_900_000_600_500, "identitybus"),
        // One that does not say counts for five minutes.
        (#"{"sub":"???>>>"}"#, 1_900_000_300_000, "???>>>"),
    ]) func aTokenSaysWhenItEnds(claims: String, end: Int64, principal: String) throws {
        let text = Self.jwt(claims)
        let secret = try Secret(text + "\n")
        let token = try TokenFile(path: secret.path).read(now: now)
        #expect(token.text == text && token.end.milliseconds == end && token.principal == principal)
    }

    @Test func whatIsNoJWTCountsForFiveMinutes() throws {
        for text in ["opaque", "a.b", "a.%.c"] {
            let secret = try Secret(text)
            #expect(try TokenFile(path: secret.path).read(now: now).end.milliseconds == now.milliseconds + 300_000)
        }
    }

    @Test func aTokenThatHasEndedIsNone() throws {
        let secret = try Secret(Self.jwt(#"{"exp":1900000000}"#))
        let problem = try #require(throws: TokenFile.Problem.self) { try TokenFile(path: secret.path).read(now: now) }
        #expect(problem.description.hasPrefix("the token in \(secret.path) has ended at 2030-03-17T17:46:40"))
        let before = Timestamp(milliseconds: now.milliseconds - 1)
        #expect(try TokenFile(path: secret.path).read(now: before).end == now)
        let empty = try Secret("\n")
        #expect(throws: TokenFile.Problem.self) { try TokenFile(path: empty.path).read(now: now) }
    }

    @Test func aTokenFileNeedsItsMechanism() throws {
        let words = problem(["KAFKA_SASL_PASSWORD": "x", "KAFKA_OAUTHBEARER_TOKEN_FILE": "/run/token"])
        #expect(words == "KAFKA_OAUTHBEARER_TOKEN_FILE: is set, and KAFKA_SASL_MECHANISM is not OAUTHBEARER")
        // What it holds may come later.
        let empty = try Secret("")
        let bearer = ["KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_USERNAME": ""]
        let read = try configuration(bearer.merging(["KAFKA_OAUTHBEARER_TOKEN_FILE": empty.path]) { $1 })
        #expect(read.tokenFile == empty.path)
        let missing = problem(bearer.merging(["KAFKA_OAUTHBEARER_TOKEN_FILE": "/tmp/no/such"]) { $1 })
        #expect(
            missing?.hasPrefix("KAFKA_OAUTHBEARER_TOKEN_FILE: names a file that is not there, in /tmp: no such file")
                == true)
        let folder = problem(bearer.merging(["KAFKA_OAUTHBEARER_TOKEN_FILE": "/tmp"]) { $1 })
        #expect(folder?.hasPrefix("KAFKA_OAUTHBEARER_TOKEN_FILE: /tmp cannot be read: is a directory") == true)
    }

    /// A client without a token connects to nobody: nothing but the file says why.
    @Test func aMissingTokenIsTheCause() async throws {
        let secret = try Secret("")
        let kafka = try configuration([
            "KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_OAUTHBEARER_TOKEN_FILE": secret.path,
        ])
        let callbacks = ClientCallbacks(logger: .init(label: "test"))
        let client = try ClientHandle(role: .producer, configuration: kafka, callbacks: callbacks)
        defer { client.destroy(timeout: .seconds(1)) }
        for _ in 0..<100 where client.trouble.failure.cause != .noToken { try await Task.sleep(for: .milliseconds(50)) }
        let failure = client.trouble.failure
        #expect(failure.cause == .noToken)
        #expect(failure.words == "there is no token to sign in with: \(secret.path) is empty")
    }
}
