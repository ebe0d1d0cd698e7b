import assert from 'node:assert/strict'
import { parseList } from 'structured-headers'

/** One policy's items of `RateLimit` and of `RateLimit-Policy`, read by a parser of structured fields. */
export interface RateLimitFields {
  readonly name: string
  readonly q: number
  readonly w: number
  readonly r: number
  readonly t: number
}

type Headers = { get(name: string): string | null | undefined }

/** Reads both headers of a single policy and checks the draft's requirements for every response. */
export function readRateLimitFields(headers: Headers): RateLimitFields {
  const [only = assert.fail('there is no policy'), ...more] = readRateLimitLists(headers)
  assert.deepEqual(more, [])
  return only
}

/** The same of any number of policies, in the order of both headers. */
export function readRateLimitLists(headers: Headers): RateLimitFields[] {
  const policies = items(headers.get('RateLimit-Policy'))
  const limits = items(headers.get('RateLimit'))
  assert.equal(limits.length, policies.length)
  return policies.map((policy, i) => {
    const limit = limits[i] ?? assert.fail()
    assert.equal(limit.name, policy.name, 'both fields speak of one policy')
    const fields = { name: policy.name, q: policy.number('q'), w: policy.number('w'), r: limit.number('r'), t: limit.number('t') }
    assert.ok(fields.w >= 1, 'w is at least 1')
    assert.ok(fields.r <= fields.q, 'r is never above q')
    return fields
  })
}

function items(field: string | null | undefined): { name: string; number(parameter: string): number }[] {
  return parseList(field ?? '').map(([value, parameters]) => {
    assert.equal(typeof value, 'string', 'a policy is named by a string')
    return {
      name: value as string,
      number(parameter) {
        const number = parameters.get(parameter)
        assert.ok(Number.isInteger(number) && (number as number) >= 0, `${parameter} is a whole number`)
        return number as number
      },
    }
  })
}
