// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Contracts

extension GoldenTests {
    private static let lastSeen = Timestamp(milliseconds: 1_795_000_000_000)

    private static let requestID: SubjectRequestID = "a7551968-d5d6-44b2-9831-815ac9017798"

    static let requestSamples: [Sample] = [
        message(
            "command-sync-file-request",
            FileRequest(
                requestId: requestID, kind: .erasure, identities: ["email": "a@b.io"], everyHolder: true,
                regulation: "gdpr", submittedAt: lastSeen, groupId: "g1")),
        message("command-sync-file-request-mpid", FileRequest(requestId: requestID, kind: .access, mpid: .max)),
        message("command-sync-get-request", GetRequest(requestId: requestID)),
        message("command-sync-get-requests", GetRequests(groupId: "g1")),
        message("command-sync-cancel-request", CancelRequest(requestId: requestID)),
        message("command-sync-get-request-results", GetRequestResults(requestId: requestID)),
        message(
            "command-sync-process-request",
            ProcessRequest(requestId: requestID, startsAt: Timestamp(milliseconds: 1_893_456_000_000))),
        message(
            "event-sync-request-changed",
            RequestChanged(requestId: requestID, kind: .erasure, status: .inProgress, reason: .ambiguousIdentity)),
        reply(
            "reply-sync-get-request-succeeded",
            Reply(
                commandId: "c1", commandType: GetRequest.type, commandDigest: digest, status: .succeeded,
                result: SubjectRequestResult(
                    requestId: requestID, kind: .access, status: .completed, groupId: "g1", receivedAt: lastSeen,
                    startsAt: lastSeen, expectedAt: lastSeen, completedAt: lastSeen, resultsUntil: lastSeen,
                    profileCount: 1, heldByOthers: 0))),
    ]

    static let retentionSamples: [Sample] = [
        message("command-sync-expire-profile", ExpireProfile(mpid: .max, lastSeen: lastSeen)),
        message("command-sync-expire-device", ExpireDevice(deviceId: "d1", lastSeen: lastSeen)),
        message("command-verification-expire-session", ExpireSession(deviceId: "d1", lastSeen: lastSeen)),
        message("command-user-expire-user", ExpireUser(installId: "i1", userId: "u1", lastSeen: lastSeen)),
        message("command-link-expire-user", ExpirePerson(installId: "i1", userId: "u1")),
        message("event-sync-profile-expired", ProfileExpired(mpid: .max, lastSeen: lastSeen)),
        message("event-sync-device-expired", DeviceExpired(deviceId: "d1", lastSeen: lastSeen)),
        message("event-verification-session-expired", SessionExpired(deviceId: "d1", lastSeen: lastSeen)),
        message("event-link-user-expired", UserExpired(userId: "u1", installId: "i1")),
    ]
}
