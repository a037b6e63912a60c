// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Observability

@Suite struct OTLPReceiverTests {
    @Test(arguments: [
        ("http://collector:4318", true, "collector", 4318, "/v1/traces"),
        ("http://collector:4318/", true, "collector", 4318, "/v1/traces"),
        ("http://collector/otel", true, "collector", 80, "/otel/v1/traces"),
        ("http://[::1]:4318/v1/traces", false, "::1", 4318, "/v1/traces"),
        ("http://127.0.0.1:4318", false, "127.0.0.1", 4318, "/"),
        ("https://collector", true, "collector", 443, "/v1/traces"),
        ("HTTPS://collector:4318", false, "collector", 4318, "/"),
    ]) func addresses(_ url: String, _ isBase: Bool, _ host: String, _ port: Int, _ path: String) throws {
        let receiver = try OTLPReceiver(url, isBase: isBase)
        #expect(receiver.host == host && receiver.port == port && receiver.path == path)
        #expect(receiver.isSecure == url.lowercased().hasPrefix("https"))
    }

    /// What may be a secret is not said again.
    @Test(arguments: [
        "", "collector:4318", "httpss://hush-hush:4318", "grpc://hush-hush", "http://", "http://me:hush-hush@collector",
        "http://hush@collector", "http://collector/?token=hush-hush", "http://collector/#hush", "hush hush",
    ]) func noAddress(_ url: String) {
        #expect {
            _ = try OTLPReceiver(url, isBase: true)
        } throws: {
            !(($0 as? OTLPReceiver.Problem)?.words.contains("hush") ?? true)
        }
    }

    @Test func headers() throws {
        let fields = try OTLPReceiver.fields("authorization=Bearer%20a%2Cb, x-key = k=v ,")
        #expect(fields.map(\.name) == ["authorization", "x-key"])
        #expect(fields.map(\.value) == ["Bearer a,b", "k=v"])
    }

    @Test(arguments: [
        "hush-hush", "=hush", "a b=hush", "a=hush%0d%0ab: c", "a=hush%", "Content-Length=7", "host=hush", "a=hush%00",
        "é=hush",
    ]) func noHeaders(_ text: String) {
        #expect {
            _ = try OTLPReceiver.fields(text)
        } throws: {
            !(($0 as? OTLPReceiver.Problem)?.words.contains("hush") ?? true)
        }
    }

    @Test func whatIsSaidOfTheProcess() throws {
        let said = try OTLPReceiver.attributes("deployment.environment.name=prod,service.name=mine,service.version=7")
        let receiver = try OTLPReceiver("http://127.0.0.1:1", isBase: true)
        let settings = TraceSettings(
            receiver: receiver, sampler: TraceSampler(.alwaysOn), service: TraceSettings.service(in: said) ?? "none",
            instance: "one", more: said)
        let resource = Dictionary(settings.resource.map { ($0.name, $0.value) }, uniquingKeysWith: { $0 + $1 })
        #expect(resource["service.name"] == "mine" && resource["service.version"] == "7")
        #expect(resource["service.instance.id"] == "one" && resource["deployment.environment.name"] == "prod")
        #expect(resource["telemetry.sdk.language"] == "swift")
    }
}
