// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Foundation
import Observability
import Supervision
import WireJSON

struct ExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Prints what is held of one person, as one JSON document.",
        discussion: """
            Asks the services over Kafka, from any machine, with a key that has the scope `support`; each notes who has \
            asked. The document has what is held of the person now: user, installs, profiles, devices, sessions. Nothing of \
            other people is in it, also of those who use the same devices. Exit status 3: nobody is found, or not for \
            certain; 4: a service did not answer, and nothing is printed.
            """)

    @Option(help: "The person's user id.")
    var userId: String?

    @Option(help: "The person's external id, which is the customer id of a profile.")
    var externalId: String?

    @Option(parsing: .unconditional, help: "The MPID of a profile of the person.")
    var mpid: String?

    @Flag(help: "Print the document on one line.")
    var json = false

    @OptionGroup var asking: InquiryOptions

    private var app: AppID { asking.app }

    func run() throws {
        try checkWhom()
        let interruption = Interruption()
        let inquiry = try asking.inquiry { interruption.isRequested }
        defer { inquiry.close() }
        var person = PersonExport(app: app) { questions in
            let answers = try inquiry.ask(questions)
            let silent = Set(questions.filter { answers[$0] == nil }.map(\.service))
            guard silent.isEmpty else {
                throw asking.unanswered(silent, "A document without their part would not be whole.")
            }
            return answers
        }
        if let userId { try person.add(userID: UserID(userId)) }
        if let externalId { try person.add(externalID: ExternalID(externalId)) }
        if let mpid = mpid.flatMap({ MPID($0) }) { try person.add(mpid: mpid) }
        guard !person.isNobody else {
            throw Problem(
                .refused, "app \(app) holds nobody by that id.",
                "identitybus explain \(userId ?? externalId ?? mpid ?? "") --app \(app) finds more kinds of ids.")
        }
        let document = try person.document(at: .now)
        if json { say(json: document) } else { try show(document) }
    }

    private func checkWhom() throws {
        guard [userId, externalId, mpid].count(where: { $0?.isEmpty == false }) == 1 else {
            throw Problem(
                .usage, "--user-id, --external-id or --mpid says whose data are wanted: one of them.",
                "identitybus explain finds them from other ids.")
        }
        if let mpid, MPID(mpid) == nil {
            throw Problem(.usage, "--mpid \(mpid) is no MPID.", "It is a whole number of 64 bits, such as -42.")
        }
    }

    private func show(_ document: JSONValue) throws {
        let object = try JSONSerialization.jsonObject(with: Data(document.serialized()))
        let text = try JSONSerialization.data(
            withJSONObject: object, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        for line in String(decoding: text, as: UTF8.self).split(separator: "\n") { say(String(line).harmless) }
    }
}
