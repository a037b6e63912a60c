// SPDX-License-Identifier: Apache-2.0

extension ErasureCertificate {
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
