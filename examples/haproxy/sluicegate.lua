-- An action of HAProxy that asks Sluicegate for each request: the verdict is in txn.sluicegate_verdict, "allowed", "denied",
-- "keyless" or "unknown".

local address = "http://127.0.0.1:8080"
local timeout_ms = 250

core.register_action("sluicegate", { "http-req" }, function(txn, policy)
  local answer = core.httpclient():get({
    url = address .. "/v1/auth?policy=" .. policy,
    headers = { ["x-sluicegate-key"] = { txn.sf:src() } },
    timeout = timeout_ms,
  })
  local verdicts = { [204] = "allowed", [403] = "denied", [401] = "keyless" }
  local verdict = answer and verdicts[answer.status] or "unknown"
  txn:set_var("txn.sluicegate_verdict", verdict)
  if verdict == "unknown" then return end
  for name, variable in pairs({ ratelimit = "txn.sluicegate_limit", ["retry-after"] = "txn.sluicegate_retry_after" }) do
    local values = answer.headers[name]
    if values ~= nil then txn:set_var(variable, values[0]) end
  end
end, 1)
