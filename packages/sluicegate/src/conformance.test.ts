import { conformance } from 'sluicegate-testkit'
import { attachLimiter, createLimiter } from './index.js'

conformance('memory', createLimiter)

conformance('memory, attached', (policy, { hotKeys = 0, ...options }) =>
  attachLimiter(createLimiter(policy, options).handle(), { hotKeys }),
)

conformance('memory, in layers', (policy, options) =>
  createLimiter(policy, { ...options, allow: [], deny: ['a key of no test'], policyFor: () => undefined, policies: [] }),
)
