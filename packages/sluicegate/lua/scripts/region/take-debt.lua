--- The caller is about to charge the debt at the home.
---
--- reply  the debt, which is none any more

local debt = key.debt
key.debt = 0
save()
return debt
