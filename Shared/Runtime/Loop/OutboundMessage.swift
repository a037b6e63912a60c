// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Messaging

/// A message to publish, exactly as it will stand on its topic. The journal keeps it so: publishing it again gives the
/// same id and the same bytes.
public struct OutboundMessage: Sendable, Hashable {
    public enum Role: UInt8, Sendable, Hashable {
        case event = 1
        case reply = 2
        case deadLetter = 3
        /// For another service, or for this one later.
        case command = 4
        /// A reply with a secret in it, which the journal keeps encrypted.
        case confidentialReply = 5
    }

    var isReply: Bool { role == .reply || role == .confidentialReply }

    public var role: Role
    public var topic: String
    public var key: [UInt8]?
    public var headers: [WireHeader]
    public var value: [UInt8]?
    /// A reply to a topic that an outsider named. When that topic refuses it for long, it becomes a dead letter;
    /// everything else waits for as long as it takes.
    public var mayBeGivenUp: Bool

    public init(
        role: Role, topic: String, key: [UInt8]?, headers: [WireHeader], value: [UInt8]?, mayBeGivenUp: Bool = false
    ) {
        self.role = role
        self.topic = topic
        self.key = key
        self.headers = headers
        self.value = value
        self.mayBeGivenUp = mayBeGivenUp
    }
}

extension WireHeader {
    init(_ header: KafkaHeader) {
        self.init(header.name, header.value)
        rawName = header.rawName
    }
}

extension KafkaHeader {
    init(_ header: WireHeader) {
        if let bytes = header.rawName {
            self.init(nameBytes: bytes, value: header.value)
        } else {
            self.init(name: header.name, value: header.value)
        }
    }
}
