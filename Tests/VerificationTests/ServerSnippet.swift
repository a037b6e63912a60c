// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation

func userAuthToken(secret: String, message: String) -> String {
    let key = SymmetricKey(data: Data(secret.utf8))
    return Data(HMAC<SHA256>.authenticationCode(for: Data(message.utf8), using: key)).base64EncodedString()
}
