// SPDX-License-Identifier: Apache-2.0

/// A CloudEvents 1.0 message: attributes and data. `CloudEvent<JSONValue>` is one as it was read, before anything is
/// known about its type; the typed ones are what services write.
///
/// Encoding writes the structured mode (`application/cloudevents+json`): every attribute and `data` in one object.
public struct CloudEvent<Payload> {
    public var attributes: EventAttributes
    public var data: Payload

    public init(attributes: EventAttributes, data: Payload) {
        self.attributes = attributes
        self.data = data
    }
}

extension CloudEvent: Sendable where Payload: Sendable {}
extension CloudEvent: Equatable where Payload: Equatable {}

private enum DataKey: String, CodingKey { case data }

extension CloudEvent: Encodable where Payload: Encodable {
    public func encode(to encoder: any Encoder) throws {
        try attributes.encode(to: encoder)
        var container = encoder.container(keyedBy: DataKey.self)
        try container.encode(data, forKey: .data)
    }
}

extension CloudEvent: Decodable where Payload: Decodable {
    public init(from decoder: any Decoder) throws {
        attributes = try EventAttributes(from: decoder)
        data = try decoder.container(keyedBy: DataKey.self).decode(Payload.self, forKey: .data)
    }
}
