package admin

import _ "embed" // the description

// description is the OpenAPI 3.1 description of this listener. It is written by hand; tests hold it to the routes and to the types of the documents.
//
//go:embed openapi.json
var description []byte
