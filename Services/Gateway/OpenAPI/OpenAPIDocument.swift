// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file

/// What the gateway serves at `/openapi.json`: docs/openapi.json, to the letter (a test compares them). A text and not
/// a resource: resources lie beside the executable or compile as a list of a hundred thousand numbers.
enum OpenAPIDocument {
    static let text = #"""
{
 "openapi": "3.1.0",
 "info": {
  "title": "IdentityBus",
  "version": "1.0.0",
  "license": {
   "name": "Apache-2.0",
   "identifier": "Apache-2.0"
  },
  "description": "The HTTP gateway of IdentityBus. Each request becomes one command on Kafka and waits for its reply. Paths, bodies and errors of the groups `linking` and `identity` are those of the vendors' REST calls; `devices` and `verification` are our own. Every answer carries `X-Request-Id`: the command's id."
 },
 "servers": [
  {
   "url": "/"
  }
 ],
 "tags": [
  {
   "name": "linking",
   "description": "For backends: bearer API keys with the scope `user.link`; `user.delete` to erase."
  },
  {
   "name": "devices",
   "description": "For SDKs. Bearer API keys with the scope `sdk` create users. An install is opened by its user's token or its install token, which creation returns; an API key gets 403 `USER_TOKEN_REQUIRED` there."
  },
  {
   "name": "identity",
   "description": "For SDKs and backends: the vendor's three ways to authenticate, with a key of the scope `identity.sync`. 401 and 403 have no body."
  },
  {
   "name": "verification",
   "description": "Bearer API keys with the scope `sdk`; `check` and `sessions` need `verification.check`."
  },
  {
   "name": "document"
  }
 ],
 "paths": {
  "/v2/users/{install_id}/link": {
   "post": {
    "operationId": "linkUser",
    "summary": "Link an install to a user of the app",
    "description": "The app's backend says whose install this is. An external id that is known: its user, restored on this install, and other installs of that user are deactivated (a tablet beside a phone stays inactive). Unknown: a new user, or the install's own one.",
    "tags": [
     "linking"
    ],
    "parameters": [
     {
      "name": "install_id",
      "in": "path",
      "required": true,
      "description": "Percent-encoded.",
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "Linked, now or before.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/LinkedUser"
        },
        "example": {
         "id": "5a18fc4b0962209e0000000d"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Linking400"
     },
     "401": {
      "$ref": "#/components/responses/Linking401"
     },
     "403": {
      "$ref": "#/components/responses/Linking403"
     },
     "404": {
      "$ref": "#/components/responses/Linking404"
     },
     "409": {
      "$ref": "#/components/responses/Linking409"
     },
     "410": {
      "$ref": "#/components/responses/Linking410"
     },
     "413": {
      "$ref": "#/components/responses/Linking413"
     },
     "415": {
      "$ref": "#/components/responses/Linking415"
     },
     "429": {
      "$ref": "#/components/responses/Linking429"
     },
     "500": {
      "$ref": "#/components/responses/Linking500"
     },
     "503": {
      "$ref": "#/components/responses/Linking503"
     },
     "504": {
      "$ref": "#/components/responses/Linking504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/ExternalID"
       },
       "example": {
        "external_id": "ada"
       }
      }
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/users/auth-code": {
   "post": {
    "operationId": "requestAuthenticationCode",
    "summary": "Request an authentication code",
    "description": "For the app's backend, at sign-up and login. The device creates, or restores, the user behind the external id with it.",
    "tags": [
     "linking"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "A new code.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/AuthenticationCode"
        },
        "example": {
         "authentication_code": "fd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9cfd9c",
         "expires_at": "2030-01-31T12:10:00.000Z"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Linking400"
     },
     "401": {
      "$ref": "#/components/responses/Linking401"
     },
     "403": {
      "$ref": "#/components/responses/Linking403"
     },
     "404": {
      "$ref": "#/components/responses/Linking404"
     },
     "409": {
      "$ref": "#/components/responses/Linking409"
     },
     "410": {
      "$ref": "#/components/responses/Linking410"
     },
     "413": {
      "$ref": "#/components/responses/Linking413"
     },
     "415": {
      "$ref": "#/components/responses/Linking415"
     },
     "429": {
      "$ref": "#/components/responses/Linking429"
     },
     "500": {
      "$ref": "#/components/responses/Linking500"
     },
     "503": {
      "$ref": "#/components/responses/Linking503"
     },
     "504": {
      "$ref": "#/components/responses/Linking504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/ExternalID"
       },
       "example": {
        "external_id": "ada"
       }
      }
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/users/{user_id}": {
   "delete": {
    "operationId": "eraseUser",
    "summary": "Erase a user",
    "description": "Removes the user with its external id, installs, codes, profiles and sessions from all services, for good. The external id is free for a new user; the user's installs are refused with `INSTALL_DELETED`. Erasing again succeeds.",
    "tags": [
     "linking"
    ],
    "parameters": [
     {
      "name": "user_id",
      "in": "path",
      "required": true,
      "description": "As it stands: not percent-encoded.",
      "schema": {
       "type": "string",
       "pattern": "^[0-9a-f]{24}$"
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "All services have erased the user."
     },
     "202": {
      "description": "The user is gone, and not all services have said so within the gateway's time. It goes on; the same request again waits for the end."
     },
     "400": {
      "$ref": "#/components/responses/Linking400"
     },
     "401": {
      "$ref": "#/components/responses/Linking401"
     },
     "403": {
      "$ref": "#/components/responses/Linking403"
     },
     "404": {
      "$ref": "#/components/responses/Linking404"
     },
     "409": {
      "$ref": "#/components/responses/Linking409"
     },
     "413": {
      "$ref": "#/components/responses/Linking413"
     },
     "415": {
      "$ref": "#/components/responses/Linking415"
     },
     "429": {
      "$ref": "#/components/responses/Linking429"
     },
     "500": {
      "$ref": "#/components/responses/Linking500"
     },
     "502": {
      "$ref": "#/components/responses/Linking502"
     },
     "503": {
      "$ref": "#/components/responses/Linking503"
     },
     "504": {
      "$ref": "#/components/responses/Linking504"
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/sdk/v1/users": {
   "post": {
    "operationId": "createUser",
    "summary": "Create or restore the device's user",
    "description": "With an authentication code; or with the app secret, linked by the app's backend next (`linker`, answered 202) or not at all (`none`).",
    "tags": [
     "devices"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The user.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/User"
        },
        "example": {
         "userId": "5a18fc4b0962209e0000000d",
         "installId": "demo-install-1",
         "isLinked": true,
         "isRemoteEnabled": true,
         "token": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         },
         "configuration": {},
         "installToken": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6Imluc3RhbGwrand0In0.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         }
        }
       }
      }
     },
     "202": {
      "description": "The app's linker has its turn.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Pending"
        },
        "example": {
         "installId": "demo-install-1",
         "awaiting": "linker",
         "installToken": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6Imluc3RhbGwrand0In0.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         }
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "oneOf": [
         {
          "$ref": "#/components/schemas/NewUserByCode"
         },
         {
          "$ref": "#/components/schemas/NewUserBySecret"
         }
        ]
       },
       "example": {
        "installId": "demo-install-1",
        "device": {
         "kind": "phone",
         "platform": "ios"
        },
        "appSecret": "demo-app-secret",
        "linking": "none"
       }
      }
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/sdk/v1/installs/{install_id}": {
   "get": {
    "operationId": "readInstall",
    "summary": "Read the device's user",
    "description": "With fresh tokens.",
    "tags": [
     "devices"
    ],
    "parameters": [
     {
      "name": "install_id",
      "in": "path",
      "required": true,
      "description": "Percent-encoded.",
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The user.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/User"
        },
        "example": {
         "userId": "5a18fc4b0962209e0000000d",
         "installId": "demo-install-1",
         "isLinked": true,
         "isRemoteEnabled": true,
         "token": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         },
         "configuration": {},
         "installToken": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6Imluc3RhbGwrand0In0.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         }
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "security": [
     {
      "userToken": []
     },
     {
      "installToken": []
     }
    ]
   }
  },
  "/sdk/v1/installs/{install_id}/link": {
   "post": {
    "operationId": "linkInstall",
    "summary": "Link the device's unlinked user",
    "description": "Only to an external id that is new to the platform; otherwise reset and create a linked user.",
    "tags": [
     "devices"
    ],
    "parameters": [
     {
      "name": "install_id",
      "in": "path",
      "required": true,
      "description": "Percent-encoded.",
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "Linked.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/User"
        },
        "example": {
         "userId": "5a18fc4b0962209e0000000d",
         "installId": "demo-install-1",
         "isLinked": true,
         "isRemoteEnabled": true,
         "token": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         },
         "configuration": {},
         "installToken": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6Imluc3RhbGwrand0In0.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         }
        }
       }
      }
     },
     "202": {
      "description": "The app's linker has its turn.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Pending"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "oneOf": [
         {
          "type": "object",
          "required": [
           "authCode"
          ],
          "properties": {
           "authCode": {
            "type": "string"
           }
          },
          "not": {
           "required": [
            "linking"
           ]
          }
         },
         {
          "type": "object",
          "required": [
           "linking"
          ],
          "properties": {
           "linking": {
            "type": "string",
            "enum": [
             "linker"
            ]
           }
          },
          "not": {
           "required": [
            "authCode"
           ]
          }
         }
        ]
       },
       "example": {
        "linking": "linker"
       }
      }
     }
    },
    "security": [
     {
      "userToken": []
     },
     {
      "installToken": []
     }
    ]
   }
  },
  "/sdk/v1/installs/{install_id}/confirm-link": {
   "post": {
    "operationId": "confirmLink",
    "summary": "Tell what the app's linker came to",
    "description": "The platform's own record decides, not the app's word.",
    "tags": [
     "devices"
    ],
    "parameters": [
     {
      "name": "install_id",
      "in": "path",
      "required": true,
      "description": "Percent-encoded.",
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "Linked.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/User"
        },
        "example": {
         "userId": "5a18fc4b0962209e0000000d",
         "installId": "demo-install-1",
         "isLinked": true,
         "isRemoteEnabled": true,
         "token": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         },
         "configuration": {},
         "installToken": {
          "tokenId": "eyJhbGciOiJIUzI1NiIsInR5cCI6Imluc3RhbGwrand0In0.e30.c2ln",
          "expiryDate": "2030-01-31T12:00:00.000Z"
         }
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "type": "object",
        "required": [
         "success"
        ],
        "properties": {
         "success": {
          "type": "boolean"
         }
        }
       },
       "example": {
        "success": true
       }
      }
     }
    },
    "security": [
     {
      "userToken": []
     },
     {
      "installToken": []
     }
    ]
   }
  },
  "/sdk/v1/installs/{install_id}/reset": {
   "post": {
    "operationId": "resetInstall",
    "summary": "Take the user off the device",
    "description": "The platform keeps the user: creating with the same external id restores it.",
    "tags": [
     "devices"
    ],
    "parameters": [
     {
      "name": "install_id",
      "in": "path",
      "required": true,
      "description": "Percent-encoded.",
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Install"
        },
        "example": {
         "installId": "demo-install-1"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "security": [
     {
      "userToken": []
     },
     {
      "installToken": []
     }
    ]
   }
  },
  "/v1/identify": {
   "post": {
    "operationId": "identify",
    "summary": "Who is on this device?",
    "description": "Body and answer as the vendor's SDKs write and read them. Also below `/identity`, `/webevents` and `/nativeevents`, which are not part of what is signed. Unknown members and query parameters are ignored.",
    "tags": [
     "identity"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The profile.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Identity"
        },
        "example": {
         "context": null,
         "mpid": "-5043829911212345678",
         "matched_identities": {},
         "is_ephemeral": false,
         "is_logged_in": true
        }
       }
      },
      "headers": {
       "X-MP-Max-Age": {
        "description": "Seconds that clients may keep the answer to identify and login; only when the app's `gateway.maxAgeSeconds` says so.",
        "schema": {
         "type": "integer"
        }
       },
       "X-mp-rate-limit-percentage-used": {
        "description": "How many of the requests that may wait at once do, in percent.",
        "schema": {
         "type": "integer",
         "minimum": 0,
         "maximum": 100
        }
       },
       "X-MP-Trace-Id": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "401": {
      "$ref": "#/components/responses/Empty401"
     },
     "403": {
      "$ref": "#/components/responses/Empty403"
     },
     "400": {
      "$ref": "#/components/responses/Identity400"
     },
     "404": {
      "$ref": "#/components/responses/Identity404"
     },
     "409": {
      "$ref": "#/components/responses/Identity409"
     },
     "413": {
      "$ref": "#/components/responses/Identity413"
     },
     "415": {
      "$ref": "#/components/responses/Identity415"
     },
     "429": {
      "$ref": "#/components/responses/Identity429"
     },
     "500": {
      "$ref": "#/components/responses/Identity500"
     },
     "503": {
      "$ref": "#/components/responses/Identity503"
     },
     "504": {
      "$ref": "#/components/responses/Identity504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/IdentityRequest"
       },
       "example": {
        "client_sdk": {
         "platform": "web",
         "sdk_vendor": "mparticle",
         "sdk_version": "2.71.2"
        },
        "context": null,
        "environment": "development",
        "request_id": "6c6a234f-0000-4000-8000-000000000001",
        "request_timestamp_ms": 1795251794133,
        "previous_mpid": null,
        "known_identities": {
         "customerid": "ABC123",
         "email": "Ed.Hyde@example.com",
         "device_application_stamp": "demo-device-1"
        }
       }
      }
     }
    },
    "security": [
     {
      "basic": []
     },
     {
      "apiKey": [],
      "signature": [],
      "date": []
     },
     {
      "apiKey": []
     }
    ]
   }
  },
  "/v1/login": {
   "post": {
    "operationId": "login",
    "summary": "Somebody logged in",
    "description": "Body and answer as the vendor's SDKs write and read them. Also below `/identity`, `/webevents` and `/nativeevents`, which are not part of what is signed. Unknown members and query parameters are ignored.",
    "tags": [
     "identity"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The profile.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Identity"
        },
        "example": {
         "context": null,
         "mpid": "-5043829911212345678",
         "matched_identities": {},
         "is_ephemeral": false,
         "is_logged_in": true
        }
       }
      },
      "headers": {
       "X-MP-Max-Age": {
        "description": "Seconds that clients may keep the answer to identify and login; only when the app's `gateway.maxAgeSeconds` says so.",
        "schema": {
         "type": "integer"
        }
       },
       "X-mp-rate-limit-percentage-used": {
        "description": "How many of the requests that may wait at once do, in percent.",
        "schema": {
         "type": "integer",
         "minimum": 0,
         "maximum": 100
        }
       },
       "X-MP-Trace-Id": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "401": {
      "$ref": "#/components/responses/Empty401"
     },
     "403": {
      "$ref": "#/components/responses/Empty403"
     },
     "400": {
      "$ref": "#/components/responses/Identity400"
     },
     "404": {
      "$ref": "#/components/responses/Identity404"
     },
     "409": {
      "$ref": "#/components/responses/Identity409"
     },
     "413": {
      "$ref": "#/components/responses/Identity413"
     },
     "415": {
      "$ref": "#/components/responses/Identity415"
     },
     "429": {
      "$ref": "#/components/responses/Identity429"
     },
     "500": {
      "$ref": "#/components/responses/Identity500"
     },
     "503": {
      "$ref": "#/components/responses/Identity503"
     },
     "504": {
      "$ref": "#/components/responses/Identity504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/IdentityRequest"
       },
       "example": {
        "client_sdk": {
         "platform": "web",
         "sdk_vendor": "mparticle",
         "sdk_version": "2.71.2"
        },
        "context": null,
        "environment": "development",
        "request_id": "6c6a234f-0000-4000-8000-000000000001",
        "request_timestamp_ms": 1795251794133,
        "previous_mpid": null,
        "known_identities": {
         "customerid": "ABC123",
         "email": "Ed.Hyde@example.com",
         "device_application_stamp": "demo-device-1"
        }
       }
      }
     }
    },
    "security": [
     {
      "basic": []
     },
     {
      "apiKey": [],
      "signature": [],
      "date": []
     },
     {
      "apiKey": []
     }
    ]
   }
  },
  "/v1/logout": {
   "post": {
    "operationId": "logout",
    "summary": "Somebody logged out",
    "description": "Body and answer as the vendor's SDKs write and read them. Also below `/identity`, `/webevents` and `/nativeevents`, which are not part of what is signed. Unknown members and query parameters are ignored.",
    "tags": [
     "identity"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The profile.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Identity"
        },
        "example": {
         "context": null,
         "mpid": "-5043829911212345678",
         "matched_identities": {},
         "is_ephemeral": false,
         "is_logged_in": true
        }
       }
      },
      "headers": {
       "X-MP-Max-Age": {
        "description": "Seconds that clients may keep the answer to identify and login; only when the app's `gateway.maxAgeSeconds` says so.",
        "schema": {
         "type": "integer"
        }
       },
       "X-mp-rate-limit-percentage-used": {
        "description": "How many of the requests that may wait at once do, in percent.",
        "schema": {
         "type": "integer",
         "minimum": 0,
         "maximum": 100
        }
       },
       "X-MP-Trace-Id": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "401": {
      "$ref": "#/components/responses/Empty401"
     },
     "403": {
      "$ref": "#/components/responses/Empty403"
     },
     "400": {
      "$ref": "#/components/responses/Identity400"
     },
     "404": {
      "$ref": "#/components/responses/Identity404"
     },
     "409": {
      "$ref": "#/components/responses/Identity409"
     },
     "413": {
      "$ref": "#/components/responses/Identity413"
     },
     "415": {
      "$ref": "#/components/responses/Identity415"
     },
     "429": {
      "$ref": "#/components/responses/Identity429"
     },
     "500": {
      "$ref": "#/components/responses/Identity500"
     },
     "503": {
      "$ref": "#/components/responses/Identity503"
     },
     "504": {
      "$ref": "#/components/responses/Identity504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/IdentityRequest"
       },
       "example": {
        "client_sdk": {
         "platform": "web",
         "sdk_vendor": "mparticle",
         "sdk_version": "2.71.2"
        },
        "context": null,
        "environment": "development",
        "request_id": "6c6a234f-0000-4000-8000-000000000001",
        "request_timestamp_ms": 1795251794133,
        "previous_mpid": null,
        "known_identities": {
         "customerid": "ABC123",
         "email": "Ed.Hyde@example.com",
         "device_application_stamp": "demo-device-1"
        }
       }
      }
     }
    },
    "security": [
     {
      "basic": []
     },
     {
      "apiKey": [],
      "signature": [],
      "date": []
     },
     {
      "apiKey": []
     }
    ]
   }
  },
  "/v1/search": {
   "post": {
    "operationId": "search",
    "summary": "Find a profile without changing anything",
    "description": "Body and answer as the vendor's SDKs write and read them. Also below `/identity`, `/webevents` and `/nativeevents`, which are not part of what is signed. Unknown members and query parameters are ignored.",
    "tags": [
     "identity"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The profile.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Identity"
        },
        "example": {
         "context": null,
         "mpid": "-5043829911212345678",
         "matched_identities": {},
         "is_ephemeral": false,
         "is_logged_in": true
        }
       }
      },
      "headers": {
       "X-MP-Max-Age": {
        "description": "Seconds that clients may keep the answer to identify and login; only when the app's `gateway.maxAgeSeconds` says so.",
        "schema": {
         "type": "integer"
        }
       },
       "X-mp-rate-limit-percentage-used": {
        "description": "How many of the requests that may wait at once do, in percent.",
        "schema": {
         "type": "integer",
         "minimum": 0,
         "maximum": 100
        }
       },
       "X-MP-Trace-Id": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "401": {
      "$ref": "#/components/responses/Empty401"
     },
     "403": {
      "$ref": "#/components/responses/Empty403"
     },
     "400": {
      "$ref": "#/components/responses/Identity400"
     },
     "404": {
      "$ref": "#/components/responses/Identity404"
     },
     "409": {
      "$ref": "#/components/responses/Identity409"
     },
     "413": {
      "$ref": "#/components/responses/Identity413"
     },
     "415": {
      "$ref": "#/components/responses/Identity415"
     },
     "429": {
      "$ref": "#/components/responses/Identity429"
     },
     "500": {
      "$ref": "#/components/responses/Identity500"
     },
     "503": {
      "$ref": "#/components/responses/Identity503"
     },
     "504": {
      "$ref": "#/components/responses/Identity504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/IdentityRequest"
       },
       "example": {
        "client_sdk": {
         "platform": "web",
         "sdk_vendor": "mparticle",
         "sdk_version": "2.71.2"
        },
        "context": null,
        "environment": "development",
        "request_id": "6c6a234f-0000-4000-8000-000000000001",
        "request_timestamp_ms": 1795251794133,
        "previous_mpid": null,
        "known_identities": {
         "customerid": "ABC123",
         "email": "Ed.Hyde@example.com",
         "device_application_stamp": "demo-device-1"
        }
       }
      }
     }
    },
    "security": [
     {
      "basic": []
     },
     {
      "apiKey": [],
      "signature": [],
      "date": []
     },
     {
      "apiKey": []
     }
    ]
   }
  },
  "/v1/{mpid}/modify": {
   "post": {
    "operationId": "modify",
    "summary": "Change identities of a profile",
    "description": "Never makes or switches profiles. Also below `/identity`, `/webevents` and `/nativeevents`, which are not part of what is signed. Unknown members and query parameters are ignored.",
    "tags": [
     "identity"
    ],
    "parameters": [
     {
      "name": "mpid",
      "in": "path",
      "required": true,
      "schema": {
       "type": "string",
       "pattern": "^-?[1-9][0-9]{0,17}$"
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "Changed.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Modified"
        },
        "example": {
         "mpid": "-5043829911212345678",
         "is_logged_in": true,
         "change_results": [
          {
           "identity_type": "email",
           "modified_mpid": "-5043829911212345678"
          }
         ]
        }
       }
      },
      "headers": {
       "X-mp-rate-limit-percentage-used": {
        "description": "How many of the requests that may wait at once do, in percent.",
        "schema": {
         "type": "integer",
         "minimum": 0,
         "maximum": 100
        }
       },
       "X-MP-Trace-Id": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "401": {
      "$ref": "#/components/responses/Empty401"
     },
     "403": {
      "$ref": "#/components/responses/Empty403"
     },
     "400": {
      "$ref": "#/components/responses/Identity400"
     },
     "404": {
      "$ref": "#/components/responses/Identity404"
     },
     "409": {
      "$ref": "#/components/responses/Identity409"
     },
     "413": {
      "$ref": "#/components/responses/Identity413"
     },
     "415": {
      "$ref": "#/components/responses/Identity415"
     },
     "429": {
      "$ref": "#/components/responses/Identity429"
     },
     "500": {
      "$ref": "#/components/responses/Identity500"
     },
     "503": {
      "$ref": "#/components/responses/Identity503"
     },
     "504": {
      "$ref": "#/components/responses/Identity504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/ModifyRequest"
       },
       "example": {
        "environment": "development",
        "identity_changes": [
         {
          "identity_type": "email",
          "old_value": "Ed.Hyde@example.com",
          "new_value": "h.jekyll.md@example.com"
         }
        ]
       }
      }
     }
    },
    "security": [
     {
      "basic": []
     },
     {
      "apiKey": [],
      "signature": [],
      "date": []
     },
     {
      "apiKey": []
     }
    ]
   }
  },
  "/v1/identity/{api_key}/alias": {
   "post": {
    "operationId": "alias",
    "summary": "Carry over what a profile did to another one",
    "description": "Applied after a delay. Also as `…/Alias`. The key in the path needs no `x-mp-key`. Also below `/identity`, `/webevents` and `/nativeevents`, which are not part of what is signed. Unknown members and query parameters are ignored.",
    "tags": [
     "identity"
    ],
    "parameters": [
     {
      "name": "api_key",
      "in": "path",
      "required": true,
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "202": {
      "description": "Accepted, to be applied later or to be dropped by the vendor's silent rules. No body."
     },
     "401": {
      "$ref": "#/components/responses/Empty401"
     },
     "403": {
      "$ref": "#/components/responses/Empty403"
     },
     "400": {
      "$ref": "#/components/responses/Alias400"
     },
     "404": {
      "$ref": "#/components/responses/Alias404"
     },
     "409": {
      "$ref": "#/components/responses/Alias409"
     },
     "413": {
      "$ref": "#/components/responses/Alias413"
     },
     "415": {
      "$ref": "#/components/responses/Alias415"
     },
     "429": {
      "$ref": "#/components/responses/Alias429"
     },
     "500": {
      "$ref": "#/components/responses/Alias500"
     },
     "503": {
      "$ref": "#/components/responses/Alias503"
     },
     "504": {
      "$ref": "#/components/responses/Alias504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/AliasRequest"
       },
       "example": {
        "request_id": "6c6a234f-0000-4000-8000-000000000002",
        "request_type": "alias",
        "environment": "development",
        "api_key": "demo-sdk",
        "data": {
         "source_mpid": "7000000000000000004",
         "destination_mpid": "-7000000000000000002",
         "scope": "device",
         "device_application_stamp": "demo-device-1"
        }
       }
      }
     }
    },
    "security": [
     {
      "basic": []
     },
     {
      "signature": [],
      "date": []
     },
     {}
    ]
   }
  },
  "/v3/JS/{api_key}/events": {
   "post": {
    "operationId": "events",
    "summary": "Event batches of the web SDK: accepted and thrown away",
    "description": "So that the SDK goes on. IdentityBus does not collect events. Also for v1 and v2, as `Events` and `forwarding`.",
    "tags": [
     "identity"
    ],
    "parameters": [
     {
      "name": "api_key",
      "in": "path",
      "required": true,
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     }
    ],
    "responses": {
     "202": {
      "description": "Thrown away. No body."
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     }
    },
    "requestBody": {
     "required": false,
     "content": {
      "text/plain": {
       "schema": {
        "type": "string"
       }
      }
     }
    },
    "security": [
     {}
    ]
   }
  },
  "/v1/verification/login": {
   "post": {
    "operationId": "verification-login",
    "summary": "Log somebody in",
    "description": "For devices.",
    "tags": [
     "verification"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The session.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Verification"
        },
        "example": {
         "state": "verified",
         "mayFileIssues": true,
         "keyId": "k1"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/VerificationLogin"
       },
       "example": {
        "deviceId": "demo-device-1",
        "userId": "captain_planet"
       }
      }
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/v1/verification/login-identity": {
   "post": {
    "operationId": "verification-login-identity",
    "summary": "Log somebody in with an identity token",
    "description": "For devices.",
    "tags": [
     "verification"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The session.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Verification"
        },
        "example": {
         "state": "verified",
         "mayFileIssues": true,
         "keyId": "k1"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/VerificationLoginIdentity"
       },
       "example": {
        "deviceId": "demo-device-1",
        "identityToken": ""
       }
      }
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/v1/verification/logout": {
   "post": {
    "operationId": "verification-logout",
    "summary": "Log out",
    "description": "For devices.",
    "tags": [
     "verification"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The session.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Verification"
        },
        "example": {
         "state": "verified",
         "mayFileIssues": true,
         "keyId": "k1"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/VerificationLogout"
       },
       "example": {
        "deviceId": "demo-device-1"
       }
      }
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/v1/verification/check": {
   "post": {
    "operationId": "verification-check",
    "summary": "Is this token right?",
    "description": "For the app's backend.",
    "tags": [
     "verification"
    ],
    "parameters": [
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "It is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Verification"
        },
        "example": {
         "state": "verified",
         "mayFileIssues": true,
         "keyId": "k1"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/VerificationCheck"
       },
       "example": {
        "userId": "captain_planet",
        "userAuthToken": "0YXx/SAmWmwcgIqAjMdsomnTjPwnxVzMyRflSGFBRDU="
       }
      }
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/v1/verification/sessions/{device_id}": {
   "get": {
    "operationId": "verification-session",
    "summary": "Who uses this device, and what may they do?",
    "description": "For the app's backend. A device that is not known has an anonymous user.",
    "tags": [
     "verification"
    ],
    "parameters": [
     {
      "name": "device_id",
      "in": "path",
      "required": true,
      "description": "Percent-encoded.",
      "schema": {
       "type": "string",
       "minLength": 1,
       "maxLength": 255
      }
     },
     {
      "$ref": "#/components/parameters/IdempotencyKey"
     },
     {
      "$ref": "#/components/parameters/Prefer"
     },
     {
      "$ref": "#/components/parameters/TraceParent"
     }
    ],
    "responses": {
     "200": {
      "description": "The session.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/VerificationSession"
        },
        "example": {
         "deviceId": "demo-device-1",
         "state": "verified",
         "mayFileIssues": true,
         "hasLogin": true,
         "mpid": "-8532907531268105187",
         "keyId": "k1",
         "verifiedAt": "2030-01-31T12:00:00.000Z"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/Problem400"
     },
     "401": {
      "$ref": "#/components/responses/Problem401"
     },
     "403": {
      "$ref": "#/components/responses/Problem403"
     },
     "404": {
      "$ref": "#/components/responses/Problem404"
     },
     "409": {
      "$ref": "#/components/responses/Problem409"
     },
     "410": {
      "$ref": "#/components/responses/Problem410"
     },
     "413": {
      "$ref": "#/components/responses/Problem413"
     },
     "415": {
      "$ref": "#/components/responses/Problem415"
     },
     "429": {
      "$ref": "#/components/responses/Problem429"
     },
     "500": {
      "$ref": "#/components/responses/Problem500"
     },
     "502": {
      "$ref": "#/components/responses/Problem502"
     },
     "503": {
      "$ref": "#/components/responses/Problem503"
     },
     "504": {
      "$ref": "#/components/responses/Problem504"
     }
    },
    "security": [
     {
      "bearerAPIKey": []
     }
    ]
   }
  },
  "/openapi.json": {
   "get": {
    "operationId": "openapi",
    "summary": "This document",
    "description": "",
    "tags": [
     "document"
    ],
    "parameters": [],
    "responses": {
     "200": {
      "description": "OpenAPI 3.1.",
      "content": {
       "application/json": {
        "schema": {
         "type": "object"
        }
       }
      },
      "headers": {
       "ETag": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "304": {
      "description": "What `If-None-Match` names. No body."
     }
    },
    "security": []
   }
  }
 },
 "components": {
  "securitySchemes": {
   "bearerAPIKey": {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "<key id>.<secret>"
   },
   "userToken": {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "`token.tokenId` of a user: reads and changes that user's own installs."
   },
   "installToken": {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "JWT",
    "description": "`installToken.tokenId` of an install: reads and changes that install until it is reset."
   },
   "basic": {
    "type": "http",
    "scheme": "basic",
    "description": "Key id and secret."
   },
   "apiKey": {
    "type": "apiKey",
    "in": "header",
    "name": "x-mp-key",
    "description": "The key's id. Alone it is enough for the calls that the app's `gateway.keyOnly` names."
   },
   "signature": {
    "type": "apiKey",
    "in": "header",
    "name": "x-mp-signature",
    "description": "Lower-case hex of HMAC-SHA256(secret, method + \"\\n\" + Date as sent + \"\\n\" + path + body before compression)."
   },
   "date": {
    "type": "apiKey",
    "in": "header",
    "name": "Date",
    "description": "Any text; it is signed as it is sent."
   }
  },
  "parameters": {
   "IdempotencyKey": {
    "name": "Idempotency-Key",
    "in": "header",
    "required": false,
    "description": "1 to 255 visible ASCII characters. A request that is sent again with the same key, by the same API key and with the same body, gets the first answer and has no other effect; with another body it gets 409. Without it a command that is not decided before the reply time-out is not carried out.",
    "schema": {
     "type": "string",
     "minLength": 1,
     "maxLength": 255,
     "pattern": "^[!-~]+$"
    }
   },
   "TraceParent": {
    "name": "traceparent",
    "in": "header",
    "required": false,
    "description": "W3C trace context; carried on into commands, events and the access log.",
    "schema": {
     "type": "string"
    }
   },
   "Prefer": {
    "name": "Prefer",
    "in": "header",
    "required": false,
    "description": "`dry-run`: decided and answered as ever, and nothing is changed, sent on or remembered; secrets are left away, and an `Idempotency-Key` is not taken. The answer has `Preference-Applied: dry-run`. Other preferences are passed over.",
    "schema": {
     "type": "string"
    }
   }
  },
  "schemas": {
   "ExternalID": {
    "type": "object",
    "required": [
     "external_id"
    ],
    "properties": {
     "external_id": {
      "type": "string",
      "description": "The backend's own id of the user. Exact: not trimmed, not folded. Outer white space, control characters and values that name nobody (`null`, `0`, only dashes and zeros, …) are refused.",
      "minLength": 1,
      "maxLength": 750
     }
    }
   },
   "LinkedUser": {
    "type": "object",
    "required": [
     "id"
    ],
    "properties": {
     "id": {
      "type": "string",
      "description": "The user's id on the platform.",
      "pattern": "^[0-9a-f]{24}$"
     }
    }
   },
   "AuthenticationCode": {
    "type": "object",
    "required": [
     "authentication_code",
     "expires_at"
    ],
    "properties": {
     "authentication_code": {
      "type": "string",
      "description": "Works once.",
      "pattern": "^[0-9a-f]{128}$"
     },
     "expires_at": {
      "type": "string",
      "format": "date-time"
     }
    }
   },
   "LinkingError": {
    "type": "object",
    "required": [
     "message",
     "errorCode",
     "ref"
    ],
    "properties": {
     "message": {
      "type": "string"
     },
     "errorCode": {
      "type": "string",
      "description": "Stable."
     },
     "ref": {
      "type": "string",
      "description": "Names the request for support: the command's id.",
      "format": "uuid"
     }
    }
   },
   "Problem": {
    "type": "object",
    "description": "RFC 9457.",
    "required": [
     "type",
     "title",
     "status",
     "detail",
     "code",
     "ref"
    ],
    "properties": {
     "type": {
      "type": "string"
     },
     "title": {
      "type": "string"
     },
     "status": {
      "type": "integer"
     },
     "detail": {
      "type": "string",
      "description": "For people."
     },
     "code": {
      "type": "string",
      "description": "Stable."
     },
     "ref": {
      "type": "string",
      "description": "Names the request for support: the command's id.",
      "format": "uuid"
     }
    }
   },
   "Device": {
    "type": "object",
    "required": [
     "kind",
     "platform"
    ],
    "properties": {
     "kind": {
      "type": "string",
      "enum": [
       "phone",
       "tablet",
       "other"
      ]
     },
     "platform": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "model": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "osVersion": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     }
    }
   },
   "NewUserByCode": {
    "type": "object",
    "required": [
     "installId",
     "device",
     "authCode"
    ],
    "properties": {
     "installId": {
      "type": "string",
      "description": "Made by the app at its installation.",
      "minLength": 1,
      "maxLength": 255
     },
     "device": {
      "$ref": "#/components/schemas/Device"
     },
     "sdkVersion": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "appVersion": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "authCode": {
      "type": "string",
      "description": "From `POST /users/auth-code`, through the app's backend."
     }
    },
    "not": {
     "anyOf": [
      {
       "required": [
        "appSecret"
       ]
      },
      {
       "required": [
        "linking"
       ]
      }
     ]
    }
   },
   "NewUserBySecret": {
    "type": "object",
    "required": [
     "installId",
     "device",
     "appSecret",
     "linking"
    ],
    "properties": {
     "installId": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "device": {
      "$ref": "#/components/schemas/Device"
     },
     "sdkVersion": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "appVersion": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "appSecret": {
      "type": "string",
      "description": "`sdk.appSecret` of the apps file."
     },
     "linking": {
      "type": "string",
      "description": "`linker`: the app's backend links the install next. `none`: the user stays unlinked.",
      "enum": [
       "linker",
       "none"
      ]
     }
    },
    "not": {
     "required": [
      "authCode"
     ]
    }
   },
   "User": {
    "type": "object",
    "required": [
     "userId",
     "installId",
     "isLinked",
     "isRemoteEnabled",
     "token",
     "configuration"
    ],
    "properties": {
     "userId": {
      "type": "string",
      "pattern": "^[0-9a-f]{24}$"
     },
     "installId": {
      "type": "string"
     },
     "isLinked": {
      "type": "boolean"
     },
     "isRemoteEnabled": {
      "type": "boolean",
      "description": "False on an install that another one took over from, that the platform disabled, or that is a tablet beside a phone."
     },
     "token": {
      "type": "object",
      "required": [
       "tokenId",
       "expiryDate"
      ],
      "properties": {
       "tokenId": {
        "type": "string",
        "description": "The user's token: `Authorization: Bearer <tokenId>` reads the user's own install."
       },
       "expiryDate": {
        "type": "string",
        "format": "date-time"
       }
      }
     },
     "configuration": {
      "description": "`sdk.configuration` of the apps file."
     },
     "installToken": {
      "$ref": "#/components/schemas/InstallToken"
     }
    }
   },
   "Pending": {
    "type": "object",
    "description": "The app's backend has its turn: `POST /v2/users/{install_id}/link`, then `confirm-link` by the device, with the install token.",
    "required": [
     "installId",
     "awaiting"
    ],
    "properties": {
     "installId": {
      "type": "string"
     },
     "awaiting": {
      "type": "string",
      "enum": [
       "linker"
      ]
     },
     "installToken": {
      "$ref": "#/components/schemas/InstallToken"
     }
    }
   },
   "Install": {
    "type": "object",
    "required": [
     "installId"
    ],
    "properties": {
     "installId": {
      "type": "string"
     }
    }
   },
   "IdentityRequest": {
    "type": "object",
    "required": [
     "known_identities",
     "environment"
    ],
    "properties": {
     "client_sdk": {
      "type": "object",
      "properties": {
       "platform": {
        "type": "string"
       },
       "sdk_vendor": {
        "type": "string"
       },
       "sdk_version": {
        "type": "string"
       }
      }
     },
     "context": {
      "description": "Any value; a text comes back in the answer."
     },
     "environment": {
      "type": "string",
      "enum": [
       "production",
       "development"
      ]
     },
     "request_id": {
      "type": "string"
     },
     "request_timestamp_ms": {
      "type": "integer"
     },
     "previous_mpid": {
      "description": "A signed 64-bit integer, as text or as a number; `null`, empty and 0 count as absent.",
      "oneOf": [
       {
        "type": "string",
        "pattern": "^-?[1-9][0-9]{0,17}$"
       },
       {
        "type": "integer",
        "minimum": -9223372036854775808,
        "maximum": 9223372036854775807
       },
       {
        "type": "null"
       }
      ]
     },
     "known_identities": {
      "type": "object",
      "description": "By wire name of the type; `null` counts as absent.",
      "additionalProperties": {
       "type": [
        "string",
        "null"
       ],
       "minLength": 1,
       "maxLength": 750
      },
      "propertyNames": {
       "enum": [
        "customerid",
        "email",
        "other",
        "other2",
        "other3",
        "other4",
        "other5",
        "other6",
        "other7",
        "other8",
        "other9",
        "other10",
        "mobile_number",
        "phone_number_2",
        "phone_number_3",
        "facebook",
        "twitter",
        "google",
        "microsoft",
        "yahoo",
        "facebookcustomaudienceid",
        "alias",
        "device_application_stamp",
        "ios_idfa",
        "ios_idfv",
        "android_aaid",
        "android_uuid",
        "fire_aid",
        "push_token",
        "roku_aid",
        "roku_publisher_id",
        "amp_id",
        "microsoft_aid",
        "microsoft_publisher_id"
       ]
      }
     },
     "read_only": {
      "type": "boolean",
      "description": "True: a dry run, as with `Prefer: dry-run`."
     }
    }
   },
   "Identity": {
    "type": "object",
    "required": [
     "context",
     "mpid",
     "matched_identities",
     "is_ephemeral",
     "is_logged_in"
    ],
    "properties": {
     "context": {
      "type": [
       "string",
       "null"
      ]
     },
     "mpid": {
      "type": "string",
      "description": "A signed 64-bit integer, never 0.",
      "pattern": "^-?[1-9][0-9]*$"
     },
     "matched_identities": {
      "type": "object",
      "additionalProperties": {
       "type": "string"
      }
     },
     "is_ephemeral": {
      "type": "boolean"
     },
     "is_logged_in": {
      "type": "boolean"
     }
    }
   },
   "ModifyRequest": {
    "type": "object",
    "required": [
     "identity_changes"
    ],
    "properties": {
     "environment": {
      "type": "string",
      "enum": [
       "production",
       "development"
      ]
     },
     "request_id": {
      "type": "string"
     },
     "request_timestamp_ms": {
      "type": "integer"
     },
     "identity_changes": {
      "type": "array",
      "maxItems": 100,
      "items": {
       "type": "object",
       "required": [
        "identity_type"
       ],
       "properties": {
        "identity_type": {
         "type": "string"
        },
        "old_value": {
         "type": [
          "string",
          "null"
         ],
         "description": "What the device thinks the value is; may be stale."
        },
        "new_value": {
         "type": [
          "string",
          "null"
         ],
         "description": "`null` or absent removes."
        }
       }
      }
     },
     "read_only": {
      "type": "boolean",
      "description": "True: a dry run, as with `Prefer: dry-run`."
     }
    }
   },
   "Modified": {
    "type": "object",
    "required": [
     "mpid",
     "is_logged_in",
     "change_results"
    ],
    "properties": {
     "mpid": {
      "type": "string"
     },
     "is_logged_in": {
      "type": "boolean"
     },
     "change_results": {
      "type": "array",
      "items": {
       "type": "object",
       "required": [
        "identity_type",
        "modified_mpid"
       ],
       "properties": {
        "identity_type": {
         "type": "string"
        },
        "modified_mpid": {
         "type": "string"
        }
       }
      }
     }
    }
   },
   "AliasRequest": {
    "type": "object",
    "required": [
     "data"
    ],
    "properties": {
     "request_id": {
      "type": "string"
     },
     "request_type": {
      "type": "string"
     },
     "environment": {
      "type": "string"
     },
     "api_key": {
      "type": "string",
      "description": "The same as in the path."
     },
     "data": {
      "type": "object",
      "required": [
       "source_mpid",
       "destination_mpid"
      ],
      "properties": {
       "source_mpid": {
        "description": "A signed 64-bit integer, as text or as a number; `null`, empty and 0 count as absent.",
        "oneOf": [
         {
          "type": "string",
          "pattern": "^-?[1-9][0-9]{0,17}$"
         },
         {
          "type": "integer",
          "minimum": -9223372036854775808,
          "maximum": 9223372036854775807
         },
         {
          "type": "null"
         }
        ]
       },
       "destination_mpid": {
        "description": "A signed 64-bit integer, as text or as a number; `null`, empty and 0 count as absent.",
        "oneOf": [
         {
          "type": "string",
          "pattern": "^-?[1-9][0-9]{0,17}$"
         },
         {
          "type": "integer",
          "minimum": -9223372036854775808,
          "maximum": 9223372036854775807
         },
         {
          "type": "null"
         }
        ]
       },
       "start_unixtime_ms": {
        "type": "integer"
       },
       "end_unixtime_ms": {
        "type": "integer"
       },
       "scope": {
        "type": "string",
        "enum": [
         "device",
         "mpid"
        ]
       },
       "device_application_stamp": {
        "type": "string",
        "minLength": 1,
        "maxLength": 750
       }
      }
     }
    }
   },
   "IdentityErrorEntry": {
    "type": "object",
    "required": [
     "code",
     "message"
    ],
    "properties": {
     "code": {
      "type": "string"
     },
     "message": {
      "type": "string"
     }
    }
   },
   "IdentityError": {
    "type": "object",
    "description": "In both spellings that clients read.",
    "required": [
     "Errors",
     "errors",
     "ErrorCode",
     "StatusCode",
     "RequestId"
    ],
    "properties": {
     "Errors": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/IdentityErrorEntry"
      }
     },
     "errors": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/IdentityErrorEntry"
      }
     },
     "ErrorCode": {
      "type": "string"
     },
     "StatusCode": {
      "type": "integer"
     },
     "RequestId": {
      "type": "string",
      "format": "uuid"
     }
    }
   },
   "AliasError": {
    "allOf": [
     {
      "$ref": "#/components/schemas/IdentityError"
     },
     {
      "$ref": "#/components/schemas/IdentityErrorEntry"
     }
    ]
   },
   "VerificationLogin": {
    "type": "object",
    "required": [
     "deviceId"
    ],
    "properties": {
     "deviceId": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "userId": {
      "type": "string",
      "description": "Case-sensitive."
     },
     "userEmail": {
      "type": "string"
     },
     "userName": {
      "type": "string"
     },
     "userAuthToken": {
      "type": "string",
      "description": "HMAC-SHA256 by the app's backend."
     },
     "fullPrivacy": {
      "type": "boolean"
     }
    }
   },
   "VerificationLoginIdentity": {
    "type": "object",
    "required": [
     "deviceId",
     "identityToken"
    ],
    "properties": {
     "deviceId": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     },
     "identityToken": {
      "type": "string",
      "description": "A JWT (HS256) by the app's backend; empty for the anonymous user."
     },
     "fullPrivacy": {
      "type": "boolean"
     }
    }
   },
   "VerificationLogout": {
    "type": "object",
    "required": [
     "deviceId"
    ],
    "properties": {
     "deviceId": {
      "type": "string",
      "minLength": 1,
      "maxLength": 255
     }
    }
   },
   "VerificationCheck": {
    "type": "object",
    "required": [
     "userAuthToken"
    ],
    "anyOf": [
     {
      "required": [
       "userId"
      ]
     },
     {
      "required": [
       "userEmail"
      ]
     }
    ],
    "properties": {
     "userId": {
      "type": "string",
      "minLength": 1
     },
     "userEmail": {
      "type": "string",
      "minLength": 1
     },
     "userAuthToken": {
      "type": "string"
     }
    }
   },
   "Verification": {
    "type": "object",
    "required": [
     "state",
     "mayFileIssues"
    ],
    "properties": {
     "state": {
      "type": "string",
      "enum": [
       "anonymous",
       "verified",
       "unverified",
       "unchecked"
      ]
     },
     "mayFileIssues": {
      "type": "boolean"
     },
     "keyId": {
      "type": "string"
     },
     "mpid": {
      "type": "string"
     },
     "anonymousReason": {
      "type": "string"
     }
    }
   },
   "VerificationSession": {
    "type": "object",
    "required": [
     "deviceId",
     "state",
     "mayFileIssues",
     "hasLogin"
    ],
    "properties": {
     "deviceId": {
      "type": "string"
     },
     "state": {
      "type": "string",
      "enum": [
       "anonymous",
       "verified",
       "unverified",
       "unchecked"
      ]
     },
     "mayFileIssues": {
      "type": "boolean"
     },
     "hasLogin": {
      "type": "boolean",
      "description": "The device may have a user whose logout has not been done."
     },
     "mpid": {
      "type": "string"
     },
     "keyId": {
      "type": "string"
     },
     "verifiedAt": {
      "type": "string"
     }
    }
   },
   "InstallToken": {
    "type": "object",
    "description": "Opens this install, and no other, until it is reset: also while there is no user on it whose token the device could show.",
    "required": [
     "tokenId",
     "expiryDate"
    ],
    "properties": {
     "tokenId": {
      "type": "string",
      "description": "`Authorization: Bearer <tokenId>`."
     },
     "expiryDate": {
      "type": "string",
      "format": "date-time"
     }
    }
   }
  },
  "responses": {
   "Linking400": {
    "description": "The request is not of the right form, or the domain refuses it as it is.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem400": {
    "description": "The request is not of the right form, or the domain refuses it as it is.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Identity400": {
    "description": "The request is not of the right form, or the domain refuses it as it is.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    }
   },
   "Alias400": {
    "description": "The request is not of the right form, or the domain refuses it as it is.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    }
   },
   "Linking401": {
    "description": "The credential is missing or does not check out.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem401": {
    "description": "The credential is missing or does not check out.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Empty401": {
    "description": "The credential is missing or does not check out. No body."
   },
   "Linking403": {
    "description": "The credential is right and does not allow this, or the domain forbids it.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem403": {
    "description": "The credential is right and does not allow this, or the domain forbids it.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Empty403": {
    "description": "The credential is right and does not allow this: no body. With a body: `ORIGIN_NOT_ALLOWED`, a web page that the app's `gateway.origins` does not name."
   },
   "Linking404": {
    "description": "What it is about is not known; or there is no such path.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     },
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Problem404": {
    "description": "What it is about is not known; or there is no such path.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Identity404": {
    "description": "What it is about is not known; or there is no such path.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     },
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Alias404": {
    "description": "What it is about is not known; or there is no such path.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     },
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Linking409": {
    "description": "It contradicts the state as it is, or the Idempotency-Key was used for another request.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem409": {
    "description": "It contradicts the state as it is, or the Idempotency-Key was used for another request.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Identity409": {
    "description": "It contradicts the state as it is, or the Idempotency-Key was used for another request.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    }
   },
   "Alias409": {
    "description": "It contradicts the state as it is, or the Idempotency-Key was used for another request.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    }
   },
   "Linking410": {
    "description": "The user was erased.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem410": {
    "description": "The user was erased.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Linking413": {
    "description": "The body is too large, also after decompression.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem413": {
    "description": "The body is too large, also after decompression.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Identity413": {
    "description": "The body is too large, also after decompression.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    }
   },
   "Alias413": {
    "description": "The body is too large, also after decompression.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    }
   },
   "Linking415": {
    "description": "The Content-Encoding is neither gzip nor identity.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem415": {
    "description": "The Content-Encoding is neither gzip nor identity.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Identity415": {
    "description": "The Content-Encoding is neither gzip nor identity.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    }
   },
   "Alias415": {
    "description": "The Content-Encoding is neither gzip nor identity.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    }
   },
   "Linking429": {
    "description": "A limit is reached. Try again after `Retry-After` seconds.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Problem429": {
    "description": "A limit is reached. Try again after `Retry-After` seconds.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Identity429": {
    "description": "A limit is reached. Try again after `Retry-After` seconds.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Alias429": {
    "description": "A limit is reached. Try again after `Retry-After` seconds.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Linking500": {
    "description": "The command was set aside for the operators.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem500": {
    "description": "The command was set aside for the operators.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Identity500": {
    "description": "The command was set aside for the operators.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    }
   },
   "Alias500": {
    "description": "The command was set aside for the operators.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    }
   },
   "Linking502": {
    "description": "A part of the platform could not answer.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem502": {
    "description": "A part of the platform could not answer.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Linking503": {
    "description": "No connection to the message bus, or too many requests wait. Try again after `Retry-After` seconds.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Problem503": {
    "description": "No connection to the message bus, or too many requests wait. Try again after `Retry-After` seconds.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Identity503": {
    "description": "No connection to the message bus, or too many requests wait. Try again after `Retry-After` seconds.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Alias503": {
    "description": "No connection to the message bus, or too many requests wait. Try again after `Retry-After` seconds.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "schema": {
       "type": "integer"
      }
     }
    }
   },
   "Linking504": {
    "description": "No reply in time. The command, named by `ref`, may still be carried out if there was an Idempotency-Key; repeat with the same key.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/LinkingError"
      }
     }
    }
   },
   "Problem504": {
    "description": "No reply in time. The command, named by `ref`, may still be carried out if there was an Idempotency-Key; repeat with the same key.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "Identity504": {
    "description": "No reply in time. The command, named by `ref`, may still be carried out if there was an Idempotency-Key; repeat with the same key.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/IdentityError"
      }
     }
    }
   },
   "Alias504": {
    "description": "No reply in time. The command, named by `ref`, may still be carried out if there was an Idempotency-Key; repeat with the same key.",
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/AliasError"
      }
     }
    }
   }
  }
 }
}

"""#
}
