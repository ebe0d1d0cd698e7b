-- A hook of Apache's mod_lua that asks Sluicegate for each request. The policy is fixed here; the key is the address of the client.
require("apache2")
local http = require("socket.http")

local address = "http://127.0.0.1:8080/v1/auth?policy=per-user&denied=429"
http.TIMEOUT = 0.25

function check(r)
  -- A request that Apache makes of itself is part of one that was counted.
  if not r.is_initial_req then return apache2.DECLINED end
  local _, status, headers = http.request({ url = address, headers = { ["x-sluicegate-key"] = r.useragent_ip } })
  -- A request without a key, where the key is not the address.
  if status == 401 then return 401 end
  -- While Sluicegate is down every request passes: `return 503` refuses them instead.
  if status ~= 204 and status ~= 429 then return apache2.DECLINED end
  r.err_headers_out["RateLimit"] = headers["ratelimit"]
  if status == 204 then return apache2.DECLINED end
  r.err_headers_out["Retry-After"] = headers["retry-after"] or ""
  return 429
end
