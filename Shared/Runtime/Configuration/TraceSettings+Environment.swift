// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Observability

extension TraceSettings {
    enum Exporter: String, CaseIterable { case otlp, none }
    enum TrueOrFalse: String, CaseIterable { case `true`, `false` }

    static let protocolName = "http/protobuf"
    /// OpenTelemetry's own default.
    private static let usualEndpoint = "http://localhost:4318"

    /// - Parameter service: `link`, or `gateway`.
    /// - Returns: `nil` when nobody is to be told of spans.
    /// - Throws: `ConfigurationProblem`, also where nobody is: the day that somebody is it would be one.
    package init?(_ settings: EnvironmentSettings, service: String) throws(ConfigurationProblem) {
        let isDisabled = try settings.choice("OTEL_SDK_DISABLED", default: TrueOrFalse.false) == .true
        let exporter = try settings.choice("OTEL_TRACES_EXPORTER", default: Exporter.otlp)
        if let text = settings.text("OTEL_EXPORTER_OTLP_PROTOCOL"), text.lowercased() != Self.protocolName {
            throw ConfigurationProblem("OTEL_EXPORTER_OTLP_PROTOCOL", "\(text) is not one of \(Self.protocolName)")
        }
        let receiver = try Self.receiver(settings)
        let sampler = TraceSampler(
            try settings.choice("OTEL_TRACES_SAMPLER", default: .parentOrOn), ratio: try Self.ratio(settings))
        let attributes = try Self.read("OTEL_RESOURCE_ATTRIBUTES", settings.text("OTEL_RESOURCE_ATTRIBUTES")) {
            text throws(OTLPReceiver.Problem) in try OTLPReceiver.attributes(text)
        }
        let name =
            settings.text("OTEL_SERVICE_NAME") ?? attributes.flatMap(Self.service(in:)) ?? "identitybus-\(service)"
        let (queue, batch) = (try settings.integer(.spanQueue), try settings.integer(.spanBatch))
        let (delay, timeout) = (try settings.integer(.spanDelay), try settings.integer(.spanTimeout))
        guard let receiver, !isDisabled, exporter == .otlp else { return nil }
        self.init(
            receiver: receiver, sampler: sampler, service: name, instance: UUID().uuidString.lowercased(),
            more: attributes ?? [])
        queueSize = queue
        batchSize = min(batch, queue)
        self.delay = .milliseconds(delay)
        self.timeout = .milliseconds(timeout)
    }

    private static func receiver(_ settings: EnvironmentSettings) throws(ConfigurationProblem) -> OTLPReceiver? {
        var receiver: OTLPReceiver?
        for (variable, isBase) in [("OTEL_EXPORTER_OTLP_ENDPOINT", true), (Setting.tracesEndpoint.name, false)] {
            let read = try read(variable, settings.text(variable)) { text throws(OTLPReceiver.Problem) in
                try OTLPReceiver(text, isBase: isBase)
            }
            receiver = read ?? receiver
        }
        if receiver == nil, settings.text("OTEL_TRACES_EXPORTER") != nil {
            receiver = try? OTLPReceiver(usualEndpoint, isBase: true)
        }
        for variable in ["OTEL_EXPORTER_OTLP_CERTIFICATE", Setting.tracesCertificate.name] {
            let read = try read(variable, settings.text(variable)) { path throws(OTLPReceiver.Problem) in
                try OTLPReceiver.authorities(path)
            }
            if let read { receiver?.authorities = read }
        }
        let headers = Setting.tracesHeaders.name
        let fields = try read(headers, try settings.secret(headers)) { text throws(OTLPReceiver.Problem) in
            try OTLPReceiver.fields(text)
        }
        receiver?.fields = fields ?? []
        return receiver
    }

    private static func ratio(_ settings: EnvironmentSettings) throws(ConfigurationProblem) -> Double {
        guard let text = settings.text(Setting.samplerArgument.name) else { return 1 }
        guard let ratio = Double(text), (0...1).contains(ratio) else {
            throw ConfigurationProblem(Setting.samplerArgument.name, "\(text) is not a number from 0 to 1")
        }
        return ratio
    }

    private static func read<Value>(
        _ variable: String, _ text: String?, _ read: (String) throws(OTLPReceiver.Problem) -> Value
    ) throws(ConfigurationProblem) -> Value? {
        guard let text else { return nil }
        do throws(OTLPReceiver.Problem) {
            return try read(text)
        } catch {
            throw ConfigurationProblem(variable, error.words)
        }
    }
}
