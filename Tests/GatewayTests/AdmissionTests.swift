// SPDX-License-Identifier: Apache-2.0

import Apps
import Contracts
import Crypto
import HTTPTypes
import Runtime
import Synchronization
import Testing

@testable import Gateway

/// What is decided before a body is read.
@Suite struct AdmissionTests {
    private struct NoBus: CommandBus {
        var apps: AppDirectory
        var load: Double { 0 }
        func ask(_ command: OutgoingCommand, acceptsPending: Bool) async throws -> Answer { .unavailable }
    }

    /// A clock that stands still until it is moved.
    private final class Clock: Sendable {
        private let instant = Mutex(ContinuousClock.now)
        var now: ContinuousClock.Instant { instant.withLock { $0 } }
        func move(_ duration: Duration) { instant.withLock { $0 += duration } }
    }

    private let clock = Clock()
    private let secrets = DerivedSecrets(
        DeploymentKeys(internalKeys: [SymmetricKey(data: Array("an-internal-key-of-a-test".utf8))]))
    private let limited = GatewaySettings.Limits(
        key: .init(perSecond: 1, burst: 3), address: .init(perSecond: 1, burst: 2))

    private func api(wrongCredentials: Int = 5) -> API {
        let clock = clock
        return API(
            bus: NoBus(
                apps: AppDirectory([
                    testApp(
                        "web", keyOnly: [.login], origins: ["https://shop.example"],
                        [
                            testKey("web-key", scopes: [.identitySync, .sdk]), testKey("scopeless-key", scopes: []),
                            testKey("vouching-key", scopes: [.identitySync, .identityVouch]),
                            testKey("old-key", expires: Timestamp(milliseconds: 0)),
                            testKey("revoked-key", isRevoked: true),
                        ]),
                    testApp("limited", keyOnly: [.login], limits: limited, [testKey("limited-key")]),
                    testApp("backend", [testKey("backend-key", scopes: [.userLink])]),
                ])), secrets: secrets,
            limits: RequestLimits(wrongCredentialsPerMinute: wrongCredentials, now: { clock.now }),
            replyTimeout: .seconds(1), now: { Timestamp(milliseconds: 1_800_000_000_000) })
    }

    private func request(_ headers: [String: String], from address: String? = nil) -> APIRequest {
        var request = testRequest("/v1/login", headers)
        request.client = Client(address: address.flatMap { IPAddress($0) }, isLimited: address != nil)
        return request
    }

    /// - Parameter line: such as `POST /v1/login`.
    private func answer(_ api: API, _ line: String, _ request: APIRequest) -> APIFailure? {
        guard let call = testCall(line, request) else { return .invalid("\(line) is no call") }
        var note = AccessNote()
        do throws(APIFailure) {
            _ = try api.admit(call, &note)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Origins

    @Test func aPageOfAnotherOriginIsRefused() {
        let api = api()
        for (origin, isLetIn) in [
            ("https://shop.example", true), ("https://evil.example", false), ("null", false), (nil, true),
        ] {
            var headers = ["x-mp-key": "web-key"]
            headers["Origin"] = origin
            #expect(
                answer(api, "POST /v1/login", request(headers)) == (isLetIn ? nil : .originNotAllowed),
                "\(origin ?? "")")
        }
        let token = UserToken(
            app: "web", userID: "u", installID: "i", creation: "c1",
            issued: Timestamp(milliseconds: 1_800_000_000_000), lifetime: 60_000
        ).signed(with: UserToken.key(of: testApp("web", []), secrets: secrets))
        let shown = ["Authorization": "Bearer \(token)", "Origin": "https://evil.example"]
        #expect(answer(api, "GET /sdk/v1/installs/i", request(shown)) == .originNotAllowed)
    }

    // MARK: Who may

    @Test func anAPIKeyOpensNoInstall() {
        let secret = ["Authorization": "Bearer web-key.example-api-secret"]
        let install = "/sdk/v1/installs/i"
        for call in ["GET \(install)"] + ["link", "confirm-link", "reset"].map({ "POST \(install)/\($0)" }) {
            #expect(answer(api(), call, request(secret))?.code == "USER_TOKEN_REQUIRED")
            let other = ["Authorization": "Bearer backend-key.example-api-secret"]
            #expect(answer(api(), call, request(other))?.code == "INSUFFICIENT_SCOPE")
        }
        #expect(answer(api(), "POST /sdk/v1/users", request(secret)) == nil)
    }

    /// One answer, whether or not there is such a key and whatever it may.
    @Test func aWrongSignatureIsToldNothingAboutTheKey() throws {
        let api = api()
        for key in ["web-key", "backend-key", "nobody"] {
            // Also not by when it is answered: everybody's body is read.
            let wrong = request([
                "x-mp-key": key, "Date": "x", "x-mp-signature": String(repeating: "0", count: 64),
                "Origin": "https://evil.example",
            ])
            let call = try #require(testCall("POST /v1/login", wrong))
            var note = AccessNote()
            let failure = #expect(throws: APIFailure.self) {
                let credential = try api.admit(call, &note)
                _ = try api.confirm(credential, call, &note)
            }
            #expect(failure?.status == 401 && failure?.message == "The credential does not check out.")
        }
    }

    /// Nor is a key that is shown alone: 403 would say that it is there.
    @Test func aKeyAloneIsToldNothingAboutItself() throws {
        let api = API(
            bus: NoBus(
                apps: AppDirectory([
                    testApp("web", keyOnly: [.login], origins: [], [testKey("sdk-key", scopes: [.sdk])])
                ])), secrets: nil, limits: RequestLimits(), replyTimeout: .seconds(1), now: { .now })
        for key in ["sdk-key", "nobody"] {
            let call = try #require(testCall("POST /v1/login", request(["x-mp-key": key])))
            var note = AccessNote()
            let failure = #expect(throws: APIFailure.self) { try api.admit(call, &note) }
            #expect(failure?.status == 401 && failure?.message == "The credential does not check out.")
            #expect(note.app == nil && note.settings == nil, "nor do headers tell")
        }
    }

    /// A signature proves that somebody holds the key, and not that the key may do this, or do it from there.
    @Test func whoSignsNeedsTheScopeAndTheOriginToo() throws {
        let api = api()
        func answer(_ key: String, _ origin: String? = nil) throws -> APIFailure? {
            let code = HMAC<SHA256>.authenticationCode(
                for: Array("POST\nx\n/v1/login{}".utf8),
                using: SymmetricKey(data: Array("example-api-secret".utf8)))
            var headers = ["x-mp-key": key, "Date": "x", "x-mp-signature": code.hex]
            headers["Origin"] = origin
            var signed = request(headers)
            signed.body = Array("{}".utf8)
            let call = try #require(testCall("POST /v1/login", signed))
            var note = AccessNote()
            do throws(APIFailure) {
                _ = try api.confirm(try api.admit(call, &note), call, &note)
                return nil
            } catch {
                return error
            }
        }
        #expect(try answer("web-key") == nil)
        #expect(try answer("web-key", "https://evil.example") == .originNotAllowed)
        #expect(try answer("backend-key")?.code == "INSUFFICIENT_SCOPE")
    }

    // MARK: Limits

    private let secretOfLimited = ["Authorization": "Basic bGltaXRlZC1rZXk6ZXhhbXBsZS1hcGktc2VjcmV0"]

    @Test func aKeyHasItsShareAndSoHasWhoShowsItAlone() {
        let api = api()
        for _ in 0..<3 { #expect(answer(api, "POST /v1/login", request(["x-mp-key": "limited-key"])) == nil) }
        let refused = answer(api, "POST /v1/login", request(["x-mp-key": "limited-key"]))
        #expect(refused?.status == 429 && refused?.limit == .key && refused?.retryAfter == 1)
        // Whoever reads the page has not used up what is for those who hold the secret.
        for _ in 0..<3 { #expect(answer(api, "POST /v1/login", request(secretOfLimited)) == nil) }
        #expect(answer(api, "POST /v1/login", request(secretOfLimited))?.limit == .key)
        clock.move(.seconds(1))
        #expect(answer(api, "POST /v1/login", request(secretOfLimited)) == nil)
    }

    /// Nobody empties a key's bucket with signatures that are wrong.
    @Test func aWrongSignatureTakesNothingFromTheKey() throws {
        let api = api(wrongCredentials: 0)
        var wrong = request([
            "x-mp-key": "limited-key", "Date": "x", "x-mp-signature": String(repeating: "0", count: 64),
        ])
        wrong.body = Array("{}".utf8)
        let call = try #require(testCall("POST /v1/login", wrong))
        for _ in 0..<20 {
            var note = AccessNote()
            let credential = try api.admit(call, &note)
            #expect(note.keyID == nil && note.settings == nil, "nobody has proved to be this key")
            #expect(throws: APIFailure.self) { try api.confirm(credential, call, &note) }
        }
        for _ in 0..<3 { #expect(answer(api, "POST /v1/login", request(secretOfLimited)) == nil) }
        #expect(answer(api, "POST /v1/login", wrong) == nil, "nor is it told that the key's is empty")
    }

    @Test func anAddressHasItsShareOfWhatAnybodyCanSend() {
        let api = api()
        func send(_ address: String?) -> APIFailure? {
            answer(api, "POST /v1/login", request(["x-mp-key": "limited-key"], from: address))
        }
        #expect(send("192.0.2.1") == nil && send("192.0.2.1") == nil)
        #expect(send("192.0.2.1")?.limit == .address)
        #expect(
            answer(api, "POST /v1/login", request(secretOfLimited, from: "192.0.2.1")) == nil,
            "a backend has no such share")
        clock.move(.seconds(2))
        #expect(send("2001:db8::1") == nil && send("2001:db8::2") == nil)
        #expect(send("2001:db8::3")?.limit == .address, "one network of IPv6 is one client")
    }

    @Test func afterTooManyWrongSecretsARightOneIsNotLookedAt() {
        let api = api()
        func send(_ secret: String, from address: String?) -> APIFailure? {
            answer(
                api, "POST /users/auth-code", request(["Authorization": "Bearer backend-key.\(secret)"], from: address))
        }
        for _ in 0..<5 { #expect(send("wrong", from: "192.0.2.1")?.status == 401) }
        let refused = send("example-api-secret", from: "192.0.2.1")
        #expect(refused?.status == 429 && refused?.limit == .credentials)
        #expect(send("example-api-secret", from: "192.0.2.2") == nil)
        // A key alone cannot be guessed, and page after page may come from one address.
        #expect(answer(api, "POST /v1/login", request(["x-mp-key": "web-key"], from: "192.0.2.1")) == nil)
        clock.move(.seconds(12))
        #expect(send("example-api-secret", from: "192.0.2.1") == nil)
        // Where addresses are not told apart, nobody is locked out.
        for _ in 0..<20 { #expect(send("wrong", from: nil)?.status == 401) }
    }

    /// Whether there is a key that is named alone is not told by what comes later, whatever stands beside it.
    @Test(
        arguments: ["nobody", "backend-key", "scopeless-key", "vouching-key", "old-key", "revoked-key"],
        [nil, "Bearer a", "Basic", ""])
    func aKeyThatIsNamedAloneIsNoGuess(_ key: String, _ beside: String?) {
        let api = api()
        for line in ["POST /v1/search", "POST /v1/login"] {
            for _ in 0..<20 {
                var headers = ["x-mp-key": key]
                headers["Authorization"] = beside
                #expect(answer(api, line, request(headers, from: "192.0.2.9"))?.status == 401)
            }
        }
        let right = request(["Authorization": "Bearer backend-key.example-api-secret"], from: "192.0.2.9")
        #expect(answer(api, "POST /users/auth-code", right) == nil)
    }
}
