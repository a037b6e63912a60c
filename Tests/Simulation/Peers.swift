// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// Stands in for the services that are not deployed: does what it is told, answers sooner or later, sometimes twice, and
/// while faults happen sometimes not at all. Who asks must ask again then.
final class Peers {
    /// Ids of what it writes begin so.
    static let mark = "peer-"
    private let world: World
    private let topics = Topics()
    private let absent: [String: SimulatedService]
    private var count = 0
    var isReliable = false

    init(_ world: World, beside deployed: [SimulatedService]) {
        self.world = world
        let absent = SimulatedService.allCases.filter { !deployed.contains($0) }
        self.absent = Dictionary(uniqueKeysWithValues: absent.map { (Topics().commands($0.rawValue), $0) })
        world.log.listeners.append { [weak self] in self?.read($0) }
    }

    private func read(_ written: SimulatedLog.Written) {
        guard let service = absent[written.place.topic], let command = Envelope(written.record),
            let replyTo = command["replyto"]
        else { return }
        if !isReliable, world.scheduler.chance(8) { return }
        for _ in 0..<(world.scheduler.chance(10) ? 2 : 1) {
            world.scheduler.after(world.scheduler.number(1000...400_000)) { [self] in
                let key = command["replykey"].map { Array($0.utf8) } ?? written.record.key
                answer(command, of: service, to: replyTo, key: key)
            }
        }
    }

    private func answer(_ command: Envelope, of service: SimulatedService, to replyTo: String, key: [UInt8]?) {
        let id = command["id"] ?? ""
        var data: JSONObject = [
            "commandId": .string(id), "commandType": .string(command["type"] ?? ""), "commandDigest": "d",
            "status": "succeeded",
        ]
        if service == .sync {
            let identities = command.data["knownIdentities"] as? [String: Any]
            let person = identities?["customerid"] as? String ?? ""
            data["result"] = ["mpid": .string(String(1000 + person.utf8.count))]
        }
        // The id of a reply comes from its command's: twice the same one.
        let isDryRun = command["dryrun"] == "true"
        if isDryRun {
            data["dryRun"] = true
            data["events"] = []
        }
        var attributes = EventAttributes(
            id: Self.mark + (isDryRun ? "\(command["replykey"] ?? "")-" : "") + id,
            source: "identitybus/\(service.rawValue)", type: "identity.reply.v1",
            appID: command["appid"])
        attributes.causationID = id
        attributes.partitionKey = command["replykey"]
        do {
            world.log.write(
                try world.kit.publisher.record(to: replyTo, key: key, attributes, JSONValue.object(data)))
        } catch {
            world.violations.append("an answer cannot be written: \(error)")
        }
    }
}
