// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import Observability
@testable import Runtime

@Suite struct TraceSettingsTests {
    private func read(_ environment: [String: String]) throws -> TraceSettings? {
        try TraceSettings(EnvironmentSettings(environment), service: "link")
    }

    @Test func nobodyIsToldUnlessSomebodyIsNamed() throws {
        #expect(try read([:]) == nil)
        #expect(try read(["OTEL_SERVICE_NAME": "mine", "OTEL_TRACES_SAMPLER": "always_on"]) == nil)
        let endpoint = ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"]
        #expect(try read(endpoint)?.receiver.path == "/v1/traces")
        #expect(try read(endpoint.merging(["OTEL_SDK_DISABLED": "TRUE"]) { $1 }) == nil)
        #expect(try read(endpoint.merging(["OTEL_TRACES_EXPORTER": "none"]) { $1 }) == nil)
        #expect(try read(["OTEL_TRACES_EXPORTER": "otlp"])?.receiver.place == "localhost:4318")
    }

    @Test func theEndpointOfSpansIsTakenAsItIs() throws {
        let settings = try read([
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://other:4319/spans",
        ])
        #expect(settings?.receiver.place == "other:4319" && settings?.receiver.path == "/spans")
    }

    @Test func defaultsAreOpenTelemetrys() throws {
        let settings = try #require(try read(["OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"]))
        #expect(settings.queueSize == 2048 && settings.batchSize == 512)
        #expect(settings.delay == .seconds(5) && settings.timeout == .seconds(30))
        #expect(settings.resource.first == .init("service.name", "identitybus-link"))
        #expect(settings.sampler.samples(.init(high: 1, low: .max), after: nil))
        #expect(settings.receiver.fields.isEmpty)
    }

    @Test func whatIsSetHolds() throws {
        let settings = try #require(
            try read([
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_BSP_MAX_QUEUE_SIZE": "7",
                "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "9", "OTEL_BSP_SCHEDULE_DELAY": "10",
                "OTEL_BSP_EXPORT_TIMEOUT": "20", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
                "OTEL_TRACES_SAMPLER_ARG": "0", "OTEL_RESOURCE_ATTRIBUTES": "service.name=a,service.namespace=b",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            ]))
        #expect(settings.queueSize == 7 && settings.batchSize == 7)
        #expect(settings.delay == .milliseconds(10) && settings.timeout == .milliseconds(20))
        #expect(!settings.sampler.samples(.init(high: 1, low: 0), after: nil))
        #expect(settings.resource.first { $0.name == "service.name" }?.value == "a")
        let named = try read([
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SERVICE_NAME": "c",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=a",
        ])
        #expect(named?.resource.filter { $0.name == "service.name" }.map(\.value) == ["c"])
    }

    @Test func headersComeFromAFileToo() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "headers-\(UUID().uuidString)")
        try Data("authorization=hush\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let environment = [
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_EXPORTER_OTLP_HEADERS_FILE": file.path,
        ]
        #expect(try read(environment)?.receiver.fields.map(\.value) == ["hush"])
    }

    @Test func aFileWithoutCertificatesStopsTheStart() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "authorities-\(UUID().uuidString)")
        try Data("hush\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        for variable in ["OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"] {
            for (path, words) in [
                (file.path, "\(file.path) holds no certificate in PEM form"),
                ("/no/such.pem", "/no/such.pem cannot be read: no such file or directory"),
                ("/tmp", "/tmp cannot be read: is a directory"),
                ("-----BEGIN CERTIFICATE-----\nhush", "is the text of a PEM file and not its path; "),
            ] {
                #expect {
                    _ = try read([variable: path, "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector:4318"])
                } throws: {
                    "\($0)".hasPrefix("\(variable): \(words)") && !"\($0)".contains("hush")
                }
            }
        }
    }

    /// Also where nobody is told of spans.
    @Test(arguments: [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://hush"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "hush"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hush"), ("OTEL_RESOURCE_ATTRIBUTES", "hush"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_SDK_DISABLED", "perhaps"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"), ("OTEL_TRACES_SAMPLER_ARG", "1.5"),
        ("OTEL_TRACES_SAMPLER_ARG", "nan"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "many"),
        ("OTEL_BSP_SCHEDULE_DELAY", "-1"), ("OTEL_BSP_EXPORT_TIMEOUT", "0"),
    ]) func aWrongValueStopsTheStart(_ variable: String, _ value: String) {
        #expect {
            _ = try read([variable: value])
        } throws: {
            let problem = $0 as? ConfigurationProblem
            return problem?.variable == variable && problem?.description.contains("hush") == false
        }
    }
}
