// SPDX-License-Identifier: Apache-2.0

import Contracts
import Supervision
import WireJSON

/// Gathers what the services hold of one person.
///
/// A person is a user of the link service with the profiles of the sync service that are marked with it or have its external
/// id as customer id. Devices lead on to nobody: other people may use them. Of a device only what the person did there is
/// told.
struct PersonExport {
    typealias Answers = [Inquiry.Question: ReceivedReply]

    private let app: AppID
    /// - Throws: `Problem`, also where an answer is missing.
    private let ask: ([Inquiry.Question]) throws -> Answers
    private var users: [UserID: JSONObject] = [:]
    private var profiles: [MPID: JSONObject] = [:]

    init(app: AppID, ask: @escaping ([Inquiry.Question]) throws -> Answers) {
        self.app = app
        self.ask = ask
    }

    var isNobody: Bool { users.isEmpty && profiles.isEmpty }

    mutating func add(userID: UserID) throws {
        guard users[userID] == nil else { return }
        try take(user: try pages("installs") { Inquiry.Question(GetLinkedUser(userId: userID, after: $0)) })
    }

    mutating func add(externalID: ExternalID) throws {
        try take(user: try pages("installs") { Inquiry.Question(GetLinkedUser(externalId: externalID, after: $0)) })
        try addProfile(withCustomerID: externalID)
    }

    mutating func add(mpid: MPID) throws {
        guard profiles[mpid] == nil else { return }
        try take(profile: try pages("devices") { Inquiry.Question(GetProfile(mpid: mpid, after: $0)) })
    }

    private mutating func addProfile(withCustomerID externalID: ExternalID) throws {
        let named = GetProfile.Named(type: IdentityType.customerID.rawValue, value: externalID.text)
        try take(profile: try pages("devices") { Inquiry.Question(GetProfile(identity: named, after: $0)) })
    }

    // From one to the others

    private mutating func take(user: JSONObject?) throws {
        guard let user, let id = user["userId"]?.stringValue.map({ UserID($0) }), users[id] == nil else { return }
        users[id] = user
        let facts = Inquiry.Question(ReadFacts<FactsOf.Sync>(FactsQuery(id: id.text)))
        for row in try ask([facts])[facts]?.result(as: FactsResult.self)?.state ?? []
        where row["kind"] == "profile" && row["userId"]?.stringValue == id.text {
            if let mpid = row["mpid"]?.stringValue.flatMap({ MPID($0) }) { try add(mpid: mpid) }
        }
        if let externalID = user["externalId"]?.stringValue { try addProfile(withCustomerID: ExternalID(externalID)) }
    }

    private mutating func take(profile: JSONObject?) throws {
        guard let profile, let mpid = profile["mpid"]?.stringValue.flatMap({ MPID($0) }), profiles[mpid] == nil else {
            return
        }
        profiles[mpid] = profile
        if let userID = profile["userId"]?.stringValue { try add(userID: UserID(userID)) }
        for customer in profile["identities"]?[IdentityType.customerID.rawValue]?.arrayValue ?? [] {
            guard let text = customer.stringValue else { continue }
            try take(
                user: try pages("installs") {
                    Inquiry.Question(GetLinkedUser(externalId: ExternalID(text), after: $0))
                })
        }
    }

    /// All pages of an answer as one.
    /// - Parameter list: the member that each page has a part of.
    /// - Returns: `nil` for nobody.
    private func pages(_ list: String, _ question: (String?) -> Inquiry.Question) throws -> JSONObject? {
        var whole: JSONObject?
        var parts: [JSONValue] = []
        var after: String?
        repeat {
            let asked = question(after)
            guard let page = try answer(asked) else { return nil }
            parts += page[list]?.arrayValue ?? []
            after = page["next"]?.stringValue
            if whole == nil { whole = page }
        } while after != nil
        let members = (whole?.members ?? []).filter { $0.name != "next" }
        return JSONObject(members.map { ($0.name, $0.name == list ? .array(parts) : $0.value) })
    }

    /// - Returns: `nil` for nobody.
    private func answer(_ question: Inquiry.Question) throws -> JSONObject? {
        guard let reply = try ask([question])[question] else { return nil }
        if reply.status == .succeeded { return reply.result?.objectValue }
        // Nobody, or nobody any more.
        if let reason = reply.reason.flatMap({ ReasonCode(rawValue: $0) }), [404, 410].contains(reason.httpStatus) {
            return nil
        }
        throw Inquiry.refusal(reply, of: question, ". Who is not found for certain is named by --mpid.")
    }

    // The document

    func document(at moment: Timestamp) throws -> JSONValue {
        [
            "app": .string(app.text), "exportedAt": .string(moment.rfc3339),
            "users": .array(users.sorted { $0.key < $1.key }.map { .object($0.value) }),
            "profiles": .array(profiles.sorted { $0.key < $1.key }.map { .object(Self.own($0.value)) }),
            "sessions": .array(try sessions()),
        ]
    }

    /// Without the barriers: they name those from whom the person is kept apart, and what is theirs.
    private static func own(_ profile: JSONObject) -> JSONObject {
        JSONObject(
            profile.members.filter { !["barriers", "barrierCount"].contains($0.name) }.map { ($0.name, $0.value) })
    }

    /// Those sessions on the profiles' devices that are the person's.
    private func sessions() throws -> [JSONValue] {
        let devices = Set(
            profiles.values.flatMap { $0["devices"]?.arrayValue ?? [] }.compactMap { $0["deviceId"]?.stringValue })
        let questions = devices.sorted().map { Inquiry.Question(GetSession(deviceId: DeviceID($0))) }
        let answers = try ask(questions)
        return questions.compactMap { question in
            guard let session = answers[question]?.result, let mpid = session["mpid"]?.stringValue.flatMap({ MPID($0) })
            else { return nil }
            return profiles[mpid] == nil ? nil : session
        }
    }
}
