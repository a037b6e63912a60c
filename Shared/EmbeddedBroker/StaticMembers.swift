// SPDX-License-Identifier: Apache-2.0

internal import Messaging
import Synchronization

/// Kafka's static members (KIP-345), of which librdkafka's test brokers know nothing: who comes back to its group under the
/// name that it had (`group.instance.id`), before its session is over, has its partitions at once, and no other member notices.
/// To the test broker it is still the same member.
///
/// Unlike Kafka, this does not throw out the one before: two processes with one name have the same partitions. May be used
/// from any thread.
final class StaticMembers: Sendable {
    private struct Name: Hashable {
        var group: String
        var instance: String
    }

    private struct Member {
        var joined: KafkaResponse.Joined
        var session: Duration
        /// When the broker last heard of it.
        var heard: ContinuousClock.Instant
        /// As the group's leader made it. `nil` as long as the group takes in its members.
        var assignment: ArraySlice<UInt8>?
        /// It was told that it is a member, and asks for its assignment next.
        var isBack = false
    }

    private let members = Mutex<[Name: Member]>([:])

    /// - Parameters:
    ///   - request: to join, to have one's assignment, or that one is still there.
    ///   - exchange: asks the broker.
    /// - Returns: the response; `nil` when the broker has broken the connection.
    func answer(_ request: KafkaRequest, _ exchange: () -> [UInt8]?) -> [UInt8]? {
        if let join = request.join() { return answer(join, request, exchange) }
        guard let turn = request.memberTurn() else { return exchange() }
        let name = Name(group: turn.group, instance: turn.instance)
        if request.api == .syncGroup, let assignment = takeAssignment(name, turn) {
            return KafkaResponse.synced(assignment, to: request)
        }
        guard let response = exchange() else { return nil }
        hear(of: name, turn, request, response)
        return response
    }

    private func answer(
        _ join: KafkaRequest.Join, _ request: KafkaRequest, _ exchange: () -> [UInt8]?
    ) -> [UInt8]? {
        let name = join.instance.map { Name(group: join.group, instance: $0) }
        if join.member.isEmpty, let name, let joined = comeBack(name) {
            return KafkaResponse.joined(joined, to: request)
        }
        // Whoever joins changes what the others have.
        members.withLock { members in
            for name in members.keys where name.group == join.group { members[name]?.assignment = nil }
        }
        guard let response = exchange() else { return nil }
        if let name {
            let joined = KafkaResponse.joined(response)
            members.withLock { $0[name] = joined.map { Member(joined: $0, session: join.session, heard: .now) } }
        }
        return response
    }

    /// - Returns: as what it is a member, if its session is not over.
    private func comeBack(_ name: Name) -> KafkaResponse.Joined? {
        members.withLock { members in
            guard let member = members[name], member.assignment != nil,
                member.heard.duration(to: .now) < member.session
            else { return nil }
            members[name]?.isBack = true
            return member.joined
        }
    }

    private func takeAssignment(_ name: Name, _ turn: KafkaRequest.MemberTurn) -> ArraySlice<UInt8>? {
        members.withLock { members in
            guard let member = members[name], member.isBack, member.joined.isSame(turn) else { return nil }
            members[name]?.isBack = false
            return member.assignment
        }
    }

    private func hear(of name: Name, _ turn: KafkaRequest.MemberTurn, _ request: KafkaRequest, _ response: [UInt8]) {
        let synced = request.api == .syncGroup ? KafkaResponse.synced(response, version: request.version) : nil
        let isContent =
            synced != nil || (request.api == .heartbeat && KafkaResponse.isContent(response, version: request.version))
        members.withLock { members in
            guard members[name]?.joined.isSame(turn) == true else { return }
            // The group takes in its members anew, or has lost this one.
            guard isContent else {
                members[name]?.assignment = nil
                return
            }
            members[name]?.heard = .now
            if let synced { members[name]?.assignment = synced }
        }
    }
}

extension KafkaRequest {
    /// Of somebody who wants to be a member.
    struct Join {
        var group: String
        var session: Duration
        /// Empty when the group has not given it an id.
        var member: String
        /// The name that it has by itself.
        var instance: String?
    }

    /// Of a member that has a name by itself.
    struct MemberTurn {
        var group: String
        var generation: Int32
        var member: String
        var instance: String
    }

    /// - Returns: `nil` when this is no request to join, or one that cannot be read.
    func join() -> Join? {
        guard api == .joinGroup, version <= Self.latestVersions[.joinGroup] ?? 0 else { return nil }
        var reader = FrameReader(bytes, at: body)
        guard let group = reader.string(), let session = reader.int32(), reader.skip(version >= 1 ? 4 : 0),
            let member = reader.string()
        else { return nil }
        return Join(
            group: group, session: .milliseconds(session), member: member,
            instance: version >= 5 ? reader.string() : nil)
    }

    /// - Returns: `nil` when this is neither a heartbeat nor asks for an assignment, and for a member that has no name.
    func memberTurn() -> MemberTurn? {
        guard let api, api == .heartbeat || api == .syncGroup, version == 3 else { return nil }
        var reader = FrameReader(bytes, at: body)
        guard let group = reader.string(), let generation = reader.int32(), let member = reader.string(),
            let instance = reader.string()
        else { return nil }
        return MemberTurn(group: group, generation: generation, member: member, instance: instance)
    }
}

extension KafkaResponse {
    /// What a member is told that has joined.
    struct Joined {
        var generation: Int32
        /// The strategy by which partitions are assigned.
        var strategy: String
        var member: String

        func isSame(_ turn: KafkaRequest.MemberTurn) -> Bool {
            generation == turn.generation && member == turn.member
        }
    }

    /// - Parameter bytes: a response to a request to join of version 5.
    /// - Returns: `nil` of an error.
    static func joined(_ bytes: [UInt8]) -> Joined? {
        var reader = FrameReader(bytes)
        reader.skip(4 + 4)
        guard reader.int16() == 0, let generation = reader.int32(), let strategy = reader.string(),
            reader.skipString(), let member = reader.string()
        else { return nil }
        return Joined(generation: generation, strategy: strategy, member: member)
    }

    /// The response to a request to join of version 5: the leader is somebody else, so there is nothing to assign.
    static func joined(_ joined: Joined, to request: KafkaRequest) -> [UInt8] {
        var writer = FrameWriter(answering: request)
        writer.put(Int32(0))
        writer.put(Int16(0))
        writer.put(joined.generation)
        writer.put(joined.strategy)
        writer.put("")
        writer.put(joined.member)
        writer.put(Int32(0))
        return writer.bytes
    }

    /// - Returns: the assignment that a response brings; `nil` of an error.
    static func synced(_ bytes: [UInt8], version: Int16) -> ArraySlice<UInt8>? {
        var reader = FrameReader(bytes)
        reader.skip(4 + (version >= 1 ? 4 : 0))
        return reader.int16() == 0 ? reader.bytesOfArray() : nil
    }

    /// The response to who asks for its assignment, of version 3.
    static func synced(_ assignment: ArraySlice<UInt8>, to request: KafkaRequest) -> [UInt8] {
        var writer = FrameWriter(answering: request)
        writer.put(Int32(0))
        writer.put(Int16(0))
        writer.put(Int32(assignment.count))
        writer.put(assignment)
        return writer.bytes
    }

    /// Whether a heartbeat was taken.
    static func isContent(_ bytes: [UInt8], version: Int16) -> Bool {
        var reader = FrameReader(bytes)
        reader.skip(4 + (version >= 1 ? 4 : 0))
        return reader.int16() == 0
    }
}
