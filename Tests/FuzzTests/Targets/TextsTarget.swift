// SPDX-License-Identifier: Apache-2.0

import Contracts
import HTTPTypes
import Observability
import Runtime
import WireJSON

@testable import Apps
@testable import Gateway

/// Input: one text, read as everything that is one.
enum TextsTarget {
    static func run(_ bytes: [UInt8]) throws {
        let text = bytes.text
        try names(text)
        try gateway(text)
        if let time = Timestamp(rfc3339: text) {
            try hold(Timestamp(rfc3339: time.rfc3339) == time, "\(text) is written as \(time.rfc3339)")
        }
        _ = Timestamp(rfc3339OrDay: text)
        if let mpid = MPID(text) { try hold(MPID(mpid.description) == mpid, "\(text) is written as \(mpid)") }
        if let code = [UInt8](hex: text) { try hold(code.hex == text.lowercased(), "\(text) is read as \(code.hex)") }
        if let signature = Signature(header: bytes) {
            try hold(Signature(header: Array(signature.header.utf8)) == signature, "written as another signature")
        }
        if let keys = DeploymentKeys(text: text, purposes: [.gateway, .tokens]) {
            let again = keys.text(for: [.gateway, .tokens])
            try hold(
                DeploymentKeys(text: again, purposes: [.gateway, .tokens])?.text(for: [.gateway, .tokens]) == again,
                "keys are written as others")
        }
        let harmless = text.harmless
        try hold(!harmless.hasControlCharacter && harmless.harmless == harmless, "what is harmless is not")
    }

    private static func names(_ text: String) throws {
        for prefix in ["", "p."] {
            let topics = Topics(prefix: prefix)
            guard let topic = topics.replyTopic(text) else { continue }
            try hold(topic.hasPrefix("\(prefix)identity.replies."), "\(text) leads to \(topic)")
            try hold(topics.replyTopic(topic) == topic, "\(topic) leads to another topic")
            try hold(topic.utf8.count <= 249, "no topic can be called so")
        }
        if let scope = Scope(spelling: text) { try hold(Scope(spelling: scope.rawValue) == scope, "another scope") }
        _ = CommandType.service(of: CommandType.fullName(text))
        _ = NobodyValues.standard.contains(text)
    }

    private static func gateway(_ text: String) throws {
        if let address = IPAddress(text) {
            try hold(IPAddress(address.text) == address, "\(text) is written as \(address.text)")
            // A C string ends at a zero, which no header can hold.
            if !text.utf8.contains(0) {
                try hold(IPAddress.Network(text)?.contains(address) == true, "\(text) is not in its own network")
            }
        }
        let clients = Clients(proxies: ["10.0.0.0/8"].compactMap { IPAddress.Network($0) })
        let client = clients.client(peer: IPAddress("10.0.0.1"), forwarded: [text])
        try hold(client.address != nil, "a request comes from nowhere")
        let trace = TraceContext(parent: text, state: text)
        try hold(trace.id.utf8.count == 32 && trace.parent.utf8.count == 55, "a trace \(trace.parent)")
        for route in Door.allCases.flatMap({ Route.at(text, $0) }) {
            try hold(text.hasPrefix("/"), "\(text) is a path")
            if route.endpoint.path.idName != nil { try hold(!route.id.isEmpty, "\(text) has no id") }
        }
        try hold(text.hasSuffix(Route.signedPath(text)), "what is signed is no part of the path")
        var request = APIRequest(method: "POST", path: "/", headers: [:])
        request.headers[.ifNoneMatch] = text
        _ = Preference.isDryRun(request)
        for door in Door.allCases { _ = OpenAPIDocument.of(door).response(knownAs: text) }
        if let query = try? Query(text, Set(Query.Parameter.allCases)) {
            try hold(query.values.values.allSatisfy { !$0.isEmpty }, "a query has a value that is none")
        }
    }
}
