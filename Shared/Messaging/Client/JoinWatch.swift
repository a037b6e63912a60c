// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka
import Synchronization

/// Knows whether a member is on its way into its group: from a JoinGroup request to the answer to its SyncGroup.
///
/// It commits nothing meanwhile. Kafka answers the requests of one connection in turn, and JoinGroup when all members are
/// there: a commit that was sent after it is of an old generation by then, and librdkafka 2.0.2 then throws away the
/// whole assignment, of which the group would have let it keep most.
final class JoinWatch: Sendable {
    /// Of Kafka's protocol.
    private static let joinGroup: Int16 = 11
    private static let syncGroup: Int16 = 14

    private let joining = Atomic(false)

    /// As librdkafka's threads have told last.
    var isJoining: Bool { joining.load(ordering: .relaxed) }

    /// To be called before the client is made; `self` must outlive the client.
    func install(in conf: OpaquePointer) {
        let name = "identitybus-join"
        rd_kafka_conf_interceptor_add_on_new(
            conf, name,
            { client, _, opaque, _, _ in
                let name = "identitybus-join"
                let sent = rd_kafka_interceptor_add_on_request_sent(
                    client, name,
                    { _, _, _, _, key, _, _, _, opaque in
                        if key == JoinWatch.joinGroup { JoinWatch.of(opaque)?.joining.store(true, ordering: .relaxed) }
                        return RD_KAFKA_RESP_ERR_NO_ERROR
                    }, opaque)
                if sent != RD_KAFKA_RESP_ERR_NO_ERROR { return sent }
                return rd_kafka_interceptor_add_on_response_received(
                    client, name,
                    { _, _, _, _, key, _, _, _, _, _, opaque in
                        if key == JoinWatch.syncGroup { JoinWatch.of(opaque)?.joining.store(false, ordering: .relaxed) }
                        return RD_KAFKA_RESP_ERR_NO_ERROR
                    }, opaque)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private static func of(_ opaque: UnsafeMutableRawPointer?) -> JoinWatch? {
        opaque.map { Unmanaged<JoinWatch>.fromOpaque($0).takeUnretainedValue() }
    }
}
