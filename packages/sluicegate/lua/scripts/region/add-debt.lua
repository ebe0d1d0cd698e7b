--- The home does not answer. What is known of it does not count.
---
--- given  tokens that were admitted meanwhile; fewer than none where some came back
--- reply  since when the key is known here

key.debt = math.max(0, key.debt + given.tokens)
key.denied, key.deniedCost = 0, 0
save()
return key.born
