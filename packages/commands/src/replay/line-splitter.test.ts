import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineSplitter, MAX_LINE_BYTES } from './line-splitter.js'

function linesOf(...chunks: Buffer[]): { lines: string[]; tooLong: number } {
  const lines: string[] = []
  const splitter = new LineSplitter((bytes, start, end) => lines.push(bytes.toString('latin1', start, end)))
  for (const chunk of chunks) splitter.write(chunk)
  splitter.end()
  return { lines, tooLong: splitter.tooLong }
}

test('lines are the same however the bytes are cut into chunks', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\r', '\r\n', 'cde'), maxLength: 60 })
  fc.assert(
    fc.property(text, fc.array(fc.nat(8), { maxLength: 40 }), (whole, sizes) => {
      const bytes = Buffer.from(whole)
      const chunks: Buffer[] = []
      let at = 0
      for (const size of sizes) {
        chunks.push(bytes.subarray(at, at + size))
        at += size
      }
      chunks.push(bytes.subarray(at))
      const expected = whole
        .split('\n')
        .map((line) => line.replace(/\r$/, ''))
        .filter((line) => line !== '')
      assert.deepEqual(linesOf(...chunks).lines, expected)
    }),
  )
})

test('a line that is too long is counted and skipped, in one chunk or in many', () => {
  const long = Buffer.alloc(MAX_LINE_BYTES + 1, 'x')
  const whole = Buffer.concat([Buffer.from('a\n'), long, Buffer.from('\nb\n')])
  assert.deepEqual(linesOf(whole), { lines: ['a', 'b'], tooLong: 1 })
  const pieces = Array.from({ length: Math.ceil(whole.length / 1_000) }, (_, i) => whole.subarray(i * 1_000, (i + 1) * 1_000))
  assert.deepEqual(linesOf(...pieces), { lines: ['a', 'b'], tooLong: 1 })
  assert.deepEqual(linesOf(long, Buffer.from('y')), { lines: [], tooLong: 1 })
  const longest = Buffer.alloc(MAX_LINE_BYTES, 'x')
  assert.deepEqual(
    linesOf(longest.subarray(0, 5), longest.subarray(5), Buffer.from('\nb')).lines.map(({ length }) => length),
    [MAX_LINE_BYTES, 1],
  )
})
