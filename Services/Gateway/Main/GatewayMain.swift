// SPDX-License-Identifier: Apache-2.0

import Gateway

@main
struct GatewayMain {
    static func main() {
        GatewayProcess.run()
    }
}
