// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Link
import Runtime

@main
struct LinkMain {
    static func main() async {
        await ServiceMain.run(LinkService())
    }
}
