import { createLimiter } from '../create-limiter.js'
import { fixedWindow } from '../policy/single-policy.js'
import { casStore } from '../store/cas.js'
import { expect, type StoreCheck } from './store-check.js'

const LIMIT = 25
const CALLERS = 60
const LONG_MS = 30_000

/** What a limiter does with it. */
export const limiterChecks: readonly StoreCheck[] = [
  {
    name: 'two limiters over the store share one budget to the token',
    async run({ one, other, freshKey }) {
      const policy = fixedWindow({ limit: LIMIT, window: '30d', name: 'conformance' })
      const prefix = freshKey()
      const limiters = [one, other].map((store) =>
        createLimiter(policy, { store: casStore(store, { prefix }), mode: 'exact', outage: 'closed', timeout: LONG_MS }),
      )
      const takes = Array.from({ length: CALLERS }, (_, i) => limiters[i % 2]?.take(`key`))
      const decisions = await Promise.all(takes)
      for (const limiter of limiters) limiter.close()
      const passed = decisions.filter((decision) => decision?.allowed === true).length
      const outages = decisions.filter((decision) => decision?.source === 'outage').length
      expect(passed === LIMIT, `${passed} of ${CALLERS} takes passed under a limit of ${LIMIT}, ${outages} without the store`)
    },
  },
]
