import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import type { Key } from '../../../sluicegate/dist/limiter.js'

const [TOGETHER, MOST] = [5, 120]

/**
 * Takes until the process holds tokens of a key beyond those that callers wait for: a key whose demand is not known yet is not leased ahead.
 *
 * @returns how many passed; the last of them by a token that was held.
 */
export async function holdingTokens(
  limiter: { take(key: Key, cost?: number): Decision | Promise<Decision> },
  key: Key,
  most = MOST,
): Promise<number> {
  for (let passed = 0; passed < most; passed++) {
    const together = await Promise.all(Array.from({ length: TOGETHER }, () => limiter.take(key)))
    passed += together.filter(({ allowed }) => allowed).length
    const next = limiter.take(key)
    const { allowed, source } = await next
    if (!allowed) throw new Error(`denied after ${passed} takes`)
    if (!(next instanceof Promise) && source === 'lease') return passed + 1
  }
  throw new Error(`nothing is held after ${most} takes`)
}
