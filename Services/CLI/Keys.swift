// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Crypto
import Foundation
import Runtime
import Supervision
import WireJSON

struct SignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Reads a record's value on standard input and prints its signature header.",
        discussion: """
            For producers written by hand. The value is signed byte for byte: do not let a shell add a newline. \
            Binary mode: give every ce_* header with --header.
            """)

    @Option(help: "The topic the record goes to.")
    var topic: String

    @Option(help: "The app whose key signs.")
    var app: AppID

    @Option(help: "The API key to sign with; `internal` signs as the services do.")
    var keyId: KeyID

    @Option(name: .customLong("header"), help: "A ce_* header as name=value; once for each.")
    var headers: [String] = []

    @Flag(help: "Print one JSON line.")
    var json = false

    @OptionGroup var files: DeploymentFiles

    private func wireHeaders() throws -> [Header] {
        try headers.map { text in
            guard let separator = text.firstIndex(of: "="), text.hasPrefix(HeaderName.attributePrefix) else {
                throw ValidationError("--header \(text): must be ce_<attribute>=<value>")
            }
            return Header(String(text[..<separator]), String(text[text.index(after: separator)...]))
        }
    }

    func validate() throws { _ = try wireHeaders() }

    func run() throws {
        let wireHeaders = try wireHeaders()
        guard let value = try? FileHandle.standardInput.readToEnd().map(Array.init) ?? [] else {
            throw Problem(
                .usage, "Standard input cannot be read.", "Give it the record's value: identitybus sign … < FILE")
        }
        let secret = try files.secret(app: app, keyID: keyId)
        let header = Signature(keyID: keyId.text, secret: secret, topic: topic, headers: wireHeaders, value: value)
            .header
        json ? say(json: ["signature": .string(header)]) : say(header)
    }
}

struct DeriveKeysCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "derive-keys",
        abstract: "Prints the keys of one purpose, for a process that must not hold the internal key.",
        discussion: """
            Reads IDENTITYBUS_INTERNAL_KEY and IDENTITYBUS_PREVIOUS_INTERNAL_KEYS (or their _FILE variants) and prints one \
            line. `gateway` is for IDENTITYBUS_GATEWAY_KEYS: it speaks for callers, and checks its replies and user tokens. \
            `events-reader` is for IDENTITYBUS_EVENTS_KEYS: it checks events and replies, and signs no command. The line \
            is a secret, like the keys it comes from.
            """)

    enum Reader: String, ExpressibleByArgument, CaseIterable {
        case gateway
        case eventsReader = "events-reader"
    }

    @Option(name: .customLong("for"), help: "Who will hold the keys: gateway or events-reader.")
    var reader: Reader

    @Flag(help: "Print one JSON line.")
    var json = false

    func run() throws {
        let keys = try DeploymentKeys(environment: EnvironmentSettings(ProcessInfo.processInfo.environment))
        guard !keys.isEmpty else {
            throw Problem(
                .setting, "IDENTITYBUS_INTERNAL_KEY is not set.",
                "Set it, or IDENTITYBUS_INTERNAL_KEY_FILE to its file.")
        }
        let text = keys.text(
            for: reader == .gateway ? DeploymentKeys.gatewayPurposes : DeploymentKeys.readerPurposes)
        let variable = reader == .gateway ? "IDENTITYBUS_GATEWAY_KEYS" : "IDENTITYBUS_EVENTS_KEYS"
        json ? say(json: ["variable": .string(variable), "value": .string(text)]) : say(text)
    }
}
