// SPDX-License-Identifier: Apache-2.0

import Contracts

/// What is kept of a command whose final reply comes later: its attributes and the digest of what it said, in one
/// object. Sagas from before replies named the digest have none.
struct SagaOrigin: Codable {
    var attributes: EventAttributes
    var digest: String?

    private enum DigestKey: String, CodingKey { case digest = "commanddigest" }

    init(attributes: EventAttributes, digest: String?) {
        self.attributes = attributes
        self.digest = digest
    }

    init(from decoder: any Decoder) throws {
        attributes = try EventAttributes(from: decoder)
        digest = try decoder.container(keyedBy: DigestKey.self).decodeIfPresent(String.self, forKey: .digest)
    }

    func encode(to encoder: any Encoder) throws {
        try attributes.encode(to: encoder)
        var container = encoder.container(keyedBy: DigestKey.self)
        try container.encodeIfPresent(digest, forKey: .digest)
    }
}
