// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// The people of `identitybus up --demo`: a crowd of a thousand, and those whose cases docs/console.md tells.
struct DemoPeople {
    let stage: DemoStage

    static let sdk = KeyID("demo-sdk")
    static let backend = KeyID("demo-backend")
    static let support = KeyID("demo-support")
    static let admin = KeyID("demo-admin")

    /// Everything that has to be there. Takes some seconds.
    /// - Parameter tell: is told what is being made.
    func arrive(tell: (String) -> Void) throws {
        tell("1,000 people sign up and log in")
        try crowd()
        tell("twelve of them have something to complain about")
        try DemoCases(people: self).happen()
    }

    // MARK: The crowd

    private static let first = [
        "alma", "bela", "carl", "dina", "elsa", "finn", "gerd", "hugo", "inga", "jens", "kira", "leon", "mara", "nils",
        "olga", "paul", "rosa", "sven", "tina", "udo", "vera", "willi", "yara", "zora", "anton", "berta", "cleo",
        "doris", "emil", "frida", "gustav", "heidi", "ivo", "julia", "konrad", "lotte", "moritz", "nora", "oskar",
        "petra",
    ]
    private static let last = [
        "adler", "bauer", "conrad", "dorn", "ernst", "falk", "graf", "haas", "iser", "jung", "koch", "lang", "maier",
        "nagel", "otto", "pohl", "quast", "roth", "sauer", "thiel", "ulm", "vogt", "weiss", "xaver", "zorn",
    ]
    static let names = first.flatMap { first in last.map { "\(first).\($0)" } }

    private func crowd() throws {
        try signUp(Self.names.map { ($0, "\($0)-phone", "phone") })
        try logIn(Self.names.map { ($0, "\($0)-browser") })
    }

    // MARK: What people do

    /// The backend asks for a code, and an install redeems it.
    /// - Parameter people: external id, install, and which kind of device it is.
    /// - Returns: what the installs are answered.
    @discardableResult
    func signUp(_ people: [(name: String, install: String, device: String)]) throws -> [ReceivedReply] {
        let codes = try stage.done(
            Self.backend, people.map { .init("user.request-auth-code", ["externalId": .string($0.name)]) })
        return try stage.done(
            Self.sdk,
            zip(people, codes).map { person, code in
                Self.creation(person.install, person.device, code: Self.code(code))
            })
    }

    static func code(_ reply: ReceivedReply) -> String { reply.result?["authenticationCode"]?.stringValue ?? "" }

    static func creation(_ install: String, _ device: String, code: String) -> DemoStage.Line {
        .init(
            "user.create",
            [
                "installId": .string(install), "device": ["kind": .string(device), "platform": "ios"],
                "authCode": .string(code),
            ])
    }

    /// Each on a device of their own, with customer id and e-mail.
    func logIn(_ people: [(name: String, device: String)]) throws {
        try stage.done(
            Self.sdk,
            people.map { person in
                Self.login(
                    person.device,
                    [
                        "customerid": .string(person.name), "email": .string("\(person.name)@mail.example"),
                        "device_application_stamp": .string("stamp-\(person.device)"),
                    ])
            })
    }

    static func login(_ device: String, _ identities: JSONValue) -> DemoStage.Line {
        .init(
            "sync.login",
            ["deviceId": .string(device), "environment": "development", "knownIdentities": identities])
    }
}
