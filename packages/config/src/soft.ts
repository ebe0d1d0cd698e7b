import type { LimiterOptions } from 'sluicegate'
import { type Kind, option } from './option.js'

/** A part of what may be spent at once, such as `80%`. */
type SoftThreshold = Extract<LimiterOptions['soft'], readonly unknown[]>[number]

/** Soft limits by the name of the policy, or of its level. */
export type SoftLimits = ReadonlyMap<string, readonly SoftThreshold[]>

const MOST = 10
const PERCENT = '^([1-9]\\d{0,2}(\\.\\d{1,2})?|1000)%$'
const FORM = new RegExp(PERCENT)

const THRESHOLDS: Kind<readonly SoftThreshold[]> = {
  schema: { type: 'array', minItems: 1, maxItems: MOST, uniqueItems: true, items: { type: 'string', pattern: PERCENT } },
  read(section, name) {
    const given = section.texts(name, "shares such as ['80%', '100%']")
    if (given === undefined) return undefined
    const wrong = given.find((each) => !FORM.test(each))
    if (given.length < 1 || given.length > MOST) section.fault(name, `must have 1 to ${MOST} shares, not ${given.length}`)
    else if (wrong !== undefined) section.fault(name, `must be shares from 1% to 1000%, not ${JSON.stringify(wrong.slice(0, 60))}`)
    else if (new Set(given.map(Number.parseFloat)).size < given.length) section.fault(name, 'has a share more than once')
    else return given as SoftThreshold[]
    return undefined
  },
}

/** Of a policy, a level or a part of an all-of. */
export const SOFT = {
  soft: option('soft', THRESHOLDS, {
    what: 'Shares of the limit, of buckets of the burst, that are announced when a key reaches them, once a window and key; nothing is denied. 1 to 10, from 1% to 1000%. Of `levels` and `all-of`: of each without its own. Default: none.',
    example: ['80%', '100%'],
  }),
}
