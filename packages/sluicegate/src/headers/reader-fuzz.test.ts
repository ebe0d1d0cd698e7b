import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { DisplayString, ParseError, parseDictionary, parseList, Token } from 'structured-headers'
import { readRateLimit } from './read-rate-limit.js'
import { ByteSequence, Decimal, Token as OwnToken, structuredDictionary, structuredList } from './structured-field.js'

const INPUTS = shortOrLong(5_000, 12_000)
const NAMES = [
  'ratelimit',
  'ratelimit-policy',
  'ratelimit-limit',
  'ratelimit-reset',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-rate-limit-reset-after',
  'x-ratelimit-reset-tokens',
  'retry-after',
  'retry-after-ms',
  'date',
]
const PIECES = [
  '"a"',
  '"',
  '\\',
  ';',
  '=',
  ',',
  ' ',
  '\t',
  'r',
  'q',
  'w',
  't',
  'pk',
  'limit',
  ':',
  'AA==',
  '?1',
  '(',
  '@',
  '%',
  '-',
  '.',
  '0',
  '7',
  '60',
  '1.5',
]
const MORE = ['h', 'm', 's', 'ms', 'GMT', 'Sat, 21 Nov 2026 12:00:30', '2026-11-21T12:01:00Z', '\0', '\xff', '\ud800', '999999999999999']

/** Both forms of a field, read here and by the other parser. */
const PARSERS: readonly (readonly [own: (text: string) => Iterable<unknown> | undefined, other: (text: string) => Iterable<unknown>])[] = [
  [structuredList, parseList],
  [structuredDictionary, parseDictionary],
]

function randomText(random: Random, pieces: readonly string[]): string {
  if (random.chance(0.3)) return String.fromCharCode(...Array.from({ length: random.integer(0, 40) }, () => random.integer(0, 255)))
  return Array.from({ length: random.integer(0, 14) }, () => random.pick(pieces)).join('')
}

test('for any input the reader never throws and returns only integers >= 0', () => {
  const random = new Random(20_261_121)
  let said = 0
  for (let i = 0; i < INPUTS; i++) {
    const headers = Object.fromEntries(Array.from({ length: 3 }, () => [random.pick(NAMES), randomText(random, [...PIECES, ...MORE])]))
    const { policies = [], ...reading } = readRateLimit(headers, { nowMs: 1_790_000_000_000 })
    for (const each of [reading, ...policies]) {
      for (const value of Object.values(each)) {
        if (typeof value !== 'number') continue
        said++
        assert.ok(Number.isInteger(value) && value >= 0, JSON.stringify(headers))
      }
    }
  }
  assert.ok(said > INPUTS / 60, `only ${said} numbers were understood`)
})

test('structured fields are read as another parser reads them', () => {
  const random = new Random(9651)
  let understood = 0
  for (let i = 0; i < INPUTS; i++) {
    const text = randomText(random, PIECES)
    for (const [own, other] of PARSERS) {
      const read = own(text)
      if (read === undefined) continue
      understood++
      // What is read here is never anything that the other refuses, but an empty field and a date with something behind it. Bytes are left
      // as they were written, also without padding.
      if (text.trim() === '' || text.includes('@') || /:(?:\w{4})*\w{2,3}:/.test(text)) continue
      const expected = parsed(other, text)
      assert.ok(expected !== undefined, `the other parser refuses ${JSON.stringify(text)}`)
      assert.deepEqual(plain([...read]), plain([...expected]), JSON.stringify(text))
    }
  }
  assert.ok(understood > INPUTS / 30, `only ${understood} fields were understood`)
})

test('lists and dictionaries that the other parser reads are read here, too', () => {
  const random = new Random(8941)
  const inner = ['()', '( "x"  y;z=1 )', '(5);q=1', '(%"x" :AA==:)']
  const values = ['"a"', '"\\""', 'token', '12', '1.5', '?0', ':AA==:', 'a/b:c', '%"f%c3%bc"', ...inner]
  const parameters = ['', ';r=1', ';t=0; q="x"', ';pk=:AQ==:', ';flag', ';w=60;w=61', ';d=%"x"']
  for (let i = 0; i < shortOrLong(500, 2_000); i++) {
    const members = Array.from(
      { length: random.integer(1, 6) },
      () => random.pick(values) + random.pick(parameters) + random.pick(parameters),
    )
    const text = members.join(random.pick([',', ', ', ' ,\t']))
    assert.deepEqual(plain(structuredList(text) ?? []), plain(parseList(text)), text)
    const named = members.map((member, at) => `k${at}=${member}`).join(', ')
    assert.deepEqual(plain([...(structuredDictionary(named) ?? [])]), plain([...parseDictionary(named)]), named)
  }
})

test('a hostile field of any length takes no longer than its length', () => {
  const long = 200_000
  const hostile = [
    '"'.repeat(long),
    '"a'.repeat(long),
    `"${'\\'.repeat(long)}`,
    '0'.repeat(long),
    'a;'.repeat(long),
    `${'1,'.repeat(long)}"`,
    ' '.repeat(long),
  ]
  const short = hostile.map((text) => text.slice(0, 8_000))
  const startMs = performance.now()
  for (const text of [...hostile, ...short]) for (const name of NAMES) readRateLimit({ [name]: text })
  assert.ok(performance.now() - startMs < 5_000)
})

function parsed<Parsed>(parse: (text: string) => Parsed, text: string): Parsed | undefined {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof ParseError) return undefined
    throw error
  }
}

/** Both parsers' items as the same plain data; what the reader passes over is undefined. */
function plain(value: unknown): unknown {
  if (value instanceof DisplayString) return undefined
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString('base64')
  if (value instanceof Token) return value.toString()
  if (value instanceof OwnToken) return value.text
  if (value instanceof ByteSequence) return value.base64
  if (value instanceof Decimal) return value.value
  if (value instanceof Map) return [...value].map(plain)
  if (Array.isArray(value)) {
    const [first, parameters] = value
    return Array.isArray(first) && parameters instanceof Map ? [undefined, plain(parameters)] : value.map(plain)
  }
  if (typeof value === 'object' && value !== null && 'value' in value)
    return [plain(value.value), plain((value as unknown as { parameters: unknown }).parameters)]
  return typeof value === 'object' ? String(value) : value
}
