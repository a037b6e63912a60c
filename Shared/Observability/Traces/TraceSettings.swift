// SPDX-License-Identifier: Apache-2.0

/// How spans are told of. Where there is none, nobody is.
package struct TraceSettings: Sendable {
    /// Of the process that the spans are of.
    package struct Attribute: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var receiver: OTLPReceiver
    package var sampler: TraceSampler
    package private(set) var resource: [Attribute]
    /// Spans that wait at most.
    package var queueSize = 2048
    /// Spans of a request at most.
    package var batchSize = 512
    /// How long a span waits for others.
    package var delay = Duration.seconds(5)
    /// How long a request may take.
    package var timeout = Duration.seconds(30)

    /// - Parameters:
    ///   - service: as it is named to people.
    ///   - more: what else is to be said of the process; it may say anything but the name anew.
    package init(
        receiver: OTLPReceiver, sampler: TraceSampler, service: String, instance: String, more: [Attribute] = []
    ) {
        self.receiver = receiver
        self.sampler = sampler
        let own = [
            Attribute(SemanticNames.service, service), Attribute(SemanticNames.version, Release.version),
            Attribute(SemanticNames.instance, instance), Attribute(SemanticNames.sdk, "identitybus"),
            Attribute(SemanticNames.sdkLanguage, "swift"), Attribute(SemanticNames.sdkVersion, Release.version),
        ]
        let said = Set(more.map(\.name)).subtracting([SemanticNames.service])
        resource = own.filter { !said.contains($0.name) } + more.filter { $0.name != SemanticNames.service }
    }

    /// The name of the process among attributes, where they have one.
    package static func service(in attributes: [Attribute]) -> String? {
        attributes.last { $0.name == SemanticNames.service }?.value
    }
}
