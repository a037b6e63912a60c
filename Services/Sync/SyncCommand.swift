// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts
import Runtime

/// Everything the sync service consumes. Closed: a command without an answer does not compile.
public enum SyncCommand: Sendable, Hashable {
    /// Commands that move a device to a profile.
    public enum Operation: Sendable, Hashable {
        case identify, login, logout

        var cause: SyncCause {
            switch self {
            case .identify: .identify
            case .login: .login
            case .logout: .logout
            }
        }
    }

    case move(Operation, SyncRequest)
    case search(SyncRequest)
    case modify(ModifyIdentities)
    case alias(AliasUsers)
    case applyAlias(ApplyAlias)
    case detach(DetachIdentities)
    case allow(AllowMerge)
    case restrict(RestrictProfile)
    case importProfiles(ImportProfiles)
    case getUsers(GetDeviceUsers)
    case erase(EraseProfile)
    case forget(ForgetProfiles)
    case keepErased(KeepErased)
    case getErasure(GetProfileErasure)
    case getProfile(GetProfile)
    /// An event of the link service.
    case linked(Linked)
    case renamed(ExternalIDChanged)
    case unlinked(ExternalIDRemoved)
    /// The reply to a forwarded command.
    case answered(ForwardAnswer)
    case facts(FactsQuery)
    /// Nobody came back.
    case expireProfile(ExpireProfile)
    case expireDevice(ExpireDevice)
    /// Requests of data subjects.
    case fileRequest(FileRequest)
    case getRequest(GetRequest)
    case getRequests(GetRequests)
    case cancelRequest(CancelRequest)
    case getRequestResults(GetRequestResults)
    case processRequest(ProcessRequest)

    /// The device the command is about, if it names one.
    var deviceID: DeviceID? {
        switch self {
        case .move(_, let request), .search(let request): request.deviceId
        case .modify(let command): command.deviceId
        case .getUsers(let command): command.deviceId
        case .expireDevice(let command): command.deviceId
        case .fileRequest, .getRequest, .getRequests, .cancelRequest, .getRequestResults, .processRequest,
            .expireProfile,
            .alias, .applyAlias, .detach, .allow, .restrict, .importProfiles, .erase, .forget, .keepErased,
            .getErasure,
            .getProfile, .linked,
            .renamed, .unlinked, .answered, .facts:
            nil
        }
    }

    /// The devices that a list names.
    var listedDevices: [DeviceID] { listed.flatMap(\.brought).map(\.deviceId) }

    /// The profiles of a list.
    private var listed: [ImportedProfile] {
        guard case .importProfiles(let command) = self else { return [] }
        return command.profiles.compactMap { if case .read(let profile) = $0 { profile } else { nil } }
    }

    /// Whether it names so many that a refusal of it is found from none of them.
    var isList: Bool { if case .importProfiles = self { true } else { false } }

    /// The identities whose holders decide, or that the command may give to a profile.
    var identities: [Identity] {
        switch self {
        case .move(_, let request), .search(let request): request.identities
        case .modify(let command):
            command.changes.compactMap { change in
                guard let type = IdentityType(rawValue: change.identityType), let value = change.newValue else {
                    return nil
                }
                return Identity(type, IdentityValue(value))
            }
        case .linked(let event): [Identity(.customerID, IdentityValue(event.externalId.text))]
        case .renamed(let event):
            [event.externalId, event.previousExternalId].compactMap(\.self).map {
                Identity(.customerID, IdentityValue($0.text))
            }
        case .unlinked(let event): [Identity(.customerID, IdentityValue(event.externalId.text))]
        case .getProfile(let query): query.named.map { [$0] } ?? []
        case .restrict(let command): command.query.named.map { [$0] } ?? []
        case .detach(let command): command.named
        case .importProfiles: listed.flatMap(\.named)
        case .erase(let command): command.named
        case .forget(let command):
            command.names.map { Identity(.customerID, IdentityValue($0.text)) }
        case .fileRequest(let command): command.named
        // By digests, see ``Wanted``; or by what the request named.
        case .alias, .applyAlias, .allow, .keepErased, .getUsers, .getErasure, .answered, .facts, .expireProfile,
            .expireDevice, .getRequest, .getRequests, .cancelRequest, .getRequestResults, .processRequest:
            []
        }
    }

    /// The profiles the command names.
    var mpids: [MPID] {
        switch self {
        case .modify(let command): [command.mpid]
        case .alias(let command): [command.sourceMPID, command.destinationMPID]
        case .applyAlias(let command): [command.destinationMPID]
        case .detach(let command): [command.mpid, command.toMPID].compactMap(\.self)
        case .allow(let command): [command.mpid]
        case .restrict(let command): command.mpid.map { [$0] } ?? []
        case .importProfiles: listed.map(\.mpid)
        case .erase(let command): command.mpid.map { [$0] } ?? []
        case .getErasure(let query): [query.mpid]
        case .getProfile(let query): query.mpid.map { [$0] } ?? []
        case .expireProfile(let command): [command.mpid]
        case .fileRequest(let command): command.mpid.map { [$0] } ?? []
        case .getRequest, .getRequests, .cancelRequest, .getRequestResults, .processRequest, .expireDevice, .move,
            .search, .getUsers, .forget, .keepErased, .linked, .renamed, .unlinked, .answered, .facts:
            []
        }
    }

    /// Whether the command may make a profile, whose MPID then comes from the command's id (S33).
    var mayCreateProfile: Bool {
        switch self {
        case .move, .linked, .renamed, .detach: true
        default: isErasure
        }
    }

    /// Whether it erases whoever it is about. An answer may name users of whom nothing was known here (S116).
    var isErasure: Bool {
        switch self {
        case .erase, .forget, .keepErased, .processRequest: true
        case .answered: !users.isEmpty
        default: false
        }
    }

    /// Whether it is about the profiles that links marked with its users.
    var findsByMark: Bool {
        switch self {
        case .renamed, .unlinked: true
        default: isErasure
        }
    }

    /// The external ids whose persons the link service may have to forget.
    var linked: [ExternalID] {
        switch self {
        case .linked(let event): [event.externalId]
        case .renamed(let event): [event.externalId, event.previousExternalId].compactMap(\.self)
        default: []
        }
    }

    /// By what its profiles may have been called before others were linked (S123, S124).
    var formerNames: [ExternalID] {
        switch self {
        case .renamed(let event): event.previousExternalId.map { [$0] } ?? []
        case .forget(let command): command.names
        default: []
        }
    }

    /// Whether a mark may move on to another profile (S115, S124).
    var movesMarks: Bool {
        if case .renamed = self { true } else { isErasure }
    }

    /// Whether it tells of all devices of a profile.
    var readsDevices: Bool {
        switch self {
        case .getProfile, .detach, .getRequestResults: true
        default: false
        }
    }

    /// Whether it may change what keeps its profiles and others apart.
    var changesBarriers: Bool {
        switch self {
        case .detach, .allow, .renamed: true
        default: isErasure
        }
    }

    /// The profile that it takes apart.
    var takenApart: MPID? {
        if case .detach(let command) = self { command.mpid } else { nil }
    }

    /// Whether it asks what became of an erasure.
    var readsCertificates: Bool {
        switch self {
        case .erase, .getErasure: true
        default: false
        }
    }

    /// The request of a data subject that it is about.
    var requestID: SubjectRequestID? {
        switch self {
        case .fileRequest(let command): command.requestId
        case .getRequest(let query): query.requestId
        case .cancelRequest(let command): command.requestId
        case .getRequestResults(let query): query.requestId
        case .processRequest(let command): command.requestId
        default: nil
        }
    }

    /// Whether it may concern devices that it does not name: those whose current user it changes, or may not take over.
    func reachesDevices(_ settings: SyncSettings) -> Bool {
        switch self {
        case .modify(let command):
            command.changes.contains { change in
                settings.loginIdentities.contains { $0.rawValue == change.identityType }
            }
        case .move(_, let request):
            request.identities.contains { settings.loginIdentities.contains($0.type) || !$0.type.isDevice }
        case .renamed: settings.fromLinks
        case .importProfiles(let command): command.upsert == true
        default: isErasure || readsDevices
        }
    }

    /// The users of the link service that it names.
    var users: [UserID] {
        switch self {
        case .linked(let event): [event.userId]
        case .renamed(let event): [event.userId]
        case .unlinked(let event): [event.userId]
        case .forget(let command): command.userId.map { [$0] } ?? []
        case .keepErased(let command): command.userIds ?? []
        case .answered(let answer): answer.part?.subject.userIds ?? []
        case .move, .search, .modify, .alias, .applyAlias, .detach, .allow, .restrict, .importProfiles, .getUsers,
            .erase,
            .getErasure, .getProfile,
            .facts, .expireProfile, .expireDevice, .fileRequest, .getRequest, .getRequests, .cancelRequest,
            .getRequestResults, .processRequest:
            []
        }
    }
}

extension SyncRequest {
    /// What is left after taking away `null` values and what nobody vouched for (S3, S20).
    var identities: [Identity] {
        knownIdentities.compactMap { name, value in
            guard let type = IdentityType(rawValue: name), let value, vouchedFor?.contains(type) != false else {
                return nil
            }
            return Identity(type, IdentityValue(value))
        }.sorted { $0.type < $1.type }
    }
}

extension EraseProfile {
    var named: [Identity] {
        identities.compactMap { name, value in
            IdentityType(rawValue: name).map { Identity($0, IdentityValue(value)) }
        }.sorted { $0.type < $1.type }
    }
}

extension ForgetProfiles {
    /// What the person was called, the present external id last.
    var names: [ExternalID] { (former ?? []).map(\.externalId) + (externalId.map { [$0] } ?? []) }
}
