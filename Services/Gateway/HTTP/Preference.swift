// SPDX-License-Identifier: Apache-2.0

/// `Prefer: dry-run` (RFC 7240): say what the request would come to, and change nothing.
enum Preference {
    private static let dryRun = "dry-run"

    static func isDryRun(_ request: APIRequest) -> Bool {
        guard let header = request.header("Prefer") else { return false }
        return header.split(separator: ",").contains { preference in
            let name = preference.prefix { $0 != ";" && $0 != "=" }
            return name.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased() == dryRun
        }
    }

    static func confirm(in response: inout APIResponse, to request: APIRequest) {
        if isDryRun(request) { response.set("Preference-Applied", dryRun) }
    }
}
