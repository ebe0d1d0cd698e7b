--- Ended tokens go back to the home.
---
--- given  endUs, of the batch
--- reply  how many were left of it

local tokens, others = 0, {}
for _, batch in ipairs(batches) do
  if batch.finish == given.endUs then tokens = batch.tokens else others[#others + 1] = batch end
end
batches = others
save()
return tokens
