// SPDX-License-Identifier: Apache-2.0

/// What a person asks of whoever holds data about them (GDPR, CCPA), and how far it is: to erase it, or to get it. The sync
/// service keeps such requests, because it finds whose profiles are meant (docs/sync.md "Requests of data subjects"); the
/// gateway has them in the words of OpenDSR.
public enum SubjectRequest {}

/// A command about one request.
public protocol RequestCommand: CommandMessage {
    var requestId: SubjectRequestID { get }
}

extension Validation {
    static func requestID(_ id: SubjectRequestID, _ member: @autoclosure () -> String) throws(Rejection) {
        let parts = id.text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [8, 4, 4, 4, 12], parts.joined().allSatisfy(\.isHexDigit),
            id.text.utf8.count == 36
        else { throw Rejection(.invalidRequest, "data.\(member()) is not a UUID.") }
    }
}
