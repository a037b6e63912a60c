// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Runtime
import Verification

@main
struct VerificationMain {
    static func main() async {
        await ServiceMain.run(VerificationService())
    }
}
