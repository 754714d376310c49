#!/bin/sh
# Runs once before the gateway of docker-compose.yml: makes its secrets, and a store in OpenFGA with the model of
# deploy/examples/documents.fga.  Secrets that are there are kept; the store is new each time, as OpenFGA keeps it in memory.
set -eu
umask 077
cd /run/tour

[ -s fleet-key ] || subzero key new >fleet-key
[ -s admin-token ] || subzero key new >admin-token
printf '%s' 's3cret+/:%' >provider-secret # the sample provider's only client

fga() { # PATH BODY
  curl -fsS --retry 30 --retry-delay 1 --retry-connrefused --max-time 10 -H 'Content-Type: application/json' \
    -d "$2" "http://openfga:8080$1"
}
store=$(fga /stores '{"name": "subzero-tour"}' | sed 's/.*"id": *"\([^"]*\)".*/\1/')
model=$(fga "/stores/$store/authorization-models" "$(subzero fga transform --to json /tour/documents.fga)" |
  sed 's/.*"authorization_model_id": *"\([^"]*\)".*/\1/')
# Alice may view the roadmap; carol's group may view a folder, and the document api lies in it.
fga "/stores/$store/write" '{"writes": {"tuple_keys": [
  {"user": "user:alice", "relation": "viewer", "object": "document:roadmap"},
  {"user": "user:carol", "relation": "member", "object": "group:engineering"},
  {"user": "group:engineering#member", "relation": "viewer", "object": "folder:specs"},
  {"user": "folder:specs", "relation": "parent", "object": "document:api"}]}}' >/dev/null

printf 'export FGA_STORE_ID=%s FGA_MODEL_ID=%s\n' "$store" "$model" >gateway.env.new
mv gateway.env.new gateway.env
echo "secrets and store $store are ready"
