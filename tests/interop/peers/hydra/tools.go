//go:build tools

// Pins the hydra program: script/peers builds the package imported here, with the line below in go's environment.
// Its store, in memory too, is SQLite, which is C.
// environment: CGO_ENABLED=1 GOFLAGS=-tags=sqlite,json1
package peers

import _ "github.com/ory/hydra/v2"
