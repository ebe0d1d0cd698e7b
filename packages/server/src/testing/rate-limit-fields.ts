import assert from 'node:assert/strict'
import { parseList } from 'structured-headers'

/** The one item of `RateLimit` and of `RateLimit-Policy`, read by a parser of structured fields. */
export interface RateLimitFields {
  readonly name: string
  readonly q: number
  readonly w: number
  readonly r: number
  readonly t: number
}

/** Reads both headers and checks what the draft asks of any response. */
export function readRateLimitFields(headers: { get(name: string): string | null | undefined }): RateLimitFields {
  const policy = onlyItem(headers.get('RateLimit-Policy'))
  const limit = onlyItem(headers.get('RateLimit'))
  assert.equal(limit.name, policy.name, 'both fields speak of one policy')
  const fields = { name: policy.name, q: policy.number('q'), w: policy.number('w'), r: limit.number('r'), t: limit.number('t') }
  assert.ok(fields.w >= 1, 'w is at least 1')
  assert.ok(fields.r <= fields.q, 'r is never above q')
  return fields
}

function onlyItem(field: string | null | undefined): { name: string; number(parameter: string): number } {
  const items = parseList(field ?? '')
  assert.equal(items.length, 1)
  const [value, parameters] = items[0] as [unknown, Map<string, unknown>]
  assert.equal(typeof value, 'string', 'a policy is named by a string')
  return {
    name: value as string,
    number(parameter) {
      const number = parameters.get(parameter)
      assert.ok(Number.isInteger(number) && (number as number) >= 0, `${parameter} is a whole number`)
      return number as number
    },
  }
}
