import assert from 'node:assert/strict'
import { type BareItem, type Parameters, parseList } from 'structured-headers'
import type { HeaderPair } from '../../../sluicegate/dist/headers/header.js'

/** What the fields of draft 11 say of one policy, read by a parser of structured fields that is not ours. */
export interface ParsedLimit {
  readonly name: string
  readonly q: number
  readonly w: number | undefined
  readonly qu: string | undefined
  /** What the `RateLimit` field says, where it names the policy. */
  readonly r: number | undefined
  readonly t: number | undefined
  readonly pk: string | undefined
}

/** Reads `RateLimit-Policy` and `RateLimit`, and checks what the draft asks of any response. */
export function parsedLimits(pairs: readonly HeaderPair[]): ParsedLimit[] {
  const headers = new Map(pairs)
  assert.equal(headers.size, pairs.length, 'no field is there twice')
  const limits = new Map(parseList(headers.get('RateLimit') ?? '').map(([name, parameters]) => [textOf(name), parameters as Parameters]))
  const policies = parseList(headers.get('RateLimit-Policy') ?? '').map(([bare, parameters]): ParsedLimit => {
    const name = textOf(bare)
    const limit = limits.get(name) ?? new Map<string, BareItem>()
    limits.delete(name)
    const pk = limit.get('pk')
    assert.ok(pk === undefined || pk instanceof ArrayBuffer, 'pk is a byte sequence')
    const qu = parameters.get('qu')
    return {
      name,
      q: wholeOf(parameters.get('q')) ?? assert.fail('q is required'),
      w: wholeOf(parameters.get('w')),
      qu: qu === undefined ? undefined : textOf(qu),
      r: wholeOf(limit.get('r')),
      t: wholeOf(limit.get('t')),
      pk: pk && Buffer.from(pk).toString('base64'),
    }
  })
  assert.equal(limits.size, 0, 'every limit belongs to a reported policy')
  for (const { w, q, r } of policies) {
    assert.ok(w === undefined || w >= 1, 'w is at least 1')
    assert.ok(r === undefined || r <= q, 'r is never above q')
  }
  return policies
}

/** The same of a single policy. */
export function parsedLimit(pairs: readonly HeaderPair[]): ParsedLimit {
  const [only = assert.fail('there is no policy'), ...more] = parsedLimits(pairs)
  assert.deepEqual(more, [])
  return only
}

function textOf(value: unknown): string {
  assert.equal(typeof value, 'string', 'a name is a string')
  return value as string
}

function wholeOf(value: unknown): number | undefined {
  assert.ok(value === undefined || (Number.isInteger(value) && (value as number) >= 0), 'it is a whole number')
  return value as number | undefined
}
