//go:build tools

// Pins the caddy program: script/peers builds the package imported here.
package peers

import _ "github.com/caddyserver/caddy/v2/cmd/caddy"
