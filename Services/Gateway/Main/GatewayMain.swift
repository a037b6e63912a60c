// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Gateway

@main
struct GatewayMain {
    static func main() async {
        await GatewayProcess.run()
    }
}
