// SPDX-License-Identifier: Apache-2.0

extension ReplicaStatus {
    /// How often it is written.
    public static let period = Duration.seconds(10)

    /// Of the record: the newest one of each replica is kept.
    public var key: String { "\(service)/\(replica)" }

    /// - Parameter id: of the envelope.
    package func record(to topic: String, id: String, now: Timestamp) throws -> Record {
        var attributes = EventAttributes(
            id: id, source: "identitybus/\(service)", type: Self.type, time: now.rfc3339)
        attributes.subject = key
        return Record(
            topic: topic, key: Array(key.utf8),
            value: try CloudEvent(attributes: attributes, data: self).encoded(),
            headers: [Header(HeaderName.contentType, HeaderName.structuredContentType)])
    }
}
