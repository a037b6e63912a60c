// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Contracts
import Crypto
import Foundation

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
    var app: String

    @Option(help: "The API key to sign with; `internal` signs as the services do.")
    var keyId: String

    @Option(name: .customLong("header"), help: "A ce_* header as name=value; once for each.")
    var headers: [String] = []

    @OptionGroup var deployment: Deployment

    func run() throws {
        let wireHeaders = try headers.map { text in
            guard let separator = text.firstIndex(of: "="), text.hasPrefix(HeaderName.attributePrefix) else {
                throw ValidationError("--header \(text) is not ce_<attribute>=<value>")
            }
            return WireHeader(String(text[..<separator]), String(text[text.index(after: separator)...]))
        }
        let value = Array(FileHandle.standardInput.readDataToEndOfFile())
        let secret = try deployment.secret(app: app, keyID: keyId)
        print(Signature(keyID: keyId, secret: secret, topic: topic, headers: wireHeaders, value: value).header)
    }
}
