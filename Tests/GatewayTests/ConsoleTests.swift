// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import Runtime
import Testing

@testable import Gateway

/// The console's files (docs/console.md). What they do is tested in Tests/EndToEnd/test_console.py and Tests/Browser.
@Suite struct ConsoleTests {
    @Test func withoutAConsoleThereIsNoFile() {
        #expect(ConsoleFiles(.no) == nil)
        #expect(Route.at("/console", .admin).isEmpty && Route.at("/console", .api).isEmpty)
    }

    @Test func thePageNamesItsFiles() throws {
        let files = try #require(ConsoleFiles(.yes))
        for name in [""] + ConsoleFiles.compiled.map(\.name) {
            let response = try #require(files.response(name))
            #expect(response.status == 200 && !response.body.isEmpty)
            #expect(response.headers[.cacheControl] == "no-store")
        }
        #expect(files.response("app.js") == nil)
        let sizes = ConsoleFiles.compiled.map(\.text.utf8.count)
        #expect(sizes.reduce(0, +) <= 60 * 1024)
    }

    @Test func onlyADemoNamesKeys() throws {
        func page(_ mode: ConsoleMode) throws -> String {
            String(decoding: try #require(ConsoleFiles(mode)?.response("")).body, as: UTF8.self)
        }
        #expect(try page(.yes).contains(#"data-mode="plain""#))
        #expect(try page(.demo).contains(#"data-mode="demo""#))
    }

    @Test func aConsoleNeedsItsPort() throws {
        let environment = [
            "KAFKA_BOOTSTRAP_SERVERS": "b:1", "IDENTITYBUS_INTERNAL_KEY": "0123456789abcdef", "CONSOLE": "yes",
        ]
        #expect(throws: ConfigurationProblem.self) { try GatewayConfiguration(environment: environment) }
        let with = try GatewayConfiguration(environment: environment.merging(["GATEWAY_ADMIN_PORT": "0"]) { $1 })
        #expect(with.console == .yes)
    }
}
