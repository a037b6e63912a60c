// SPDX-License-Identifier: Apache-2.0

/// What an erasure did, and what remains: ids, counts and times, and no other value of the person. The final answer to
/// ``EraseUser`` and ``EraseProfile``, and kept beside the tombstones. What one service asks another to forget is answered
/// by the certificate of that part.
public struct ErasureCertificate: CommandResult {
    /// The ids that are kept, so that nothing brings them back.
    public struct Subject: Codable, Sendable, Hashable {
        public var userIds: [UserID]
        /// The smallest first.
        public var mpids: [MPID]

        public init(userIds: [UserID] = [], mpids: [MPID] = []) {
            self.userIds = userIds
            self.mpids = mpids
        }
    }

    /// How much of it is gone, by service. A service that is not there was not asked: another certificate has its part.
    public struct Counts: Codable, Sendable, Hashable {
        public struct Link: Codable, Sendable, Hashable {
            public var persons: Int
            public var installs: Int

            public init(persons: Int = 0, installs: Int = 0) {
                self.persons = persons
                self.installs = installs
            }
        }

        public struct User: Codable, Sendable, Hashable {
            public var installs: Int
            public var codes: Int

            public init(installs: Int = 0, codes: Int = 0) {
                self.installs = installs
                self.codes = codes
            }
        }

        public struct Sync: Codable, Sendable, Hashable {
            public var profiles: Int
            public var identities: Int
            /// Those that have lost a user.
            public var devices: Int
            public var aliases: Int

            public init(profiles: Int = 0, identities: Int = 0, devices: Int = 0, aliases: Int = 0) {
                self.profiles = profiles
                self.identities = identities
                self.devices = devices
                self.aliases = aliases
            }
        }

        public struct Verification: Codable, Sendable, Hashable {
            public var sessions: Int

            public init(sessions: Int = 0) { self.sessions = sessions }
        }

        public var link: Link?
        public var user: User?
        public var sync: Sync?
        public var verification: Verification?

        public init(
            link: Link? = nil, user: User? = nil, sync: Sync? = nil, verification: Verification? = nil
        ) {
            self.link = link
            self.user = user
            self.sync = sync
            self.verification = verification
        }
    }

    /// Where copies are that no erasure reaches.
    public struct Remainder: Codable, Sendable, Hashable {
        public enum Place: String, WireEnum {
            /// The record of what was asked and answered.
            case inbox
            /// Of commands, events and replies.
            case topics
            case deadLetters
            case backups
        }

        public var place: Place
        /// Absent: as long as the operator keeps them.
        public var until: Timestamp?

        public init(place: Place, until: Timestamp? = nil) {
            self.place = place
            self.until = until
        }
    }

    /// The command that began it.
    public var requestId: CommandID
    public var erasedAt: Timestamp
    /// Absent while another service has not answered, or could not do its part; then ``done`` is what is known so far.
    public var completedAt: Timestamp?
    public var subject: Subject
    public var done: Counts
    /// How many profiles hold a value that the command named, and stay.
    public var heldByOthers: Int
    public var remains: [Remainder]

    public init(
        requestId: CommandID, erasedAt: Timestamp, completedAt: Timestamp? = nil, subject: Subject = Subject(),
        done: Counts, heldByOthers: Int = 0, remains: [Remainder] = []
    ) {
        self.requestId = requestId
        self.erasedAt = erasedAt
        self.completedAt = completedAt
        self.subject = subject
        self.done = done
        self.heldByOthers = heldByOthers
        self.remains = remains
    }

    /// Takes in what another service did.
    public mutating func add(_ part: ErasureCertificate) {
        subject.userIds += part.subject.userIds.filter { !subject.userIds.contains($0) }
        subject.mpids = Set(subject.mpids + part.subject.mpids).sorted()
        done.add(part.done)
        heldByOthers += part.heldByOthers
        remains = Remainder.Place.allCases.compactMap { place in
            let both = (remains + part.remains).filter { $0.place == place }
            guard let first = both.first else { return nil }
            return both.dropFirst().reduce(first) { $0.isOutlived(by: $1) ? $1 : $0 }
        }
    }
}

extension ErasureCertificate.Counts {
    /// Whoever began an erasure answers for all services: what was not asked of one is a zero to be read.
    public mutating func answerForAll() {
        link = link ?? Link()
        user = user ?? User()
        sync = sync ?? Sync()
        verification = verification ?? Verification()
    }

    mutating func add(_ other: Self) {
        if let more = other.link {
            link = Link(
                persons: more.persons + (link?.persons ?? 0), installs: more.installs + (link?.installs ?? 0))
        }
        if let more = other.user {
            user = User(installs: more.installs + (user?.installs ?? 0), codes: more.codes + (user?.codes ?? 0))
        }
        if let more = other.sync {
            sync = Sync(
                profiles: more.profiles + (sync?.profiles ?? 0), identities: more.identities + (sync?.identities ?? 0),
                devices: more.devices + (sync?.devices ?? 0), aliases: more.aliases + (sync?.aliases ?? 0))
        }
        if let more = other.verification {
            verification = Verification(sessions: more.sessions + (verification?.sessions ?? 0))
        }
    }
}

extension ErasureCertificate.Remainder {
    /// - Parameter inbox: until when the inbox has what is decided now.
    public static func everywhere(inbox: Timestamp) -> [Self] {
        [Self(place: .inbox, until: inbox), Self(place: .topics), Self(place: .deadLetters), Self(place: .backups)]
    }

    fileprivate func isOutlived(by other: Self) -> Bool {
        guard let until else { return false }
        return other.until.map { $0 > until } ?? true
    }
}

/// What became of the erasure of a user. Result: ``ErasureCertificate``; `USER_NOT_FOUND` when there was none.
public struct GetUserErasure: PersonQuery {
    public static let type = "identity.link.get-erasure.v1"
    public static let scope = Scope.userDelete
    public var userId: UserID

    public init(userId: UserID) { self.userId = userId }

    public var partitionSubject: String { userId.text }
    public var subject: (kind: String, name: String) { ("userId", userId.text) }

    public func validate() throws(Rejection) { try Validation.id(userId, "userId") }
}

/// What became of the erasure of a profile. Result: ``ErasureCertificate``; `NOT_FOUND_ERROR` when there was none.
public struct GetProfileErasure: PersonQuery {
    public static let type = "identity.sync.get-erasure.v1"
    public static let scope = Scope.userDelete
    public var mpid: MPID

    public init(mpid: MPID) { self.mpid = mpid }

    public var partitionSubject: String { mpid.description }
    public var subject: (kind: String, name: String) { ("mpid", mpid.description) }

    public func validate() throws(Rejection) {}
}
