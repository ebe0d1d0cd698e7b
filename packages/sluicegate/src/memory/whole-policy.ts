import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'

/**
 * Several policies as one: the same object until one of them or the name is another. Making it costs more than a decision, and others keep what
 * they made of it.
 */
export class WholePolicy {
  private parts: readonly Policy[] = []
  private whole: Policy | undefined

  of(name: string, parts: readonly Policy[]): Policy {
    const { whole } = this
    if (whole?.name === name && parts.every((part, i) => part === this.parts[i])) return whole
    const made = allOf(parts, { name })
    this.whole = made
    this.parts = parts
    return made
  }
}
