// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import Testing
import WireJSON

@testable import Gateway

@Suite struct PreferenceTests {
    private func request(_ prefer: String?) throws -> APIRequest {
        var headers = HTTPFields()
        if let prefer { headers[try #require(HTTPField.Name("Prefer"))] = prefer }
        return APIRequest(method: "POST", path: "/", headers: headers)
    }

    @Test(arguments: [
        "dry-run", "Dry-Run", "respond-async, dry-run", "dry-run; x=1", " dry-run ,wait=10", "dry-run=\"\"",
    ])
    func isADryRun(_ text: String) throws {
        #expect(Preference.isDryRun(try request(text)))
        var response = APIResponse(status: 200)
        Preference.confirm(in: &response, to: try request(text))
        #expect(response.headers[try #require(HTTPField.Name("Preference-Applied"))] == "dry-run")
    }

    @Test(arguments: [nil, "", "wait=10", "dry-runs", "return=dry-run", "x; dry-run"]) func isNone(_ text: String?)
        throws
    {
        #expect(!Preference.isDryRun(try request(text)))
    }

    @Test func readOnlyIsTheVendorsWordForIt() throws {
        #expect(try Dialect.identity.isDryRun(["read_only": true]))
        #expect(try !Dialect.identity.isDryRun(["read_only": false]))
        #expect(try !Dialect.identity.isDryRun(["read_only": .null]))
        #expect(try !Dialect.alias.isDryRun(["read_only": true]) && !Dialect.own.isDryRun(["read_only": true]))
        for odd in ["true", 1, []] as [JSONValue] {
            #expect(throws: APIFailure.self) { try Dialect.identity.isDryRun(["read_only": odd]) }
        }
    }
}
