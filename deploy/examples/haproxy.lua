-- The action `http-request lua.subzero`: asks the gateway, then lets the request pass with the identity headers of the
-- answer, or answers it as the gateway said.  An answer that cannot be had is a 503, never a yes.

local gateway = "http://127.0.0.1:8081/"

-- What the gateway may need to judge a request, besides what question() says about it.
local asked = {
  "authorization", "cookie", "origin", "traceparent",
  "access-control-request-method", "access-control-request-headers",
}

local function values(headers, name)
  local list = {}
  local found = headers[name]
  if found ~= nil then
    -- From 0, in the order of the request: two credentials stay two, and are refused as such.
    for i = 0, #found do
      list[#list + 1] = found[i]
    end
  end
  return list
end

local function question(txn)
  local sent = txn.http:req_get_headers()
  local headers = {
    ["x-original-method"] = { txn.sf:method() },
    ["x-original-uri"] = { txn.sf:pathq() },
    ["x-original-host"] = values(sent, "host"),
    ["x-forwarded-for"] = { txn.sf:src() },
  }
  for _, name in ipairs(asked) do
    local list = values(sent, name)
    if #list > 0 then
      headers[name] = list
    end
  end
  return headers
end

local function refuse(txn, status, headers, body)
  local reply = txn:reply { status = status, body = body }
  for name, list in pairs(headers) do
    if name ~= "connection" and name ~= "content-length" and name ~= "transfer-encoding" and name ~= "date" then
      for i = 0, #list do
        reply:add_header(name, list[i])
      end
    end
  end
  txn:done(reply)
end

core.register_action("subzero", { "http-req" }, function(txn)
  local answer = core.httpclient():get { url = gateway, headers = question(txn), timeout = 2000 }
  if answer == nil or answer.status == nil or answer.status == 0 then
    refuse(txn, 503, {}, "")
    return
  end
  if answer.status ~= 200 then
    refuse(txn, answer.status, answer.headers, answer.body)
    return
  end
  -- The answer has every identity header that there is, empty where there is no value: the client's own go.
  for name, list in pairs(answer.headers) do
    if name == "x-request-id" or name:sub(1, 10) == "x-subzero-" then
      txn.http:req_del_header(name)
      if list[0] ~= "" then
        txn.http:req_set_header(name, list[0])
      end
    end
  end
end, 0)
